//! The cell of a color: one word that says who has the color, and the color's events.
//!
//! # The state word
//!
//! | bits | name | meaning |
//! |---|---|---|
//! | 0 | `HELD` | somebody has the *token*: the right to touch the FIFO and to run events |
//! | 1 | `DEAD` | the last handle is gone: whoever would leave the color destroys it instead |
//! | 2 | `PRUNING` | somebody takes cancelled requests out of the inbox, which nobody else may take meanwhile: `prune.rs` |
//! | 3–47 | inbox | newest event posted by somebody without the token; a Treiber stack through the links |
//! | 48–63 | readers | events that are reading now |
//!
//! Zero is an idle color. The rules, and nobody else touches anything:
//!
//! 1. **Enter.** A compare-and-swap of exactly 0 to `HELD` gives the token. Nothing else does, and in particular not
//!    "this worker is in that color already": a nested entry would alias what the outer one borrows.
//! 2. **Post.** With the token: append to the FIFO. To an idle color: enter, append, schedule the cell. Else push to
//!    the inbox; if only readers have the color, set `HELD` in the same step: the last reader finds it and gets the token.
//!    Only the token takes nodes out of either, but for cancelled requests: see `prune.rs`.
//! 3. **Leave.** With the FIFO empty, a compare-and-swap of exactly `HELD` to 0 gives the token back. If it fails, the
//!    inbox is not empty, or the cell is dead: swap the inbox out, reverse it, append it to the FIFO.
//! 4. **Read.** An entry adds one reader if neither `HELD` nor an inbox is there: a reader never passes a queued writer.
//!    Leaving subtracts one; who takes the readers to zero while `HELD` is set has the token and schedules the cell.
//! 5. **Token in a queue.** A scheduled cell is in exactly one run queue; who takes it out has the token.
//!
//! Exclusion: the token is made by rule 1 or by the last reader of rule 4, both of which need a state without another
//! holder, and it is one value that is passed on, never copied. Order: the FIFO is appended to only with the token,
//! and the inbox is emptied into it before anything posted later by the holder (rule 2 with the token reads the inbox
//! first), so the events of one poster stay in order, as do those of two posters of whom one happened before the other.
//! No event is lost: a post leaves behind a state that is not exactly `HELD`, hence rule 3 can't give the token back.
//!
//! The inbox is swapped out whole (Treiber, IBM RJ 5118, 1986): a Vyukov queue could hide completed posts behind a
//! stalled one, so that an event that was posted later by the same poster would be waited for by a spinning worker.

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

/// Bound, in readers at once in one color: the width of the count in the state word; more wait in the queue.
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

/// What a color is and what it has to do. See the module for the rules.
///
/// The order of the fields is that of the cache lines, given that the whole is aligned to one: what is rarely touched; then
/// what a post and a turn touch, with the state word last, which the value of a `Colored` follows. So an inline entry, or a
/// post with its turn, touches one line of a small value.
#[repr(C)]
pub(crate) struct ColorCell {
    /// Handles: `Colored`, `ColorRef`, the table, colored threads. The queue has none: see `release`.
    handles: AtomicUsize,
    /// Frees the allocation that the cell heads.
    pub(super) destroy: unsafe fn(NonNull<ColorCell>),
    pub(crate) name: ColorName,
    pub(super) turn_ns: AtomicU64,
    pub(super) cancelled: Cancelled,
    pub(crate) priority: AtomicI8,
    rest_of_line: [u8; 3],
    /// The runtime. Not counted: whoever has a handle to the cell keeps the runtime, or is part of it.
    shared: NonNull<Shared>,
    /// In a run queue, the cell is an event like any other: running it is a turn of the color.
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

/// What was found on the way out of a color.
pub(super) enum Leave {
    /// The token is given back; the cell may be gone already.
    Left,
    /// More events came; they are in the FIFO now.
    More,
    /// The token is kept, nothing is queued, and no handle is left.
    Dead,
}

impl ColorCell {
    /// `destroy` frees what the cell heads once the last handle is gone and the color is idle.
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
            // Not from a reference: `Colored` makes its counted reference of this pointer.
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

    /// The runtime of the color, as a pointer that a counted reference may be made of.
    #[inline]
    pub(crate) fn shared_ptr(&self) -> NonNull<Shared> {
        self.shared
    }

    /// The runtime of the color.
    #[inline]
    pub(crate) fn shared(&self) -> &Shared {
        // SAFETY: a cell is reached through a handle, whose owner keeps the runtime, or by the runtime itself.
        unsafe { self.shared.as_ref() }
    }

    /// The node of a cell.
    #[inline]
    pub(crate) fn node(cell: NonNull<Self>) -> NonNull<Node> {
        // SAFETY: the field lies inside of the cell.
        unsafe { cell.byte_add(std::mem::offset_of!(Self, node)).cast() }
    }

    /// The cell of a node whose table is `TURN`.
    ///
    /// # Safety
    /// The node is a cell's, and the pointer may reach all of the cell.
    #[inline]
    pub(crate) unsafe fn of(node: NonNull<Node>) -> NonNull<Self> {
        // SAFETY: passed on from the caller.
        unsafe { node.byte_sub(std::mem::offset_of!(Self, node)).cast() }
    }

    /// Whether nobody has the color and nothing waits for it; true only for this moment.
    pub(crate) fn is_idle(&self) -> bool {
        self.state.load(Ordering::Relaxed).is_null()
    }

