//! Cancelled requests leave the queue of a color before their turn.
//!
//! A request whose future is dropped has nothing to run, but its node is in the color's queue, and the color may be in a long
//! event. A caller that gives up and asks again, such as a timeout in a loop, would fill the memory meanwhile. So who cancels
//! counts that, and every so often takes the cancelled nodes out:
//!
//! - *Of the inbox*, from any OS thread. The walk begins with a lock and with `PRUNING` in the state word, which must have an
//!   inbox then. It unlinks cancelled nodes below the newest one; the newest stays. It ends by taking `PRUNING` away.
//! - *Of the FIFO*, whose owner is the token: the event that has it does so when it cancels a request itself; before it adds a
//!   request to the FIFO; and when a post to its own color moves the inbox to the FIFO.
//!
//! # Why it is right
//!
//! *Nobody else touches what the walk does.* Only `take_inbox` takes nodes out of an inbox, and it waits for the lock while it
//! sees `PRUNING`. The bit is set and unset by who has the lock, each by a compare-and-swap of the word that names the inbox:
//! who takes has either taken all before, or sees the bit. Posts put nodes over the newest one and keep the bit; they look
//! into no node. So from the newest node that the walk has found on down, links and nodes are the walk's.
//!
//! *The links arrive.* The walk sees all nodes by the Acquire that sets the bit. What it writes is Released when it unsets the
//! bit; posts that follow are read-modify-writes and go on with that, so the Acquire in `take_inbox` sees it.
//!
//! *Nobody leaves meanwhile.* There is an inbox as long as the bit is set, so the state is neither 0 nor `HELD`: nobody enters,
//! reads, or gives the token back. The caller's handle keeps the cell alive.
//!
//! *Order.* Nodes are taken out; the others keep their places.
//!
//! *No deadlock.* Under the lock run only the walk and `is_cancelled`; nodes are consumed after it is released. Who waits for the
//! lock waits for one walk.
//!
//! # How many stay
//!
//! A walk is due after as many cancellations as the larger of `PRUNE_AT` and the nodes that the last walk kept. Let `w` be the
//! larger of `PRUNE_AT` and the most events, not cancelled, that have waited in the color at once.
//!
//! - The inbox has at most `w` cancelled nodes, the newest one, and one for each OS thread that cancels during a walk.
//! - The FIFO has those that were cancelled when they came there, of which the same is true, and those that were cancelled
//!   since. While an event runs, only its own posts and requests bring new ones, and prune the FIFO by the same rule, whoever
//!   has cancelled: `w` more.
//!
//! So `3 * w` cancelled nodes, and a few, are the most that a color has. A walk costs a step for each node: as many as it kept
//! the last time were cancelled since, and the others are new.

use std::ptr::NonNull;

use super::cell::{ColorCell, PRUNING, inbox};
use crate::event::{Cancel, Node};
use crate::loom::atomic::{AtomicU32, Ordering};
use crate::loom::{Mutex, lock};
use crate::queue::List;
use crate::worker::Worker;

/// Bound, in cancelled requests in the queue of a color, if fewer others wait there: as many as a walk is worth.
const PRUNE_AT: u32 = if cfg!(loom) { 1 } else { 64 };

/// How many more requests are to be cancelled before the queue is walked along.
pub(super) struct Cancelled {
    inbox: AtomicU32,
    fifo: AtomicU32,
    /// Taken by who walks along the inbox, and by who waits for that.
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

/// Counts one down to 0; says whether it is there.
fn is_due(left: &AtomicU32) -> bool {
    let down = |left: u32| left.checked_sub(1);
    !matches!(
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, down),
        Ok(2..)
    )
}

fn kept(left: &AtomicU32, nodes: u32) {
    left.store(nodes.max(PRUNE_AT), Ordering::Relaxed);
}

/// # Safety
/// The node is queued where the caller may walk.
unsafe fn cancel_of(node: NonNull<Node>) -> Option<&'static Cancel> {
    // SAFETY: passed on from the caller: a queued node is alive.
    let cancel = unsafe { node.as_ref() }.vtable().cancel.as_ref()?;
    // SAFETY: as above, and the functions are this node's.
    unsafe { (cancel.is_cancelled)(node) }.then_some(cancel)
}

/// Consumes nodes that were taken out.
fn leave(mut removed: List<Node>) {
    while let Some(node) = removed.pop_front() {
        // SAFETY: the node is out of its queue and ours, and was cancelled.
        unsafe {
            let cancel = cancel_of(node).expect("what is cancelled stays so");
            (cancel.leave)(node);
        }
    }
}

impl ColorCell {
    /// Counts that a request in the color's queue was cancelled, and takes such requests out of the queue if that is due.
    ///
    /// # Safety
    /// The caller has a handle that outlives the call.
    #[cold]
    pub(crate) unsafe fn count_cancelled(cell: NonNull<Self>) {
        // SAFETY: passed on from the caller.
        let this = unsafe { cell.as_ref() };
        if is_due(&this.cancelled.fifo)
            && Worker::with(|worker| worker.is_some_and(|worker| worker.is_in(cell)))
        {
            // SAFETY: this OS thread has the token.
            unsafe { this.prune_fifo() };
        }
        if is_due(&this.cancelled.inbox) {
            this.prune_inbox();
        }
    }

    /// Posts a request, which may be cancelled. An event that makes one to its own color prunes the FIFO first if that is due: those
    /// that it has made before may have been cancelled where nobody could.
    ///
    /// # Safety
    /// As for [`post`](Self::post).
    pub(crate) unsafe fn post_request(cell: NonNull<Self>, node: NonNull<Node>) {
        // SAFETY: the caller keeps the cell alive.
        let this = unsafe { cell.as_ref() };
        if this.cancelled.fifo.load(Ordering::Relaxed) == 0
            && Worker::with(|worker| worker.is_some_and(|worker| worker.is_in(cell)))
        {
            // SAFETY: this OS thread has the token.
            unsafe { this.prune_fifo() };
        }
        // SAFETY: passed on from the caller.
        unsafe { Self::post(cell, node) }
    }

    /// Moves the inbox to the FIFO, for an event of the color that is about to post to it; both stay bounded.
    ///
    /// # Safety
    /// The caller has the token.
    #[cold]
    pub(super) unsafe fn take_inbox_in_event(&self) {
        self.take_inbox();
        if self.cancelled.fifo.load(Ordering::Relaxed) == 0 {
            // SAFETY: passed on from the caller.
            unsafe { self.prune_fifo() }
        }
    }

    /// Waits until nobody walks along the inbox.
    #[cold]
    pub(super) fn wait_for_walk(&self) {
        drop(lock(&self.cancelled.walk));
    }

    /// # Safety
    /// The caller has the token.
    unsafe fn prune_fifo(&self) {
        let mut removed = List::new();
        let mut nodes = 0;
        // SAFETY: the token owns the FIFO and its nodes; each goes from one list to one other.
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

    fn prune_inbox(&self) {
        let walk = lock(&self.cancelled.walk);
        if self.cancelled.inbox.load(Ordering::Relaxed) != 0 {
            return; // somebody else has walked while we waited for the lock
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
        // SAFETY: the nodes below the newest one are the walk's as long as the bit is set, and so is the newest one's link.
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
