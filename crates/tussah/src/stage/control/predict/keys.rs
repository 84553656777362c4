//! The events of one key, which a keyed stage handles one at a time. However many servlets the
//! stage has, an event waits for all earlier ones of its key.

use super::Predict;
use super::load::Queue;
use super::room::overdue_ns;
use crate::stage::control::{Arrival, Sample};

/// The minimum room of a key, in events: the event in service, and one that follows it.
const ROOM_MIN: u64 = 2;

/// The queues of the keys. All times are in nanoseconds.
#[derive(Debug)]
pub(super) struct Keys {
    /// The longest wait for earlier events of the same key, of the events since the last sample.
    found_ns: Option<u64>,
    /// The longest wait now; `None` in a stage without keys.
    longest_ns: Option<f64>,
    /// The wait from which on the stage admits no further event of a key, in the normal state and
    /// in overload.
    far_ns: u64,
    room_ns: u64,
}

impl Default for Keys {
    fn default() -> Self {
        Self {
            found_ns: None,
            longest_ns: None,
            far_ns: u64::MAX,
            room_ns: u64::MAX,
        }
    }
}

impl Keys {
    /// Returns whether the key of an arriving event has room.
    #[inline]
    pub(super) fn admits(&mut self, arrival: &Arrival, overloaded: bool) -> bool {
        let Some(of_key) = arrival.of_key else {
            return true;
        };
        self.found_ns = self.found_ns.max(Some(arrival.key_wait_ns));
        let most_ns = if overloaded {
            self.room_ns
        } else {
            self.far_ns
        };
        of_key < ROOM_MIN || arrival.key_wait_ns < most_ns
    }
}

impl Predict {
    /// Returns the longest queue of a key, and whether it is too long.
    pub(super) fn longest_of_keys(&mut self, sample: &Sample<'_>) -> Option<(Queue, bool)> {
        let service_ns = self.capacity.service_ns().max(1.0);
        let found_ns = self.keys.found_ns.take().map(|found_ns| found_ns as f64);
        // A key that got no event in the interval has finished some.
        let rest_ns = self.keys.longest_ns;
        let rest_ns = rest_ns.map(|longest_ns| longest_ns - sample.interval_ns as f64);
        let waits_ns = found_ns.into_iter().chain(rest_ns);
        let wait_ns = waits_ns.reduce(f64::max)?.max(0.0);
        let target_ns = self.target_ns as f64;
        let far = self.load.far(&self.capacity, 1.0 / service_ns, target_ns);
        self.keys.longest_ns = Some(wait_ns);
        self.keys.far_ns = (far * service_ns) as u64;
        let len = wait_ns / service_ns;
        Some((Queue { len, wait_ns }, len > far))
    }

    /// Sets the room of each key in overload, and returns the time in the queue that is acceptable
    /// there, in nanoseconds.
    pub(super) fn allot_to_keys(&mut self) -> f64 {
        if self.keys.longest_ns.is_none() {
            return 0.0;
        }
        let service_ns = self.capacity.service_ns().max(1.0);
        let per_ns = 1.0 / service_ns;
        let budget_ns = self.wait_budget_ns(per_ns);
        // An event has room if at least half of its service is within the budget.
        let most_ns = budget_ns + self.capacity.service_ns_free() - service_ns / 2.0;
        self.keys.room_ns = most_ns as u64;
        overdue_ns(per_ns, budget_ns).min(self.target_ns as f64 - service_ns)
    }
}
