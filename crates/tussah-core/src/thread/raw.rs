//! A thread with its future: creation, polling and completion.

use std::alloc::Layout;
use std::mem::ManuallyDrop;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll};

use super::header::{HANDLE, Header, JOINER, REFERENCE, SCHEDULED, Suspended, VTable};
use super::{JoinHandle, waker};
use crate::color::ColorRef;
use crate::event::{self, After, DropReason, Node};
use crate::join_error::JoinError;
use crate::loom::UnsafeCell;
use crate::loom::atomic::{AtomicU64, Ordering};
use crate::prefetch;
use crate::quietly::quietly;
use crate::runtime::Shared;
use crate::slab::{self, Kind};
use crate::tiny_waker::TinyWaker;
use crate::worker::Worker;

/// The destination of a thread's events: `()` for a thread with its own color, a [`ColorRef`] for a
/// thread in another color.
pub(crate) trait Home: Send + 'static {
    /// Queues a thread whose `SCHEDULED` bit the caller has set.
    ///
    /// # Safety
    /// `thread` must be alive, and its home must be of this type.
    unsafe fn schedule(&self, thread: NonNull<Header>);
}

impl Home for () {
    #[inline]
    unsafe fn schedule(&self, thread: NonNull<Header>) {
        // SAFETY: every thread is in a slab, whose owner outlives the slab's objects.
        unsafe {
            let shared = slab::owner_of(thread.cast()).cast::<Shared>();
            (*shared).schedule(thread.cast());
        }
    }
}

impl Home for ColorRef {
    #[inline]
    unsafe fn schedule(&self, thread: NonNull<Header>) {
        // SAFETY: the reference keeps the cell alive, and the caller passes on the right to queue
        // the thread.
        unsafe { crate::color::cell::ColorCell::post(self.cell(), thread.cast()) }
    }
}

/// The future and, later, its output, in the same memory.
#[repr(C)]
union Body<F: Future> {
    future: ManuallyDrop<F>,
    output: ManuallyDrop<Result<F::Output, JoinError>>,
}

/// The memory of a thread.
#[repr(C)]
struct Thread<F: Future, H> {
    header: Header,
    home: H,
    body: Body<F>,
}

/// The beginning of a thread whose future is not known.
#[repr(C)]
struct Placed<H> {
    header: Header,
    home: H,
}

impl<F, H> Thread<F, H>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
    H: Home,
{
    // A program has thousands of types of futures, so as little code as possible depends on `F`.
    const VTABLE: VTable = VTable {
        event: event::VTable {
            run: run::<F>,
            drop: drop_unrun,
            name: std::any::type_name::<F>,
            location_at: NonZeroUsize::new(std::mem::offset_of!(Header, location)),
            cancel: None,
        },
        schedule: schedule::<H>,
        has_own_color: size_of::<H>() == 0,
        drop_future: drop_at::<F>,
        store_error: store_error::<F::Output>,
        drop_output: drop_at::<Result<F::Output, JoinError>>,
        free: free::<H>,
        body_at: std::mem::offset_of!(Self, body),
        layout: Layout::new::<Self>(),
    };
}

/// Creates a thread and queues its first event.
pub(crate) fn spawn<F, H>(
    shared: &Shared,
    home: H,
    location: &'static Location<'static>,
    future: F,
) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
    H: Home,
{
    let layout = Layout::new::<Thread<F, H>>();
    let thread = shared.alloc(Kind::Thread, layout).cast::<Thread<F, H>>();
    let at = thread.as_ptr();
    // SAFETY: this call owns the memory. The state word is written last and atomically, because a
    // shutdown may be looking at the slot.
    unsafe {
        let table: &'static VTable = &Thread::<F, H>::VTABLE;
        (&raw mut (*at).header.node).write(Node::of_larger(NonNull::from(table).cast()));
        (&raw mut (*at).header.joiner).write(UnsafeCell::new(TinyWaker::NONE));
        (&raw mut (*at).header.location).write(location);
        (&raw mut (*at).home).write(home);
        (&raw mut (*at).body).write(Body {
            future: ManuallyDrop::new(future),
        });
        #[cfg(loom)] // There, the word is more than its bits.
        (&raw mut (*at).header.state).write(AtomicU64::new(0));
        let state: &AtomicU64 = &(*at).header.state;
        // Release pairs with the Acquire in `retain_if_alive`.
        state.store(SCHEDULED | HANDLE | (2 * REFERENCE), Ordering::Release);
        (*at).home.schedule(thread.cast());
        JoinHandle::new(thread.cast())
    }
}

unsafe fn schedule<H: Home>(thread: NonNull<Header>) {
    // SAFETY: the caller has a reference and the right to queue. The home follows the header.
    unsafe {
        // The thread will run soon.
        prefetch::rest_of(thread.as_ptr(), Header::vtable(thread).layout.size());
        (*thread.cast::<Placed<H>>().as_ptr()).home.schedule(thread);
    }
}

