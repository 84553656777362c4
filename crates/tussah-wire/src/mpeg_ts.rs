//! The duration and the segments of an MPEG transport stream (ISO/IEC 13818-1).

mod packet;
mod program;
mod segments;

use packet::packets;
pub use segments::{SEGMENTS_MAX, Segment, SegmentSearch, Segments};

/// The length of a packet of a transport stream, in bytes.
pub const PACKET_LEN: usize = 188;

/// The ticks of a clock per millisecond.
const TICKS_PER_MS: u64 = 90;

/// The ticks after which a clock begins again.
const WRAP: u64 = 1 << 33;

/// Returns the duration of a stream in milliseconds, from its first and its last bytes. The
/// function uses the program clock of the first clock reference (PCR, section 2.4.3.5) in `first`.
/// The duration is the difference between this reference and the clock's last reference in `last`.
///
/// Returns `None` if the bytes are not a transport stream, or if `last` contains no later reference
/// of the same clock. If the clock has a discontinuity within the stream, the result is wrong.
///
/// ```
/// assert_eq!(tussah_wire::mpeg_ts::duration_ms(b"not a stream", b"of packets"), None);
/// ```
pub fn duration_ms(first: &[u8], last: &[u8]) -> Option<u64> {
    let (clock, begin) = references(first).next()?;
    let (_, end) = references(last).filter(|(of, _)| *of == clock).last()?;
    let ticks = (end + WRAP - begin) % WRAP;
    (ticks > 0).then_some(ticks / TICKS_PER_MS)
}

/// Returns the clock references in some bytes: the number of the clock (PID), and the time in
/// ticks of 90 kHz.
fn references(bytes: &[u8]) -> impl Iterator<Item = (u16, u64)> {
    packets(bytes).filter_map(|(_, packet)| Some((packet.pid(), packet.clock_reference()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use packet::SYNC;
    use proptest::prelude::*;

    /// Returns a packet with a clock reference, if there is one.
    fn packet(pid: u16, ticks: Option<u64>) -> Vec<u8> {
        let [b, c] = pid.to_be_bytes();
        let mut packet = vec![SYNC, b, c, 0x10];
        if let Some(ticks) = ticks {
            let [p, q, r, s] = ((ticks >> 1) as u32).to_be_bytes();
            packet[3] = 0x30;
            packet.extend([7, 0x10, p, q, r, s, ((ticks & 1) as u8) << 7, 0]);
        }
        packet.resize(PACKET_LEN, 0xff);
        packet
    }

    fn check(first: &[Vec<u8>], last: &[Vec<u8>], expected: Option<u64>) {
        assert_eq!(duration_ms(&first.concat(), &last.concat()), expected);
    }

    #[test]
    fn the_duration_is_the_difference_of_the_clocks() {
        let none = || packet(0, None);
        let at = |pid, ms| packet(pid, Some(ms * TICKS_PER_MS % WRAP));
        let first = [none(), at(256, 1000), at(256, 1040), none()];
        check(&first, &[none(), at(256, 60_900), none()], Some(59_900));
        check(
            &first,
            &[at(256, 60_900), at(256, 61_000), none()],
            Some(60_000),
        );
        // The last bytes begin within a packet, and another program has a clock of its own.
        let cut = none()[100..].to_vec();
        check(
            &first,
            &[cut, none(), at(256, 3000), at(300, 9000)],
            Some(2000),
        );
        // The clock begins again after 26.5 hours.
        let end = WRAP / TICKS_PER_MS;
        let first = [none(), at(256, end - 1000), none()];
        check(&first, &[none(), at(256, end + 1000), none()], Some(2000));
        check(&first, &[none(), none(), none()], None);
        check(&[none(), none(), none()], &first, None);
        check(&first, &first, None);
        check(&[], &[], None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(first: Vec<u8>, mut last: Vec<u8>, at in 0..188_usize) {
            let _ = duration_ms(&first, &last);
            for number in 0..3 {
                let at = at + number * PACKET_LEN;
                last.resize(last.len().max(at + PACKET_LEN), 0xff);
                last[at] = SYNC;
            }
            let _ = duration_ms(&last, &last); // the result does not matter, a panic would
        }
    }
}
