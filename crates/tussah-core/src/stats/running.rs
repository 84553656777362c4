//! A worker's current event, as seen by other OS threads, and the number of events after which its
//! turn ends.

use std::panic::Location;

use crate::event::VTable;
use crate::loom::atomic::{AtomicPtr, AtomicU64, Ordering};

/// The origin of an event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site {
    /// The type of the closure or future.
    pub(crate) name: &'static str,
    /// The location that posted or spawned it.
    pub(crate) location: Option<&'static Location<'static>>,
}

/// Words that the worker writes when an event begins. Readers do not read them atomically as a
/// whole: a reader that needs consistency reads the number before and after.
#[derive(Default)]
pub(crate) struct Running {
    /// The number of events that have begun.
    events: AtomicU64,
    /// The worker looks at the clock before its next event once this number of events have begun; 0
    /// means now.
    due: AtomicU64,
    vtable: AtomicPtr<VTable>,
    location: AtomicPtr<Location<'static>>,
}

impl Running {
    /// Records the beginning of an event. Called only by the worker.
    #[inline]
    pub(crate) fn set(
        &self,
        vtable: &'static VTable,
        location: Option<&'static Location<'static>>,
    ) {
        self.vtable
            .store(std::ptr::from_ref(vtable).cast_mut(), Ordering::Relaxed);
        let location = location.map_or(std::ptr::null(), std::ptr::from_ref);
        self.location.store(location.cast_mut(), Ordering::Relaxed);
        self.events.store(self.events() + 1, Ordering::Relaxed);
    }

    /// Returns the number of events that have begun.
    #[inline]
    pub(crate) fn events(&self) -> u64 {
        self.events.load(Ordering::Relaxed)
    }

    /// Returns the number of events that have begun since there were `first`.
    #[inline]
    pub(crate) fn since(&self, first: u64) -> u32 {
        (self.events() - first) as u32
    }

    /// Returns whether the running turn has to end after this event: `end` events have begun, or
    /// the worker has to look at the clock.
    #[inline]
    pub(crate) fn ends_turn(&self, end: u64) -> bool {
        let events = self.events();
        events >= end || self.due.load(Ordering::Relaxed) <= events
    }

    /// Returns whether the worker has to look at the clock before its next event.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.due.load(Ordering::Relaxed) <= self.events()
    }

    /// Makes the next look due now. Any OS thread may call it; the proof of promise 5 in
    /// `worker/README.md` depends on it.
    #[inline]
    pub(crate) fn interrupt(&self) {
        self.due.store(0, Ordering::Relaxed);
    }

    /// Calls `interval`, which looks at the clock. It returns the number of events that may begin
    /// before the next look.
    #[inline]
    pub(crate) fn look(&self, interval: impl FnOnce(u64) -> u64) {
        let events = self.events();
        let due = events + 1;
        // This store comes first, so that an interrupt after the look is not mistaken for one that
        // the look has already handled.
        self.due.store(due, Ordering::Relaxed);
        let next = events + interval(events);
        let _ = self
            .due
            .compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Returns the site of the event that began last.
    pub(crate) fn site(&self) -> Option<Site> {
        // SAFETY: only references to statics were stored.
        let (vtable, location) = unsafe {
            (
                self.vtable.load(Ordering::Relaxed).as_ref(),
                self.location.load(Ordering::Relaxed).as_ref(),
            )
        };
        vtable.map(|vtable| Site {
            name: (vtable.name)(),
            location,
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_during_a_look_is_kept() {
        let running = Running::default();
        running.look(|events| {
            assert_eq!(events, 0);
            1000
        });
        assert!(!running.is_due());
        running.look(|_| {
            running.interrupt();
            1000
        });
        assert!(running.is_due(), "the interrupt is lost");
    }
}
