//! Removal of cancelled requests from the queue of a color.
//!
//! If the future of a request is dropped, there is nothing left to run, but the request's node
//! stays in the color's queue. A caller that repeatedly gives up and asks again, such as a loop
//! with a timeout, could then fill the memory while the color runs a long event. Each cancellation
//! is therefore counted, and some cancellations also remove the cancelled nodes:
//!
//! - *From the inbox*, on any OS thread. The walk takes a lock, then sets `PRUNING` in the state
//!   word, which requires a non-empty inbox. It unlinks cancelled nodes below the newest one, which
//!   stays. It ends by clearing `PRUNING`.
//! - *From the FIFO*, by the holder of the token. An event prunes its own color's FIFO when it
//!   cancels a request to that color, before it queues another one, and when a post moves the inbox
//!   to the FIFO.
//!
//! # Correctness
//!
//! *Exclusive access.* Only `take_inbox` removes nodes from an inbox, and it waits for the lock
//! while it sees `PRUNING`. The holder of the lock sets and clears the bit by a compare-and-swap of
//! the word that also names the inbox. So a taker has either swapped the inbox out before the walk,
//! or sees the bit. Posts push above the newest node, keep the bit, and read no node. Hence the
//! newest node found by the walk, and all nodes and links below it, belong to the walk.
//!
//! *Visibility.* The Acquire that sets the bit makes all nodes visible to the walk. The walk's
//! writes are Released when it clears the bit. Later posts are read-modify-writes and continue that
//! release sequence, so the Acquire in `take_inbox` sees the writes.
//!
//! *The color is not left.* While the bit is set the inbox is not empty, so the state is neither 0
//! nor `HELD`: no caller can enter, read, or give the token back. The caller's handle keeps the
//! cell alive.
//!
//! *Order.* Removal does not move the nodes that stay.
//!
//! *No deadlock.* Only the walk and `is_cancelled` run under the lock; nodes are consumed after its
//! release. A caller that waits for the lock waits for one walk.
//!
//! # How many cancelled nodes stay
//!
//! A walk is due once the number of cancellations reaches `PRUNE_AT` or the number of nodes that
//! the last walk kept, whichever is larger. Let `w` be `PRUNE_AT` or the largest number of live
//! events that have waited in the color at once, whichever is larger.
//!
//! - The inbox has at most `w` cancelled nodes, plus the newest one and one for each OS thread that
//!   cancels during a walk.
//! - The FIFO has the nodes that were already cancelled when they moved there, with the same limit,
//!   and the nodes cancelled since then. While an event runs, only its own posts and requests add
//!   nodes, and these prune the FIFO by the same rule, whichever party cancelled: they add another
//!   `w`.
//!
//! So a color has at most about `3 * w` cancelled nodes. A walk takes one step per node, and
//! earlier operations pay for these steps. Since the last walk, as many requests were cancelled as
//! that walk kept, and all other nodes are new.

use std::ptr::NonNull;

use super::cell::{ColorCell, PRUNING, inbox};
use crate::event::{Cancel, Node};
use crate::loom::atomic::{AtomicU32, Ordering};
use crate::loom::{Mutex, lock};
use crate::queue::List;
use crate::worker::Worker;

/// The number of cancelled requests, in the queue of a color with fewer live requests, that makes a
/// walk worth its cost.
const PRUNE_AT: u32 = if cfg!(loom) { 1 } else { 64 };

/// Cancellations left until the next walk, for the inbox and the FIFO.
pub(super) struct Cancelled {
    inbox: AtomicU32,
    fifo: AtomicU32,
    /// Held during a walk along the inbox. `take_inbox` acquires this lock to wait for the walk.
    walk: Mutex<()>,
}

impl Default for Cancelled {
    fn default() -> Self {
        Self {
            inbox: AtomicU32::new(PRUNE_AT),
            fifo: AtomicU32::new(PRUNE_AT),
            walk: Mutex::new(()),
        }
    }
}

/// Decrements a counter, down to 0, and returns whether it has reached 0.
fn is_due(left: &AtomicU32) -> bool {
    let down = |left: u32| left.checked_sub(1);
    !matches!(
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, down),
        Ok(2..)
    )
}

/// Restarts the count after a walk that kept `nodes` nodes.
fn kept(left: &AtomicU32, nodes: u32) {
    left.store(nodes.max(PRUNE_AT), Ordering::Relaxed);
}

/// Returns the cancel functions of a node if its request is cancelled.
///
/// # Safety
/// The node must be in a queue that the caller may walk.
unsafe fn cancel_of(node: NonNull<Node>) -> Option<&'static Cancel> {
    // SAFETY: upheld by the caller; a queued node is alive.
    let cancel = unsafe { node.as_ref() }.vtable().cancel.as_ref()?;
    // SAFETY: as above; the functions belong to this node.
    unsafe { (cancel.is_cancelled)(node) }.then_some(cancel)
}