unsafe fn run<F: Future>(node: NonNull<Node>, worker: &Worker) -> After {
    let thread = node.cast::<Header>();
    // SAFETY: a queued thread has the runtime's reference.
    let header = unsafe { thread.as_ref() };
    if header.start() {
        // SAFETY: `RUNNING` is ours, and so is the future.
        unsafe { fail(thread, JoinError::cancelled()) };
        return After::Continue;
    }
    worker.start_poll(thread.as_ptr().cast_const().cast());
    // SAFETY: the runtime's reference outlives the poll.
    let waker = unsafe { waker::borrowed(thread) };
    let mut context = Context::from_waker(&waker);
    let polled = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: `RUNNING` is ours, and so is the future, which is an `F`. It never moves before
        // it is dropped in place.
        unsafe {
            let future = &mut *Header::body(thread).cast::<F>();
            Pin::new_unchecked(future).poll(&mut context)
        }
    }));
    let yielded = worker.end_poll();
    match polled {
        Ok(Poll::Pending) => {
            if header.suspend(yielded) == Suspended::Again {
                // SAFETY: `SCHEDULED` is set and the thread is in no queue.
                unsafe { again(thread, worker) }
            }
        }
        // SAFETY: `RUNNING` is ours, and so is the future.
        Ok(Poll::Ready(output)) => unsafe { succeed(thread, output) },
        Err(payload) => {
            worker.count_panic();
            // SAFETY: as above.
            unsafe { fail(thread, JoinError::panic(payload)) }
        }
    }
    After::Continue
}

/// Queues a thread that was woken or yielded while it ran: at the end of this worker's queue.
#[inline]
unsafe fn again(thread: NonNull<Header>, worker: &Worker) {
    // SAFETY: the caller's promise.
    unsafe {
        let table = Header::vtable(thread);
        if table.has_own_color {
            worker.requeue(thread.cast());
        } else {
            (table.schedule)(thread);
        }
    }
}

/// Ends a thread whose future is ready.
///
/// # Safety
/// The caller has set `RUNNING`, and the output of the thread is a `T`.
unsafe fn succeed<T>(thread: NonNull<Header>, output: T) {
    // SAFETY: the caller's promise. The future is dropped once, and makes room for the output. The
    // runtime's reference ends with the future.
    unsafe {
        let result = match drop_future(thread) {
            Ok(()) => Ok(output),
            Err(error) => {
                quietly(|| drop(output));
                Err(error)
            }
        };
        Header::body(thread)
            .cast::<Result<T, JoinError>>()
            .write(result);
        if complete(thread) {
            quietly(|| drop_at::<Result<T, JoinError>>(Header::body(thread)));
        }
        Header::release(thread);
    }
}

/// Ends a thread without an output.
///
/// # Safety
/// The caller has set `RUNNING`.
unsafe fn fail(thread: NonNull<Header>, mut error: JoinError) {
    // SAFETY: the caller's promise. The future is dropped once, and makes room for the error. The
    // runtime's reference ends with the future.
    unsafe {
        if let Err(newer) = drop_future(thread) {
            let replaced = std::mem::replace(&mut error, newer);
            quietly(|| drop(replaced));
        }
        (Header::vtable(thread).store_error)(Header::body(thread), error);
        if complete(thread) {
            Header::drop_output(thread);
        }
        Header::release(thread);
    }
}

/// Drops the future.
///
/// # Errors
/// Returns the panic of its destructor.
unsafe fn drop_future(thread: NonNull<Header>) -> Result<(), JoinError> {
    // SAFETY: the caller has set `RUNNING`. The future is present, and is dropped once.
    catch_unwind(AssertUnwindSafe(|| unsafe {
        (Header::vtable(thread).drop_future)(Header::body(thread));
    }))
    .map_err(JoinError::panic)
}

/// Records that the output is stored, and wakes the joiner. Returns true if the output is the
/// caller's to drop. The runtime's reference is the caller's to release.
#[inline]
unsafe fn complete(thread: NonNull<Header>) -> bool {
    // SAFETY: the runtime's reference keeps the header alive.
    let header = unsafe { thread.as_ref() };
    let old = header.complete();
    if old & (HANDLE | JOINER) == HANDLE | JOINER {
        // SAFETY: rule 3: `JOINER` is now set for good, so the slot is read-only until the memory
        // is freed.
        header
            .joiner
            .with(|slot| unsafe { (*slot).wake_by_ref_guarded() });
    }
    // Rule 2: without a handle, the output is the runner's.
    old & HANDLE == 0
}

/// Ends a queued thread for the shutdown.
unsafe fn drop_unrun(node: NonNull<Node>, _reason: DropReason) -> After {
    let thread = node.cast::<Header>();
    // SAFETY: a queued thread has the runtime's reference, and the caller took it from its queue.
    // The thread's memory keeps its runtime until `fail` releases that reference.
    unsafe {
        let shared = slab::owner_of(thread.cast()).cast::<Shared>();
        (*shared).threads_dropped.fetch_add(1, Ordering::Relaxed);
        thread.as_ref().start();
        fail(thread, JoinError::cancelled());
    }
    After::Continue
}

unsafe fn drop_at<T>(at: *mut ()) {
    // SAFETY: the caller owns the `T` at this address, and does not use it again.
    unsafe { at.cast::<T>().drop_in_place() }
}

unsafe fn store_error<T>(at: *mut (), error: JoinError) {
    // SAFETY: the caller owns this memory, which has room for the result of a thread.
    unsafe { at.cast::<Result<T, JoinError>>().write(Err(error)) }
}

unsafe fn free<H>(thread: NonNull<Header>) {
    // SAFETY: no reference is left. The home is dropped once, and then the memory is freed with its
    // own layout.
    unsafe {
        let layout = Header::vtable(thread).layout;
        let this = thread.cast::<Placed<H>>().as_ptr();
        std::ptr::drop_in_place(&raw mut (*this).home);
        std::ptr::drop_in_place(&raw mut (*this).header.joiner);
        (*this).header.state.store(0, Ordering::Relaxed);
        Shared::free(Kind::Thread, thread.cast(), layout);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_minimal_thread_has_48_bytes() {
        // The paper on events and threads in Haskell reports: "memory footprint for a minimal
        // thread is just 48 bytes".
        assert_eq!(size_of::<Thread<std::future::Pending<()>, ()>>(), 48);
    }
}
