//! A counter that workers increment without contention.

use std::sync::atomic::{AtomicU64, Ordering};

use tussah_core::Handle;

/// A counter that is divided among the workers; each changes only its own part.
pub(crate) struct Tally {
    runtime: Handle,
    /// The parts of the workers that the runtime had when this value was created.
    parts: Box<[Part]>,
    /// The part of all other OS threads.
    others: AtomicU64,
}

/// A part on its own two cache lines, because processors fetch them in pairs.
#[derive(Default)]
#[repr(align(128))]
struct Part(AtomicU64);

impl Tally {
    pub(crate) fn new(runtime: &Handle) -> Self {
        Self {
            runtime: runtime.clone(),
            parts: (0..runtime.workers()).map(|_| Part::default()).collect(),
            others: AtomicU64::new(0),
        }
    }

    #[inline]
    pub(crate) fn add(&self, count: u64) {
        let here = self.runtime.worker_here();
        match here.and_then(|worker| self.parts.get(worker)) {
            Some(Part(part)) => {
                // Only this worker stores here, so no increment is lost.
                let before = part.load(Ordering::Relaxed);
                part.store(before + count, Ordering::Relaxed);
            }
            None => {
                self.others.fetch_add(count, Ordering::Relaxed);
            }
        }
    }

    pub(crate) fn sum(&self) -> u64 {
        let parts = self.parts.iter().map(|part| &part.0);
        let parts = parts.chain([&self.others]);
        parts.map(|part| part.load(Ordering::Relaxed)).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::Tally;

    #[test]
    fn all_that_is_counted_is_in_the_sum() {
        let runtime = crate::Runtime::builder().workers(2).build();
        let runtime = runtime.expect("a runtime");
        let tally = Arc::new(Tally::new(runtime.handle()));
        let threads: Vec<_> = (0..100)
            .map(|_| {
                let tally = Arc::clone(&tally);
                runtime.spawn(async move { tally.add(3) })
            })
            .collect();
        for thread in threads {
            runtime.block_on(thread).expect("no panic");
        }
        tally.add(1);
        assert_eq!(tally.sum(), 301);
    }
}
