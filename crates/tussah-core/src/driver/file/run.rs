//! The futures of operations.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::cell::Cell;
use super::open_file::Opened;
use super::operation::{Awaited, Operation};
use crate::blocking::{BlockingHandle, in_job};
use crate::runtime::Handle;

/// The future of an operation with the result `R`. The operation begins with the first poll.
///
/// The future's type does not name the operation. An operation may implement its trait for some
/// lifetimes only, such as a write of `&'static str`, but inside an `async` block the compiler
/// forgets these lifetimes. A future with the operation in its type would therefore not be `Send`
/// there.
pub(super) struct Run<R> {
    cell: Arc<dyn Awaited<R>>,
    started: bool,
}

impl<R> Run<R> {
    pub(super) fn new(operation: impl Operation<Output = R>) -> Self {
        Self {
            cell: Cell::new(operation, None),
            started: false,
        }
    }

    /// Creates the future of an operation that takes its turn in a file's queue.
    pub(super) fn in_order(operation: impl Operation<Output = R>, file: &Arc<Opened>) -> Self {
        Self {
            cell: Cell::new(operation, Some(file.order.clone())),
            started: false,
        }
    }
}

impl<R> Future for Run<R> {
    type Output = R;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<R> {
        if !self.started {
            let cell = Arc::get_mut(&mut self.cell);
            cell.expect("nobody knows an operation that has not begun")
                .prepare();
            // This comes before any part of the operation begins, because it panics outside of a
            // runtime.
            Handle::with_current(|handle| {
                self.started = true;
                self.cell.clone().start(handle);
            });
        }
        let polled = self.cell.poll_take(context);
        if polled.is_pending() && in_job() {
            self.cell.clone().help();
            return self.cell.poll_take(context);
        }
        polled
    }
}

impl<R> Drop for Run<R> {
    fn drop(&mut self) {
        if self.started {
            self.cell.abandon();
        }
    }
}

/// Runs a closure on the blocking pool of the current runtime, for calls that io_uring does not
/// support.
///
/// # Errors
/// Returns the closure's error, or an error if the pool is full or the runtime has shut down.
///
/// # Panics
/// Panics if polled outside a runtime. If the closure panics, the panic resumes in the caller
/// with its payload.
///
/// # Cancellation
/// Dropping the future cancels the closure if it has not started. A closure that has started runs
/// to completion.
pub async fn call<T: Send + 'static>(
    f: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    /// Removes a job that is no longer awaited from the pool's queue.
    struct Job<T>(BlockingHandle<T>);
    impl<T> Drop for Job<T> {
        fn drop(&mut self) {
            self.0.abort();
        }
    }
    let submitted = Handle::with_current(|handle| handle.shared.blocking.submit(f));
    let mut job = Job(submitted.map_err(|refused| super::launch::refused(&refused))?);
    match (&mut job.0).await {
        Ok(result) => result,
        Err(error) if error.is_panic() => error.resume(),
        Err(_) => Err(super::ended()),
    }
}
