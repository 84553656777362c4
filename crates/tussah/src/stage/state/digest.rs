//! Percentiles of times, in constant memory.

use std::fmt;
use std::time::Duration;

/// Bound, in parts of a power of two: the resolution of a distribution. A percentile is at most
/// 1/16 too high.
const PARTS: u32 = 16;
const PART_BITS: u32 = PARTS.trailing_zeros();
const BUCKETS: usize = ((64 - PART_BITS + 1) * PARTS) as usize;

/// A histogram of times, such as the response times of a stage. A percentile exceeds the exact
/// value by at most 1/16 of that value, because the times from one power of two to the next share
/// 16 buckets, as in HdrHistogram. A histogram takes 4 KB of memory.
///
/// See [`Network::stats_and_times`](crate::stage::Network::stats_and_times) for an example.
#[derive(Clone)]
pub struct Digest {
    counts: Box<[u32; BUCKETS]>,
    /// The range of buckets that may have counts, which makes sparse histograms cheap to read and
    /// clear.
    low: usize,
    high: usize,
    total: u64,
    sum_ns: u128,
    min_ns: u64,
}

impl Default for Digest {
    fn default() -> Self {
        Self {
            counts: Box::new([0; BUCKETS]),
            low: BUCKETS,
            high: 0,
            total: 0,
            sum_ns: 0,
            min_ns: u64::MAX,
        }
    }
}

fn bucket(ns: u64) -> usize {
    if ns < u64::from(PARTS) {
        return ns as usize;
    }
    let exponent = ns.ilog2();
    let part = (ns >> (exponent - PART_BITS)) as u32 & (PARTS - 1);
    ((exponent - PART_BITS + 1) * PARTS + part) as usize
}

/// Returns the largest time of a bucket.
fn upper_ns(bucket: usize) -> u64 {
    let bucket = bucket as u32;
    if bucket < PARTS {
        return u64::from(bucket);
    }
    let exponent = bucket / PARTS - 1;
    let low = u64::from(PARTS + bucket % PARTS) << exponent;
    low + (1 << exponent) - 1
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Digest")
            .field("count", &self.count())
            .field("p50", &self.percentile(500))
            .field("p90", &self.percentile(900))
            .field("p99", &self.percentile(990))
            .finish()
    }
}

impl Digest {
    pub(crate) fn add(&mut self, ns: u64, count: u64) {
        let at = bucket(ns);
        let seen = &mut self.counts[at];
        *seen = seen.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        self.low = self.low.min(at);
        self.high = self.high.max(at + 1);
        self.total += count;
        self.sum_ns += u128::from(ns) * u128::from(count);
        self.min_ns = self.min_ns.min(ns);
    }

    /// Returns the quantile of the times at a share in thousandths, or 0 if there are no times.
    pub(crate) fn permille(&self, permille: u64) -> u64 {
        let wanted = (self.total * permille).div_ceil(1000).max(1);
        let mut seen = 0;
        for at in self.low..self.high {
            seen += u64::from(self.counts[at]);
            if seen >= wanted {
                return upper_ns(at);
            }
        }
        0
    }

    /// Returns a histogram of the times added since `earlier`, an older copy of this histogram.
    #[must_use]
    pub fn since(&self, earlier: &Digest) -> Digest {
        let mut since = self.clone();
        for at in earlier.low..earlier.high {
            since.counts[at] = since.counts[at].saturating_sub(earlier.counts[at]);
        }
        since.total = since.total.saturating_sub(earlier.total);
        since.sum_ns = since.sum_ns.saturating_sub(earlier.sum_ns);
        since
    }

    /// Adds all times of `other` to this histogram.
    pub fn merge(&mut self, other: &Digest) {
        for at in other.low..other.high {
            self.counts[at] = self.counts[at].saturating_add(other.counts[at]);
        }
        self.low = self.low.min(other.low);
        self.high = self.high.max(other.high);
        self.total += other.total;
        self.sum_ns += other.sum_ns;
        self.min_ns = self.min_ns.min(other.min_ns);
    }

