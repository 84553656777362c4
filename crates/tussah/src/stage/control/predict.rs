//! Admission control for a stage with a latency target: in overload, the stage rejects events that
//! would wait too long.
//!
//! The controller has two states. In the *normal* state it sheds no events, and admits all events
//! until the queue takes several targets to drain, because most queues drain by themselves. At a
//! load of 80 %, a queue of about 60 events can form by chance alone, and a burst has the same
//! effect. In *overload*, it admits an event only if the predicted wait is within a budget. The
//! prediction is the number of events queued and in service, divided by the capacity. The
//! controller also sheds events that have waited too long for the target, so a standing queue
//! disappears immediately. Lower classes get less room, because later events of higher classes
//! overtake them (Cobham, "Priority assignment in waiting line problems", 1954).
//!
//! A burst that would take more than several targets to work off starts an overload immediately.
//! Otherwise three tests decide:
//!
//! - A sequential test compares arrivals with the capacity. It detects a sustained overload after
//!   as many services as the required certainty takes.
//! - A test for a standing queue detects a closed loop, where each client waits for a response
//!   before it sends again. In a closed loop, no more events arrive than finish, yet waits are
//!   long.
//! - A test compares the throughput with the capacity. It detects a stage that has become slower,
//!   just as quickly.
//!
//! In a stage with keys, an event waits for all earlier events of its key, even if most servlets
//! are idle. The controller therefore judges each key by itself, as if it were a stage with one
//! servlet. The states above are about the events that wait for a servlet.
//!
//! Rejected clients retry, perhaps all at once. For some time after an overload, less evidence is
//! therefore enough to start another one.
//!
//! By Little's law, the length of a queue divided by the rate at which it drains predicts the wait.
//! Nichols and Jacobson ("Controlling queue delay", ACM Queue 2012) distinguish standing queues
//! from queues that go away. For them, a queue stands if it lasts longer than an interval of 100
//! ms; this controller uses statistical tests instead.

mod capacity;
mod keys;
mod limit;
mod load;
mod room;
#[cfg(test)]
mod tests;

use std::time::Duration;

use self::capacity::Capacity;
use self::keys::Keys;
pub(super) use self::limit::{Learned, Limit};
use self::load::Load;
use self::room::WAIT_SHARE_MAX;
use super::{
    Admission, Arrival, Cadence, Controller, Departure, Owns, Rule, Sample, Settings, Verdict,
};
use crate::stage::event::{CLASSES_MAX, Class};

/// The maximum number of places that the senders on each worker may have reserved in advance.
/// Reserved places count as queued.
const RESERVED_MAX: f64 = 128.0;

/// The shortest time between two samples, in nanoseconds. The controller's own cost stays below one
/// percent.
const SLOT_NS_MIN: u64 = 50_000;

/// The longest time between two samples of an active stage, in nanoseconds. It is too short for a
/// person to notice.
const SLOT_NS_MAX: u64 = 10_000_000;

/// A controller that, under overload, rejects or sheds the events that could not be served within a
/// latency target.
///
/// The target is the only parameter. The controller aims to answer 90 % of the admitted events
/// within the target. The controller measures the time from an event's arrival in the queue to the
/// end of the event's batch. Choose a target of at least ten mean service times. A target below
/// eight mean service times leaves no margin for variation in the service time.
///
/// Under overload, the controller judges an event by the events ahead of it: those in service, and
/// the queued events of its own class and of classes with smaller numbers. Classes with larger
/// numbers are therefore rejected first. If the classes have shares, the queued events ahead are
/// those that the stage serves before this event.
///
/// In a keyed stage, the controller also judges each key by itself: if the events of a key are too
/// many for it, the controller rejects events of this key only.
#[derive(Debug)]
pub struct Predict {
    target_ns: u64,
    slot_ns: u64,

    /// The number of events asked about since the last sample, and their credits.
    asked: u64,
    asked_credits: u64,
    /// True if one of these events found an idle servlet.
    found_idle: bool,

