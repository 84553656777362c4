//! The private part of a worker, and access to it from the code that it runs.

use std::alloc::Layout;
use std::any::Any;
use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

use super::remote::{Counters, Remote};
use crate::color::ColorName;
use crate::color::cell::ColorCell;
use crate::event::Node;
use crate::runtime::{Handle, Shared};
use crate::slab::{Kind, Magazines};

/// Bound, in operations per poll: a thread may perform this many operations without waiting, inline
/// entries included, before it goes to the end of the queue.
const POLL_BUDGET: u32 = 128;

/// The state of a poll's budget for an operation that need not wait.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Budget {
    Left,
    /// The operation may still run, but the poll must end with it.
    Last,
    /// The operation has to wait for the next poll.
    Spent,
}

crate::loom::thread_local! {
    static CURRENT: Cell<*const Worker> = const { Cell::new(std::ptr::null()) };
}

/// The private part of a worker. It is on the stack of the worker's OS thread.
pub(crate) struct Worker {
    /// The runtime, as the code that runs here sees it.
    pub(crate) handle: Handle,
    pub(crate) remote: Arc<Remote>,
    pub(crate) index: usize,
    pub(crate) magazines: Magazines,
    /// The innermost color whose token this OS thread has.
    color: Cell<*const ColorCell>,
    /// True if an event was appended to the FIFO of a color that this OS thread has entered.
    appended: Cell<bool>,
    /// The number of operations that the running poll may still perform.
    budget: Cell<u32>,
    /// The data of the running thread's wakers.
    thread: Cell<*const ()>,
    /// True if the running thread asked to be queued again.
    yielded: Cell<bool>,
    /// True if an event was queued between two turns and this worker has not yet checked whether
    /// another worker must be notified.
    queued: Cell<bool>,
    /// The start of the running turn if the turn is measured, in nanoseconds since the runtime's
    /// start; otherwise 0.
    pub(crate) measured_since: Cell<u64>,
    /// The length of the running turn, in nanoseconds, if its color has measured it; otherwise 0.
    pub(crate) measured_ns: Cell<u64>,
    /// The number of turns that a measured turn stands for.
    pub(crate) weight: Cell<u64>,
    pub(crate) random: Cell<u64>,
    not_sync: PhantomData<*mut ()>,
}

/// Restores the state from before a color was entered when it is dropped.
pub(crate) struct InColor<'a> {
    worker: &'a Worker,
    color: *const ColorCell,
    appended: bool,
}

impl InColor<'_> {
    /// Returns whether an event was appended to the color's FIFO since it was entered.
    #[inline]
    pub(crate) fn appended(&self) -> bool {
        self.worker.appended.get()
    }
}

impl Drop for InColor<'_> {
    #[inline]
    fn drop(&mut self) {
        self.worker.color.set(self.color);
        self.worker.appended.set(self.appended);
    }
}

impl Worker {
    pub(crate) fn new(shared: Arc<Shared>, remote: Arc<Remote>, index: usize, seed: u64) -> Self {
        Self {
            handle: Handle { shared },
            remote,
            index,
            magazines: Magazines::new(),
            color: Cell::new(std::ptr::null()),
            appended: Cell::new(false),
            budget: Cell::new(POLL_BUDGET),
            thread: Cell::new(std::ptr::null()),
            yielded: Cell::new(false),
            queued: Cell::new(false),
            measured_since: Cell::new(0),
            measured_ns: Cell::new(0),
            weight: Cell::new(1),
            random: Cell::new(seed | 1),
            not_sync: PhantomData,
        }
    }

    /// Makes this the worker of the OS thread while `f` runs.
    pub(crate) fn enter<R>(&self, f: impl FnOnce() -> R) -> R {
        struct Leave(*const Worker);
        impl Drop for Leave {
            fn drop(&mut self) {
                CURRENT.with(|current| current.set(self.0));
            }
        }
        let _leave = Leave(CURRENT.with(|current| current.replace(self)));
        f()
    }

    /// Calls `f` with the worker of this OS thread, if it is one.
    #[inline(always)]
    pub(crate) fn with<R>(f: impl FnOnce(Option<&Worker>) -> R) -> R {
        // SAFETY: no reference leaves `f`.
        f(unsafe { Self::here() })
    }

    /// Returns the worker of this OS thread, if it is one. Use it in functions that must be
    /// inlined, because a closure may not be inlined.
    ///
    /// # Safety
    /// The caller must drop the reference before it returns.
    #[inline(always)]
    pub(crate) unsafe fn here<'a>() -> Option<&'a Worker> {
        // While the OS thread is being torn down there is no worker, because its loop has ended.
        let worker = CURRENT.try_with(Cell::get).unwrap_or(std::ptr::null());
        // SAFETY: the pointer is set by `enter` as long as the worker is borrowed on this OS
        // thread's stack.
        unsafe { worker.as_ref() }
    }

    /// Returns whether this OS thread is a worker of any runtime.
    pub(crate) fn is_here() -> bool {
        Self::with(|worker| worker.is_some())
    }

    /// Returns whether this is the innermost color of this OS thread, held with its token.
    #[inline]
    pub(crate) fn is_in(&self, cell: NonNull<ColorCell>) -> bool {
        self.color.get() == cell.as_ptr()
    }

