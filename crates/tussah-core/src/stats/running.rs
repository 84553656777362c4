//! The event that a worker is in, as others see it, with the number of events after which its turn ends.

use std::panic::Location;

use crate::event::VTable;
use crate::loom::atomic::{AtomicPtr, AtomicU64, Ordering};

/// Where an event came from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site {
    /// The type of the closure or future.
    pub(crate) name: &'static str,
    /// Where it was posted or spawned.
    pub(crate) location: Option<&'static Location<'static>>,
}

/// Words that the worker writes when an event begins. They are not read together as one: whoever needs that reads
/// the number before and after.
#[derive(Default)]
pub(crate) struct Running {
    /// How many events have begun.
    events: AtomicU64,
    /// The worker looks at the clock before its next event once so many have begun; 0: now.
    due: AtomicU64,
    vtable: AtomicPtr<VTable>,
    location: AtomicPtr<Location<'static>>,
}

impl Running {
    /// An event begins. Called by the worker alone.
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

    /// How many events have begun.
    pub(crate) fn events(&self) -> u64 {
        self.events.load(Ordering::Relaxed)
    }

    /// Whether the running turn has to end after this event, and the worker to look at the clock.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.due.load(Ordering::Relaxed) <= self.events()
    }

    /// Makes it due now. Called by anyone; the proof of promise 5 in `worker/README.md` rests on it.
    #[inline]
    pub(crate) fn interrupt(&self) {
        self.due.store(0, Ordering::Relaxed);
    }

    /// The worker is about to look at the clock, which `interval` does; it gives how many events may begin until it does so again.
    #[inline]
    pub(crate) fn look(&self, interval: impl FnOnce(u64) -> u64) {
        let events = self.events();
        let due = events + 1;
        // First, so that an interrupt that comes later than the look is not taken for one that the look has answered.
        self.due.store(due, Ordering::Relaxed);
        let next = events + interval(events);
        let _ = self
            .due
            .compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// The event that began last.
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
