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

/// A handle to a job on a [`BlockingPool`](super::BlockingPool), and a future that resolves to the
/// job's result.
///
/// Dropping the handle, for example in a timeout or a `select`, detaches the job: the job still
/// runs, but its result is dropped.
///
/// If a blocking job polls the handle of a queued job, the poll runs the queued job on the same OS
/// thread, so nested jobs need no additional OS threads. Elsewhere, polling never blocks.
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

    /// Blocks this OS thread until the job has ended, and returns the job's result.
    ///
    /// If the job is still queued, this call runs it on the caller's stack. In `async` code,
    /// `await` the handle instead.
    ///
    /// # Errors
    /// Returns an error if the job panicked, was aborted, was still queued when its pool shut down,
    /// or is [nested too deeply](JoinError::is_too_deep).
    ///
    /// # Panics
    /// Like [`block_on`](crate::Handle::block_on), panics if called inside an event or inside a
    /// closure that has entered a color, unless the job has already ended.
    ///
    /// # Deadlocks
    /// This call never returns if the job waits, directly or indirectly, for itself or for a job
    /// below it on the stack.
    #[track_caller]
    pub fn join(self) -> Result<T, JoinError> {
        if !self.outcome.is_finished() {
            assert_may_wait("a blocking job was joined");
        }
        self.run_if_queued();
        self.outcome.wait_take()
    }

    /// Removes the job from the queue and drops its closure. The handle then returns a cancellation
    /// error.
    ///
    /// Returns false if the job is no longer queued. A job that has started runs to completion,
    /// because blocking code cannot be interrupted.
    pub fn abort(&self) -> bool {
        self.pool.abort(self.ticket)
    }

    /// Returns whether the job has ended or was cancelled.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.outcome.is_finished()
    }

    fn run_if_queued(&self) {
        // The slot is checked first because its lock is less contended than the pool's lock.
        if self.outcome.is_queued() {
            self.pool.run_here(self.ticket);
        }
    }
}

impl<T> Future for BlockingHandle<T> {
    type Output = Result<T, JoinError>;

    /// # Panics
    /// Panics if it is polled again after it has returned its result.
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
