//! The tables that describe a program: the PAT (section 2.4.4.3) and the PMT (section 2.4.4.8).

use std::ops::Range;

use super::PACKET_LEN;
use super::packet::{Packet, packets};

/// The stream of the PAT.
pub(super) const PAT_PID: u16 = 0;

/// The stream of the packets without content.
const NULL_PID: u16 = 0x1fff;

/// The streams below this number contain tables about the whole transport stream.
const PROGRAMS_FROM: u16 = 0x20;

/// The first program of a transport stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Program {
    /// The stream of the PMT.
    pub(super) map_pid: u16,
    /// The first video stream. A program without video has the first stream here.
    pub(super) main_pid: u16,
    /// The offsets of a PAT and a PMT.
    pub(super) tables: Range<usize>,
}

impl Program {
    /// Finds the first program in the first bytes of a transport stream.
    pub(super) fn find(bytes: &[u8]) -> Option<Self> {
        let (pat_at, pat) = section(packets(bytes), PAT_PID, 0x00)?;
        let programs = pat.get(8..pat.len().checked_sub(4)?)?;
        // The program with the number 0 is a table about the network.
        let mut programs = programs.as_chunks::<4>().0.iter();
        let &[_, _, high, low] = programs.find(|[a, b, ..]| (*a, *b) != (0, 0))?;
        let map_pid = pid(high, low);
        let after = packets(bytes).skip_while(|(at, _)| *at < pat_at.end);
        let (map_at, map) = section(after, map_pid, 0x02)?;
        Some(Self {
            map_pid,
            main_pid: main_pid(&map)?,
            tables: pat_at.start..map_at.end,
        })
    }

    /// Returns whether a stream contains tables or nothing, rather than video or sound.
    pub(super) fn is_table(&self, pid: u16) -> bool {
        pid < PROGRAMS_FROM || pid == self.map_pid || pid == NULL_PID
    }
}

/// Returns the first section of a stream whose table has the given number. The range contains the
/// packets of the section.
fn section<'a>(
    packets: impl Iterator<Item = (usize, Packet<'a>)>,
    of: u16,
    table: u8,
) -> Option<(Range<usize>, Vec<u8>)> {
    let (mut start, mut section) = (0, Vec::new());
    for (at, packet) in packets.filter(|(_, packet)| packet.pid() == of) {
        let mut part = packet.payload();
        if packet.begins_unit() {
            // The first byte is the distance to the section.
            let (&distance, rest) = part.split_first()?;
            part = rest.get(usize::from(distance)..)?;
            section.clear();
            start = at;
        } else if section.is_empty() {
            continue;
        }
        section.extend_from_slice(part);
        let &[number, high, low, ..] = &*section else {
            section.clear();
            continue;
        };
        // The length has 12 bits, so a section is never longer than 4 KiB.
        let len = 3 + usize::from(u16::from_be_bytes([high & 0x0f, low]));
        if number != table {
            section.clear();
        } else if section.len() >= len {
            section.truncate(len);
            return Some((start..at + PACKET_LEN, section));
        }
    }
    None
}

/// Returns the first video stream of a PMT, or its first stream.
fn main_pid(map: &[u8]) -> Option<u16> {
    let mut streams = map.get(..map.len().checked_sub(4)?)?;
    let &[high, low] = streams.get(10..12)? else {
        return None;
    };
    streams = streams.get(12 + length(high, low)..)?;
    let mut first = None;
    while let &[kind, a, b, c, d, ref rest @ ..] = streams {
        let pid = pid(a, b);
        if is_video(kind) {
            return Some(pid);
        }
        first = first.or(Some(pid));
        streams = rest.get(length(c, d)..).unwrap_or_default();
    }
    first
}

/// Returns whether a stream of this type is video (table 2-34): MPEG-1, MPEG-2, MPEG-4, H.264,
/// H.265, H.266, AVS, Dirac or VC-1.
fn is_video(kind: u8) -> bool {
    matches!(
        kind,
        0x01 | 0x02 | 0x10 | 0x1b | 0x24 | 0x33 | 0x42 | 0xd1 | 0xea
    )
}

fn pid(high: u8, low: u8) -> u16 {
    u16::from_be_bytes([high & 0x1f, low])
}

fn length(high: u8, low: u8) -> usize {
    u16::from_be_bytes([high & 0x0f, low]).into()
}
