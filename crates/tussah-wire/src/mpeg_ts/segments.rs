//! The search for segments of a transport stream that begin with key frames (RFC 8216, section 3).

use std::ops::Range;

use super::packet::{Packet, packets};
use super::program::{PAT_PID, Program};
use super::{PACKET_LEN, TICKS_PER_MS, WRAP, duration_ms};

const PACKET: u64 = PACKET_LEN as u64;

/// Bound, in segments: the maximum number that a search finds. A longer stream has longer segments.
pub const SEGMENTS_MAX: u64 = 10_000;

/// Bound, in lengths of a segment: the maximum distance from the place where a segment should end
/// to the key frame where it ends. If a stream has no key frame there, the segment becomes longer.
/// If there is only one key frame up to there, the search fails.
const REACH: u64 = 5;

/// The number of parts in which a segment's length is read.
const PARTS: u64 = 12;

/// The shortest and the longest part that is read at a time, in bytes.
const PART_MIN: u64 = 350 * PACKET;
const PART_MAX: u64 = 5570 * PACKET;

/// The distance, in bytes, from the beginning of a search to the first key frame that it accepts.
/// The tables that belong to a key frame are directly before it, and must not be missed.
const LEAD: u64 = 16 * PACKET;

/// The longest difference between the time stamps of two consecutive segments, in ticks. A clock
/// that begins again seems to advance by almost [`WRAP`].
const TICKS_MAX: u64 = 3600 * 1000 * TICKS_PER_MS;

/// The segments of a transport stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segments {
    /// The bytes with the tables (PAT and PMT) that a player needs before any segment. `None` if
    /// each segment begins with its own tables.
    pub init: Option<Range<u64>>,
    /// The segments, in file order. Each segment begins where the previous one ends. The bytes
    /// before the first key frame of the file belong to no segment.
    pub segments: Vec<Segment>,
    /// True if no segment needs frames of the previous one. Otherwise, a player that begins with a
    /// segment drops the few frames that are shown before its key frame (an open group of
    /// pictures).
    pub are_independent: bool,
}

/// A segment of a transport stream, which begins with a key frame or with the tables before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The range of the segment's bytes in the file.
    pub bytes: Range<u64>,
    /// The duration, in milliseconds; at least 1.
    pub duration_ms: u64,
}

/// A search for the segments of a file. The search reads no file: it says which bytes it needs
/// next.
///
/// A segment ends at the first key frame of the first video stream (or, without video, of the first
/// stream) after the place where the segment should end. If the tables of the program (PAT and PMT)
/// are directly before the key frame, the next segment begins with them. The search needs no bytes
/// between a key frame and the place where the next search begins.
///
/// ```
/// use tussah_wire::mpeg_ts::SegmentSearch;
///
/// # let file = vec![0; 1000];
/// let len = file.len() as u64;
/// if let Some(mut search) = SegmentSearch::new(&file, &file, len, 750_000) {
///     while let Some(wanted) = search.wanted() {
///         search.read(wanted.start, &file[wanted.start as usize..wanted.end as usize]);
///     }
///     println!("{:?}", search.segments());
/// }
/// ```
#[derive(Clone, Debug)]
pub struct SegmentSearch {
    program: Program,
    /// The length of the file.
    len: u64,
    duration_ms: u64,
    /// The mean length of the segments to find.
    segment: u64,
    /// The end of the last frame of the file.
    end: Option<u64>,
    points: Vec<Point>,
    /// The packet of the last point's key frame, until the frame after it has been examined.
    key: Option<u64>,
    /// True if each frame after a key frame is shown after it.
    are_independent: bool,
    /// The first byte that has not been read.
    at: u64,
    /// The first key frame at or after this byte is accepted.
    from: u64,
    /// The end of the bytes that may be read for the next point.
    to: u64,
    /// The last PAT, and whether a PMT followed it, if there have been only tables since.
    tables: Option<(u64, bool)>,
}

/// A point at which a segment begins.
#[derive(Clone, Debug)]
struct Point {
    /// The first byte of the tables, or of the key frame.
    at: u64,
    has_tables: bool,
    /// The time stamp of the key frame.
    ticks: u64,
}

