//! A module that sends failed items back later.

use std::hash::{BuildHasher as _, RandomState};
use std::marker::PhantomData;
use std::time::Duration;

use tussah_core::Handle;

use super::random::Random;
use crate::flow::{AsyncOut, module};
use crate::modules::Attempt;
use crate::time::sleep;

/// Sends items that have failed back after a pause, which doubles with each failure of an item.
///
/// | parameter | kind | meaning |
/// |---|---|---|
/// | `attempts` | count, at least 1 | the number of attempts for each item, the first one included |
/// | `first` | duration | the pause after the first failure |
/// | `longest` | duration, default 1 min | the longest pause |
/// | `jitter` | number from 0 to 1, default 0 | the share of each pause by which it may be shorter, at random |
/// | `seed` | count | the same seed makes the same pauses; random by default, and 0 under virtual time |
///
/// With `jitter`, items that failed together do not come back together.
///
/// Input `run`: [`Attempt<T>`]. Outputs, of the same type: `out` for items to try again, `lost` for
/// items whose attempts are used up. At most 1,000 items wait at a time; senders wait for more
/// room. An item that waits is in the graph, so draining the graph waits for it.
///
/// The edge back to the module that failed closes a cycle, so it needs room of its own:
/// `send.failed -> retry -> send.again via queue(1000, when_full: shed)`.
#[module]
pub struct Retry<T> {
    attempts: u32,
    first: Duration,
    longest: Duration,
    jitter: f64,
    random: Random,
    of: PhantomData<fn(T)>,
}

/// The longest pause, if the graph does not set it.
const LONGEST: Duration = Duration::from_secs(60);

#[module]
impl<T: Clone + Send + 'static> Retry<T> {
    fn init(
        attempts: u32,
        first: Duration,
        longest: Option<Duration>,
        jitter: Option<f64>,
        seed: Option<u64>,
    ) -> Result<Self, String> {
        if attempts == 0 {
            return Err("`attempts` is 0: expected at least 1".to_owned());
        }
        let jitter = jitter.unwrap_or(0.0);
        if !(0.0..=1.0).contains(&jitter) {
            return Err(format!("`jitter` is {jitter}: expected 0 to 1"));
        }
        let seed = seed.unwrap_or_else(|| match Handle::current().clock().is_manual() {
            true => 0,
            false => RandomState::new().hash_one(()),
        });
        Ok(Self {
            jitter,
            random: Random::new(seed),
            attempts,
            first,
            longest: longest.unwrap_or(LONGEST),
            of: PhantomData,
        })
    }

    async fn run(
        &self,
        attempt: Attempt<T>,
        out: &impl AsyncOut<Attempt<T>>,
        lost: &impl AsyncOut<Attempt<T>>,
    ) {
        if attempt.failures >= self.attempts {
            return lost.send(attempt).await;
        }
        let doublings = attempt.failures.saturating_sub(1).min(31);
        let pause = self.first.saturating_mul(1 << doublings);
        let share = 1.0 - self.jitter * self.random.share();
        sleep(pause.min(self.longest).mul_f64(share)).await;
        out.send(attempt).await;
    }
}
