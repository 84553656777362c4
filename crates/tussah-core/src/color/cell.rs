//! The cell of a color: a state word that records who holds the color, and the color's events.
//!
//! # The state word
//!
//! | bits | name | meaning |
//! |---|---|---|
//! | 0 | `HELD` | the *token* is out: its holder may touch the FIFO and run events |
//! | 1 | `DEAD` | the last handle is gone: the last to leave the color destroys it |
//! | 2 | `PRUNING` | a walk is removing cancelled requests from the inbox (see `prune.rs`) |
//! | 3–47 | inbox | the newest event posted without the token; a Treiber stack |
//! | 48–63 | readers | number of events that are reading now |
//!
//! Zero means an idle color. Five rules govern all access:
//!
//! 1. **Enter.** A compare-and-swap of exactly 0 to `HELD` takes the token. Nothing else does. In
//!    particular, "this worker is already in that color" does not: a nested entry would alias the
//!    outer entry's borrow.
//! 2. **Post.** The holder of the token appends to the FIFO. On an idle color, the poster enters,
//!    appends and schedules the cell. Otherwise it pushes to the inbox. If only readers hold the
//!    color, the push also sets `HELD`, and the last reader then takes the token. Only the holder
//!    of the token removes nodes from the FIFO or the inbox, except for cancelled requests (see
//!    `prune.rs`).
//! 3. **Leave.** When the FIFO is empty, a compare-and-swap of exactly `HELD` to 0 gives the token
//!    back. If it fails, either the inbox is not empty or the cell is dead. A holder that finds an
//!    inbox swaps it out, reverses it and appends it to the FIFO.
//! 4. **Read.** An entry adds one reader if `HELD` is unset and the inbox is empty, so a reader
//!    never passes a queued writer. Leaving subtracts one. The reader that brings the count to zero
//!    while `HELD` is set takes the token and schedules the cell.
//! 5. **Token in a queue.** A scheduled cell is in exactly one run queue. The code that removes it
//!    from the queue holds the token.
//!
//! *Exclusion.* Only rule 1 and the last reader of rule 4 create a token, and both need a state
//! without another holder. The token is a single value that is passed on, never copied.
//!
//! *Order.* Only the holder of the token appends to the FIFO, and it empties the inbox into the
//! FIFO before it posts (rule 2). So the events of one poster stay in order, and so do the events
//! of two posters when one post happened before the other.
//!
//! *No lost events.* A post leaves a state that is not exactly `HELD`, so rule 3 cannot give the
//! token back.
//!
//! The inbox is swapped out whole (Treiber, IBM RJ 5118, 1986). In a Vyukov queue a stalled poster
//! can hide completed posts behind its own, and a worker would have to spin until it resumes.

use std::ptr::NonNull;
use std::sync::Arc;

use super::ColorName;
use super::depth::Depth;
use super::prune::Cancelled;
use super::turn::{Pace, TURN};
use crate::event::Node;
use crate::loom::UnsafeCell;
use crate::loom::atomic::{AtomicI8, AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence};
use crate::queue::List;
use crate::runtime::Shared;

pub(super) const HELD: usize = 1;
const DEAD: usize = 2;
pub(super) const PRUNING: usize = 4;
const TAGS: usize = HELD | DEAD | PRUNING;
pub(super) const READER: usize = 1 << 48;
pub(super) const READERS: usize = !(READER - 1);
pub(super) const INBOX: usize = !(READERS | 0b111);

/// Bound, in simultaneous readers of one color: the maximum that the width of the count
/// allows. Further readers wait in the queue.
pub(super) const READERS_MAX: usize = (1 << 15) - 1;

type State = *mut Node;

pub(super) fn tags(state: State) -> usize {
    state.addr() & TAGS
}

pub(super) fn readers(state: State) -> usize {
    state.addr() & READERS
}

pub(super) fn inbox(state: State) -> State {
    state.map_addr(|addr| addr & INBOX)
}

pub(super) fn bits(addr: usize) -> State {
    std::ptr::without_provenance_mut(addr)
}

/// The state and the queued events of one color. The module documentation lists the rules.
///
/// The field order follows cache lines (the cell is aligned to one): rarely used fields come first,
/// then the fields of a post and a turn. The state word is last, and the value of a `Colored`
/// follows it. So an inline entry on a small value, or a post with its turn, touches one line.
#[repr(C)]
pub(crate) struct ColorCell {
    /// Number of handles: `Colored`, `ColorRef`, the table, colored threads. A run queue has none;
    /// see `release`.
    handles: AtomicUsize,
    /// Frees the allocation that starts with this cell.
    pub(super) destroy: unsafe fn(NonNull<ColorCell>),
    pub(crate) name: ColorName,
    pub(super) turn_ns: AtomicU64,
    pub(super) cancelled: Cancelled,
    pub(crate) priority: AtomicI8,
    rest_of_line: [u8; 3],
    /// The runtime. Not counted: the owner of a handle keeps the runtime alive, or belongs to it.
    shared: NonNull<Shared>,
    /// Makes the cell an event of the run queue: running it is a turn of the color.
    node: Node,
    /// Owned by the token.
    pub(super) fifo: UnsafeCell<List<Node>>,
    pub(super) depth: Depth,
    pub(super) pace: Pace,
    pub(super) state: AtomicPtr<Node>,
}