    pub(crate) fn retain(&self) {
        // As in `Arc`: a new handle is made from an old one, which orders everything that matters.
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

    /// Gives a handle back. The last one marks the cell dead, and whoever leaves the color last destroys it: so a
    /// queued cell needs no handle of its own, and what the color owns is dropped as the last event of the color. Returns
    /// how many handles are left.
    ///
    /// # Safety
    /// The caller owns one handle and never uses it again.
    pub(crate) unsafe fn release(cell: NonNull<Self>) -> usize {
        // SAFETY: the caller's handle keeps the cell alive up to the next line.
        let this = unsafe { cell.as_ref() };
        // Release: what was done through this handle happens before the destruction (Acquire fence below).
        let left = this.handles.fetch_sub(1, Ordering::Release) - 1;
        if left == 0 {
            // SAFETY: no handle is left, and this is the one that was last.
            unsafe { Self::die(cell) }
        }
        left
    }

    /// The last handle is gone: destroys the cell, or leaves that to whoever has the color.
    ///
    /// # Safety
    /// Called once, by the one who took the last handle away.
    unsafe fn die(cell: NonNull<Self>) {
        // SAFETY: a cell without handles is destroyed by who sees `DEAD`, which is set below.
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
            // AcqRel: Acquire pairs with the Release of the last leaver, whose writes the destruction must see;
            // Release hands this handle's writes to the holder that will destroy.
            match this
                .state
                .compare_exchange_weak(state, next, Ordering::AcqRel, Ordering::Relaxed)
            {
                // SAFETY: the color was idle and is ours now, and no handle is left to enter it again.
                Ok(_) if idle => return unsafe { (this.destroy)(cell) },
                Ok(_) => return,
                Err(now) => state = now,
            }
        }
    }

    /// Takes the token of an idle color.
    #[inline]
    pub(crate) fn try_enter(&self) -> bool {
        // Acquire pairs with the Release in `try_leave`: what the last holder wrote is seen.
        self.state
            .compare_exchange(
                std::ptr::null_mut(),
                bits(HELD),
                Ordering::Acquire,
                Ordering::Relaxed,
            )
            .is_ok()
    }

    /// Gives the token back if nothing is queued and a handle is left. The cell may be gone after `true`.
    #[inline]
    fn try_leave(&self) -> bool {
        // Release pairs with the Acquire in `try_enter`, `post_from_outside`, `try_read` and `release`.
        self.state
            .compare_exchange(
                bits(HELD),
                std::ptr::null_mut(),
                Ordering::Release,
                Ordering::Relaxed,
            )
            .is_ok()
    }

    /// Ends an entry made with `try_enter`: gives the token back, or queues the cell if events came meanwhile. `appended`:
    /// there may be events in the FIFO, which was empty when the color was entered.
    ///
    /// # Safety
    /// The caller has the token, and a handle that outlives the call.
    #[inline]
    pub(crate) unsafe fn exit(cell: NonNull<Self>, appended: bool) {
        // SAFETY: the caller's handle keeps the cell alive.
        let this = unsafe { cell.as_ref() };
        if appended || !this.try_leave() {
            // SAFETY: the token goes into the run queue with the cell.
            unsafe { Self::schedule(cell) }
        }
    }

    /// Queues a cell whose token the caller has; the token goes along.
    ///
    /// # Safety
    /// The caller has the token.
    #[cold]
    pub(crate) unsafe fn schedule(cell: NonNull<Self>) {
        // A copy of the pointer: the cell belongs to the queue at once.
        // SAFETY: a cell whose token is held is alive.
        let shared = unsafe { cell.as_ref().shared };
        // SAFETY: the runtime outlives the cell's turn, which is what would free the cell.
        unsafe { shared.as_ref().schedule(Self::node(cell)) }
    }

    /// Moves the inbox to the end of the FIFO, oldest first. The caller has the token.
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
        let mut newest_first = inbox(state);
        let mut oldest_first = std::ptr::null_mut::<Node>();
        while let Some(node) = NonNull::new(newest_first) {
            // SAFETY: the nodes of the inbox are ours since the swap.
            let link = unsafe { node.as_ref() }.link();
            newest_first = link.load(Ordering::Relaxed);
            link.store(oldest_first, Ordering::Relaxed);
            oldest_first = node.as_ptr();
        }
        while let Some(node) = NonNull::new(oldest_first) {
            // SAFETY: as above; and the token owns the FIFO.
            unsafe {
                oldest_first = node.as_ref().link().load(Ordering::Relaxed);
                self.fifo.with_mut(|fifo| (*fifo).push_back(node));
            }
        }
    }

    pub(super) fn pop(&self) -> Option<NonNull<Node>> {
        // SAFETY: called with the token, which owns the FIFO.
        self.fifo.with_mut(|fifo| unsafe { (*fifo).pop_front() })
    }

    /// Called with the token.
    pub(super) fn fifo_is_empty(&self) -> bool {
        // SAFETY: as for `pop`.
        self.fifo.with(|fifo| unsafe { (*fifo).is_empty() })
    }

    /// Called with the token and an empty FIFO.
    pub(super) fn leave(&self) -> Leave {
        loop {
            let state = self.state.load(Ordering::Relaxed);
            if !inbox(state).is_null() {
                self.take_inbox();
                return Leave::More;
            }
            if state.addr() & DEAD != 0 {
                // Acquire pairs with the Release of the one who set `DEAD`.
                fence(Ordering::Acquire);
                return Leave::Dead;
            }
            if self.try_leave() {
                return Leave::Left;
            }
        }
    }
}
