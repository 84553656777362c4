//! The decision when a depot keeps its slab's owner alive, as plain numbers under the depot's lock.

#[cfg(all(test, loom))]
mod loom_tests;

/// The number of a depot's slots in use, and whether the slab is closed.
///
/// A closed depot has a reference to the owner exactly as long as any of its slots is in use. The
/// rule holds whenever the depot's lock is free. The section "References to the owner" in the
/// slab's module describes the consequences.
#[derive(Default)]
pub(super) struct Keeper {
    /// The number of slots in use or in a magazine.
    used: usize,
    closed: bool,
}

impl Keeper {
    pub(super) const fn new() -> Self {
        Self {
            used: 0,
            closed: false,
        }
    }

    /// Counts slots that leave the depot. Returns true if the depot now needs its reference.
    #[must_use]
    pub(super) fn take(&mut self, slots: usize) -> bool {
        let first = self.used == 0;
        self.used += slots;
        self.closed && first
    }

    /// Counts slots that return to the depot. Returns true if the caller has to release the depot's
    /// reference, after releasing the lock.
    #[must_use]
    pub(super) fn give(&mut self, slots: usize) -> bool {
        debug_assert!(slots > 0 && slots <= self.used, "what is given was taken");
        self.used -= slots;
        self.closed && self.used == 0
    }

    /// Closes the depot. Returns true if it now needs its reference.
    #[must_use]
    pub(super) fn close(&mut self) -> bool {
        assert!(!self.closed, "a slab is closed once");
        self.closed = true;
        self.used > 0
    }

    /// Returns whether nothing is in use, and the depot has no reference to the owner.
    pub(super) fn is_done(&self) -> bool {
        self.closed && self.used == 0
    }
}
