//! The contract of an operation: its two forms, and its result.

use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::task::{Context, Poll};

use io_uring::squeue;
use rustix::io::Errno;

use crate::runtime::Handle;

/// An operation in both of its forms. Either form results in a nonnegative number or an error, like
/// a system call.
///
/// # Safety
/// The operation must own everything that `entry` points at, or hold a reference to its owner. All
/// of this memory must stay in place while the operation is neither moved nor accessed. The kernel
/// may write wherever the operation permits it.
pub(super) unsafe trait Operation: Send + 'static {
    type Output: Send + 'static;

    /// The operation's code in the ring's interface.
    const CODE: u8;

    /// The reaction of an operation that has begun to the drop of its future.
    const WHEN_DROPPED: WhenDropped;

    /// Asks the user's buffer for its memory. Called once, before everything else and outside of
    /// any lock, because it runs the user's code. The operation does not move from then until
    /// `finish`.
    fn prepare(&mut self) {}

    /// Returns the form for the ring. For an operation with several parts, the method is called
    /// again for each part.
    fn entry(&mut self) -> squeue::Entry;

    /// Runs the form for the pool, which blocks.
    fn block(&mut self) -> Result<u32, Errno>;

    /// Records a completed part. Returns true if the operation is not yet complete.
    fn goes_on(&mut self, _result: u32) -> bool {
        false
    }

    /// Returns whether the operation is started again after an error.
    ///
    /// The kernel gives up operations whose submitting OS thread has ended (`EFAULT` if it was
    /// about to copy data from the device), and operations that it was asked to cancel.
    /// `submit_again` recognizes the latter. An operation that would fail if it were performed
    /// twice uses [`has_not_begun`].
    fn is_retried(error: Errno) -> bool {
        matches!(error, Errno::INTR | Errno::CANCELED | Errno::FAULT)
            || KERNELS_OWN.contains(&error.raw_os_error())
    }

    /// Returns the result together with the user's buffer.
    fn finish(self, result: io::Result<u32>) -> Self::Output;
}

/// The kernel's internal error numbers for calls interrupted by a signal or by the end of their OS
/// thread.
const KERNELS_OWN: RangeInclusive<i32> = 512..=516;

/// Translates an error of a ring into the error that a system call would return.
pub(super) fn as_of_a_call(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(number) if KERNELS_OWN.contains(&number) => Errno::INTR.into(),
        _ => error,
    }
}

/// Returns whether an error proves that no part of an operation was performed. An interrupted
/// operation may have been performed: a network file system may have sent its request without
/// waiting for the response.
pub(super) fn has_not_begun(error: Errno) -> bool {
    error == Errno::CANCELED
}

/// The fate of a started operation when its future is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WhenDropped {
    /// The kernel is asked to give it up, because nobody can see the difference.
    Cancelled,
    /// The operation is carried out.
    CarriedOut,
}

/// An operation with the result `R`, as its future sees it.
pub(super) trait Awaited<R>: Send + Sync {
    /// See [`Operation::prepare`]. The caller has the only reference.
    fn prepare(&mut self);
    /// Begins the operation, or queues it until its turn in its file.
    fn start(self: Arc<Self>, handle: &Handle);
    /// Takes the result, or keeps the waker until there is one.
    fn poll_take(&self, context: &mut Context<'_>) -> Poll<R>;
    /// Runs what the pool has not begun: the operation itself, or operations of its file that come
    /// before it. Called inside a job of the pool, where a waiter may block, once the waiter's
    /// waker is stored: the pool may have no other OS thread for these operations.
    fn help(self: Arc<Self>);
    /// Records that the future was dropped.
    fn abandon(&self);
}

/// An operation, as rings, queues and jobs see it.
pub(super) trait Operate: Send + Sync {
    /// Returns the form for the ring.
    fn entry(&self) -> squeue::Entry;
    /// Runs the form for the pool, which blocks, and ends the operation. Does nothing if the
    /// operation has begun.
    fn run(self: Arc<Self>);
    /// Runs an operation when it has its file's turn. Returns false, without effect, if the
    /// operation has begun.
    fn run_for_another(self: Arc<Self>) -> bool;
    /// Returns whether the operation is carried out even if its future was dropped.
    fn is_carried_out(&self) -> bool;
    /// Wakes the waiter, which then checks again.
    fn wake(&self);
    /// Handles a completion by the kernel: ends the operation, or submits it again.
    fn completed(self: Arc<Self>, result: io::Result<u32>);
    /// Ends an operation that the kernel does not have, and lets the next operation of its file
    /// begin.
    fn fail(self: Arc<Self>, error: io::Error);
    /// Handles a job that the pool has dropped without running it. The operation fails, unless its
    /// submission is about to return the pool's refusal.
    fn dropped_by_pool(self: Arc<Self>);
    /// Begins the operation, unless it has begun. Returns false if it has already ended or was
    /// abandoned. Does not let the file's next operation begin.
    fn launch(self: Arc<Self>, handle: &Handle) -> bool;
}
