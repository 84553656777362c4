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
union Body<F: Future> {
    future: ManuallyDrop<F>,
    output: ManuallyDrop<Result<F::Output, JoinError>>,
}

#[repr(C)]
struct Thread<F: Future, H> {
    header: Header,
    home: H,
    body: Body<F>,
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

impl<F, H> Thread<F, H>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
    H: Home,
{
    const VTABLE: VTable = VTable {
        event: event::VTable {
            run: Self::run,
            drop: Self::drop_unrun,
            name: std::any::type_name::<F>,
            location_at: NonZeroUsize::new(std::mem::offset_of!(Header, location)),
            cancel: None,
        },
        schedule: Self::schedule,
        take_output: Self::take_output,
        drop_output: Self::drop_output,
        free: Self::free,
    };

    unsafe fn schedule(thread: NonNull<Header>) {
        // The thread will run soon.
        prefetch::rest_of(thread.cast::<Self>().as_ptr());
        // SAFETY: the caller has a reference and the right to queue.
        unsafe { (*thread.cast::<Self>().as_ptr()).home.schedule(thread) }
    }

    unsafe fn run(node: NonNull<Node>, worker: &Worker) -> After {
        let thread = node.cast::<Header>();
        // SAFETY: a queued thread has the runtime's reference.
        let header = unsafe { thread.as_ref() };
        if header.start() {
            // SAFETY: `RUNNING` is ours, and so is the future.
            unsafe { Self::finish(thread, Err(JoinError::cancelled())) };
            return After::Continue;
        }
        worker.start_poll(thread.as_ptr().cast_const().cast());
        // SAFETY: the runtime's reference outlives the poll.
        let waker = unsafe { waker::borrowed(thread) };
        let mut context = Context::from_waker(&waker);
        let polled = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: `RUNNING` is ours, and so is the future. It never moves before it is dropped
            // in place.
            unsafe {
                let future = &mut *(*node.cast::<Self>().as_ptr()).body.future;
                Pin::new_unchecked(future).poll(&mut context)
            }
        }));
        let yielded = worker.end_poll();
        match polled {
            Ok(Poll::Pending) => {
                if header.suspend(yielded) == Suspended::Again {
                    // SAFETY: `SCHEDULED` is set and the thread is in no queue.
                    unsafe { Self::again(thread, worker) }
                }
            }
            // SAFETY: `RUNNING` is ours, and so is the future.
            Ok(Poll::Ready(output)) => unsafe { Self::finish(thread, Ok(output)) },
            Err(payload) => {
                worker.count_panic();
                // SAFETY: as above.
                unsafe { Self::finish(thread, Err(JoinError::panic(payload))) }
            }
        }
        After::Continue
    }

    /// Queues a thread that was woken or yielded while it ran: at the end of this worker's queue.
    unsafe fn again(thread: NonNull<Header>, worker: &Worker) {
        if size_of::<H>() == 0 {
            worker.requeue(thread.cast());
        } else {
            // SAFETY: the caller's promise.
            unsafe { Self::schedule(thread) }
        }
    }

    /// Drops the future, stores the output and wakes the joiner.
    unsafe fn finish(thread: NonNull<Header>, mut output: Result<F::Output, JoinError>) {
        // SAFETY: the caller has set `RUNNING`.
        let (header, body) =
            unsafe { (thread.as_ref(), &mut (*thread.cast::<Self>().as_ptr()).body) };
        // SAFETY: the future is present, and is dropped once.
        let dropped = catch_unwind(AssertUnwindSafe(|| unsafe {
            ManuallyDrop::drop(&mut body.future);
        }));
        if let Err(payload) = dropped {
            let replaced = std::mem::replace(&mut output, Err(JoinError::panic(payload)));
            quietly(|| drop(replaced));
        }
        body.output = ManuallyDrop::new(output);
        let old = header.complete();
        if old & HANDLE == 0 {
            // SAFETY: rule 2: there is no handle, so the output is the runner's.
            unsafe { Self::drop_output(thread) }
        } else if old & JOINER != 0 {
            // SAFETY: rule 3: `JOINER` is now set for good, so the slot is read-only until the
            // memory is freed.
            header
                .joiner
                .with(|slot| unsafe { (*slot).wake_by_ref_guarded() });
        }
        // SAFETY: the runtime's reference ends with the future.
        unsafe { Header::release(thread) }
    }

    /// Ends a queued thread for the shutdown.
    unsafe fn drop_unrun(node: NonNull<Node>, _reason: DropReason) -> After {
        let thread = node.cast::<Header>();
        // SAFETY: a queued thread has the runtime's reference, and the caller took it from its
        // queue. The thread's memory keeps its runtime until `finish` releases that reference.
        unsafe {
            let shared = slab::owner_of(thread.cast()).cast::<Shared>();
            (*shared).threads_dropped.fetch_add(1, Ordering::Relaxed);
            thread.as_ref().start();
            Self::finish(thread, Err(JoinError::cancelled()));
        }
        After::Continue
    }

    unsafe fn take_output(thread: NonNull<Header>, to: *mut ()) {
        // SAFETY: rule 2: the caller is the handle, and takes the output once.
        unsafe {
            let body = &mut (*thread.cast::<Self>().as_ptr()).body;
            to.cast::<Result<F::Output, JoinError>>()
                .write(ManuallyDrop::take(&mut body.output));
        }
    }

    unsafe fn drop_output(thread: NonNull<Header>) {
        // A panic of a user's destructor stays in the event.
        quietly(|| {
            // SAFETY: rule 2: the output is the caller's.
            unsafe {
                ManuallyDrop::drop(&mut (*thread.cast::<Self>().as_ptr()).body.output);
            }
        });
    }

    unsafe fn free(thread: NonNull<Header>) {
        // SAFETY: no reference is left. The home is dropped once, and then the memory is freed with
        // its own layout.
        unsafe {
            let this = thread.cast::<Self>().as_ptr();
            std::ptr::drop_in_place(&raw mut (*this).home);
            std::ptr::drop_in_place(&raw mut (*this).header.joiner);
            (*this).header.state.store(0, Ordering::Relaxed);
            Shared::free(Kind::Thread, thread.cast(), Layout::new::<Self>());
        }
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
