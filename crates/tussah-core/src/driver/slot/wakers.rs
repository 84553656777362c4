//! Wakers that leave a slot with a report.

use std::mem;

use crate::tiny_waker::TinyWaker;

/// Wakers removed from a slot, to be called or dropped after its lock is released.
pub(in crate::driver) struct Wakers {
    pub(super) first: [TinyWaker; 2],
    #[expect(clippy::box_collection, reason = "seldom there, and moved often")]
    pub(super) more: Option<Box<Vec<TinyWaker>>>,
}

impl Wakers {
    pub(super) const fn new() -> Self {
        Self {
            first: [TinyWaker::NONE; 2],
            more: None,
        }
    }

    /// Prefetches the targets of the first wakers.
    #[inline]
    fn prefetch(&self) {
        self.first.iter().for_each(TinyWaker::prefetch);
    }

    /// Calls the wakers. Returns how many there were.
    #[inline]
    pub(in crate::driver) fn wake(self) -> usize {
        let mut woken = 0;
        for waker in self.first {
            if !waker.is_none() {
                waker.wake_guarded();
                woken += 1;
            }
        }
        woken + self.more.map_or(0, |more| Self::wake_more(*more))
    }

    #[cold]
    fn wake_more(more: Vec<TinyWaker>) -> usize {
        more.into_iter().map(TinyWaker::wake_guarded).count()
    }
}

/// The number of reports by which the calls lag behind, so that the targets have reached the cache.
const BEHIND: usize = 4;

/// The wakers of the last reports, which are called a little later.
///
/// With thousands of descriptors, neither a slot nor the thread that it wakes is in a cache. The
/// look-ahead takes about 70 instructions for each report, fewer than one of these misses costs.
pub(crate) struct Late {
    wakers: [Wakers; BEHIND],
    next: usize,
}

impl Late {
    pub(crate) fn new() -> Self {
        Self {
            wakers: [const { Wakers::new() }; BEHIND],
            next: 0,
        }
    }

    /// Takes the wakers of a report, and calls the wakers of an earlier report. Returns the number
    /// of wakers called.
    #[inline]
    pub(in crate::driver) fn push(&mut self, wakers: Wakers) -> usize {
        wakers.prefetch();
        self.next = (self.next + 1) % BEHIND;
        mem::replace(&mut self.wakers[self.next], wakers).wake()
    }

    /// Calls all remaining wakers. Returns how many there were.
    pub(crate) fn wake(self) -> usize {
        self.wakers.into_iter().map(Wakers::wake).sum()
    }
}