    /// Records that this OS thread has the color's token until the guard is dropped.
    #[inline]
    pub(crate) fn enter_color(&self, cell: NonNull<ColorCell>) -> InColor<'_> {
        self.replace_color(cell.as_ptr())
    }

    /// Begins a turn of a color, or of a thread with a color of its own. If anything was queued
    /// since the last turn, this makes sure that some worker keeps watch over the rest of the queue
    /// (R7 in `README.md`).
    #[inline]
    pub(crate) fn start_turn(&self) {
        if self.queued.get() {
            self.queued.set(false);
            self.handle.shared.check_watch(self);
        }
        self.remote.count_turn();
    }

    /// Begins a turn of the color. This OS thread has that color's token, and no other color.
    #[inline]
    pub(crate) fn begin_turn(&self, cell: NonNull<ColorCell>) {
        self.color.set(cell.as_ptr());
    }

    /// Ends the turn, if one had begun, and returns its color.
    #[inline]
    pub(crate) fn end_turn(&self) -> Option<NonNull<ColorCell>> {
        NonNull::new(self.color.replace(std::ptr::null()).cast_mut())
    }

    /// Records that an event was appended to the FIFO of the innermost color.
    #[inline]
    pub(crate) fn set_appended(&self) {
        self.appended.set(true);
    }

    /// Returns whether this is a worker of the runtime.
    #[inline]
    pub(crate) fn is_of(&self, shared: &Shared) -> bool {
        std::ptr::eq(shared, &*self.handle.shared)
    }

    /// Returns the color that runs here.
    #[inline]
    pub(crate) fn color(&self) -> NonNull<ColorCell> {
        NonNull::new(self.color.get().cast_mut()).expect("a colored event runs in its color")
    }

    /// Records that this OS thread has no color's token until the guard is dropped.
    #[inline]
    pub(crate) fn enter_no_color(&self) -> InColor<'_> {
        self.replace_color(std::ptr::null())
    }

    #[inline]
    fn replace_color(&self, color: *const ColorCell) -> InColor<'_> {
        InColor {
            worker: self,
            color: self.color.replace(color),
            appended: self.appended.replace(false),
        }
    }

    /// Begins a poll, with its full budget.
    #[inline]
    pub(crate) fn start_poll(&self, thread: *const ()) {
        self.budget.set(POLL_BUDGET);
        self.thread.set(thread);
    }

    /// Ends a poll. Returns whether the poll asked to be queued again.
    #[inline]
    pub(crate) fn end_poll(&self) -> bool {
        self.thread.set(std::ptr::null());
        self.yielded.replace(false)
    }

    /// Returns the thread that is being polled here, as the data of its wakers; null between polls.
    pub(crate) fn thread(&self) -> *const () {
        self.thread.get()
    }

    /// Records that the running thread wants to be queued again once its poll ends.
    #[inline]
    pub(crate) fn set_yield(&self) {
        self.yielded.set(true);
    }

    /// Returns whether the running thread wants to be queued again.
    pub(crate) fn yields(&self) -> bool {
        self.yielded.get()
    }

    /// Charges one operation to the poll's budget.
    #[inline]
    pub(crate) fn spend(&self) -> Budget {
        let left = self.budget.get();
        self.budget.set(left.saturating_sub(1));
        match left {
            0 => Budget::Spent,
            1 => Budget::Last,
            _ => Budget::Left,
        }
    }

    /// Charges more operations to the poll's budget, as long as any are left.
    #[inline]
    #[cfg_attr(loom, allow(dead_code))]
    pub(crate) fn spend_more(&self, operations: u32) {
        self.budget
            .set(self.budget.get().saturating_sub(operations));
    }

    /// Allocates memory from this worker's magazines.
    #[inline(always)]
    pub(crate) fn alloc(&self, kind: Kind, layout: Layout) -> NonNull<u8> {
        // SAFETY: the magazines are used only with this slab, and the caller uses the memory by the
        // rules of its kind.
        unsafe { self.magazines.alloc(&self.handle.shared.slab, kind, layout) }
    }

    /// # Safety
    /// The memory must have come from this runtime's slab with this kind and layout, and must not
    /// be used again.
    #[inline(always)]
    pub(crate) unsafe fn free(&self, kind: Kind, ptr: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe {
            self.magazines
                .free(&self.handle.shared.slab, kind, ptr, layout)
        }
    }

    /// Returns a number that differs from call to call (xorshift64, Marsaglia 2003).
    ///
    /// The core does not depend on fastrand for these three lines; see docs/decisions/0031.
    pub(crate) fn random(&self) -> u64 {
        let mut x = self.random.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.random.set(x);
        x
    }

    /// Handles the panic of an event that has no waiter. The hook has already printed it.
    #[cold]
    pub(crate) fn caught(&self, payload: Box<dyn Any + Send>) {
        self.count_panic();
        // The payload is a user's value, whose destructor may panic, too.
        crate::quietly::quietly(|| drop(payload));
    }

    pub(crate) fn count_panic(&self) {
        Counters::add(&self.remote.counters.panics, 1);
    }

    /// Attributes this turn, which is measured, to the color.
    pub(crate) fn account(&self, color: ColorName, took: u64) {
        self.measured_ns.set(took.max(1));
        let site = self.remote.running.site();
        self.remote
            .profile
            .lock()
            .add(color, site, took.saturating_mul(self.weight.get()));
    }

    /// Queues a node at the end of this worker's queue. Makes sure that another worker takes it if
    /// this one does not: immediately in an event, which may be long, and otherwise when the next
    /// turn begins.
    #[inline]
    pub(crate) fn push(&self, node: NonNull<Node>) {
        self.requeue(node);
        if self.remote.is_in_event() {
            self.handle.shared.work_pushed(self);
        } else {
            self.queued.set(true);
        }
    }

    /// Queues a node on this worker without waking another worker. The node was queued before, so a
    /// worker was woken then if necessary.
    #[inline]
    pub(crate) fn requeue(&self, node: NonNull<Node>) {
        // SAFETY: this is the worker that owns the ring.
        unsafe { self.remote.ring.push(node) }
    }
}
