//! Cooperative scheduling: how a thread lets other threads run.

use std::pin::Pin;
use std::task::{Context, Poll};

use crate::thread::waker;
use crate::worker::{Budget, Worker};

/// Lets the other runnable colors of this worker run first: the thread's color moves to the end of
/// the run queue.
///
/// On another executor, the future returns `Pending` once, and wakes its task immediately. Dropping
/// the future has no effect.
///
/// # Examples
/// ```
/// # use tussah_core as tussah;
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(async {
/// tussah::yield_now().await;
/// # });
/// # std::io::Result::Ok(())
/// ```
pub fn yield_now() -> YieldNow {
    YieldNow { yielded: false }
}

/// The future of [`yield_now`].
#[derive(Debug)]
#[must_use = "a thread yields when this is awaited"]
pub struct YieldNow {
    yielded: bool,
}

impl Future for YieldNow {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.yielded {
            return Poll::Ready(());
        }
        self.yielded = true;
        again(context);
        Poll::Pending
    }
}

/// Returns whether the current poll has yielded. After a poll that has yielded, the thread waits
/// for nothing but its next poll.
#[doc(hidden)]
#[must_use]
pub fn has_yielded() -> bool {
    Worker::with(|worker| worker.is_some_and(Worker::yields))
}

/// Charges one operation to the budget of the current poll, and yields when the budget is used up.
/// Use this function in loops whose operations seldom wait. Each call to
/// [`Colored::with`](crate::Colored::with) that enters its color immediately also counts as one
/// operation.
///
/// Dropping the future has no effect. On an OS thread that is not a worker, the future never waits.
pub async fn consume_budget() {
    let budget = Worker::with(|worker| worker.map_or(Budget::Left, Worker::spend));
    if budget != Budget::Left {
        yield_now().await;
    }
}

/// Charges one operation to the budget of the current poll. If the budget is used up, queues the
/// thread again and returns `Pending`.
#[inline]
#[cfg_attr(loom, allow(dead_code))]
pub(crate) fn poll_budget(context: &Context<'_>) -> Poll<()> {
    let budget = Worker::with(|worker| worker.map_or(Budget::Left, Worker::spend));
    if budget == Budget::Spent {
        again(context);
        return Poll::Pending;
    }
    Poll::Ready(())
}

/// Queues the thread that polls with this context again once its poll ends.
#[inline]
pub(crate) fn again(context: &Context<'_>) {
    let waker = context.waker();
    let direct = Worker::with(|worker| match worker {
        // The thread that runs here was polled directly: its runner sees the note, which costs no
        // atomic operation.
        Some(worker)
            if waker.data() == worker.thread() && std::ptr::eq(waker.vtable(), &waker::VTABLE) =>
        {
            worker.set_yield();
            true
        }
        _ => false,
    });
    if !direct {
        waker.wake_by_ref();
    }
}