    /// The rule for arrivals, set by each sample.
    overloaded: bool,
    /// The number of credits ahead from which no event is admitted even in the normal state,
    /// because the stage will be overloaded by the next sample.
    far: u64,
    servlets: u64,
    /// For each class, the number of credits ahead of an event, in the queue and in service, at
    /// which the stage stops admitting events of the class.
    room: [u64; CLASSES_MAX],
    /// For each class, its recent share of the capacity.
    taken: [f64; CLASSES_MAX],
    /// For each class, the recent rate of its arrivals, as a share of the capacity.
    wanted: [f64; CLASSES_MAX],
    /// The time in the queue above which an event is overdue in overload.
    sojourn_ns_max: u64,
    /// The time at which the state last changed between normal and overload.
    since_ns: u64,
    /// The value of `sojourn_ns_max` for events that arrived since then, in a stage with classes.
    sojourn_ns_max_since: u64,
    /// The lowest class.
    lowest: u8,
    /// The mean cost of an event, in credits times 256.
    cost_256: u64,

    capacity: Capacity,
    /// The capacity as another controller knows it, and whether it was known at the last sample.
    limit: Option<Limit>,
    was_limited: bool,
    load: Load,
    keys: Keys,
    /// Events that waited for a servlet at the last sample, and all events in the queue.
    queued: f64,
    all: f64,
    /// The factor applied to the budget of a wait; less than 1 while responses take longer than
    /// predicted.
    correction: f64,
    response_mean_ns: f64,
    /// The share of idle time in overload.
    idle: f64,
}

impl Predict {
    /// Creates a controller for a latency target. A target below one microsecond counts as one
    /// microsecond.
    #[must_use]
    pub fn new(target: Duration) -> Self {
        let target_ns = u64::try_from(target.as_nanos()).unwrap_or(u64::MAX);
        let target_ns = target_ns.clamp(1_000, u64::MAX / 4);
        Self {
            target_ns,
            slot_ns: (target_ns / 8).clamp(SLOT_NS_MIN, SLOT_NS_MAX),
            asked: 0,
            asked_credits: 0,
            found_idle: false,
            overloaded: false,
            far: u64::MAX >> 1,
            servlets: 1,
            room: [u64::MAX >> 1; CLASSES_MAX],
            taken: [0.0; CLASSES_MAX],
            wanted: [0.0; CLASSES_MAX],
            sojourn_ns_max: u64::MAX,
            since_ns: 0,
            sojourn_ns_max_since: u64::MAX,
            lowest: 0,
            cost_256: 256,
            capacity: Capacity::default(),
            limit: None,
            was_limited: false,
            load: Load::default(),
            keys: Keys::default(),
            queued: 0.0,
            all: 0.0,
            correction: 1.0,
            response_mean_ns: 0.0,
            idle: 0.0,
        }
    }

    /// Returns the target, in nanoseconds.
    #[must_use]
    pub fn target_ns(&self) -> u64 {
        self.target_ns
    }

    /// Returns whether the controller currently treats the stage as overloaded.
    #[must_use]
    pub fn overloaded(&self) -> bool {
        self.overloaded
    }

    /// Returns the estimated capacity of the stage, in events per second, or 0 until enough events
    /// have finished.
    #[must_use]
    pub fn capacity_per_second(&self) -> f64 {
        self.capacity.per_ns().unwrap_or(0.0) * 1e9
    }
}

/// Returns the events in the queue, without places that senders have only reserved.
pub(super) fn waiting(sample: &Sample<'_>) -> f64 {
    sample.classes.iter().map(|class| class.queued as f64).sum()
}

