//! Waiting for time to pass.
//!
//! Everything here follows the clock of the runtime that it is used in, so that a test may move time by hand.

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

/// Waits for `duration`, counted from this call.
///
/// Dropping the future cancels the timer. It never completes early and, on an idle runtime, less than a millisecond
/// late.
///
/// # Panics
///
/// The first poll panics outside of a runtime.
pub fn sleep(duration: Duration) -> Sleep {
    sleep_until(add(now(), duration))
}

/// Waits until `deadline`; as [`sleep`] otherwise.
pub fn sleep_until(deadline: Instant) -> Sleep {
    Sleep::new_until(deadline)
}

/// Waits for `future`, but not longer than `duration`, counted from this call.
///
/// The future is polled first: one that is ready wins even if the time is up, and sets no timer.
///
/// # Errors
///
/// [`Elapsed`] if the time was up first. The future is dropped with the `Timeout`.
///
/// # Panics
///
/// Polling panics outside of a runtime if the future is not ready.
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

/// Waits for `future`, but not longer than until `deadline`; as [`timeout`] otherwise.
///
/// # Errors
///
/// [`Elapsed`] if the time was up first.
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

/// The time was up first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed(());

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the time was up")
    }
}

impl Error for Elapsed {}

impl From<Elapsed> for std::io::Error {
    fn from(elapsed: Elapsed) -> Self {
        Self::new(std::io::ErrorKind::TimedOut, elapsed)
    }
}

/// Ticks every `period`; the first tick comes at once.
///
/// # Panics
///
/// If `period` is zero. Waiting for a tick panics outside of a runtime.
#[track_caller]
#[must_use]
pub fn interval(period: Duration) -> Interval {
    interval_at(now(), period)
}

/// Ticks every `period`; the first tick comes at `start`.
///
/// # Panics
///
/// As [`interval`].
#[track_caller]
#[must_use]
pub fn interval_at(start: Instant, period: Duration) -> Interval {
    assert!(
        !period.is_zero(),
        "the period of an interval is longer than zero"
    );
    let sleep = Box::pin(sleep_until(start));
    Interval {
        sleep,
        due: start,
        period,
        missed: MissedTicks::default(),
    }
}

/// Gives ticks, one every period; made by [`interval`].
#[derive(Debug)]
pub struct Interval {
    /// Boxed so that an interval may be moved.
    sleep: Pin<Box<Sleep>>,
    /// When the next tick is due.
    due: Instant,
    period: Duration,
    missed: MissedTicks,
}

impl Interval {
    /// The same interval with another way to deal with missed ticks.
    #[must_use]
    pub fn with_missed_ticks(mut self, missed: MissedTicks) -> Self {
        self.missed = missed;
        self
    }

    /// Waits for the next tick and returns when it was due.
    ///
    /// # Cancellation
    ///
    /// Dropping the future loses no tick.
    ///
    /// # Panics
    ///
    /// Outside of a runtime.
    pub async fn tick(&mut self) -> Instant {
        poll_fn(|context| self.poll_tick(context)).await
    }

    /// As [`tick`](Self::tick), for a future written by hand.
    pub fn poll_tick(&mut self, context: &mut Context<'_>) -> Poll<Instant> {
        ready!(self.sleep.as_mut().poll(context));
        let due = self.due;
        self.due = self.missed.next(due, now(), self.period);
        self.sleep.as_mut().reset(self.due);
        Poll::Ready(due)
    }

    /// Has the next tick come a period from now.
    pub fn reset(&mut self) {
        self.due = add(now(), self.period);
        self.sleep.as_mut().reset(self.due);
    }

    /// The time between two ticks.
    #[must_use]
    pub fn period(&self) -> Duration {
        self.period
    }
}

/// What an [`Interval`] does about missed ticks.
///
/// A tick is missed if it is taken so late that the one behind it is due as well. A lesser delay never shifts the ticks
/// that follow.
///
/// The default is `Delay`: a service that has fallen behind is under load, and then a burst makes it worse; and unlike
/// `Skip` it leaves time between the late tick and the next one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissedTicks {
    /// Give the missed ticks one after another, without waiting, until it has caught up.
    Burst,
    /// Drop them; the next tick comes a period after the late one was taken.
    #[default]
    Delay,
    /// Drop them; the next tick comes at the next multiple of the period, counted from the first tick.
    Skip,
}

impl MissedTicks {
    /// When the next tick is due if the one of `due` is taken at `now`.
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
        assert_eq!(error.to_string(), "the time was up");
    }

    #[test]
    #[should_panic = "the period of an interval is longer than zero"]
    fn no_period() {
        let _ = interval(Duration::ZERO);
    }
}