impl SegmentSearch {
    /// Begins a search in a file of `len` bytes, of which `first` and `last` are the first and the
    /// last bytes. The segments will have about `segment` bytes, or more while the bit rate is
    /// above its mean.
    ///
    /// Returns `None` if the first bytes contain no tables of a program, or if the duration of the
    /// file is [unknown](duration_ms).
    #[must_use]
    pub fn new(first: &[u8], last: &[u8], len: u64, segment: u64) -> Option<Self> {
        // No file is longer, so sums and small multiples of lengths do not overflow.
        let len = len.min(1 << 60);
        let program = Program::find(first)?;
        let mut search = Self {
            end: end_of(last, program.main_pid),
            program,
            len,
            duration_ms: duration_ms(first, last)?,
            segment: segment.clamp(2 * LEAD, len.max(2 * LEAD)),
            points: Vec::new(),
            key: None,
            are_independent: true,
            at: 0,
            from: 0,
            to: 0,
            tables: None,
        };
        search.go_to(0, 0);
        Some(search)
    }

    /// Returns the range of bytes that the search needs next, which are within the file and at most
    /// 1 MiB. Returns `None` if the search is complete.
    #[must_use]
    pub fn wanted(&self) -> Option<Range<u64>> {
        let part = (self.segment / PARTS).clamp(PART_MIN, PART_MAX) / PACKET * PACKET;
        let range = self.at..self.to.min(self.at + part);
        (!range.is_empty()).then_some(range)
    }

    /// Examines bytes of the file. They should be the [wanted](Self::wanted) ones, or begin with
    /// the same byte; others are ignored.
    pub fn read(&mut self, at: u64, bytes: &[u8]) {
        let end = at.saturating_add(bytes.len() as u64);
        if at != self.at || end > self.len {
            return;
        }
        for (offset, packet) in packets(bytes) {
            let here = at + offset as u64;
            if here < self.at {
                continue; // It is before the beginning of the next search.
            }
            self.at = here + PACKET;
            if self.key.is_none() {
                self.find_key(here, packet);
            } else {
                self.examine_next(packet);
            }
        }
        // A rest that is shorter than a packet is read again, unless it is all that is left.
        if self.at == at || end >= self.to {
            self.at = self.at.max(end);
        }
        if self.at < self.to {
            return;
        }
        if let Some(key) = self.key.take() {
            return self.go_to(key, self.next_len());
        }
        if self.to == self.len {
            return;
        }
        match self.points.len() {
            0 | 1 => {
                self.points.clear();
                self.at = self.to;
            }
            _ => self.go_to(self.at, self.segment),
        }
    }

    /// Returns the segments. Returns `None` if the search is not complete, or if there are too few
    /// key frames.
    #[must_use]
    pub fn segments(&self) -> Option<Segments> {
        if self.wanted().is_some() || self.points.is_empty() {
            return None;
        }
        let nexts = self.points.iter().skip(1);
        let ends = nexts.map(|next| (next.at, Some(next.ticks)));
        let ends = ends.chain([(self.len, self.end)]);
        // The rest of a millisecond belongs to the next segment.
        let mut rest = 0;
        let segments = self.points.iter().zip(ends).map(|(point, (end, ticks))| {
            let ticks = ticks.and_then(|end| between(point.ticks, end));
            let ticks = ticks.unwrap_or_else(|| self.ticks_of(end - point.at)) + rest;
            rest = ticks % TICKS_PER_MS;
            Segment {
                bytes: point.at..end,
                duration_ms: (ticks / TICKS_PER_MS).max(1),
            }
        });
        let have_tables = self.points.iter().all(|point| point.has_tables);
        let Range { start, end } = self.program.tables;
        Some(Segments {
            init: (!have_tables).then_some(start as u64..end as u64),
            segments: segments.collect(),
            are_independent: self.are_independent,
        })
    }

