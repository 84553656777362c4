//! Timed events and the handles that cancel them.

use std::fmt;
use std::time::Duration;

use tussah_core::{AbortHandle, AsColor, Handle, quietly, yield_now};

use crate::time;

/// A handle that cancels a timer started by [`after`](super::after) or [`every`](super::every).
///
/// Dropping the handle does not cancel the timer. Handles can be cloned.
#[derive(Clone)]
pub struct TimerHandle {
    /// `None` if the runtime was already shut down and the closure dropped.
    thread: Option<AbortHandle>,
}

impl TimerHandle {
    /// Cancels the timer: an event of the timer's color drops the closure. If the timer has already
    /// fired for the last time, `cancel` has no effect.
    ///
    /// If `cancel` is called in the timer's color, the closure is not called afterwards. If
    /// `cancel` is called outside that color, a call in progress completes and is the last call.
    pub fn cancel(&self) {
        if let Some(thread) = &self.thread {
            thread.abort();
        }
    }

    /// Returns whether the timer is finished: it fired for the last time, or it was cancelled and
    /// its closure was dropped.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(AbortHandle::is_finished)
    }
}

impl fmt::Debug for TimerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimerHandle")
            .field("finished", &self.is_finished())
            .finish_non_exhaustive()
    }
}

/// Runs a timer as a thread of its color. The thread's wake-up is the timer's event and queues
/// behind the events already waiting. Aborting the thread is an event of the same color, which
/// makes `cancel` exact.
#[track_caller]
pub(super) fn after(
    handle: &Handle,
    delay: Duration,
    color: impl AsColor,
    f: impl FnOnce() + Send + 'static,
) -> TimerHandle {
    let deadline = time::add(handle.now(), delay);
    let thread = handle.try_spawn_in(color, async move {
        time::sleep_until(deadline).await;
        f();
    });
    TimerHandle {
        thread: thread.ok().map(|thread| thread.abort_handle()),
    }
}

#[track_caller]
pub(super) fn every(
    handle: &Handle,
    period: Duration,
    color: impl AsColor,
    mut f: impl FnMut() + Send + 'static,
) -> TimerHandle {
    assert!(!period.is_zero(), "the period of a timer must not be zero");
    let first = time::add(handle.now(), period);
    let thread = handle.try_spawn_in(color, async move {
        let mut interval = time::interval_at(first, period);
        loop {
            interval.tick().await;
            // The panic hook has reported the panic. The thread's join handle, which would report
            // it too, no longer exists.
            quietly(&mut f);
            // This makes each call a separate event. It also ensures that a closure that cancels
            // its own timer is not called again, however short the period.
            yield_now().await;
        }
    });
    TimerHandle {
        thread: thread.ok().map(|thread| thread.abort_handle()),
    }
}
