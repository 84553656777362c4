//! Instruments that all workloads share: work, samples, a latch, memory, CPU time.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::Thread;
use std::time::Duration;

/// Steps of [`work`] that cost about 80 ns on a 3 to 4 GHz Zen core.
pub const WORK_80_NS: u32 = 52;

/// Runs a chain of dependent instructions, the same for every peer: `steps` rounds of xorshift.
#[inline(never)]
pub fn work(mut x: u64, steps: u32) -> u64 {
    for _ in 0..steps {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    x
}

/// Returns Jain's index from "A Quantitative Measure of Fairness and Discrimination" (1984),
/// section 3, or 0 without responses.
pub fn jain(shares: &[u64]) -> f64 {
    let sum: f64 = shares.iter().map(|&share| share as f64).sum();
    let squares: f64 = shares.iter().map(|&share| (share as f64).powi(2)).sum();
    if squares == 0.0 {
        return 0.0;
    }
    sum * sum / (shares.len() as f64 * squares)
}

/// Durations that any OS thread records without a lock.
#[derive(Debug)]
pub struct Samples {
    slots: Box<[AtomicU64]>,
    next: AtomicUsize,
}

impl Samples {
    /// Allocates room for `capacity` samples; further samples are counted but not stored.
    ///
    /// The samples live until the process ends, after one run.
    pub fn leak(capacity: usize) -> &'static Samples {
        let slots = (0..capacity).map(|_| AtomicU64::new(0)).collect();
        Box::leak(Box::new(Samples {
            slots,
            next: AtomicUsize::new(0),
        }))
    }

    /// Records one duration.
    pub fn record(&self, duration: Duration) {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        if let Some(slot) = self.slots.get(index) {
            slot.store(duration.as_nanos() as u64, Ordering::Relaxed);
        }
    }

    /// Returns the number of recorded durations.
    pub fn len(&self) -> usize {
        self.next.load(Ordering::Relaxed)
    }

    /// Returns the value that `per_mille` of all samples do not exceed (by nearest rank), in
    /// nanoseconds.
    pub fn quantile_ns(&self, per_mille: usize) -> f64 {
        let kept = self.len().min(self.slots.len());
        assert!(kept > 0, "nothing was recorded");
        let mut values: Vec<u64> = self.slots[..kept]
            .iter()
            .map(|slot| slot.load(Ordering::Relaxed))
            .collect();
        values.sort_unstable();
        // Integer arithmetic, since 99.9 % of 1,000 is not quite 999 in floating point.
        let rank = (kept * per_mille).div_ceil(1000);
        values[rank.clamp(1, kept) - 1] as f64
    }
}

/// A latch that blocks the OS thread that made it until `count_down` has been called `count` times.
#[derive(Debug)]
pub struct Latch {
    left: AtomicUsize,
    waiter: Thread,
}

impl Latch {
    /// Makes a latch for the calling OS thread; it lives until the process ends, after one run.
    pub fn leak(count: usize) -> &'static Latch {
        let waiter = std::thread::current();
        Box::leak(Box::new(Latch {
            left: AtomicUsize::new(count),
            waiter,
        }))
    }

    /// Counts one event.
    pub fn count_down(&self) {
        // Release and acquire: the waiter and the last thread to count down see everything that the
        // other threads did before.
        let before = self.left.fetch_sub(1, Ordering::AcqRel);
        assert!(before > 0, "more calls of count_down than expected");
        if before == 1 {
            self.waiter.unpark();
        }
    }

    /// Waits until the count is 0. Only the OS thread that made the latch may call it.
    pub fn wait(&self) {
        // Acquire: pairs with the release in `count_down`.
        while self.left.load(Ordering::Acquire) != 0 {
            std::thread::park();
        }
    }
}

/// Returns the resident memory of this process, in bytes.
pub fn resident_bytes() -> f64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("Linux has /proc/self/statm");
    let pages: f64 = text
        .split_whitespace()
        .nth(1)
        .and_then(|field| field.parse().ok())
        .expect("the second field of statm is the number of resident pages");
    pages * rustix::param::page_size() as f64
}

/// Returns the peak resident memory of this process, in bytes.
pub fn resident_bytes_max() -> f64 {
    status_bytes("VmHWM:")
}

/// Returns the resident anonymous memory of this process, in bytes.
pub fn anonymous_bytes() -> f64 {
    status_bytes("RssAnon:")
}

/// Reads a line of `/proc/self/status`.
fn status_bytes(key: &str) -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("Linux has /proc/self/status");
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    let kib: f64 = line
        .and_then(|line| line.trim().strip_suffix("kB"))
        .and_then(|number| number.trim().parse().ok())
        .expect("status has the line, in kB");
    kib * 1024.0
}

/// Returns the CPU time that all OS threads of this process have used.
pub fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_by_nearest_rank() {
        let samples = Samples::leak(1000);
        for ns in 1..=1000 {
            samples.record(Duration::from_nanos(ns));
        }
        assert_eq!(samples.quantile_ns(500), 500.0);
        assert_eq!(samples.quantile_ns(999), 999.0);
        assert_eq!(samples.quantile_ns(1000), 1000.0);
    }

    #[test]
    fn fairness_is_one_for_equals_and_one_of_n_for_a_monopoly() {
        assert_eq!(jain(&[7, 7, 7, 7]), 1.0);
        assert_eq!(jain(&[8, 0, 0, 0]), 0.25);
        assert_eq!(jain(&[0, 0]), 0.0);
    }
}
