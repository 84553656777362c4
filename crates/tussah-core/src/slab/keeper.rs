//! When a depot keeps the owner of its slab: the whole decision, as plain numbers under the depot's lock.

#[cfg(all(test, loom))]
mod loom_tests;

/// What is in use of one depot, and whether the slab is closed.
///
/// A depot that is closed has a reference to the owner exactly as long as something of it is in use. The rule holds
/// whenever the depot's lock is free; see "Who keeps the owner" in the slab's module for what follows.
#[derive(Default)]
pub(super) struct Keeper {
    /// Slots that are in use or in a magazine.
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

    /// Some slots go out; true if the depot needs its reference now.
    #[must_use]
    pub(super) fn take(&mut self, slots: usize) -> bool {
        let first = self.used == 0;
        self.used += slots;
        self.closed && first
    }

    /// Some slots come back; true if the depot's reference is the caller's to give back, once the lock is released.
    #[must_use]
    pub(super) fn give(&mut self, slots: usize) -> bool {
        debug_assert!(slots > 0 && slots <= self.used, "what is given was taken");
        self.used -= slots;
        self.closed && self.used == 0
    }

    /// The slab closes; true if the depot needs its reference now.
    #[must_use]
    pub(super) fn close(&mut self) -> bool {
        assert!(!self.closed, "a slab is closed once");
        self.closed = true;
        self.used > 0
    }

    /// Whether nothing is in use, and the depot has no reference to the owner.
    pub(super) fn is_done(&self) -> bool {
        self.closed && self.used == 0
    }
}
