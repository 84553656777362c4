//! Sleeping, timeouts and intervals.
//!
//! All timers follow the clock of the runtime in which they are used, so tests can advance time by
//! hand.

use std::{
    error::Error,
    fmt,
    future::{Future, IntoFuture, poll_fn},
    pin::Pin,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;

pub use std::time::{Duration, Instant};
pub use tussah_core::time::Sleep;
#[doc(inline)]
pub use tussah_core::time::now;

pub(crate) use tussah_core::time::add;

/// Waits until `duration` has elapsed since this call.
///
/// Dropping the future cancels the timer. The future never completes early. On an idle runtime, the
/// future completes less than a millisecond late.
///
/// # Panics
///
/// The future panics if it is first polled outside a runtime.
pub fn sleep(duration: Duration) -> Sleep {
    sleep_until(add(now(), duration))
}

/// Waits until `deadline`. Otherwise works like [`sleep`].
pub fn sleep_until(deadline: Instant) -> Sleep {
    Sleep::new_until(deadline)
}

/// Waits for `future` to complete, but for at most `duration` after this call.
///
/// Each poll of the `Timeout` polls `future` first, and then the timer. If `future` is ready, its
/// output is returned even if `duration` has elapsed. If `future` is ready at the first poll, no
/// timer is set.
///
/// # Errors
///
/// Returns [`Elapsed`] if `duration` elapses before `future` completes. Dropping the `Timeout`
/// drops `future`.
///
/// # Panics
///
/// Polling the `Timeout` outside a runtime panics if `future` is not ready.
///
/// ```
/// use tussah::time::{Duration, timeout};
///
/// # futures_lite::future::block_on(async {
/// assert_eq!(timeout(Duration::from_secs(1), async { 7 }).await, Ok(7));
/// # });
/// ```
pub fn timeout<F: IntoFuture>(duration: Duration, future: F) -> Timeout<F::IntoFuture> {
    timeout_at(add(now(), duration), future)
}

/// Waits for `future` to complete, until `deadline` at the latest. In all other respects, works
/// like [`timeout`].
///
/// # Errors
///
/// Returns [`Elapsed`] if `deadline` passes before `future` completes.
pub fn timeout_at<F: IntoFuture>(deadline: Instant, future: F) -> Timeout<F::IntoFuture> {
    Timeout {
        future: future.into_future(),
        sleep: sleep_until(deadline),
    }
}

pin_project! {
    /// The future of [`timeout`] and [`timeout_at`].
    ///
    /// Dropping it drops the inner future and cancels the timer.
    #[must_use = "futures do nothing unless they are polled"]
    #[derive(Debug)]
    pub struct Timeout<F> {
        #[pin]
        future: F,
        #[pin]
        sleep: Sleep,
    }
}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Poll::Ready(output) = this.future.poll(context) {
            return Poll::Ready(Ok(output));
        }
        this.sleep.poll(context).map(|()| Err(Elapsed(())))
    }
}

/// The error returned if a [`timeout`] elapses before its future completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed(());

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the timeout elapsed")
    }
}

impl Error for Elapsed {}

impl From<Elapsed> for std::io::Error {
    fn from(elapsed: Elapsed) -> Self {
        Self::new(std::io::ErrorKind::TimedOut, elapsed)
    }
}

/// Creates an interval that ticks every `period`. The first tick is due immediately.
///
/// # Panics
///
/// Panics if `period` is zero. [`Interval::tick`] panics if polled outside a runtime.
#[track_caller]
#[must_use]
pub fn interval(period: Duration) -> Interval {
    interval_at(now(), period)
}

/// Creates an interval that ticks every `period`. The first tick is due at `start`.
///
/// # Panics
///
/// Same as [`interval`].
#[track_caller]
#[must_use]
pub fn interval_at(start: Instant, period: Duration) -> Interval {
    assert!(
        !period.is_zero(),
        "the period of an interval must not be zero"
    );
    let sleep = Box::pin(sleep_until(start));
    Interval {
        sleep,
        due: start,
        period,
        missed: MissedTicks::default(),
    }
}

/// A timer that ticks once per period, created by [`interval`] or [`interval_at`].
#[derive(Debug)]
pub struct Interval {
    /// Boxed to keep `Interval` movable.
    sleep: Pin<Box<Sleep>>,
    /// The due time of the next tick.
    due: Instant,
    period: Duration,
    missed: MissedTicks,
}

