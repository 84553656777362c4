//! Posting to a color, with its token and without.

use std::alloc::Layout;
use std::panic::Location;
use std::ptr::NonNull;

use super::cell::{ColorCell, HELD, INBOX, bits, inbox, readers, tags};
use crate::event::{Body, Node, Posted};
use crate::loom::atomic::Ordering;
use crate::slab::Kind;
use crate::worker::Worker;

/// The error of a post to a color that is at its depth limit; carries the body back.
pub(crate) struct Full<B> {
    pub(crate) body: B,
    pub(crate) depth_max: u32,
}

impl ColorCell {
    /// Posts an event that runs `body`, unless the color is full.
    ///
    /// Inlined into the caller so that the body is written directly into its event. Passing it
    /// through memory costs more than the rest of a post.
    ///
    /// # Safety
    /// A handle, or the color's token, must keep the cell alive for the call.
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
        // A worker that has entered a color of another runtime also posts from outside. The order
        // is kept because all of its posts take this path. SAFETY: the reference to the worker does
        // not outlive this call.
        let worker = unsafe { Worker::here() }.filter(|worker| worker.is_of(this.shared()));
        let layout = Layout::new::<Posted<B>>();
        let memory = match worker {
            Some(worker) => worker.alloc(Kind::Event, layout),
            None => this.shared().alloc_outside(Kind::Event, layout),
        };
        // SAFETY: the memory was allocated for this event, and its node is not shared yet.
        unsafe {
            let node = Posted::write(memory.cast(), location, body);
            match worker {
                // Posting to an event's own color costs only an append.
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
    /// Same as for [`post`](Self::post).
    #[inline(never)]
    unsafe fn post_from_worker(cell: NonNull<Self>, node: NonNull<Node>, worker: &Worker) {
        // SAFETY: the caller keeps the cell alive.
        let this = unsafe { cell.as_ref() };
        if !this.try_enter() {
            // SAFETY: passed on from the caller.
            return unsafe { Self::post_from_outside::<true>(cell, node) };
        }
        this.depth.count_local();
        // SAFETY: this call holds the token, which goes into the run queue with the cell.
        unsafe { this.queue(node) };
        worker.push(Self::node(cell));
    }

    /// Posts an event.
    ///
    /// # Safety
    /// The caller must own the node. A handle, or the event itself, must keep the cell alive for
    /// the call.
    #[inline]
    pub(crate) unsafe fn post(cell: NonNull<Self>, node: NonNull<Node>) {
        Worker::with(|worker| match worker {
            // SAFETY: this OS thread holds the token, so the cell is alive; the caller owns the
            // node.
            Some(worker) if worker.is_in(cell) => unsafe { cell.as_ref().append(node, worker) },
            // SAFETY: passed on from the caller.
            _ => unsafe { Self::post_from_outside::<false>(cell, node) },
        });
    }

    /// Appends an event to the FIFO of the worker's innermost color.
    ///
    /// # Safety
    /// The worker must hold the token of this color, its innermost one, and the caller must own the
    /// node.
    #[inline]
    pub(super) unsafe fn append(&self, node: NonNull<Node>, worker: &Worker) {
        // A remote post that happened before this one must stay ahead of it. Coherence makes it
        // visible to a Relaxed load.
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
    /// The caller must hold the token and own the node.
    #[inline]
    pub(super) unsafe fn queue(&self, node: NonNull<Node>) {
        // SAFETY: the token covers the FIFO, and the caller owns the node.
        self.fifo
            .with_mut(|fifo| unsafe { (*fifo).push_back(node) });
    }

    /// Posts without the token. With `COUNT`, the event counts against the color's depth limit.
    ///
    /// # Safety
    /// Same as for `post`.
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
                    // Counted before the push, since the event may run and be subtracted right
                    // after it.
                    this.depth.count_remote();
                    counted = true;
                }
                debug_assert_eq!(
                    node.addr().get() & !INBOX,
                    0,
                    "a node's address has tag bits"
                );
                link.store(inbox(state), Ordering::Relaxed);
                // `HELD` is unset only if readers alone hold the color; setting it makes the last
                // reader schedule the cell.
                let keep = readers(state) | tags(state) | HELD;
                node.as_ptr().map_addr(|addr| addr | keep)
            };
            // Acquire (idle color): as in `try_enter`. Release: publishes the event to the taker
            // (Acquire in `take_inbox`).
            match this
                .state
                .compare_exchange_weak(state, next, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) if state.is_null() => {
                    if !counted {
                        this.depth.count_local();
                    }
                    // SAFETY: this call holds the token, which covers the FIFO and goes into the
                    // run queue with the cell.
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
