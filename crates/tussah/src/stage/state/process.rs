//! The number of servlets in all stages of a network.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// The interval of the moving average, as in Aspen §4.
const MONITOR_NS: u64 = 100_000_000;
/// The weight of each new value in the moving average; the Aspen paper does not define its average.
const PART: f64 = 0.125;

/// The number of servlets of the stages that share this value, and its moving average. The numbers
/// are only hints: accesses to them order no other memory accesses.
#[derive(Debug, Default)]
pub(crate) struct Process {
    servlets: AtomicI64,
    /// The average, as the bits of an `f64`.
    mean: AtomicU64,
    last_ns: AtomicU64,
}

impl Process {
    pub(crate) fn changed(&self, by: i64) {
        self.servlets.fetch_add(by, Ordering::Relaxed);
    }

    pub(crate) fn servlets(&self) -> usize {
        usize::try_from(self.servlets.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Returns the moving average, updated to the present.
    pub(crate) fn mean(&self, now_ns: u64) -> f64 {
        let last_ns = self.last_ns.load(Ordering::Relaxed);
        let mean = f64::from_bits(self.mean.load(Ordering::Relaxed));
        // Before the end of the first period, the average is the current value.
        let mean = if last_ns == 0 {
            self.servlets() as f64
        } else {
            mean
        };
        let periods = now_ns.saturating_sub(last_ns) / MONITOR_NS;
        if periods == 0 {
            return mean;
        }
        // The first thread to arrive updates it.
        let next_ns = last_ns + periods * MONITOR_NS;
        let won =
            self.last_ns
                .compare_exchange(last_ns, next_ns, Ordering::Relaxed, Ordering::Relaxed);
        if won.is_err() {
            return mean;
        }
        let kept = (1.0 - PART).powi(i32::try_from(periods).unwrap_or(i32::MAX));
        let moved = self.servlets() as f64 * (1.0 - kept) + mean * kept;
        self.mean.store(moved.to_bits(), Ordering::Relaxed);
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_average_begins_with_what_there_is() {
        let process = Process::default();
        process.changed(8);
        assert_eq!(process.mean(MONITOR_NS / 2), 8.0);
        assert_eq!(process.mean(MONITOR_NS), 8.0);
        process.changed(8);
        assert_eq!(process.mean(MONITOR_NS), 8.0);
        assert_eq!(process.mean(2 * MONITOR_NS), 9.0);
    }
}
