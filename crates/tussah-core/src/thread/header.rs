//! The head of every thread, and the transitions of its state word.

use std::alloc::Layout;
use std::panic::Location;
use std::ptr::NonNull;

use crate::event::Node;
use crate::join_error::JoinError;
use crate::loom::UnsafeCell;
use crate::loom::atomic::{AtomicU64, Ordering, fence};
use crate::quietly::quietly;
use crate::tiny_waker::TinyWaker;

pub(crate) const SCHEDULED: u64 = 1;
pub(crate) const RUNNING: u64 = 2;
pub(crate) const COMPLETE: u64 = 4;
pub(crate) const ABORTED: u64 = 8;
pub(crate) const HANDLE: u64 = 16;
pub(crate) const JOINER: u64 = 32;
pub(crate) const REFERENCE: u64 = 1 << 8;
const REFERENCES: u64 = !(REFERENCE - 1);

/// The functions of one type of thread, after those of the event.
#[repr(C)]
pub(crate) struct VTable {
    /// This field is first, so that the table of a node is also the table of its thread.
    pub(crate) event: crate::event::VTable,
    /// Queues the thread in its color.
    pub(crate) schedule: unsafe fn(NonNull<Header>),
    /// True if no other event has the thread's color.
    pub(crate) has_own_color: bool,
    /// Drops the future at this address.
    pub(crate) drop_future: unsafe fn(*mut ()),
    /// Writes the error as the output to this address.
    pub(crate) store_error: unsafe fn(*mut (), JoinError),
    /// Drops the output at this address.
    pub(crate) drop_output: unsafe fn(*mut ()),
    /// Frees the memory.
    pub(crate) free: unsafe fn(NonNull<Header>),
    /// The offset of the future and of the output, in bytes.
    pub(crate) body_at: usize,
    /// The layout of the thread's memory.
    pub(crate) layout: Layout,
}

/// The head of a thread; the future follows.
#[repr(C)]
pub(crate) struct Header {
    pub(crate) node: Node,
    /// The state is at byte 16, where the slab promises never to write.
    pub(crate) state: AtomicU64,
    pub(crate) joiner: UnsafeCell<TinyWaker>,
    pub(crate) location: &'static Location<'static>,
}

#[cfg(not(loom))]
const _: () = {
    assert!(std::mem::offset_of!(Header, state) == crate::slab::THREAD_STATE_OFFSET);
    assert!(size_of::<Header>() == 40);
};

/// The runner's next step after a pending poll.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Suspended {
    Idle,
    Again,
}

