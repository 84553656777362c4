//! A module that limits the rate of items.

use std::marker::PhantomData;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use crate::flow::{AsyncOut, Rate, module};
use crate::time::{now, sleep_until};

/// Forwards items in order, at a limited rate. Senders that exceed `rate` have to wait.
///
/// | parameter | kind | meaning |
/// |---|---|---|
/// | `rate` | rate, from 1/day to 1 G/s | the maximum number of items per second |
/// | `burst` | count, at least 1, default 1 | the maximum number of items that may pass at once after a pause |
///
/// | port | items | meaning |
/// |---|---|---|
/// | input `run` | `T` | an item |
/// | output `out` | `T` | the same items, in order |
///
/// The module handles one item at a time, and limits the rate with the generic cell rate algorithm
/// (ITU-T I.371, Annex A).
#[module]
pub struct Throttle<T> {
    period: Duration,
    /// The time that items may be ahead of the rate.
    tolerance: Duration,
    /// The time at which the next item is due.
    due: Option<Instant>,
    of: PhantomData<fn(T)>,
}

/// The seconds of a day: the longest time between two items.
const PERIOD_SECONDS_MAX: f64 = 86_400.0;

#[module]
impl<T: Clone + Send + 'static> Throttle<T> {
    fn init(rate: Rate, burst: Option<NonZeroU32>) -> Result<Self, String> {
        let (period, burst) = (1.0 / rate.0, burst.map_or(1, NonZeroU32::get));
        if !(1e-9..=PERIOD_SECONDS_MAX).contains(&period) {
            return Err(format!(
                "`rate` is {}/s: expected at least one item a day, and at most 1 G/s",
                rate.0
            ));
        }
        let period = Duration::from_secs_f64(period);
        Ok(Self {
            period,
            tolerance: period.saturating_mul(burst - 1),
            due: None,
            of: PhantomData,
        })
    }

    async fn run(&mut self, item: T, out: &impl AsyncOut<T>) {
        let now = now();
        let due = self.due.map_or(now, |due| due.max(now));
        if due > now + self.tolerance {
            sleep_until(due - self.tolerance).await;
        }
        self.due = Some(due + self.period);
        out.send(item).await;
    }
}
