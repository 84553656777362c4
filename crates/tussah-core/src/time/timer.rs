//! State and waker of one timer, with the rules of access.
//!
//! # States of an entry
//!
//! | state | linked | waker | changed by |
//! |---|---|---|---|
//! | `IDLE` | no | none | its owner |
//! | `PENDING` | yes | present | anyone who holds the lock |
//! | `FIRED` | no | none | its owner |
//! | `CLOSED` | no | none | its owner |
//!
//! 1. Links and waker are accessed only under the shard's lock, or by the owner while the state is
//!    not `PENDING`.
//! 2. Only the owner, which keeps the entry pinned, makes it `PENDING` (`register`).
//! 3. Storing `FIRED` or `CLOSED` is the last access by the code that fires or closes: from then on
//!    the owner may free the entry without taking the lock.
//! 4. Wakers are foreign code. They are cloned, called and dropped while the lock is not held, and
//!    `quietly` catches their panics.

use std::{ptr::NonNull, task::Waker};

use super::wheel::Entry;
use crate::loom::{
    UnsafeCell,
    atomic::{AtomicU8, Ordering},
};

pub(super) const IDLE: u8 = 0;
pub(super) const PENDING: u8 = 1;
pub(super) const FIRED: u8 = 2;
pub(super) const CLOSED: u8 = 3;

/// The object that a shard's wheel links: state and waker of one timer.
pub(crate) type TimerEntry = Entry<Timer>;

/// State and waker of one timer; see the table above.
pub(crate) struct Timer {
    pub(super) state: AtomicU8,
    pub(super) waker: UnsafeCell<Option<Waker>>,
}

// SAFETY: `state` is atomic, and `waker` is accessed only by rule 1. Tested by the loom models and
// under Miri.
unsafe impl Sync for Timer {}
// SAFETY: a waker is `Send`. A pending entry does not move; only its owner's pointer does.
unsafe impl Send for Timer {}

impl Timer {
    /// Creates an idle timer.
    pub(crate) fn new() -> Self {
        Self {
            state: AtomicU8::new(IDLE),
            waker: UnsafeCell::new(None),
        }
    }

    #[inline]
    fn state(&self) -> u8 {
        // Acquire pairs with the Release in `detach`: an owner that frees the entry does so after
        // the last access of rule 3.
        self.state.load(Ordering::Acquire)
    }

    /// Returns whether the entry is linked, or may have been linked a moment ago.
    #[inline]
    pub(crate) fn is_pending(&self) -> bool {
        self.state() == PENDING
    }

    /// Returns whether the deadline has passed and the waker was taken.
    #[inline]
    pub(crate) fn is_fired(&self) -> bool {
        self.state() == FIRED
    }

    /// Returns whether the timer was never registered, or has since been cancelled or
    /// [reset](Self::set_idle).
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.state() == IDLE
    }

    /// Makes a timer ready to be registered again. Only the owner calls this, after it has found
    /// the timer not pending.
    #[inline]
    pub(crate) fn set_idle(&self) {
        debug_assert!(!self.is_pending(), "a pending timer is cancelled first");
        self.state.store(IDLE, Ordering::Relaxed);
    }
}

/// Takes the waker of an entry that was pending, and returns the entry to its owner in `state`.
///
/// # Safety
///
/// The entry must have been pending until now and been unlinked from the wheel, and the lock must
/// be held. The caller must not use the entry afterwards (rule 3).
#[inline]
pub(super) unsafe fn detach(entry: NonNull<TimerEntry>, state: u8) -> Option<Waker> {
    // SAFETY: an entry stays valid while it is pending, which it is until the store below. No
    // reference to the whole entry is made, because its owner may free it during that store.
    unsafe {
        let timer = &raw const (*entry.as_ptr()).data;
        let waker = (*timer).waker.with_mut(|place| (*place).take());
        // Release pairs with the Acquire in `Timer::state`.
        (*timer).state.store(state, Ordering::Release);
        waker
    }
}
