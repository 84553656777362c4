//! The load of each key of a keyed stage. The events of a key are served one at a time, so a key
//! can have too many events while servlets are idle.
//!
//! The same tests as for the [load](super::load) of a stage decide, on the arrivals and services
//! since the key last had no events. A false alarm costs little, since it ends when the key has no
//! events again. Less evidence is therefore enough. Much less is enough if all keys together get
//! more events than they finish.

use super::Predict;
use super::load::Load;
use crate::stage::control::{Departure, KeyLoad, Sample};

/// The minimum room of a key, in events: the one in service, and one that follows it.
const ROOM_MIN: u64 = 2;

/// The sum at which a key is overloaded, if its events wait for more than half a target. By chance,
/// this happens in fewer than one of 50,000 busy periods at a load of 0.8, even if the services are
/// exponential. A load of 3 is found after about 20 services, and one of 1.4 after 110.
const SUM: f64 = 20.0;

/// The sum that is enough while some key is overloaded. It may be the same key, whose counts began
/// again because it had no events for a moment. Or many keys are overloaded, and each of them has
/// few events.
const SUM_AGAIN: f64 = 3.0;

/// The maximum sum over all keys. With a larger one, the end of an overload would show too late.
const RISE_MAX: f64 = 40.0;

/// The number of targets without an overloaded key after which no more departures are looked at.
const CALM_TARGETS: u64 = 8;

/// The state of all keys together.
#[derive(Debug, Default)]
pub(super) struct Keys {
    /// The sum of the test for a rise, on all events while some wait for their keys.
    rise: f64,
    /// True if an event of an overloaded key has arrived since the last sample.
    found: bool,
    /// The time until which some key counts as overloaded; 0 for none.
    until_ns: u64,
    /// True if some key is overloaded.
    pub(super) overloaded: bool,
}

impl Keys {
    /// Updates the state at a sample.
    pub(super) fn update(&mut self, sample: &Sample<'_>, target_ns: u64, now_ns: u64) {
        let (arrived, finished) = (sample.arrived as f64, sample.finished as f64);
        self.rise = match sample.queue_len > sample.ready {
            true => {
                let rise = Load::rise(arrived.min(2.0 * finished + 8.0), finished);
                (self.rise + rise).clamp(0.0, RISE_MAX)
            }
            false => 0.0,
        };
        if std::mem::take(&mut self.found) || Load::is_risen(self.rise) {
            self.until_ns = now_ns.saturating_add(target_ns.saturating_mul(CALM_TARGETS));
        }
        self.overloaded = now_ns < self.until_ns;
    }
}

impl Predict {
    /// Returns whether a key has room for another event.
    pub(super) fn key_has_room(&mut self, key: &KeyLoad) -> bool {
        if key.events < ROOM_MIN || !self.is_key_overloaded(key) {
            return true;
        }
        self.keys.found = true;
        let service_ns = key.service_ns.max(1) as f64;
        let budget_ns = self.wait_budget_ns(1.0 / service_ns, service_ns);
        // At least half of the service of the last event that has room is within the budget.
        key.events as f64 * service_ns < budget_ns + service_ns / 2.0
    }

    /// Returns whether a queued event of a key would be answered too late.
    pub(super) fn is_late_in_key(&self, departure: &Departure, key: &KeyLoad) -> bool {
        let latest_ns = self.target_ns.saturating_sub(key.service_ns);
        match self.overloaded {
            true => departure.sojourn_ns > latest_ns.max(self.sojourn_ns_max),
            false => departure.sojourn_ns > latest_ns && self.is_key_overloaded(key),
        }
    }

    fn is_key_overloaded(&self, key: &KeyLoad) -> bool {
        let wait_ns = key.events as f64 * key.service_ns as f64;
        let is_late = wait_ns > self.target_ns as f64 / 2.0;
        let sum = || Load::sum_since_empty(key.arrived as f64, key.ended as f64);
        let most = if self.keys.overloaded { SUM_AGAIN } else { SUM };
        key.rejected > 0 || is_late && sum() > most
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::stage::control::testing::{MS, Random};

    /// The busy periods of a key, those in which events were rejected, and the most events that had
    /// ended when the first one was rejected.
    #[derive(Debug, Default)]
    struct Seen {
        periods: u64,
        alarms: u64,
        latest: u64,
    }

    /// Shows `arrivals` events of one key at a load. Services are exponential with a mean of 1 ms,
    /// and the target is 20 ms.
    fn seen(load: f64, arrivals: u64) -> Seen {
        let mut predict = Predict::new(Duration::from_millis(20));
        let mut random = Random::new(7);
        let mut exponential = |mean: f64| {
            let share = (random.next() >> 11) as f64 / (1_u64 << 53) as f64;
            -mean * (1.0 - share).ln()
        };
        let mut seen = Seen::default();
        let mut key = KeyLoad {
            service_ns: MS,
            ..KeyLoad::default()
        };
        let (mut now, mut ends) = (0.0, f64::INFINITY);
        for _ in 0..arrivals {
            now += exponential(1.0 / load);
            while ends <= now {
                (key.events, key.ended) = (key.events - 1, key.ended + 1);
                match key.events {
                    0 => {
                        (key.arrived, key.ended, key.rejected) = (0, 0, 0);
                        ends = f64::INFINITY;
                    }
                    _ => ends += exponential(1.0),
                }
            }
            key.arrived += 1;
            if predict.key_has_room(&key) {
                if key.events == 0 {
                    seen.periods += 1;
                    ends = now + exponential(1.0);
                }
                key.events += 1;
            } else {
                if key.rejected == 0 {
                    seen.alarms += 1;
                    seen.latest = seen.latest.max(key.ended);
                }
                key.rejected += 1;
            }
        }
        seen
    }

    #[test]
    fn a_key_that_keeps_up_is_hardly_ever_overloaded() {
        let seen = seen(0.8, 2_000_000);
        assert!(seen.periods > 350_000, "{seen:?}");
        assert!(seen.alarms * 50_000 < seen.periods, "{seen:?}");
    }

    #[test]
    fn a_key_that_gets_too_much_is_soon_overloaded() {
        // The fewest events that end before an alarm vary with the services.
        for (load, most) in [(3.0, 60), (1.4, 600)] {
            let seen = seen(load, 20_000);
            assert!(seen.alarms > 0 && seen.latest < most, "{load}: {seen:?}");
        }
    }
}
