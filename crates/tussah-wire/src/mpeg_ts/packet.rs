//! Packets of a transport stream (section 2.4.3).

use super::PACKET_LEN;

/// The first byte of each packet.
pub(super) const SYNC: u8 = 0x47;

/// A packet, which begins with the sync byte.
#[derive(Clone, Copy)]
pub(super) struct Packet<'a>(&'a [u8; PACKET_LEN]);

/// Returns the packets in some bytes, each with its offset. The bytes may begin within a packet.
pub(super) fn packets(bytes: &[u8]) -> impl Iterator<Item = (usize, Packet<'_>)> {
    let start = (0..PACKET_LEN).find(|&start| is_aligned(bytes, start));
    let start = start.unwrap_or(bytes.len());
    let (whole, _) = bytes[start..].as_chunks::<PACKET_LEN>();
    let packets = whole.iter().enumerate();
    packets
        .filter(|(_, packet)| packet[0] == SYNC)
        .map(move |(number, packet)| (start + number * PACKET_LEN, Packet(packet)))
}

/// Returns whether packets begin at an offset: the sync bytes of three packets are there.
fn is_aligned(bytes: &[u8], start: usize) -> bool {
    (0..3).all(|number| bytes.get(start + number * PACKET_LEN) == Some(&SYNC))
}

impl<'a> Packet<'a> {
    /// Returns the number of the stream that the packet is a part of.
    pub(super) fn pid(self) -> u16 {
        u16::from_be_bytes([self.0[1] & 0x1f, self.0[2]])
    }

    /// Returns whether a PES packet or a section begins in this packet.
    pub(super) fn begins_unit(self) -> bool {
        self.0[1] & 0x40 != 0
    }

    /// Returns the adaptation field (section 2.4.3.4) after its length.
    fn adaptation(self) -> &'a [u8] {
        let end = match self.0[3] & 0x20 {
            0 => 5,
            _ => 5 + usize::from(self.0[4]),
        };
        self.0.get(5..end).unwrap_or_default()
    }

    pub(super) fn payload(self) -> &'a [u8] {
        let start = match self.0[3] & 0x30 {
            0x10 => 4,
            0x30 => 5 + usize::from(self.0[4]),
            _ => PACKET_LEN,
        };
        self.0.get(start..).unwrap_or_default()
    }

    /// Returns whether a decoder can begin at this packet, which is that of a key frame
    /// (`random_access_indicator`).
    pub(super) fn is_random_access(self) -> bool {
        let flags = self.adaptation().first();
        flags.is_some_and(|flags| flags & 0x40 != 0)
    }

    /// Returns the clock reference (PCR) in ticks of 90 kHz, if there is one.
    pub(super) fn clock_reference(self) -> Option<u64> {
        let &[flags, p, q, r, s, t, _, ..] = self.adaptation() else {
            return None;
        };
        let high = u64::from(u32::from_be_bytes([p, q, r, s]));
        (flags & 0x10 != 0).then_some(high << 1 | u64::from(t >> 7))
    }

    /// Returns the presentation time stamp (PTS, section 2.4.3.7) of the PES packet that begins
    /// here, in ticks of 90 kHz.
    pub(super) fn time_stamp(self) -> Option<u64> {
        let &[0, 0, 1, _, _, _, marker, flags, _, p, q, r, s, t, ..] = self.payload() else {
            return None;
        };
        let has_stamp = self.begins_unit() && marker & 0xc0 == 0x80 && flags & 0x80 != 0;
        let [p, q, r, s, t] = [p & 0x0e, q, r & 0xfe, s, t].map(u64::from);
        has_stamp.then_some(p << 29 | q << 22 | r << 14 | s << 7 | t >> 1)
    }
}