impl Controller for Predict {
    fn name(&self) -> &'static str {
        "predict"
    }

    fn owns(&self) -> Owns {
        Owns::ADMISSION
    }

    fn looks_at_responses(&self) -> bool {
        true
    }

    fn looks_at_departures(&self) -> bool {
        self.overloaded || self.keys.overloaded
    }

    fn cadence(&self) -> Cadence {
        Cadence::every_ns(self.slot_ns)
    }

    fn sample(&mut self, sample: &Sample<'_>, now_ns: u64) -> Settings {
        if let Some(seen_256) = self
            .asked_credits
            .saturating_mul(256)
            .checked_div(self.asked)
        {
            self.cost_256 = (self.cost_256 * 7 + seen_256) / 8;
        }
        let events = |credits: u64| credits as f64 * 256.0 / self.cost_256.max(1) as f64;
        let (queued, all) = (events(sample.ready), events(sample.queue_len));
        self.keys.update(sample, self.target_ns, now_ns);
        let idle = self.found_idle || sample.busy_ns < sample.interval_ns;
        // If the queue is too long to be emptied in the interval, its length alone proves that the
        // stage had work, which causes no bias. In overload, no queue is that long, and nearly
        // every interval is full.
        let drained_ns = self.capacity.per_ns().unwrap_or(0.0) * sample.interval_ns as f64;
        let backlogged =
            self.queued > 3.0 * drained_ns + 4.0 || self.overloaded && !idle && sample.ready > 0;
        let batch_ns = WAIT_SHARE_MAX * self.target_ns as f64;
        self.capacity.observe(sample, backlogged, batch_ns);
        let full = !idle && self.queued > 0.0 && sample.ready > 0;
        self.capacity.watch(sample, full);
        self.servlets = sample.servlets.target as u64;
        if let Some(Limit { scarce, servlets }) = self.limit {
            self.capacity.is(scarce.per_ns, scarce.service_ns);
            self.servlets = servlets as u64;
        }
        self.lowest = sample.classes.len().clamp(1, CLASSES_MAX) as u8 - 1;
        self.correct(sample);
        if let Some(per_ns) = self.capacity.per_ns() {
            let wait_ns = queued / per_ns;
            let target_ns = self.target_ns as f64;
            let taken = sample.admitted as f64 - sample.shed as f64 - (all - self.all);
            self.load
                .observe(sample, &self.capacity, idle, taken.max(0.0));
            let far = self.load.far(&self.capacity, target_ns);
            self.far = self.credits(far + RESERVED_MAX * sample.workers as f64);
            let was = self.overloaded;
            let test = if was {
                !self.load.fallen(sample, target_ns)
            } else {
                let risen = self.load.risen(queued, wait_ns, sample, target_ns);
                risen || waiting(sample).min(sample.ready as f64) > far
            };
            self.overloaded = test || self.is_past_limit(sample);
            self.was_limited = self.limit.is_some();
            if was != self.overloaded {
                self.load.turned();
                self.since_ns = now_ns;
                (self.correction, self.response_mean_ns, self.idle) = (1.0, 0.0, 0.0);
            }
            self.share(sample, per_ns);
            self.allot(sample, per_ns);
        }
        (self.queued, self.all) = (queued, all);
        (self.asked, self.asked_credits, self.found_idle) = (0, 0, false);
        Settings::default()
    }

    fn effective_target(&self) -> Option<Duration> {
        Some(Duration::from_nanos(self.target_ns))
    }

    fn rule(&self, _class: Class) -> Rule {
        if self.overloaded || self.keys.overloaded {
            Rule::InTime
        } else {
            Rule::All
        }
    }

    #[inline]
    fn on_enqueue(&mut self, arrival: &Arrival) -> Admission {
        self.asked = self.asked.saturating_add(1);
        self.asked_credits = self
            .asked_credits
            .saturating_add(u64::from(arrival.credits));
        let begins = match &arrival.key {
            None => arrival.queue_len == 0,
            Some(key) => key.events == 0 && arrival.ahead == 0,
        };
        self.found_idle |= begins && arrival.in_service < self.servlets;
        if let Some(key) = &arrival.key
            && !self.key_has_room(key)
        {
            return Admission::Reject;
        }
        if !self.overloaded {
            return if arrival.ahead.min(arrival.queue_len) < self.far {
                Admission::Admit
            } else {
                Admission::Reject
            };
        }
        let in_service = arrival.in_service.saturating_mul(self.cost_256) >> 8;
        let ahead = arrival.ahead.saturating_add(in_service);
        let class = arrival.class.0.min(self.lowest);
        if ahead < self.room[usize::from(class)] {
            Admission::Admit
        } else {
            Admission::Reject
        }
    }

    fn on_enqueue_many(&mut self, first: &Arrival, most: u64) -> u64 {
        if self.overloaded {
            return 0;
        }
        let most = most.min(self.far.saturating_sub(first.ahead));
        self.asked = self.asked.saturating_add(most);
        self.asked_credits = self.asked_credits.saturating_add(most);
        self.found_idle |= first.queue_len == 0 && first.in_service < self.servlets;
        most
    }

    fn is_overdue(&self, departure: &Departure) -> bool {
        let came_ns = departure.now_ns.saturating_sub(departure.sojourn_ns);
        let sojourn_ns_max = if self.lowest > 0 && came_ns >= self.since_ns {
            self.sojourn_ns_max_since
        } else {
            self.sojourn_ns_max
        };
        self.overloaded && departure.sojourn_ns > sojourn_ns_max
    }

    #[inline]
    fn on_dequeue(&mut self, departure: &Departure) -> Verdict {
        let is_late = match &departure.key {
            Some(key) => self.is_late_in_key(departure, key),
            None => self.is_overdue(departure),
        };
        if is_late {
            Verdict::Shed
        } else {
            Verdict::Serve
        }
    }
}
