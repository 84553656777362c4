//! The timer of a stream's `poll_` functions, which have no future that could hold it.
//!
//! A caller of these functions may give up without notice, so a call either continues an earlier
//! wait or begins a new wait. It begins a new wait if the timer fired more than a second
//! ago and nobody has polled since, or if the timeout has changed.
//!
//! A call takes the timer out of its place and puts it back if it still waits. Calls can overlap,
//! even on one OS thread, when dropping a waker in one call makes another call. Each of them then
//! begins a wait, and the timer of the call that ends last stays.

use std::sync::{Arc, OnceLock};
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

use tussah_core::Guarded;

use super::transfer::Pace;
use crate::time::now;

/// The maximum time, in milliseconds, after its timer at which a thread may still poll and continue
/// its wait. On a busy worker, threads run late.
const LATE_MS_MAX: u64 = 1000;

/// The timer of one direction.
#[derive(Debug, Default)]
pub(super) struct Polled {
    pub(super) pace: Option<Box<Pace>>,
    /// The timeout of the wait.
    timeout: Option<Duration>,
    alarm: Option<Arc<Alarm>>,
}

/// A waker that records when the timer fired.
#[derive(Debug)]
struct Alarm {
    waker: Guarded<Waker>,
    rang: OnceLock<Instant>,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        let _ = self.rang.set(now());
        self.waker.wake_by_ref();
    }
}

impl Polled {
    /// Continues a wait, or begins a new one with this timeout.
    pub(super) fn go_on(&mut self, timeout: Option<Duration>) {
        let rang = self.alarm.as_ref().and_then(|alarm| alarm.rang.get());
        let late = Duration::from_millis(LATE_MS_MAX);
        let is_late = |rang: &Instant| now().saturating_duration_since(*rang) > late;
        if rang.is_some_and(is_late) || self.timeout != timeout {
            *self = Self {
                timeout,
                ..Self::default()
            };
        }
    }

    /// Returns the waker for the timer.
    pub(super) fn alarm(&mut self, waker: &Waker) -> Waker {
        let same = self.alarm.take_if(|alarm| alarm.waker.will_wake(waker));
        let alarm = same.unwrap_or_else(|| {
            let (waker, rang) = (Guarded::new(waker.clone()), OnceLock::new());
            Arc::new(Alarm { waker, rang })
        });
        self.alarm.insert(alarm).clone().into()
    }
}
