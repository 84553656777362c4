//! The handle of a blocking job.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::nesting;
use super::pool::Shared;
use super::slot::Outcome;
use crate::color::held::assert_may_wait;
use crate::join_error::JoinError;

/// The handle of a job on a [`BlockingPool`](super::BlockingPool): a future of its result.
///
/// Dropping the handle detaches the job: it still runs, and its result is dropped. Dropping it in the middle of an
/// `await` (a timeout, a `select`) is the same.
///
/// Inside of a blocking job, polling the handle runs the job on the spot if it is still queued, so that nested jobs need no
/// further OS thread. Elsewhere polling never blocks.
#[must_use = "dropping the handle detaches the job; its result and its panic are lost"]
pub struct BlockingHandle<T> {
    outcome: Arc<dyn Outcome<T>>,
    pool: Arc<Shared>,
    ticket: u64,
}

impl<T> BlockingHandle<T> {
    pub(super) fn new(outcome: Arc<dyn Outcome<T>>, pool: Arc<Shared>, ticket: u64) -> Self {
        Self {
            outcome,
            pool,
            ticket,
        }
    }

    /// Blocks this OS thread until the job has ended and returns its result.
    ///
    /// A job that is still queued is run right here, on the caller's stack. Not for `async` code: there, `await` the handle.
    ///
    /// # Errors
    /// If the job panicked, was aborted, was still queued when its pool shut down, or is
    /// [nested too deep](JoinError::is_too_deep).
    ///
    /// # Panics
    /// If the job has not ended, inside an event and inside a closure that has entered a color, as for
    /// [`block_on`](crate::Handle::block_on).
    ///
    /// # Deadlocks
    /// A job that waits (through others, or by a lock) for one that is below it on the stack or that waits for it
    /// waits for ever.
    #[track_caller]
    pub fn join(self) -> Result<T, JoinError> {
        if !self.outcome.is_finished() {
            assert_may_wait("a blocking job was joined");
        }
        self.run_if_queued();
        self.outcome.wait_take()
    }

    /// Removes the job from the queue and drops its closure; the handle's result is then a cancellation.
    ///
    /// Returns false and does nothing if the job has begun: code that blocks cannot be interrupted.
    pub fn abort(&self) -> bool {
        self.pool.abort(self.ticket)
    }

    /// True if the job has ended, or was cancelled.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.outcome.is_finished()
    }

    fn run_if_queued(&self) {
        // The slot is asked first because its lock is contended less than the pool's.
        if self.outcome.is_queued() {
            self.pool.run_here(self.ticket);
        }
    }
}

impl<T> Future for BlockingHandle<T> {
    type Output = Result<T, JoinError>;

    /// # Panics
    /// If it is polled again after it has given its result.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if nesting::in_job() {
            self.run_if_queued();
        }
        self.outcome.poll_take(cx)
    }
}

impl<T> Drop for BlockingHandle<T> {
    fn drop(&mut self) {
        self.outcome.detach();
    }
}

impl<T> fmt::Debug for BlockingHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockingHandle")
            .field("ticket", &self.ticket)
            .field("finished", &self.is_finished())
            .finish_non_exhaustive()
    }
}
