//! A module that sends failed items back after a pause.

use std::hash::{BuildHasher as _, RandomState};
use std::marker::PhantomData;
use std::num::NonZeroU32;
use std::time::Duration;

use parking_lot::Mutex;
use tussah_core::Handle;

use crate::flow::{AsyncOut, Share, module};
use crate::modules::Attempt;
use crate::stage::sim::Random;
use crate::time::sleep;

/// Sends each failed item back for another attempt, after a pause. The pause doubles each time the
/// item fails, up to `longest`.
///
/// | parameter | kind | meaning |
/// |---|---|---|
/// | `attempts` | count, at least 1 | the maximum number of attempts for each item, including the first |
/// | `first` | duration | the pause after the first failure |
/// | `longest` | duration, default 1 min | the maximum pause |
/// | `jitter` | number from 0 to 1, default 0 | the maximum share by which a pause is shortened at random |
/// | `seed` | count | the seed of the random pauses; random by default, and 0 in virtual time |
///
/// With `jitter`, items that failed at the same time are sent back at different times.
///
/// | port | items | meaning |
/// |---|---|---|
/// | input `run` | [`Attempt<T>`] | a failed item |
/// | output `out` | [`Attempt<T>`] | the items to retry |
/// | output `lost` | [`Attempt<T>`] | the items that have used up their attempts |
///
/// At most 1,000 items wait for their next attempt at the same time; beyond that, senders wait. A
/// graph that is draining also waits until all items in this module have been sent.
///
/// The edge back to the failing module closes a cycle, so it needs a queue that sheds when it is
/// full: `send.failed -> retry -> send.again via queue(1000, when_full: shed)`.
#[module]
pub struct Retry<T> {
    attempts: u32,
    first: Duration,
    longest: Duration,
    jitter: f64,
    random: Mutex<Random>,
    of: PhantomData<fn(T)>,
}

/// The longest pause, if the graph does not set it.
const LONGEST: Duration = Duration::from_secs(60);

#[module]
impl<T: Clone + Send + 'static> Retry<T> {
    fn init(
        attempts: NonZeroU32,
        first: Duration,
        longest: Option<Duration>,
        jitter: Option<Share>,
        seed: Option<u64>,
    ) -> Self {
        let seed = seed.unwrap_or_else(|| match Handle::current().clock().is_manual() {
            true => 0,
            false => RandomState::new().hash_one(()),
        });
        Self {
            jitter: jitter.unwrap_or_default().0,
            random: Mutex::new(Random::new(seed)),
            attempts: attempts.get(),
            first,
            longest: longest.unwrap_or(LONGEST),
            of: PhantomData,
        }
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
        let share = 1.0 - self.jitter * self.random.lock().unit();
        sleep(pause.min(self.longest).mul_f64(share)).await;
        out.send(attempt).await;
    }
}
