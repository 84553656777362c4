//! A source that sends numbers at regular intervals.

use std::time::Duration;

use crate::flow::{AsyncOut, Period, module};
use crate::time::interval;

/// Sends the numbers 0, 1, 2 and so on at regular intervals, starting immediately.
///
/// | parameter | kind | meaning |
/// |---|---|---|
/// | `every` | duration, above 0 | the time between two items |
/// | `count` | count, optional | the number of items; by default, the source does not end |
///
/// | port | items | meaning |
/// |---|---|---|
/// | output `out` | `u64` | the numbers |
///
/// If the receiver cannot accept a number, the timer waits. After waiting for the receiver, the
/// timer continues with the next number, and does not make up for the lost time.
#[module]
pub struct Timer {
    every: Duration,
    count: u64,
}

#[module]
impl Timer {
    fn init(every: Period, count: Option<u64>) -> Self {
        let (every, count) = (every.get(), count.unwrap_or(u64::MAX));
        Self { every, count }
    }

    async fn start(&self, out: &impl AsyncOut<u64>) {
        let mut interval = interval(self.every);
        for number in 0..self.count {
            interval.tick().await;
            out.send(number).await;
        }
    }
}
