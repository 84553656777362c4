//! The future that completes at a deadline.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Instant,
};

use crate::runtime::NoRuntime;

use super::{
    context::{TimerContext, with_current},
    shard::{Registered, Shard},
    timer::{Timer, TimerEntry},
};

/// A future that completes at a deadline: never earlier, and less than a millisecond later if the
/// runtime is idle.
///
/// The first poll sets the timer in the wheel of the current worker; the timer's memory is part of
/// the future. The timer stays in the wheel of that worker even if the waiting thread moves to
/// another worker. If another executor polls the future, a worker calls that executor's waker, so
/// the waker must not block the worker.
///
/// A `Sleep` may outlive the runtime in which it was first polled. A `Sleep` whose runtime has shut
/// down never completes, unless it is [reset](Self::reset) and polled in another runtime.
///
/// # Cancellation
///
/// Dropping the future cancels the timer in constant time. The destructor may wait for the wheel's
/// lock, which is held only briefly.
///
/// # Panics
///
/// The first poll after creation or [`reset`](Self::reset) panics outside a runtime.
#[must_use = "futures do nothing unless they are polled"]
pub struct Sleep {
    deadline: Instant,
    /// The shard in which the entry was last registered. Keeps the shard alive while the entry is
    /// pending.
    shard: Option<Arc<Shard>>,
    /// Not `Unpin`, so the future is not `Unpin` either.
    entry: TimerEntry,
}

impl Sleep {
    /// Creates a future that completes at `deadline`, or at the worker's next turn if the deadline
    /// has passed.
    pub fn new_until(deadline: Instant) -> Self {
        Self {
            deadline,
            shard: None,
            entry: TimerEntry::new(Timer::new()),
        }
    }

    /// Returns the instant at which the future completes.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Returns whether the timer has fired. A timer that has never been polled has not fired.
    #[must_use]
    #[inline]
    pub fn is_elapsed(&self) -> bool {
        self.entry.data.is_fired()
    }

    /// Sets a new deadline, whether or not the future has completed.
    ///
    /// A pending timer moves to the new deadline, and still wakes the thread that polled it last.
    /// If the future has completed, `reset` does not set the timer; the next poll does.
    pub fn reset(self: Pin<&mut Self>, deadline: Instant) {
        // SAFETY: nothing is moved out of the reference.
        let this = unsafe { self.get_unchecked_mut() };
        this.deadline = deadline;
        if this.entry.data.is_pending()
            && let Some(shard) = &this.shard
        {
            let tick = shard.clock().deadline_tick(deadline);
            // SAFETY: `self` owns the entry, and `shard` is where it was last registered.
            if let Some(earliest) = unsafe { shard.rearm(&this.entry, tick) } {
                if earliest && !is_local(shard) {
                    shard.notify();
                }
                return;
            }
        }
        this.entry.data.set_idle();
    }

    /// Polls the timer. The first poll registers the timer with the shard that `current` returns.
    fn poll_in(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        current: impl FnOnce() -> Option<TimerContext>,
    ) -> Poll<()> {
        // SAFETY: nothing is moved out of the reference.
        let this = unsafe { self.get_unchecked_mut() };
        if this.entry.data.is_idle() {
            let TimerContext { shard, local } = current().unwrap_or_else(|| panic!("{NoRuntime}"));
            let tick = shard.clock().deadline_tick(this.deadline);
            let waker = cx.waker().clone();
            let shard = &**this.shard.insert(shard);
            // SAFETY: `self` owns the entry, and it is idle. It is pinned, so it stays in place
            // until `drop` has found it not pending. `self.shard` keeps the shard alive and is not
            // replaced before the entry is idle again.
            match unsafe { shard.register(&this.entry, tick, waker) } {
                Registered::Pending { earliest: true } if !local => shard.notify(),
                Registered::Pending { .. } | Registered::Elapsed | Registered::Closed => {}
            }
        } else if this.entry.data.is_pending()
            && let Some(shard) = &this.shard
        {
            // SAFETY: `self` owns the entry, and `shard` is where it was last registered.
            unsafe { shard.update_waker(&this.entry, cx.waker()) };
        }
        if this.entry.data.is_fired() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

/// Returns whether the running code is on the worker that fires `shard`.
fn is_local(shard: &Arc<Shard>) -> bool {
    with_current(|current| {
        current.is_some_and(|current| current.local && Arc::ptr_eq(&current.shard, shard))
    })
}

impl Future for Sleep {
    type Output = ();

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_in(cx, || with_current(|current| current.cloned()))
    }
}

impl Drop for Sleep {
    #[inline]
    fn drop(&mut self) {
        if self.entry.data.is_pending()
            && let Some(shard) = &self.shard
        {
            // SAFETY: `self` owns the entry, and `shard` is where it was last registered.
            unsafe { shard.cancel(&self.entry) };
        }
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep")
            .field("deadline", &self.deadline)
            .field("is_elapsed", &self.is_elapsed())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(all(test, not(loom)))]
mod tests;
