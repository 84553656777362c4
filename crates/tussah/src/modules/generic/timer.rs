//! A source that sends a number again and again.

use std::time::Duration;

use crate::flow::{AsyncOut, module};
use crate::time::interval;

/// Sends the numbers 0, 1, 2 and so on, one each `every`; the first is sent at once.
///
/// | parameter | kind | meaning |
/// |---|---|---|
/// | `every` | duration, above 0 | the time between two items |
/// | `count` | count, optional | the number of items; without it, the source does not end |
///
/// Output `out`: `u64`. While the receiver has no room, the timer waits, and sends the missed
/// numbers afterwards.
#[module]
pub struct Timer {
    every: Duration,
    count: u64,
}

#[module]
impl Timer {
    fn init(every: Duration, count: Option<u64>) -> Result<Self, String> {
        if every.is_zero() {
            return Err("`every` is zero: expected the time between two items".to_owned());
        }
        let count = count.unwrap_or(u64::MAX);
        Ok(Self { every, count })
    }

    async fn start(&self, out: &impl AsyncOut<u64>) {
        let mut interval = interval(self.every);
        for number in 0..self.count {
            interval.tick().await;
            out.send(number).await;
        }
    }
}
