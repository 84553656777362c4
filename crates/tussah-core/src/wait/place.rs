//! The `Notify` of a waiting future and the future's progress, in one word.
//!
//! The phase is in the low bits of the address of the [`Notify`], which are free because of its
//! alignment. A separate field would cost every waiting thread eight bytes.

use std::marker::PhantomData;

use super::Notify;

/// The progress of a future; only its owner reads and writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The node has never been linked, and carries the number of broadcasts.
    New = 0,
    /// The node has been linked. Only a holder of the lock can tell whether it is still linked.
    Queued = 1,
    /// The future has completed, and its node is not linked.
    Done = 2,
}

const MASK: usize = 3;
const _: () = assert!(align_of::<Notify>() > MASK);

/// A [`Notify`] and a [`Phase`].
pub(super) struct Place<'a> {
    word: *const Notify,
    _notify: PhantomData<&'a Notify>,
}

impl<'a> Place<'a> {
    /// Creates a place in [`Phase::New`].
    #[inline]
    pub(super) fn new(notify: &'a Notify) -> Self {
        let mut this = Self {
            word: notify,
            _notify: PhantomData,
        };
        this.set_phase(Phase::New);
        this
    }

    #[inline]
    pub(super) fn notify(&self) -> &'a Notify {
        // SAFETY: `new` was given a `&'a Notify`, and only the low bits have changed since.
        unsafe { &*self.word.map_addr(|addr| addr & !MASK) }
    }

    #[inline]
    pub(super) fn phase(&self) -> Phase {
        match self.word.addr() & MASK {
            0 => Phase::New,
            1 => Phase::Queued,
            _ => Phase::Done,
        }
    }

    #[inline]
    pub(super) fn set_phase(&mut self, phase: Phase) {
        self.word = self.word.map_addr(|addr| (addr & !MASK) | phase as usize);
    }
}