impl Header {
    /// # Safety
    /// `node` must be the head of a thread.
    pub(crate) unsafe fn vtable(this: NonNull<Header>) -> &'static VTable {
        // SAFETY: a thread's node was made with a pointer to a whole `VTable`, which begins with
        // the event's.
        unsafe { this.as_ref().node.table().cast::<VTable>().as_ref() }
    }

    /// Returns the address of the future, and later of the output.
    ///
    /// # Safety
    /// `this` must be the head of a thread.
    pub(crate) unsafe fn body(this: NonNull<Header>) -> *mut () {
        // SAFETY: the offset is that of a field of the thread.
        unsafe { this.as_ptr().byte_add(Self::vtable(this).body_at).cast() }
    }

    /// Drops the output. A panic of its destructor stays in the event.
    ///
    /// # Safety
    /// The output must be the caller's (rule 2), and must not be used again.
    pub(crate) unsafe fn drop_output(this: NonNull<Header>) {
        // SAFETY: the caller's promise.
        quietly(|| unsafe { (Self::vtable(this).drop_output)(Self::body(this)) });
    }

    /// Turns `SCHEDULED` into `RUNNING`. Returns whether the thread was aborted.
    pub(crate) fn start(&self) -> bool {
        // Acquire pairs with the Release in `wake` and `suspend`.
        let old = self.state.fetch_add(RUNNING - SCHEDULED, Ordering::Acquire);
        debug_assert_eq!(old & (SCHEDULED | RUNNING | COMPLETE), SCHEDULED);
        old & ABORTED != 0
    }

    /// Ends a pending poll. `again` means that the thread yielded and wants to be queued at once.
    pub(crate) fn suspend(&self, again: bool) -> Suspended {
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            let next = (state & !RUNNING) | if again { SCHEDULED } else { 0 };
            // Release publishes what the poll wrote to the next poll (Acquire in `start`).
            match self.state.compare_exchange_weak(
                state,
                next,
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) if next & SCHEDULED != 0 => return Suspended::Again,
                Ok(_) => return Suspended::Idle,
                Err(now) => state = now,
            }
        }
    }

    /// Records that the output is stored. Returns the previous state.
    pub(crate) fn complete(&self) -> u64 {
        // Release: the output, for the handle (Acquire in `is_complete`). Acquire: the joiner slot,
        // from the handle (Release in `update`).
        self.state
            .fetch_add(COMPLETE.wrapping_sub(RUNNING), Ordering::AcqRel)
    }

    /// Sets `SCHEDULED` and `flags`. Returns true if the caller has to queue the thread.
    fn set_scheduled(&self, flags: u64) -> bool {
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            if state & COMPLETE != 0 {
                return false;
            }
            let next = state | SCHEDULED | flags;
            // Release, even if nothing changes, pairs with `start`: the next poll sees the waker's
            // writes.
            match self.state.compare_exchange_weak(
                state,
                next,
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return state & (SCHEDULED | RUNNING) == 0,
                Err(now) => state = now,
            }
        }
    }

    /// Wakes the thread. The caller has a reference.
    pub(crate) fn wake(this: NonNull<Header>) {
        // SAFETY: the caller's reference keeps the header alive.
        if unsafe { this.as_ref() }.set_scheduled(0) {
            // SAFETY: we set the bit, so we have the right to queue the thread.
            unsafe { (Self::vtable(this).schedule)(this) }
        }
    }

    /// Makes the thread's next event drop the future. The caller has a reference.
    pub(crate) fn abort(this: NonNull<Header>) {
        // SAFETY: as in `wake`.
        if unsafe { this.as_ref() }.set_scheduled(ABORTED) {
            // SAFETY: as in `wake`.
            unsafe { (Self::vtable(this).schedule)(this) }
        }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.state.load(Ordering::Acquire) & COMPLETE != 0 // pairs with `complete`
    }

    pub(crate) fn retain(&self) {
        let old = self.state.fetch_add(REFERENCE, Ordering::Relaxed);
        assert!(
            old <= u64::MAX / 2,
            "more wakers of one thread than its count can hold"
        );
    }

    /// Adds a reference unless there is none. The shutdown uses this, because it looks at slots
    /// that may be free.
    pub(crate) fn retain_if_alive(&self) -> bool {
        let mut state = self.state.load(Ordering::Relaxed);
        while state & REFERENCES != 0 {
            match self.state.compare_exchange_weak(
                state,
                state + REFERENCE,
                Ordering::Acquire, // pairs with the Release in `spawn`
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(now) => state = now,
            }
        }
        false
    }

    /// # Safety
    /// The caller must own a reference and must not use it again.
    pub(crate) unsafe fn release(this: NonNull<Header>) {
        // SAFETY: the reference keeps the header alive until here. Release pairs with the fence
        // before the memory is freed.
        let old = unsafe { this.as_ref() }
            .state
            .fetch_sub(REFERENCE, Ordering::Release);
        if old & REFERENCES == REFERENCE {
            fence(Ordering::Acquire);
            debug_assert!(
                old & COMPLETE != 0,
                "the runtime's reference outlives the future"
            );
            // SAFETY: no reference is left.
            unsafe { (Self::vtable(this).free)(this) }
        }
    }

    /// Detaches the handle. Returns true if the output is now the caller's to drop. Keeps the
    /// reference.
    pub(crate) fn detach(&self) -> bool {
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            let next = if state & COMPLETE == 0 {
                state & !(HANDLE | JOINER)
            } else {
                state & !HANDLE
            };
            // Acquire pairs with `complete`: the output. Release: the runner must see that the
            // handle no longer uses the slot.
            match self
                .state
                .compare_exchange_weak(state, next, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) if state & COMPLETE != 0 => return true,
                Ok(_) => {
                    if state & JOINER != 0 {
                        // SAFETY: rule 3: the handle cleared `JOINER` before `COMPLETE` was set, so
                        // the slot is its own.
                        self.joiner
                            .with_mut(|slot| unsafe { *slot = TinyWaker::NONE });
                    }
                    return false;
                }
                Err(now) => state = now,
            }
        }
    }

    /// Takes the fast path of dropping the handle of a thread that has not run. Returns true if
    /// nothing else remains to be done.
    pub(crate) fn detach_unrun(&self) -> bool {
        let fresh = SCHEDULED | HANDLE | (2 * REFERENCE);
        // Release: as in `release`. Another reference remains, so nothing is freed here.
        self.state
            .compare_exchange(
                fresh,
                SCHEDULED | REFERENCE,
                Ordering::Release,
                Ordering::Relaxed,
            )
            .is_ok()
    }

    /// Stores the waker of the joiner. Returns false if the thread has ended.
    pub(crate) fn set_joiner(&self, waker: &std::task::Waker) -> bool {
        let state = self.state.load(Ordering::Acquire);
        if state & COMPLETE != 0 {
            return false;
        }
        if state & JOINER != 0 {
            // SAFETY: rule 3: while `JOINER` is set, the slot is read-only, and only the handle
            // changes that.
            if self.joiner.with(|slot| unsafe { (*slot).will_wake(waker) }) {
                return true;
            }
            // Acquire: `complete` may come first, and the slot then belongs to the runner.
            if !self.update(|state| state & !JOINER) {
                return false;
            }
        }
        let new = TinyWaker::from_waker(waker);
        // SAFETY: rule 3: `JOINER` is unset.
        self.joiner.with_mut(|slot| unsafe { *slot = new });
        // Release: the slot, for the runner (Acquire in `complete`).
        if self.update(|state| state | JOINER) {
            return true;
        }
        // SAFETY: rule 3: `COMPLETE` was set while `JOINER` was not, so the runner will not look.
        self.joiner
            .with_mut(|slot| unsafe { *slot = TinyWaker::NONE });
        false
    }

    /// Changes the state unless the thread is complete.
    fn update(&self, change: impl Fn(u64) -> u64) -> bool {
        self.state
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| {
                (state & COMPLETE == 0).then(|| change(state))
            })
            .is_ok()
    }
}
