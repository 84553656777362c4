//! The times at which rejected clients should retry.
//!
//! The queue is virtual. Each rejected client receives the time at which the clients before it will
//! have been served, at the stage's service rate. A client that is rejected again after it has been
//! served goes to the end of the queue. All clients therefore get their turn, and the load stays
//! within the capacity.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tussah::stage::observe::StageStats;
use tussah::sync::Notify;
use tussah::time::now;

/// The ratio of the rate at which clients are invited to the service rate. With a ratio of 1, the
/// stage would often be idle.
const MORE: f64 = 1.25;

/// The number of served requests below which the measured rate is uncertain.
const DOUBT: f64 = 128.0;

/// Bound, in seconds: the longest retry time that a client is given.
pub(crate) const AFTER_S_MAX: u8 = 60;

const SECOND_NS: u64 = 1_000_000_000;

/// The turns of the clients that a route has rejected.
pub(crate) struct Retry {
    begun: Instant,
    /// The time between two turns.
    step_ns: AtomicU64,
    /// The next turn, in nanoseconds since the start.
    next_ns: AtomicU64,
}

impl Retry {
    pub(crate) fn new() -> Self {
        Self {
            begun: now(),
            step_ns: AtomicU64::new(SECOND_NS / 100),
            next_ns: AtomicU64::new(0),
        }
    }

    /// Sets the service rate. Until a request has been served, the rate is assumed to be a hundred
    /// per second.
    pub(crate) fn set_rate(&self, rate: &Rate) {
        let (per_second, served) = (rate.per_second, rate.known);
        if per_second <= 0.0 {
            return;
        }
        // A stage that has just started may be far faster, and clients that were told to wait
        // cannot be called back.
        let more = MORE * (1.0 + DOUBT / served.max(1) as f64);
        let step_ns = SECOND_NS as f64 / (more * per_second.max(0.01));
        self.step_ns.store(step_ns as u64, Ordering::Relaxed);
    }

    /// Returns the number of seconds after which one of at most `clients` clients should retry.
    pub(crate) fn after_s(&self, clients: usize, random: u32) -> u8 {
        let passed = now().saturating_duration_since(self.begun);
        self.turn_s(passed, clients, f64::from(random) / 2f64.powi(32))
    }

    /// Does the same as [`after_s`](Self::after_s) for a time since the start, with `luck` from 0
    /// to 1.
    fn turn_s(&self, passed: Duration, clients: usize, luck: f64) -> u8 {
        let now_ns = passed.as_nanos() as u64;
        let step_ns = self.step_ns.load(Ordering::Relaxed);
        // No more clients can wait than there are.
        let last_ns = now_ns.saturating_add(step_ns.saturating_mul(clients as u64));
        let mut turn_ns = now_ns;
        // Relaxed: the turns publish nothing else.
        let _ = self
            .next_ns
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next_ns| {
                turn_ns = next_ns.clamp(now_ns, last_ns);
                Some(turn_ns.saturating_add(step_ns).min(last_ns))
            });
        let mut wait_s = (turn_ns - now_ns) as f64 / SECOND_NS as f64;
        if turn_ns == last_ns {
            // The clients retry without waiting, so there are no turns.
            wait_s *= luck;
        }
        // The field contains whole seconds, which are right on average.
        let after_s = (wait_s + luck).floor() as u8; // at most 255
        after_s.clamp(1, AFTER_S_MAX)
    }
}

/// A flag that shows whether a route receives requests. Without requests the rates are not updated,
/// so that an idle server has no timer for them.
#[derive(Default)]
pub(crate) struct Asked {
    is_idle: AtomicBool,
    again: Notify,
}

impl Asked {
    /// Waits until a request arrives again.
    pub(crate) async fn again(&self) {
        self.is_idle.store(true, Ordering::Relaxed);
        self.again.notified().await;
    }

    /// Records a request.
    #[inline]
    pub(crate) fn ask(&self) {
        // Relaxed: a request that arrives as the pause begins may be missed. The next request is
        // not missed.
        if self.is_idle.load(Ordering::Relaxed) && self.is_idle.swap(false, Ordering::Relaxed) {
            self.again.notify_one();
        }
    }
}

/// The service rate of a route: the number of requests that it answered in a second while others
/// were rejected, or else the largest number in any second.
#[derive(Default)]
pub(crate) struct Rate {
    per_second: f64,
    /// The number of requests answered while others were rejected.
    known: u64,
    finished: u64,
    rejected: u64,
}

impl Rate {
    /// Learns from the last second. `stats` are the counters at the end of that second.
    pub(crate) fn look(&mut self, stats: &StageStats) {
        // Failures do not show how many requests can be answered.
        let answered = stats.finished - stats.failed;
        let finished = answered - self.finished;
        let rejected = stats.refused + stats.shed;
        if rejected > self.rejected {
            // Without rejections, the load may have been lower than the capacity.
            self.known += finished;
            self.per_second += if self.per_second > 0.0 {
                (finished as f64 - self.per_second) / 4.0
            } else {
                finished as f64
            };
        } else {
            self.per_second = self.per_second.max(finished as f64);
        }
        (self.finished, self.rejected) = (answered, rejected);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(per_second: f64, known: u64) -> Rate {
        Rate {
            per_second,
            known,
            ..Rate::default()
        }
    }

    /// Returns the retry times given to `clients` clients that are rejected at once.
    fn retry_times(clients: u32, per_second: f64) -> Vec<u8> {
        let retry = Retry::new();
        retry.set_rate(&rate(per_second, u64::MAX));
        let luck = |client: u32| f64::from(client * 37 % 100) / 100.0;
        (0..clients)
            .map(|client| retry.turn_s(Duration::from_secs(5), clients as usize, luck(client)))
            .collect()
    }

    #[test]
    fn retry_times_are_spread_at_the_service_rate() {
        let times = retry_times(1000, 80.0);
        for second in 2..=9 {
            let come = times.iter().filter(|&&after_s| after_s == second).count();
            assert!((90..=110).contains(&come), "{come} in second {second}");
        }
        assert!(times.iter().all(|after_s| (1..=10).contains(after_s)));
    }

    #[test]
    fn the_time_is_a_second_to_a_minute() {
        assert_eq!(retry_times(3, 1000.0), [1, 1, 1]);
        assert!(
            retry_times(100, 0.001)
                .iter()
                .all(|after_s| (1..=60).contains(after_s))
        );
        assert_eq!(retry_times(100, 0.001)[50], 60);
    }

    #[test]
    fn retry_after_is_short_before_the_first_response() {
        assert!(
            retry_times(100, 0.0)
                .iter()
                .all(|after_s| (1..=2).contains(after_s))
        );
    }

    #[test]
    fn retry_after_is_short_just_after_the_start() {
        let retry = Retry::new();
        retry.set_rate(&rate(2.0, 2));
        let time = |client| retry.turn_s(Duration::ZERO, 1000, f64::from(client) / 1000.0);
        assert!(
            (0..1000)
                .map(time)
                .all(|after_s| (1..=8).contains(&after_s))
        );
    }

    #[test]
    fn impatient_clients_lengthen_the_queue_to_their_number_at_most() {
        let retry = Retry::new();
        retry.set_rate(&rate(80.0, u64::MAX));
        for ms in 0..10_000 {
            let after_s = retry.turn_s(Duration::from_millis(ms), 200, 0.999);
            assert!((1..=3).contains(&after_s), "{after_s} after {ms} ms");
        }
        // Once the clients wait, the queue empties.
        assert_eq!(retry.turn_s(Duration::from_secs(13), 200, 0.0), 1);
    }
}
