//! The load of a waiting stage in the last second or two.

use super::super::Sample;

/// The length of a period, and the time after which a servlet that is not needed is removed, in
/// nanoseconds. It may take up to twice as long. SEDA removes threads that are idle for a specified
/// period (§3.4).
const PERIOD_NS: u64 = 1_000_000_000;

/// The load in the current period and in the one before it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lately {
    this: Period,
    last: Period,
}

#[derive(Clone, Copy, Debug, Default)]
struct Period {
    began_ns: u64,
    arrived: u64,
    /// The largest number of servlets that were needed at a time.
    most: usize,
}

impl Lately {
    /// Returns a sample with the arrivals of both periods. The rate of the few arrivals of a single
    /// sample varies too much.
    pub(super) fn sample<'a>(&mut self, sample: &Sample<'a>, now_ns: u64) -> Sample<'a> {
        let age_ns = now_ns.saturating_sub(self.this.began_ns);
        if age_ns >= PERIOD_NS {
            let next = Period {
                began_ns: now_ns,
                ..Period::default()
            };
            // The stage was idle if the period is longer than two.
            self.last = if age_ns < 2 * PERIOD_NS {
                self.this
            } else {
                next
            };
            self.this = next;
        }
        self.this.arrived = self.this.arrived.saturating_add(sample.arrived);
        let interval_ns = now_ns.saturating_sub(self.last.began_ns);
        if interval_ns <= sample.interval_ns {
            return *sample;
        }
        Sample {
            arrived: self.this.arrived.saturating_add(self.last.arrived),
            interval_ns,
            ..*sample
        }
    }

    /// Adds the number of servlets that are needed now, and returns the largest number.
    pub(super) fn needed(&mut self, servlets: usize) -> usize {
        self.this.most = self.this.most.max(servlets);
        self.this.most.max(self.last.most)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{MS, quiet};
    use super::*;

    #[test]
    fn numbers_are_forgotten_after_one_to_two_periods() {
        let mut lately = Lately::default();
        let mut check = |tenths: u64, servlets, expected| {
            lately.sample(&quiet(), tenths * PERIOD_NS / 10);
            assert_eq!(lately.needed(servlets), expected, "after {tenths} tenths");
        };
        check(0, 57, 57);
        check(9, 3, 57);
        check(10, 4, 57);
        check(19, 5, 57);
        check(20, 3, 5);
        check(29, 6, 6);
        check(30, 2, 6);
        // Nothing was needed in the meantime.
        check(55, 1, 1);
        check(54, 2, 2);
    }

    #[test]
    fn the_rate_is_that_of_one_to_two_periods() {
        let mut lately = Lately::default();
        let mut check = |at_ms: u64, interval_ms: u64, arrived, expected| {
            let sample = Sample {
                interval_ns: interval_ms * MS,
                arrived,
                ..quiet()
            };
            let sample = lately.sample(&sample, at_ms * MS);
            let found = (sample.arrived, sample.interval_ns / MS);
            assert_eq!(found, expected, "after {at_ms} ms");
        };
        check(100, 100, 10, (10, 100));
        check(300, 200, 10, (20, 300));
        check(1100, 800, 10, (30, 1100));
        check(2000, 900, 10, (40, 2000));
        check(2100, 100, 10, (30, 1000));
        // The stage was idle; the ten arrivals may have come at the end.
        check(9000, 6900, 10, (10, 6900));
        check(9010, 10, 10, (10, 10));
        check(9020, 10, 10, (30, 20));
    }
}
