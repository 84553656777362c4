//! The duration of an MPEG transport stream, whose clock may jump.
//!
//! Recordings that were joined, or cut out of a broadcast, have clocks that jump. The difference
//! between the last and the first reference is then not the duration. Samples in between show most
//! jumps.

use tussah_wire::mpeg_ts::duration_ms;

/// The number of intervals between the samples.
const INTERVALS: u64 = 8;

/// The length of the samples in between, in bytes.
const SAMPLE_BYTES: u64 = 64 << 10;

/// The ratio of an interval's bit rate to that of the median interval, above or below which the
/// clock has jumped.
const RATIO: u64 = 32;

/// A longer interval, in milliseconds, is a jump backwards. A clock begins again after 26.5 hours.
const INTERVAL_MS_MAX: u64 = 13 * 3600 * 1000;

/// The duration of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clock {
    /// In milliseconds. An estimate if the clock jumps.
    pub(super) duration_ms: u64,
    pub(super) jumps: bool,
}

impl Clock {
    /// Reads the clock of a file of `len` bytes, of which `first` and `last` are the first and the
    /// last bytes. Returns `None` if the file has no clock, or one that always jumps.
    pub(super) fn read(
        len: u64,
        first: &[u8],
        last: &[u8],
        read: impl Fn(u64, u64) -> Option<Vec<u8>>,
    ) -> Option<Self> {
        let duration =
            |before: &[u8], after: &[u8]| duration_ms(before, after).filter(|ms| *ms > 0);
        let whole = duration(first, last)?;
        let between = (1..INTERVALS).filter_map(|number| {
            let at = len / INTERVALS * number;
            let bytes = read(at, SAMPLE_BYTES.min(len - at))?;
            Some((at, bytes))
        });
        let last_at = len - last.len() as u64;
        // The bytes and the milliseconds of each interval.
        let mut intervals: Vec<(u64, u64)> = Vec::new();
        let mut before = (0, first.to_vec());
        for (at, after) in between.chain([(last_at, last.to_vec())]) {
            // A sample without a reference belongs to the interval around it.
            if let Some(ms) = duration(&before.1, &after) {
                intervals.push((at + after.len() as u64 - before.0, ms));
                before = (at, after);
            }
        }
        let count = intervals.len();
        intervals.retain(|(_, ms)| *ms <= INTERVAL_MS_MAX);
        intervals.sort_by_key(|(bytes, ms)| bytes / ms);
        // The lower one of two, because a jump backwards can make a rate only higher.
        let median = intervals.get(intervals.len().saturating_sub(1) / 2);
        let median = median.map_or(1, |(bytes, ms)| (bytes / ms).max(1));
        intervals.retain(|(bytes, ms)| {
            let rate = bytes / ms;
            rate <= RATIO * median && rate >= median / RATIO
        });
        if intervals.len() == count {
            return Some(Self {
                duration_ms: whole,
                jumps: false,
            });
        }
        let sum = |part: fn(&(u64, u64)) -> u64| intervals.iter().map(part).sum::<u64>();
        let (bytes, ms) = (sum(|it| it.0), sum(|it| it.1));
        let duration = (u128::from(len) * u128::from(ms)).checked_div(bytes.into())?;
        Some(Self {
            duration_ms: u64::try_from(duration).unwrap_or(u64::MAX).max(1),
            jumps: true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PACKET: usize = 188;

    /// Returns packets of a stream of 10 packets a second, each with the time of the clock in
    /// milliseconds.
    fn stream(ms: impl IntoIterator<Item = u64>) -> Vec<u8> {
        let packets = ms.into_iter().flat_map(|ms| {
            let [p, q, r, s] = (((ms * 90) >> 1) as u32).to_be_bytes();
            let mut packet = vec![0x47, 1, 0, 0x30, 7, 0x10, p, q, r, s, 0, 0];
            packet.resize(PACKET, 0xff);
            packet
        });
        packets.collect()
    }

    fn clock(file: &[u8]) -> Option<Clock> {
        let part = file.len().min(20 * PACKET);
        let (first, last) = (&file[..part], &file[file.len() - part..]);
        Clock::read(file.len() as u64, first, last, |at, len| {
            let end = (at + len.min(20 * PACKET as u64)) as usize;
            Some(file[at as usize..end.min(file.len())].to_vec())
        })
    }

    fn seconds(from: u64, count: u64) -> impl Iterator<Item = u64> {
        (0..10 * count).map(move |tenth| 1000 * from + 100 * tenth)
    }

    #[test]
    fn a_clock_that_jumps_is_recognized() {
        let check = |parts: &[(u64, u64)], jumps: bool| {
            let all = parts.iter().flat_map(|&(from, count)| seconds(from, count));
            let expected = 1000 * parts.iter().map(|part| part.1).sum::<u64>();
            let clock = clock(&stream(all)).expect("a clock");
            assert_eq!(clock.jumps, jumps, "{parts:?}");
            let found = clock.duration_ms;
            let range = expected * 8 / 10..=expected * 12 / 10;
            assert!(range.contains(&found), "{parts:?}: {found}, not {expected}");
        };
        check(&[(0, 600)], false);
        check(&[(90_000, 6000)], false); // the clock begins again
        check(&[(0, 600), (0, 600)], true);
        check(&[(1000, 600), (0, 600)], true);
        check(&[(0, 600), (0, 10)], true);
        check(&[(0, 600), (80_000, 600)], true);
        check(&[(0, 200), (0, 200), (0, 200)], true);
        check(&[(0, 150), (0, 150), (0, 150), (0, 150), (0, 600)], true);
    }

    #[test]
    fn a_file_without_a_clock() {
        assert_eq!(clock(&[]), None);
        assert_eq!(clock(&[0; 10_000]), None);
        assert_eq!(clock(&stream([7; 100])), None, "it stands still");
    }

    #[test]
    fn a_short_file() {
        for count in 4..100 {
            let clock = clock(&stream(seconds(5, 10).take(count))).expect("a clock");
            let expected = Clock {
                duration_ms: 100 * (count as u64 - 1),
                jumps: false,
            };
            assert_eq!(clock, expected);
        }
    }

    proptest! {
        #[test]
        fn no_clock_makes_it_panic(times: Vec<u64>, cut in 0..400_usize) {
            let mut file = stream(times.into_iter().map(|ms| ms % (1 << 26)));
            file.truncate(file.len().saturating_sub(cut));
            let _ = clock(&file); // the result does not matter, a panic would
            let mut ticks = stream([0, 0, 0, 1, 1, 1]);
            ticks.drain(..cut.min(ticks.len()));
            let _ = clock(&ticks);
        }
    }
}
