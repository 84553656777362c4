//! The handle that waits for the end of a thread.

use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll};

use super::Header;
use crate::join_error::JoinError;

/// A handle to a thread, and a future that resolves to the thread's result.
///
/// The output is `Err` if the thread panicked ([`JoinError::into_panic`]), was aborted, or was
/// dropped because its runtime shut down. The handle may be awaited on any executor.
///
/// Dropping the handle detaches the thread: it keeps running, and its result is dropped. If a
/// detached thread panics, the panic does not propagate. The panic hook still runs (by default, it
/// prints to standard error), and [`WorkerStats::panics`](crate::WorkerStats::panics) counts the
/// panic.
///
/// # Panics
/// Panics if the handle is polled again after it has returned the result.
pub struct JoinHandle<T> {
    thread: NonNull<Header>,
    taken: bool,
    output: PhantomData<T>,
}

// SAFETY: the handle gives access to the output, once, and to atomics.
unsafe impl<T: Send> Send for JoinHandle<T> {}
// SAFETY: a shared handle gives no access to the output.
unsafe impl<T: Send> Sync for JoinHandle<T> {}

impl<T> Unpin for JoinHandle<T> {}

impl<T> JoinHandle<T> {
    /// # Safety
    /// The caller must pass on one reference and the `HANDLE` bit of a thread whose output is a
    /// `T`.
    pub(super) unsafe fn new(thread: NonNull<Header>) -> Self {
        Self {
            thread,
            taken: false,
            output: PhantomData,
        }
    }

    fn header(&self) -> &Header {
        // SAFETY: the handle has a reference.
        unsafe { self.thread.as_ref() }
    }

    /// Asks the thread to stop. The thread's next event, which runs in the thread's color, drops
    /// the thread's future at an await point.
    ///
    /// The handle then returns an error for which [`JoinError::is_cancelled`] is true, unless the
    /// thread had already ended.
    pub fn abort(&self) {
        Header::abort(self.thread);
    }

    /// Returns a handle that can only abort the thread. The returned handle can be cloned, and may
    /// outlive this one.
    pub fn abort_handle(&self) -> AbortHandle {
        self.header().retain();
        AbortHandle {
            thread: self.thread,
        }
    }

    /// Returns whether the thread has ended.
    pub fn is_finished(&self) -> bool {
        self.header().is_complete()
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        assert!(
            !self.taken,
            "a JoinHandle was polled after it gave its result"
        );
        if self.header().set_joiner(context.waker()) {
            return Poll::Pending;
        }
        self.taken = true;
        // SAFETY: rule 2 of the state word: the thread is complete and the handle is alive, so the
        // output is ours and has this type. `taken` records that the output has been moved out.
        Poll::Ready(unsafe { Header::body(self.thread).cast::<Self::Output>().read() })
    }
}

impl<T> Drop for JoinHandle<T> {
    fn drop(&mut self) {
        if self.header().detach_unrun() {
            return;
        }
        let complete = self.header().detach();
        // SAFETY: rule 2: with `COMPLETE` the output was the handle's. The handle's reference ends
        // here.
        unsafe {
            if complete && !self.taken {
                Header::drop_output(self.thread);
            }
            Header::release(self.thread);
        }
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle")
            .field("finished", &self.is_finished())
            .finish_non_exhaustive()
    }
}

/// A handle that aborts a thread; see [`JoinHandle::abort`].
pub struct AbortHandle {
    thread: NonNull<Header>,
}

// SAFETY: it only reaches atomics of the header.
unsafe impl Send for AbortHandle {}
// SAFETY: as above.
unsafe impl Sync for AbortHandle {}

impl AbortHandle {
    /// Asks the thread to stop; see [`JoinHandle::abort`].
    pub fn abort(&self) {
        Header::abort(self.thread);
    }

    /// Returns whether the thread has ended.
    pub fn is_finished(&self) -> bool {
        // SAFETY: the handle has a reference.
        unsafe { self.thread.as_ref() }.is_complete()
    }
}

impl Clone for AbortHandle {
    fn clone(&self) -> Self {
        // SAFETY: the handle has a reference.
        unsafe { self.thread.as_ref() }.retain();
        Self {
            thread: self.thread,
        }
    }
}

impl Drop for AbortHandle {
    fn drop(&mut self) {
        // SAFETY: the handle has a reference, which ends here.
        unsafe { Header::release(self.thread) }
    }
}

impl fmt::Debug for AbortHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AbortHandle")
            .field("finished", &self.is_finished())
            .finish_non_exhaustive()
    }
}