impl Interval {
    /// Sets how the interval handles missed ticks.
    #[must_use]
    pub fn with_missed_ticks(mut self, missed: MissedTicks) -> Self {
        self.missed = missed;
        self
    }

    /// Waits for the next tick and returns the time at which it was due.
    ///
    /// # Cancellation
    ///
    /// Dropping the future loses no tick.
    ///
    /// # Panics
    ///
    /// Panics if polled outside a runtime.
    pub async fn tick(&mut self) -> Instant {
        poll_fn(|context| self.poll_tick(context)).await
    }

    /// Polls for the next tick. Hand-written futures can use this method instead of
    /// [`tick`](Self::tick).
    pub fn poll_tick(&mut self, context: &mut Context<'_>) -> Poll<Instant> {
        ready!(self.sleep.as_mut().poll(context));
        let due = self.due;
        self.due = self.missed.next(due, now(), self.period);
        self.sleep.as_mut().reset(self.due);
        Poll::Ready(due)
    }

    /// Schedules the next tick one period from now.
    pub fn reset(&mut self) {
        self.due = add(now(), self.period);
        self.sleep.as_mut().reset(self.due);
    }

    /// Returns the time between two ticks.
    #[must_use]
    pub fn period(&self) -> Duration {
        self.period
    }
}

/// The behavior of an [`Interval`] after missed ticks.
///
/// A tick is missed if it is already due when [`Interval::tick`] returns the previous tick. A tick
/// that is less than one period late causes no missed ticks, and does not shift later ticks.
///
/// The default is `Delay`. A service that has fallen behind is under load, and `Burst` would add to
/// that load. With `Skip`, the next tick can follow the late tick almost immediately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissedTicks {
    /// Delivers the missed ticks one after another, without waiting, until the interval has caught
    /// up.
    Burst,
    /// Drops missed ticks. The next tick is due one period after the late tick was returned.
    #[default]
    Delay,
    /// Drops missed ticks. Later ticks keep the original schedule: each is due a whole number of
    /// periods after the first tick.
    Skip,
}

impl MissedTicks {
    /// Returns the due time of the next tick if the tick due at `due` is taken at `now`.
    fn next(self, due: Instant, now: Instant, period: Duration) -> Instant {
        let next = add(due, period);
        if next > now {
            return next;
        }
        match self {
            Self::Burst => next,
            Self::Delay => add(now, period),
            Self::Skip => {
                let into_period = (now - due).as_nanos() % period.as_nanos();
                let into_period = u64::try_from(into_period).map_or(period, Duration::from_nanos);
                add(now, period.saturating_sub(into_period))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missed_ticks() {
        use MissedTicks::{Burst, Delay, Skip};
        let start = Instant::now();
        let check = |missed: MissedTicks, late_ms: u64, expected_ms: u64| {
            let ms = Duration::from_millis;
            let next = missed.next(start, start + ms(late_ms), ms(10));
            assert_eq!(
                next - start,
                ms(expected_ms),
                "{missed:?}, {late_ms} ms late"
            );
        };
        for missed in [Burst, Delay, Skip] {
            check(missed, 0, 10);
            check(missed, 9, 10);
        }
        check(Burst, 10, 10);
        check(Burst, 37, 10);
        check(Delay, 10, 20);
        check(Delay, 37, 47);
        check(Skip, 10, 20);
        check(Skip, 37, 40);
        check(Skip, 40, 50);
    }

    #[test]
    fn periods_without_end() {
        let start = Instant::now();
        for missed in [MissedTicks::Burst, MissedTicks::Delay, MissedTicks::Skip] {
            assert!(missed.next(start, add(start, Duration::MAX), Duration::MAX) > start);
            assert!(missed.next(start, start, Duration::MAX) > start);
        }
    }

    #[test]
    fn a_ready_future_needs_no_timer() {
        let polled = futures_lite::future::block_on(timeout(Duration::ZERO, async { 1 }));
        assert_eq!(polled, Ok(1));
    }

    #[test]
    fn an_elapsed_time_is_an_io_error() {
        let error = std::io::Error::from(Elapsed(()));
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
        assert_eq!(error.to_string(), "the timeout elapsed");
    }

    #[test]
    #[should_panic = "the period of an interval must not be zero"]
    fn no_period() {
        let _ = interval(Duration::ZERO);
    }
}
