//! What an operation is: its two forms, and its result.

use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::task::{Context, Poll};

use io_uring::squeue;
use rustix::io::Errno;

use crate::runtime::Handle;

/// An operation, in both of its forms. The result of either is a number that is not negative, or an error, as of a system call.
///
/// # Safety
/// What `entry` points at is owned by the operation or by what it holds a reference to, stays where it is while the
/// operation is neither moved nor touched, and may be written if the kernel writes it.
pub(super) unsafe trait Operation: Send + 'static {
    type Output: Send + 'static;

    /// The operation's number to the ring.
    const CODE: u8;

    /// What happens to an operation that has begun when its future is dropped.
    const WHEN_DROPPED: WhenDropped;

    /// Asks what was lent where its memory is, which is the user's code. Called once, before all else and outside of any lock;
    /// from then on the operation is not moved until `finish`.
    fn prepare(&mut self) {}

    /// The form for the ring. Called again for each part of an operation that takes several.
    fn entry(&mut self) -> squeue::Entry;

    /// The form for the pool, which blocks.
    fn block(&mut self) -> Result<u32, Errno>;

    /// Takes note of a part that was done; true if more is to be done.
    fn goes_on(&mut self, _result: u32) -> bool {
        false
    }

    /// Whether the operation is begun again after an error: the kernel gives up what an OS thread had submitted that has ended
    /// (`EFAULT` if it was about to copy what had come from the device), and what it was asked to give up; of that
    /// `submit_again` knows. One that would fail if it were carried out twice says [`has_not_begun`].
    fn is_retried(error: Errno) -> bool {
        matches!(error, Errno::INTR | Errno::CANCELED | Errno::FAULT)
            || KERNELS_OWN.contains(&error.raw_os_error())
    }

    /// The result, and what was lent.
    fn finish(self, result: io::Result<u32>) -> Self::Output;
}

/// The kernel's own numbers for calls that a signal, or the end of their OS thread, has interrupted.
const KERNELS_OWN: RangeInclusive<i32> = 512..=516;

/// What a system call says to its caller in place of an error of a ring.
pub(super) fn as_of_a_call(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(number) if KERNELS_OWN.contains(&number) => Errno::INTR.into(),
        _ => error,
    }
}

/// Whether an error says that nothing of an operation was done. What is only interrupted may have been: a network file system has
/// asked its server, and does not wait for the answer.
pub(super) fn has_not_begun(error: Errno) -> bool {
    error == Errno::CANCELED
}

/// What happens to an operation that has begun when its future is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WhenDropped {
    /// The kernel is asked to give it up: nobody sees the difference.
    Cancelled,
    /// It is carried out.
    CarriedOut,
}

/// An operation with the result `R` as its future sees it.
pub(super) trait Awaited<R>: Send + Sync {
    /// See [`Operation::prepare`]. Called by who has the only reference.
    fn prepare(&mut self);
    /// Begins, or waits for its turn in the file's queue.
    fn start(self: Arc<Self>, handle: &Handle);
    /// Takes the result, or keeps the waker until there is one.
    fn poll_take(&self, context: &mut Context<'_>) -> Poll<R>;
    /// Called inside of a job of the pool, where who waits may block, after the waker is in place: runs what the pool has not come to,
    /// the operation itself, or those of its file that come before it. It may have no other OS thread for them.
    fn help(self: Arc<Self>);
    /// The future is dropped.
    fn abandon(&self);
}

/// An operation as rings, queues and jobs see it.
pub(super) trait Operate: Send + Sync {
    /// The form for the ring.
    fn entry(&self) -> squeue::Entry;
    /// The form for the pool; blocks, and ends the operation, unless somebody else has begun it.
    fn run(self: Arc<Self>);
    /// Runs an operation that has its turn in its file's queue, unless it has begun: true if it was run.
    fn run_for_another(self: Arc<Self>) -> bool;
    /// Whether it is carried out though nobody waits for it.
    fn is_carried_out(&self) -> bool;
    /// Has who waits for the result look again.
    fn wake(&self);
    /// The kernel has done a part: the operation has ended, or is submitted again.
    fn completed(self: Arc<Self>, result: io::Result<u32>);
    /// Ends the operation, of which the kernel has nothing, and lets the next of its file begin.
    fn fail(self: Arc<Self>, error: io::Error);
    /// The pool has dropped the job unrun: the operation fails, unless the job was refused in the first place.
    fn dropped_by_pool(self: Arc<Self>);
    /// Has the operation begin, unless somebody else had; false if it has ended instead, or if nobody wants it any more. Does not
    /// let the next begin.
    fn launch(self: Arc<Self>, handle: &Handle) -> bool;
}