/// Consumes the nodes that a walk removed.
fn leave(mut removed: List<Node>) {
    while let Some(node) = removed.pop_front() {
        // SAFETY: the node was cancelled and removed from its queue, so it belongs to this call.
        unsafe {
            let cancel = cancel_of(node).expect("a cancelled request stays cancelled");
            (cancel.leave)(node);
        }
    }
}

impl ColorCell {
    /// Counts the cancellation of a queued request, and prunes the queue if that is due.
    ///
    /// # Safety
    /// The caller must have a handle that outlives the call.
    #[cold]
    pub(crate) unsafe fn count_cancelled(cell: NonNull<Self>) {
        // SAFETY: passed on from the caller.
        let this = unsafe { cell.as_ref() };
        if is_due(&this.cancelled.fifo)
            && Worker::with(|worker| worker.is_some_and(|worker| worker.is_in(cell)))
        {
            // SAFETY: this OS thread holds the token.
            unsafe { this.prune_fifo() };
        }
        if is_due(&this.cancelled.inbox) {
            this.prune_inbox();
        }
    }

    /// Posts a request, which may be cancelled later.
    ///
    /// An event that posts to its own color prunes the FIFO first if that is due: its earlier
    /// requests may have been cancelled on OS threads that could not prune the FIFO.
    ///
    /// # Safety
    /// Same as for [`post`](Self::post).
    pub(crate) unsafe fn post_request(cell: NonNull<Self>, node: NonNull<Node>) {
        // SAFETY: the caller keeps the cell alive.
        let this = unsafe { cell.as_ref() };
        if this.cancelled.fifo.load(Ordering::Relaxed) == 0
            && Worker::with(|worker| worker.is_some_and(|worker| worker.is_in(cell)))
        {
            // SAFETY: this OS thread holds the token.
            unsafe { this.prune_fifo() };
        }
        // SAFETY: passed on from the caller.
        unsafe { Self::post(cell, node) }
    }

    /// Moves the inbox to the FIFO before an event posts to its own color, and prunes the FIFO if
    /// that is due.
    ///
    /// # Safety
    /// The caller must hold the token.
    #[cold]
    pub(super) unsafe fn take_inbox_in_event(&self) {
        self.take_inbox();
        if self.cancelled.fifo.load(Ordering::Relaxed) == 0 {
            // SAFETY: passed on from the caller.
            unsafe { self.prune_fifo() }
        }
    }

    /// Waits until the walk along the inbox has ended.
    #[cold]
    pub(super) fn wait_for_walk(&self) {
        drop(lock(&self.cancelled.walk));
    }

    /// Removes cancelled requests from the FIFO.
    ///
    /// # Safety
    /// The caller must hold the token.
    unsafe fn prune_fifo(&self) {
        let mut removed = List::new();
        let mut nodes = 0;
        // SAFETY: the token covers the FIFO and its nodes; each node moves from one list to exactly
        // one other.
        self.fifo.with_mut(|fifo| unsafe {
            let mut all = std::mem::replace(&mut *fifo, List::new());
            while let Some(node) = all.pop_front() {
                if cancel_of(node).is_some() {
                    removed.push_back(node);
                } else {
                    nodes += 1;
                    (*fifo).push_back(node);
                }
            }
        });
        kept(&self.cancelled.fifo, nodes);
        leave(removed);
    }

    /// Removes cancelled requests from the inbox, except the newest node.
    fn prune_inbox(&self) {
        let walk = lock(&self.cancelled.walk);
        if self.cancelled.inbox.load(Ordering::Relaxed) != 0 {
            return; // another walk took place while this one waited for the lock
        }
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            if inbox(state).is_null() {
                kept(&self.cancelled.inbox, 0);
                return;
            }
            let next = state.map_addr(|addr| addr | PRUNING);
            // Acquire pairs with the Release in `post_from_outside`.
            match self.state.compare_exchange_weak(
                state,
                next,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => break,
                Err(now) => state = now,
            }
        }
        let mut removed = List::new();
        let mut nodes = 1;
        let mut above = NonNull::new(inbox(state)).expect("there is an inbox");
        // SAFETY: while the bit is set, the nodes below the newest one and the newest one's link
        // belong to the walk.
        unsafe {
            let mut next = above.as_ref().link().load(Ordering::Relaxed);
            while let Some(node) = NonNull::new(next) {
                next = node.as_ref().link().load(Ordering::Relaxed);
                if cancel_of(node).is_some() {
                    above.as_ref().link().store(next, Ordering::Relaxed);
                    removed.push_back(node);
                } else {
                    nodes += 1;
                    above = node;
                }
            }
        }
        kept(&self.cancelled.inbox, nodes);
        state = self.state.load(Ordering::Relaxed);
        loop {
            let next = state.map_addr(|addr| addr & !PRUNING);
            // Release pairs with the Acquire in `take_inbox`.
            match self.state.compare_exchange_weak(
                state,
                next,
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => break,
                Err(now) => state = now,
            }
        }
        drop(walk);
        leave(removed);
    }
}