    /// Continues the search at the first key frame from `distance` bytes after a packet on.
    fn go_to(&mut self, packet: u64, distance: u64) {
        self.from = packet + distance / PACKET * PACKET;
        self.to = self.len.min(self.from + REACH * self.segment);
        self.at = self.from.saturating_sub(LEAD).max(self.at).min(self.to);
        self.tables = None;
    }

    /// Returns the length of the next segment: the bytes of the mean duration, at the rate of the
    /// last segment.
    fn next_len(&self) -> u64 {
        let [.., last, next] = &*self.points else {
            return self.segment;
        };
        let Some(ticks) = between(last.ticks, next.ticks) else {
            return self.segment;
        };
        let len = u128::from(next.at - last.at) * u128::from(self.ticks_of(self.segment));
        let len = u64::try_from(len / u128::from(ticks)).unwrap_or(u64::MAX);
        let shortest = (self.segment / 4)
            .max(2 * LEAD)
            .max(self.len / SEGMENTS_MAX);
        len.clamp(shortest, shortest.max(self.segment * 4))
    }

    /// Returns the ticks of some bytes at the mean bit rate of the file.
    fn ticks_of(&self, bytes: u64) -> u64 {
        let ticks = u128::from(bytes) * u128::from(self.duration_ms * TICKS_PER_MS);
        u64::try_from(ticks / u128::from(self.len.max(1))).unwrap_or(TICKS_MAX)
    }

    /// Adds a point if this packet is the first one of a key frame.
    fn find_key(&mut self, here: u64, packet: Packet<'_>) {
        let pid = packet.pid();
        if pid == PAT_PID && packet.begins_unit() {
            self.tables = Some((here, false));
        } else if pid == self.program.map_pid {
            self.tables = self.tables.map(|(at, _)| (at, true));
        }
        if pid != self.program.main_pid {
            self.tables = self.tables.filter(|_| self.program.is_table(pid));
            return;
        }
        let tables = self.tables.take().filter(|(_, has_map)| *has_map);
        if here < self.from || !packet.is_random_access() {
            return;
        }
        if let Some(ticks) = packet.time_stamp() {
            self.key = Some(here);
            self.points.push(Point {
                at: tables.map_or(here, |(at, _)| at),
                has_tables: tables.is_some(),
                ticks,
            });
        }
    }

    /// Examines a packet after a key frame. The search goes on after the first packet of the next
    /// frame: only if that frame is shown before the key frame, it may need the frames before it.
    fn examine_next(&mut self, packet: Packet<'_>) {
        let stamp = packet.time_stamp();
        let stamp = stamp.filter(|_| packet.pid() == self.program.main_pid);
        let Some((key, stamp)) = self.key.zip(stamp) else {
            return;
        };
        let last = self.points.last();
        self.are_independent &= last.is_none_or(|last| between(stamp, last.ticks).is_none());
        self.key = None;
        self.go_to(key, self.next_len());
    }
}

/// Returns the ticks between two time stamps. Returns `None` if the clock has begun again.
fn between(begin: u64, end: u64) -> Option<u64> {
    let ticks = (end + WRAP - begin) % WRAP;
    (1..=TICKS_MAX).contains(&ticks).then_some(ticks)
}

/// Returns the end of the last frame of a stream in some bytes. The frame takes as long as there is
/// between the beginnings of the last two frames. Frames are not in the order of their time stamps.
fn end_of(bytes: &[u8], pid: u16) -> Option<u64> {
    let of_stream = packets(bytes).filter(|(_, packet)| packet.pid() == pid);
    let mut stamps = of_stream.filter_map(|(_, packet)| packet.time_stamp());
    let mut last = stamps.next()?;
    let mut frame = None;
    for stamp in stamps {
        if let Some(ticks) = between(last, stamp) {
            (last, frame) = (stamp, Some(ticks));
        } else if let Some(ticks) = between(stamp, last) {
            frame = Some(frame.map_or(ticks, |frame: u64| frame.min(ticks)));
        }
    }
    Some((last + frame.unwrap_or(0)) % WRAP)
}

#[cfg(test)]
mod tests;
