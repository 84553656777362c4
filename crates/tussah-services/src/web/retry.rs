//! When clients that were turned away should come again.
//!
//! They wait in a queue that is kept nowhere: each is told to come when those before it will have been served, at the rate at which the stage serves. Who has just been
//! served and is turned away goes to its end. So all have their turn, and the server is not asked for more than it can do.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tussah::time::now;

/// How many times as many are told to come as can be served: if it were just as many, the stage would often have nothing to do.
const MORE: f64 = 1.25;

/// What was served before so many have been says little of what can be.
const DOUBT: f64 = 128.0;

/// Bound, in seconds: the latest time at which a client is told to come.
const AFTER_S_MAX: u8 = 60;

const SECOND_NS: u64 = 1_000_000_000;

/// The turns of those who were turned away.
pub(crate) struct Retry {
    begun: Instant,
    /// From one turn to the next.
    step_ns: AtomicU64,
    /// The next turn, in nanoseconds since the beginning.
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

    /// So many can be served in a second, as is known from so many that were served while others were turned away; as long as none has been, a hundred are taken for granted.
    pub(crate) fn set_rate(&self, per_second: f64, served: u64) {
        if per_second <= 0.0 {
            return;
        }
        // A stage that has just begun may do far more; who has been told to stay away can't be called back.
        let more = MORE * (1.0 + DOUBT / served.max(1) as f64);
        let step_ns = SECOND_NS as f64 / (more * per_second.max(0.01));
        self.step_ns.store(step_ns as u64, Ordering::Relaxed);
    }

    /// In how many seconds one of at most so many clients should come.
    pub(crate) fn after_s(&self, clients: usize, random: u32) -> u8 {
        let passed = now().saturating_duration_since(self.begun);
        self.turn_s(passed, clients, f64::from(random) / 2f64.powi(32))
    }

    /// The same at a time since the beginning, with luck from 0 to 1.
    fn turn_s(&self, passed: Duration, clients: usize, luck: f64) -> u8 {
        let now_ns = passed.as_nanos() as u64;
        let step_ns = self.step_ns.load(Ordering::Relaxed);
        // No more can be waiting than there are.
        let last_ns = now_ns.saturating_add(step_ns.saturating_mul(clients as u64));
        let mut turn_ns = now_ns;
        // Relaxed: the turns say nothing of anything else.
        let _ = self
            .next_ns
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next_ns| {
                turn_ns = next_ns.clamp(now_ns, last_ns);
                Some(turn_ns.saturating_add(step_ns).min(last_ns))
            });
        let mut wait_s = (turn_ns - now_ns) as f64 / SECOND_NS as f64;
        if turn_ns == last_ns {
            // Clients come without waiting for their turns, so that there are none.
            wait_s *= luck;
        }
        // The field has whole seconds: in the mean, those are right.
        let after_s = (wait_s + luck).floor() as u8; // at most 255
        after_s.clamp(1, AFTER_S_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In how many seconds each of so many clients is told to come who are turned away at once.
    fn told(clients: u32, per_second: f64) -> Vec<u8> {
        let retry = Retry::new();
        retry.set_rate(per_second, u64::MAX);
        let luck = |client: u32| f64::from(client * 37 % 100) / 100.0;
        (0..clients)
            .map(|client| retry.turn_s(Duration::from_secs(5), clients as usize, luck(client)))
            .collect()
    }

    #[test]
    fn clients_come_as_fast_as_they_can_be_served() {
        let told = told(1000, 80.0);
        for second in 2..=9 {
            let come = told.iter().filter(|&&after_s| after_s == second).count();
            assert!((90..=110).contains(&come), "{come} in second {second}");
        }
        assert!(told.iter().all(|after_s| (1..=10).contains(after_s)));
    }

    #[test]
    fn the_time_is_a_second_to_a_minute() {
        assert_eq!(told(3, 1000.0), [1, 1, 1]);
        assert!(
            told(100, 0.001)
                .iter()
                .all(|after_s| (1..=60).contains(after_s))
        );
        assert_eq!(told(100, 0.001)[50], 60);
    }

    #[test]
    fn a_server_that_has_served_nobody_yet_sends_nobody_away_for_long() {
        assert!(
            told(100, 0.0)
                .iter()
                .all(|after_s| (1..=2).contains(after_s))
        );
    }

    #[test]
    fn a_server_that_has_just_begun_sends_nobody_away_for_long() {
        let retry = Retry::new();
        retry.set_rate(2.0, 2);
        let told = |client| retry.turn_s(Duration::ZERO, 1000, f64::from(client) / 1000.0);
        assert!(
            (0..1000)
                .map(told)
                .all(|after_s| (1..=8).contains(&after_s))
        );
    }

    #[test]
    fn who_does_not_wait_for_a_turn_makes_the_queue_no_longer_than_there_are_clients() {
        let retry = Retry::new();
        retry.set_rate(80.0, u64::MAX);
        for ms in 0..10_000 {
            let after_s = retry.turn_s(Duration::from_millis(ms), 200, 0.999);
            assert!((1..=3).contains(&after_s), "{after_s} after {ms} ms");
        }
        // Once they stay away, the queue empties.
        assert_eq!(retry.turn_s(Duration::from_secs(13), 200, 0.0), 1);
    }
}