    /// Returns the number of recorded times.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.total
    }

    /// Returns the sum of all recorded times.
    #[must_use]
    pub fn sum(&self) -> Duration {
        Duration::from_nanos(u64::try_from(self.sum_ns).unwrap_or(u64::MAX))
    }

    /// Returns a percentile of the recorded times; `permille` is in thousandths, so 500 is the
    /// median. Returns zero if the histogram is empty.
    #[must_use]
    pub fn percentile(&self, permille: u64) -> Duration {
        Duration::from_nanos(self.permille(permille))
    }

    /// Returns the approximate number of recorded times that are at most `time`. Times that exceed
    /// `time` by up to 1/16 of `time` may be counted too.
    #[must_use]
    pub fn at_most(&self, time: Duration) -> u64 {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let seen = self.counts.iter().take(bucket(ns) + 1);
        seen.copied().map(u64::from).sum()
    }

    pub(crate) fn mean_ns(&self) -> u64 {
        let mean = self.sum_ns.checked_div(u128::from(self.total));
        mean.map_or(0, |mean| mean as u64)
    }

    /// Returns the shortest time; 0 if there are none.
    pub(crate) fn min_ns(&self) -> u64 {
        if self.total == 0 { 0 } else { self.min_ns }
    }

    pub(crate) fn clear(&mut self) {
        if self.total == 0 {
            return;
        }
        self.counts[self.low..self.high].fill(0);
        (self.low, self.high) = (BUCKETS, 0);
        (self.total, self.sum_ns, self.min_ns) = (0, 0, u64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{BUCKETS, Digest, bucket, upper_ns};

    #[test]
    fn each_time_is_in_a_bucket_that_is_at_most_a_sixteenth_wide() {
        for shift in 0..64 {
            for more in [0, 1, 7] {
                let ns = (1u64 << shift).saturating_add(more << shift.max(4) >> 4);
                let at = bucket(ns);
                assert!(at < BUCKETS, "{ns}");
                assert!(upper_ns(at) >= ns, "{ns}: {}", upper_ns(at));
                assert!(upper_ns(at) - ns <= ns / 16, "{ns}: {}", upper_ns(at));
            }
        }
    }

    #[test]
    fn percentiles_of_a_thousand_times() {
        let mut digest = Digest::default();
        assert_eq!(digest.permille(500), 0);
        for ns in 1..=1000 {
            digest.add(ns * 1000, 1);
        }
        let near = |permille: u64, expected: u64| {
            let found = digest.permille(permille);
            assert!(
                found >= expected && found <= expected * 17 / 16,
                "{permille}: {found}"
            );
        };
        near(500, 500_000);
        near(900, 900_000);
        near(990, 990_000);
        assert_eq!(digest.mean_ns(), 500_500);
        assert_eq!(digest.min_ns(), 1000);
        let mut later = digest.clone();
        later.add(3_000_000, 10);
        let since = later.since(&digest);
        assert_eq!((since.count(), since.mean_ns()), (10, 3_000_000));
        assert!((3_000_000..3_200_000).contains(&since.permille(10)));
        let mut both = since.clone();
        both.merge(&digest);
        assert_eq!((both.count(), both.sum()), (1010, later.sum()));
        assert_eq!(both.percentile(990), later.percentile(990));
        let at_most = |us| both.at_most(Duration::from_micros(us));
        assert!((500..=532).contains(&at_most(500)), "{}", at_most(500));
        assert_eq!([0, 1000, 9_999_999].map(at_most), [0, 1000, 1010]);
        assert_eq!(Digest::default().at_most(Duration::MAX), 0);
        digest.clear();
        assert_eq!(
            (digest.count(), digest.permille(500), digest.min_ns()),
            (0, 0, 0)
        );
    }
}
