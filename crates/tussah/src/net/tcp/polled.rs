//! The timer of a stream's `poll_` functions, which have no future to keep it in.
//!
//! Nobody tells that a wait of theirs is given up: the next call may go on with it, or begin another one. It begins another one
//! if nobody has come for what the timer reported, or if it has another time limit.
//!
//! A call takes the timer out of its place and puts it back if it still waits. Of those that overlap, also as one call drops
//! a waker whose drop is another one, each begins a wait, and the timer of the last to end stays.

use std::sync::{Arc, OnceLock};
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

use tussah_core::Guarded;

use super::transfer::Pace;
use crate::time::now;

/// Bound, in milliseconds: how long after its timer a thread may come that still waits; a busy worker has it come late.
const LATE_MS_MAX: u64 = 1000;

/// The timer of one direction.
#[derive(Debug, Default)]
pub(super) struct Polled {
    pub(super) pace: Option<Box<Pace>>,
    /// The time limit of the wait.
    timeout: Option<Duration>,
    alarm: Option<Arc<Alarm>>,
}

/// Passes on that the timer has fired, and keeps when that was.
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
    /// Goes on with a wait, or begins one with this time limit.
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

    /// What the timer of a time limit wakes.
    pub(super) fn alarm(&mut self, waker: &Waker) -> Waker {
        let same = self.alarm.take_if(|alarm| alarm.waker.will_wake(waker));
        let alarm = same.unwrap_or_else(|| {
            let (waker, rang) = (Guarded::new(waker.clone()), OnceLock::new());
            Arc::new(Alarm { waker, rang })
        });
        self.alarm.insert(alarm).clone().into()
    }
}
