//! Percentiles of times, in a fixed amount of memory.

/// Bound, in parts of a power of two: so a percentile is at most 1/16 too high.
const PARTS: u32 = 16;
const PART_BITS: u32 = PARTS.trailing_zeros();
const BUCKETS: usize = ((64 - PART_BITS + 1) * PARTS) as usize;

/// How often which time was seen: buckets of a sixteenth of a power of two each, as in HdrHistogram.
#[derive(Clone)]
pub(crate) struct Digest {
    counts: Box<[u32; BUCKETS]>,
    /// Buckets that may have counts, so that sparse ones are cheap to look at and to clear.
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

/// The largest time of a bucket.
fn upper_ns(bucket: usize) -> u64 {
    let bucket = bucket as u32;
    if bucket < PARTS {
        return u64::from(bucket);
    }
    let exponent = bucket / PARTS - 1;
    let low = u64::from(PARTS + bucket % PARTS) << exponent;
    low + (1 << exponent) - 1
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

    /// The time that so many of a thousand don't exceed; 0 if nothing was seen.
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

    /// What was added since `earlier`, which this one was once; its shortest time is not known.
    pub(crate) fn since(&self, earlier: &Digest) -> Digest {
        let mut since = self.clone();
        for at in earlier.low..earlier.high {
            since.counts[at] -= earlier.counts[at];
        }
        since.total -= earlier.total;
        since.sum_ns -= earlier.sum_ns;
        since
    }

    pub(crate) fn count(&self) -> u64 {
        self.total
    }

    pub(crate) fn mean_ns(&self) -> u64 {
        let mean = self.sum_ns.checked_div(u128::from(self.total));
        mean.map_or(0, |mean| mean as u64)
    }

    /// The shortest time seen; 0 if nothing was.
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
        digest.clear();
        assert_eq!(
            (digest.count(), digest.permille(500), digest.min_ns()),
            (0, 0, 0)
        );
    }
}
