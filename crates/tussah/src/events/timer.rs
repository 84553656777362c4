//! Events that fire by time, and their cancel handles.

use std::fmt;
use std::time::Duration;

use tussah_core::{AbortHandle, AsColor, Handle, quietly, yield_now};

use crate::time;

/// Cancels an event that fires by time; of [`after`](super::after) and [`every`](super::every).
///
/// Dropping the handle cancels nothing. It may be cloned.
#[derive(Clone)]
pub struct TimerHandle {
    /// `None`: the runtime was shut down already, and the closure dropped.
    thread: Option<AbortHandle>,
}

impl TimerHandle {
    /// Cancels the timer; the closure is dropped by an event of its color. Does nothing if it is over already.
    ///
    /// If the caller runs in the timer's color, the closure is not called any more once this has returned. A caller
    /// elsewhere may find it in the middle of a call, which goes on to its end and is the last one.
    pub fn cancel(&self) {
        if let Some(thread) = &self.thread {
            thread.abort();
        }
    }

    /// Whether the timer is over: fired for the last time, or cancelled and dropped.
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

/// A timer is a thread of the color: its wake-up when the time is up is the event, which comes behind those that are
/// queued then, and aborting it is an event of the same color, which is what makes `cancel` exact.
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
    assert!(
        !period.is_zero(),
        "the period of a timer is longer than zero"
    );
    let first = time::add(handle.now(), period);
    let thread = handle.try_spawn_in(color, async move {
        let mut interval = time::interval_at(first, period);
        loop {
            interval.tick().await;
            // The hook has reported the panic, and the handle of the thread, who would be told, is gone.
            quietly(&mut f);
            // Each call is an event of its own; and a closure that cancels its own timer is not called again, however
            // short the period.
            yield_now().await;
        }
    });
    TimerHandle {
        thread: thread.ok().map(|thread| thread.abort_handle()),
    }
}