#[cfg(all(not(loom), target_pointer_width = "64"))]
const _: () = {
    assert!(std::mem::offset_of!(ColorCell, shared) == 64);
    assert!(size_of::<ColorCell>() == 120);
};

/// Outcome of an attempt to leave a color.
pub(super) enum Leave {
    /// The token was returned; the cell may already be freed.
    Left,
    /// More events arrived and are now in the FIFO.
    More,
    /// The caller still has the token; nothing is queued and no handle is left.
    Dead,
}

impl ColorCell {
    /// Creates an idle cell. `destroy` frees the allocation once the last handle is gone and the
    /// color is idle.
    pub(crate) fn new(
        shared: &Arc<Shared>,
        name: ColorName,
        destroy: unsafe fn(NonNull<ColorCell>),
    ) -> Self {
        Self {
            handles: AtomicUsize::new(1),
            destroy,
            name,
            turn_ns: AtomicU64::new(0),
            cancelled: Cancelled::default(),
            priority: AtomicI8::new(0),
            rest_of_line: [0; 3],
            // Not made from a reference: `Colored` builds its counted reference from this pointer.
            shared: NonNull::new(Arc::as_ptr(shared).cast_mut()).expect("no reference is null"),
            node: Node::new(&TURN),
            fifo: UnsafeCell::new(List::new()),
            depth: Depth::default(),
            pace: Pace::default(),
            state: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    pub(crate) fn set_priority(&self, priority: i8) {
        self.priority.store(priority, Ordering::Relaxed);
        if priority != 0 {
            self.shared().chooses.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the color's runtime as a pointer from which a counted reference may be made.
    #[inline]
    pub(crate) fn shared_ptr(&self) -> NonNull<Shared> {
        self.shared
    }

    /// Returns the color's runtime.
    #[inline]
    pub(crate) fn shared(&self) -> &Shared {
        // SAFETY: the cell is reached through a handle, whose owner keeps the runtime alive, or
        // from the runtime itself.
        unsafe { self.shared.as_ref() }
    }

    /// Returns the node inside a cell.
    #[inline]
    pub(crate) fn node(cell: NonNull<Self>) -> NonNull<Node> {
        // SAFETY: the field lies inside the cell.
        unsafe { cell.byte_add(std::mem::offset_of!(Self, node)).cast() }
    }

    /// Returns the cell of a node whose table is `TURN`.
    ///
    /// # Safety
    /// The node must belong to a cell, and the pointer's provenance must cover the whole cell.
    #[inline]
    pub(crate) unsafe fn of(node: NonNull<Node>) -> NonNull<Self> {
        // SAFETY: passed on from the caller.
        unsafe { node.byte_sub(std::mem::offset_of!(Self, node)).cast() }
    }

    /// Returns whether the color is idle: no holder, no reader, nothing queued. The answer may be
    /// stale immediately.
    pub(crate) fn is_idle(&self) -> bool {
        self.state.load(Ordering::Relaxed).is_null()
    }

    pub(crate) fn retain(&self) {
        // Relaxed as in `Arc`: a new handle is made from an existing one, which provides the
        // ordering.
        let old = self.handles.fetch_add(1, Ordering::Relaxed);
        assert!(
            old < usize::MAX / 2,
            "more than {} handles to one color",
            usize::MAX / 2
        );
    }

    pub(crate) fn handles(&self) -> usize {
        self.handles.load(Ordering::Acquire) // pairs with the Release in `release`
    }

    /// Gives a handle back and returns the number of handles left.
    ///
    /// The release of the last handle marks the cell dead, and the last holder to leave the color
    /// destroys it. So a queued cell needs no handle, and everything that the color owns is dropped
    /// as the color's last event.
    ///
    /// # Safety
    /// The caller must own one handle and must never use it again.
    pub(crate) unsafe fn release(cell: NonNull<Self>) -> usize {
        // SAFETY: the caller's handle keeps the cell alive until the `fetch_sub`.
        let this = unsafe { cell.as_ref() };
        // Release: everything done through this handle happens before the destruction (Acquire
        // fence in `die`).
        let left = this.handles.fetch_sub(1, Ordering::Release) - 1;
        if left == 0 {
            // SAFETY: no handle is left, and this one was the last.
            unsafe { Self::die(cell) }
        }
        left
    }

    /// Destroys the cell, or leaves that to the current holder, after the last handle is gone.
    ///
    /// # Safety
    /// This must be called only once, by the caller that released the last handle.
    unsafe fn die(cell: NonNull<Self>) {
        // SAFETY: a cell without handles is freed only after `DEAD` is set, which happens below.
        let this = unsafe { cell.as_ref() };
        fence(Ordering::Acquire);
        let mut state = this.state.load(Ordering::Relaxed);
        loop {
            let idle = state.is_null();
            let next = if idle {
                bits(HELD | DEAD)
            } else {
                state.map_addr(|addr| addr | HELD | DEAD)
            };
            // AcqRel: Acquire pairs with the Release of the last leaver, whose writes the
            // destruction must see. Release passes this handle's writes to the holder that will
            // destroy the cell.
            match this
                .state
                .compare_exchange_weak(state, next, Ordering::AcqRel, Ordering::Relaxed)
            {
                // SAFETY: the color was idle and now belongs to this call; no handle is left
                // through which to enter it.
                Ok(_) if idle => return unsafe { (this.destroy)(cell) },
                Ok(_) => return,
                Err(now) => state = now,
            }
        }
    }

    /// Takes the token if the color is idle.
    #[inline]
    pub(crate) fn try_enter(&self) -> bool {
        // Acquire pairs with the Release in `try_leave`: makes the last holder's writes visible.
        self.state
            .compare_exchange(
                std::ptr::null_mut(),
                bits(HELD),
                Ordering::Acquire,
                Ordering::Relaxed,
            )
            .is_ok()
    }

    /// Gives the token back if nothing is queued and a handle is left. After `true` the cell may be
    /// freed.
    #[inline]
    fn try_leave(&self) -> bool {
        // Release pairs with Acquire in `try_enter`, `post_from_outside`, `try_read`, `release`.
        self.state
            .compare_exchange(
                bits(HELD),
                std::ptr::null_mut(),
                Ordering::Release,
                Ordering::Relaxed,
            )
            .is_ok()
    }

    /// Ends an entry made with `try_enter`: gives the token back, or schedules the cell if events
    /// arrived meanwhile.
    ///
    /// Pass `appended` as true if the entry may have put events into the FIFO, which was empty at
    /// the start.
    ///
    /// # Safety
    /// The caller must have the token, and a handle that outlives the call.
    #[inline]
    pub(crate) unsafe fn exit(cell: NonNull<Self>, appended: bool) {
        // SAFETY: the caller's handle keeps the cell alive.
        let this = unsafe { cell.as_ref() };
        if appended || !this.try_leave() {
            // SAFETY: the token goes into the run queue with the cell.
            unsafe { Self::schedule(cell) }
        }
    }

    /// Puts the cell and its token into a run queue.
    ///
    /// # Safety
    /// The caller must have the token.
    #[cold]
    pub(crate) unsafe fn schedule(cell: NonNull<Self>) {
        // A copy of the pointer: once queued, the cell is no longer the caller's.
        // SAFETY: the holder of the token keeps the cell alive.
        let shared = unsafe { cell.as_ref().shared };
        // SAFETY: the runtime outlives the cell's turn, and only that turn could free the cell.
        unsafe { shared.as_ref().schedule(Self::node(cell)) }
    }

    /// Moves the inbox to the end of the FIFO, oldest first. The caller holds the token.
    #[inline(never)]
    pub(super) fn take_inbox(&self) {
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            if state.addr() & PRUNING != 0 {
                self.wait_for_walk();
                state = self.state.load(Ordering::Relaxed);
                continue;
            }
            let rest = bits(state.addr() & !INBOX);
            // Acquire pairs with the Release in `post_from_outside` and `prune_inbox`.
            match self.state.compare_exchange_weak(
                state,
                rest,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => break,
                Err(now) => state = now,
            }
        }
        if let Some(newest) = NonNull::new(inbox(state)) {
            // SAFETY: after the swap the nodes of the inbox belong to this call, linked from the
            // newest to the oldest. The token also covers the FIFO.
            self.fifo
                .with_mut(|fifo| unsafe { (*fifo).push_chain(newest) });
        }
    }

    pub(super) fn pop(&self) -> Option<NonNull<Node>> {
        // SAFETY: called with the token, which owns the FIFO.
        self.fifo.with_mut(|fifo| unsafe { (*fifo).pop_front() })
    }

    /// Returns whether the FIFO is empty. The caller holds the token.
    pub(super) fn fifo_is_empty(&self) -> bool {
        // SAFETY: as for `pop`.
        self.fifo.with(|fifo| unsafe { (*fifo).is_empty() })
    }

    /// Gives the token back unless more events have arrived. The caller holds the token and has
    /// emptied the FIFO.
    pub(super) fn leave(&self) -> Leave {
        loop {
            let state = self.state.load(Ordering::Relaxed);
            if !inbox(state).is_null() {
                self.take_inbox();
                return Leave::More;
            }
            if state.addr() & DEAD != 0 {
                // Acquire pairs with the Release of the compare-and-swap that set `DEAD`.
                fence(Ordering::Acquire);
                return Leave::Dead;
            }
            if self.try_leave() {
                return Leave::Left;
            }
        }
    }
}
