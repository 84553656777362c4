//! A module that injects faults, for tests.

use std::marker::PhantomData;
use std::time::Duration;

use parking_lot::Mutex;

use crate::flow::{AsyncOut, Share, module};
use crate::stage::sim::Random;
use crate::time::sleep;

/// Loses or delays items at random, or panics, to test how the rest of a graph reacts.
///
/// | parameter | kind | meaning |
/// |---|---|---|
/// | `lose` | number from 0 to 1, default 0 | the share of items that go to `lost` |
/// | `panic` | number from 0 to 1, default 0 | the share of items at which the module panics |
/// | `slow` | number from 0 to 1, default 0 | the share of items that are delayed by `delay` |
/// | `delay` | duration, default 0 | the delay |
/// | `seed` | count, default 0 | the seed of the random choices |
///
/// | port | items | meaning |
/// |---|---|---|
/// | input `run` | `T` | an item |
/// | output `out` | `T` | the items that are not lost |
/// | output `lost`, optional | `T` | the lost items |
///
/// The module handles any number of items at a time, but delays at most 1,000 of them at the same
/// time.
#[module]
pub struct FaultInjector<T> {
    lose: f64,
    panic: f64,
    slow: f64,
    delay: Duration,
    random: Mutex<Random>,
    of: PhantomData<fn(T)>,
}

#[module]
impl<T: Clone + Send + 'static> FaultInjector<T> {
    fn init(
        lose: Option<Share>,
        panic: Option<Share>,
        slow: Option<Share>,
        delay: Option<Duration>,
        seed: Option<u64>,
    ) -> Self {
        Self {
            lose: lose.unwrap_or_default().0,
            panic: panic.unwrap_or_default().0,
            slow: slow.unwrap_or_default().0,
            delay: delay.unwrap_or_default(),
            random: Mutex::new(Random::new(seed.unwrap_or(0))),
            of: PhantomData,
        }
    }

    async fn run(&self, item: T, out: &impl AsyncOut<T>, lost: Option<&impl AsyncOut<T>>) {
        if self.hits(self.slow) {
            sleep(self.delay).await;
        }
        assert!(!self.hits(self.panic), "an injected fault");
        if !self.hits(self.lose) {
            return out.send(item).await;
        }
        if let Some(lost) = lost {
            lost.send(item).await;
        }
    }
}

impl<T> FaultInjector<T> {
    /// Returns true with this probability.
    fn hits(&self, share: f64) -> bool {
        self.random.lock().unit() < share
    }
}
