//! The events of one key, which a keyed stage handles one at a time. However many servlets the
//! stage has, an event waits for all earlier ones of its key.

use super::Predict;
use super::load::Queue;
use super::room::overdue_ns;
use crate::stage::control::{Arrival, Sample};

/// The minimum room of a key: the event in service, and one that follows it.
const ROOM_MIN: u64 = 2;

/// The queues of the keys. All numbers are in events.
#[derive(Debug)]
pub(super) struct Keys {
    /// The longest queue that an event found since the last sample.
    found: Option<u64>,
    /// The longest queue now; `None` in a stage without keys.
    longest: Option<f64>,
    /// The length of a key's queue from which on the stage admits no further event of this key, in
    /// the normal state and in overload.
    far: u64,
    room: u64,
}

impl Default for Keys {
    fn default() -> Self {
        Self {
            found: None,
            longest: None,
            far: u64::MAX,
            room: u64::MAX,
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
        self.found = self.found.max(Some(of_key));
        of_key < if overloaded { self.room } else { self.far }
    }
}

impl Predict {
    /// Returns the longest queue of a key, and whether it is too long.
    pub(super) fn longest_of_keys(&mut self, sample: &Sample<'_>) -> Option<(Queue, bool)> {
        let service_ns = self.capacity.service_ns();
        let per_ns = 1.0 / service_ns;
        let found = self.keys.found.take().map(|found| found as f64);
        // A key that got no event in the interval has finished some.
        let drained = sample.interval_ns as f64 * per_ns;
        let rest = self.keys.longest.map(|longest| longest - drained);
        let longest = found.into_iter().chain(rest).reduce(f64::max)?.max(0.0);
        let far = self.load.far(&self.capacity, per_ns, self.target_ns as f64);
        self.keys.longest = Some(longest);
        self.keys.far = far as u64;
        let queue = Queue {
            len: longest,
            wait_ns: longest * service_ns,
        };
        Some((queue, longest > far))
    }

    /// Sets the room of each key in overload, and returns the time in the queue that is acceptable
    /// there, in nanoseconds.
    pub(super) fn allot_to_keys(&mut self) -> f64 {
        if self.keys.longest.is_none() {
            return 0.0;
        }
        let service_ns = self.capacity.service_ns();
        let per_ns = 1.0 / service_ns;
        let budget_ns = self.wait_budget_ns(per_ns);
        let events = per_ns * (budget_ns + self.capacity.service_ns_free());
        self.keys.room = (events.round() as u64).max(ROOM_MIN);
        overdue_ns(per_ns, budget_ns).min(self.target_ns as f64 - service_ns)
    }
}
