//! Posting to a color: with its token, and without.

use std::alloc::Layout;
use std::panic::Location;
use std::ptr::NonNull;

use super::cell::{ColorCell, HELD, INBOX, bits, inbox, readers, tags};
use crate::event::{Body, Node, Posted};
use crate::loom::atomic::Ordering;
use crate::slab::Kind;
use crate::worker::Worker;

/// A color that has as many posts queued as it may have, with what was to be posted.
pub(crate) struct Full<B> {
    pub(crate) body: B,
    pub(crate) depth_max: u32,
}

impl ColorCell {
    /// Posts what `body` runs, unless the color is full.
    ///
    /// Inlined into whoever posts, so that the body is written to its event at once: one that is passed on through memory
    /// costs more than all the rest of a post.
    ///
    /// # Safety
    /// Something keeps the cell alive for the call.
    #[inline(always)]
    pub(crate) unsafe fn post_body<B: Body>(
        cell: NonNull<Self>,
        location: &'static Location<'static>,
        body: B,
    ) -> Result<(), Full<B>> {
        // SAFETY: the caller keeps the cell alive.
        let this = unsafe { cell.as_ref() };
        if let Err(depth_max) = this.admit() {
            return Err(Full { body, depth_max });
        }
        // A worker that has entered a color of another runtime posts to it as from outside, too: the order is kept, because
        // all that it posts goes this way.
        // SAFETY: the worker is not kept.
        let worker = unsafe { Worker::here() }.filter(|worker| worker.is_of(this.shared()));
        let layout = Layout::new::<Posted<B>>();
        let memory = match worker {
            Some(worker) => worker.alloc(Kind::Event, layout),
            None => this.shared().alloc_outside(Kind::Event, layout),
        };
        // SAFETY: the memory is for this event, whose node is then ours to post.
        unsafe {
            let node = Posted::write(memory.cast(), location, body);
            match worker {
                // The color's own events post to it at the price of an append.
                Some(worker) if worker.is_in(cell) => {
                    this.depth.count_local();
                    this.append(node, worker);
                }
                Some(worker) => Self::post_from_worker(cell, node, worker),
                None => Self::post_from_outside::<true>(cell, node),
            }
        }
        Ok(())
    }

    /// Posts from an event of another color, on a worker of this runtime.
    ///
    /// # Safety
    /// As for [`post`](Self::post).
    #[inline(never)]
    unsafe fn post_from_worker(cell: NonNull<Self>, node: NonNull<Node>, worker: &Worker) {
        // SAFETY: the caller keeps the cell alive.
        let this = unsafe { cell.as_ref() };
        if !this.try_enter() {
            // SAFETY: passed on from the caller.
            return unsafe { Self::post_from_outside::<true>(cell, node) };
        }
        this.depth.count_local();
        // SAFETY: the token is ours, and goes into the run queue with the cell.
        unsafe { this.queue(node) };
        worker.push(Self::node(cell));
    }

    /// Posts an event.
    ///
    /// # Safety
    /// The caller owns the node, and something (a handle, or the event's own) keeps the cell alive for the call.
    #[inline]
    pub(crate) unsafe fn post(cell: NonNull<Self>, node: NonNull<Node>) {
        Worker::with(|worker| match worker {
            // SAFETY: this OS thread has the token, so the cell is alive; the node is ours to give.
            Some(worker) if worker.is_in(cell) => unsafe { cell.as_ref().append(node, worker) },
            // SAFETY: passed on from the caller.
            _ => unsafe { Self::post_from_outside::<false>(cell, node) },
        });
    }

    /// Posts with the token.
    ///
    /// # Safety
    /// The worker has the token, as that of its innermost color, and the caller owns the node.
    #[inline]
    pub(super) unsafe fn append(&self, node: NonNull<Node>, worker: &Worker) {
        // A remote post that happened before this one must stay before it; coherence makes it visible to a Relaxed load.
        let state = self.state.load(Ordering::Relaxed);
        if !inbox(state).is_null() {
            // SAFETY: passed on from the caller.
            unsafe { self.take_inbox_in_event() };
        }
        // SAFETY: as above.
        unsafe { self.queue(node) };
        worker.set_appended();
    }

    /// Puts an event at the end of the FIFO.
    ///
    /// # Safety
    /// The caller has the token, and owns the node.
    #[inline]
    pub(super) unsafe fn queue(&self, node: NonNull<Node>) {
        // SAFETY: the token owns the FIFO, and the node is the caller's to give.
        self.fifo
            .with_mut(|fifo| unsafe { (*fifo).push_back(node) });
    }

    /// Posts without the token. `COUNT`: the event counts against the color's depth limit.
    ///
    /// # Safety
    /// As for `post`.
    #[inline(never)]
    pub(super) unsafe fn post_from_outside<const COUNT: bool>(
        cell: NonNull<Self>,
        node: NonNull<Node>,
    ) {
        // SAFETY: the caller keeps the cell alive.
        let this = unsafe { cell.as_ref() };
        // SAFETY: the caller owns the node.
        let link = unsafe { node.as_ref() }.link();
        let mut state = this.state.load(Ordering::Relaxed);
        let mut counted = !COUNT;
        loop {
            let next = if state.is_null() {
                bits(HELD)
            } else {
                if !counted {
                    // Before the event can run and be subtracted again.
                    this.depth.count_remote();
                    counted = true;
                }
                debug_assert_eq!(
                    node.addr().get() & !INBOX,
                    0,
                    "a node's address has tag bits"
                );
                link.store(inbox(state), Ordering::Relaxed);
                // `HELD` is set already unless only readers are there; then it calls the last of them.
                let keep = readers(state) | tags(state) | HELD;
                node.as_ptr().map_addr(|addr| addr | keep)
            };
            // Acquire (idle color): as in `try_enter`. Release: the event's content reaches the taker (Acquire in
            // `take_inbox`).
            match this
                .state
                .compare_exchange_weak(state, next, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) if state.is_null() => {
                    if !counted {
                        this.depth.count_local();
                    }
                    // SAFETY: the token is ours; it owns the FIFO, and goes into the run queue with the cell.
                    unsafe {
                        this.queue(node);
                        Self::schedule(cell);
                    }
                    return;
                }
                Ok(_) => return,
                Err(now) => state = now,
            }
        }
    }
}
