//! The admission of a stage with a latency target: in overload, who would wait too long is not let in.
//!
//! Two states. In the *normal* one everybody is let in up to a queue of some targets, and nobody is shed, since most queues go away by
//! themselves: a load of 80 % has some of 60 events by chance alone, and a burst has them. In *overload* an event is let in while
//! the wait that it would meet (what is queued and in service, over the capacity) is within a budget, and an event
//! that has waited beyond the target's reach is shed, so that a standing queue is gone at once. Of a class that is below others, less is let in, as
//! who comes later of those goes first (Cobham, "Priority assignment in waiting line problems", 1954). Which state it is, a burst of more than some targets tells at once, else the load: a sequential test of the arrivals against the capacity, so that a load that is there to stay is found after as
//! many services as it takes to be sure; one of whether the queue stands, since in a closed loop, where clients send again when they are answered, no more
//! arrives than is done, and waits are long all the same; and one of what gets done against the capacity, so that a stage that has become slower is found as soon.
//! Who was turned away comes again, perhaps all at once; so for some time after an overload less evidence will do for another one.
//!
//! The idea that the length of a queue, over the rate at which it drains, predicts a wait is Little's law; that a queue that stays is bad and
//! one that goes is good is Nichols and Jacobson's ("Controlling queue delay", ACM Queue 2012), who however take longer than an
//! interval of 100 ms for a stay, where this asks for evidence.

mod capacity;
mod load;
#[cfg(test)]
mod tests;

use std::time::Duration;

use self::capacity::Capacity;
use self::load::Load;
use super::{
    Admission, Arrival, Cadence, Controller, Departure, Owns, Rule, Sample, Settings, Verdict,
};
use crate::stage::event::{CLASSES_MAX, Class};

/// The share of the target that a wait may take in overload, if services are short. The rest is for the service, and for waits that come out
/// longer than predicted: of a hundred exponential services, one takes five times the mean.
const WAIT_SHARE_MAX: f64 = 0.27;

/// The share of the target that a wait may take even if services take most of the target; with less, servers would be idle in overload.
const WAIT_SHARE_MIN: f64 = 0.2;

/// So many events may wait in overload even if that takes a larger share of the target, but not more than this: where few wait, a servlet that
/// has worked off two of them soon has none, and a stage of one servlet would be idle in one part of ten.
const WAITING_MIN: f64 = 4.0;
const WAIT_SHARE_FEW: f64 = 0.4;

/// How many mean services are left of the target for the service itself: one exponential service in a thousand takes longer.
const SERVICES_LEFT: f64 = 7.0;

/// How many standard deviations beyond the budget of a wait an event may have been queued in overload and still be served, if what was to be served in that time
/// was exponential.
const OVERDUE: f64 = 1.4;

/// If all servlets are without work for so large a part of the time in overload, a wait may take up to this share of the target.
const IDLE: f64 = 0.1;
const WAIT_SHARE_CLUMPS: f64 = 0.9;

/// How many mean services are left of the target when an event is shed where there are classes. It may have been passed over by
/// those above it, and who would take its place comes later still: one exponential service in thirty takes longer.
const SERVICES_LEFT_CLASSES: f64 = 3.5;

/// Bound, in events: how many places each worker's senders may have asked for ahead of time, which count as queued.
const RESERVED_MAX: f64 = 128.0;

/// Bound, in events: the window in which is seen how much of the capacity a class takes.
const TAKEN_WINDOW: f64 = 64.0;

/// Bound, in nanoseconds: the shortest time between two samples; the controller's own cost stays below one in a hundred.
const SLOT_NS_MIN: u64 = 50_000;

/// Bound, in nanoseconds: the longest time between two samples of a stage in which something happens; a person does not notice it.
const SLOT_NS_MAX: u64 = 10_000_000;

/// Rejects and sheds in overload what could not be served within a latency target.
///
/// The only parameter is the target: of what is let in, nine in ten are to be answered within it, from their arrival in the queue to the end of
/// their batch. It should be ten mean service times or more: below eight, the service alone takes what is left for luck.
///
/// In overload, each class is judged by what is ahead of it, which is its own events and those of the classes above; so lower classes are
/// rejected first.
#[derive(Debug)]
pub struct Predict {
    target_ns: u64,
    slot_ns: u64,

    /// Events asked for since the last sample, and their credits.
    asked: u64,
    asked_credits: u64,
    /// Whether one of them found a servlet without work.
    found_idle: bool,

    /// What decides about events, set by each sample.
    overloaded: bool,
    /// Credits ahead at which nobody is let in even if the stage is not overloaded: it will be by the next sample.
    far: u64,
    servlets: u64,
    /// Credits ahead in the queue and in service at which each class is not let in, and the part of the capacity that it has had.
    room: [u64; CLASSES_MAX],
    taken: [f64; CLASSES_MAX],
    sojourn_ns_max: u64,
    /// The same for what was let in since then, where there are classes.
    since_ns: u64,
    sojourn_ns_max_since: u64,
    /// The lowest class.
    lowest: u8,
    /// Credits that an event costs on average, times 256.
    cost_256: u64,

    capacity: Capacity,
    load: Load,
    /// Events in the queue at the last sample.
    queued: f64,
    /// What the budget of a wait is multiplied with; less than 1 while responses come out longer than predicted.
    correction: f64,
    response_mean_ns: f64,
    /// The part of the time in which there was nothing to do, in overload.
    idle: f64,
}

impl Predict {
    /// An admission for this target; a target below a microsecond counts as one.
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
            sojourn_ns_max: u64::MAX,
            since_ns: 0,
            sojourn_ns_max_since: u64::MAX,
            lowest: 0,
            cost_256: 256,
            capacity: Capacity::default(),
            load: Load::default(),
            queued: 0.0,
            correction: 1.0,
            response_mean_ns: 0.0,
            idle: 0.0,
        }
    }

    /// The target, in nanoseconds.
    #[must_use]
    pub fn target_ns(&self) -> u64 {
        self.target_ns
    }

    /// Whether it takes the stage to be overloaded.
    #[must_use]
    pub fn overloaded(&self) -> bool {
        self.overloaded
    }

    /// What it takes the stage to be able to do, in events a second; 0 before enough were done.
    #[must_use]
    pub fn capacity_per_second(&self) -> f64 {
        self.capacity.per_ns().unwrap_or(0.0) * 1e9
    }

    /// How long an event may wait in overload, in nanoseconds.
    fn wait_budget_ns(&self, per_ns: f64) -> f64 {
        let target_ns = self.target_ns as f64;
        let left_ns = target_ns - SERVICES_LEFT * self.capacity.service_ns();
        let budget_ns = left_ns.clamp(WAIT_SHARE_MIN * target_ns, WAIT_SHARE_MAX * target_ns);
        let few_ns = (WAITING_MIN / per_ns).min(WAIT_SHARE_FEW * target_ns);
        (budget_ns.max(few_ns) * self.correction).min(WAIT_SHARE_CLUMPS * target_ns)
    }

    /// Learns from responses that come out longer than predicted, such as on a worker that others load. Half the target on average leaves nine in ten within it
    /// even if responses were as spread as exponential times are (2.3 times the mean).
    fn correct(&mut self, sample: &Sample<'_>) {
        for class in sample.classes {
            if class.finished > 0 {
                let weight = (class.finished as f64 / 64.0).min(0.5);
                let more_ns = class.response_mean_ns as f64 - self.response_mean_ns;
                self.response_mean_ns += weight * more_ns;
            }
        }
        if !self.overloaded {
            return;
        }
        let step = (sample.interval_ns as f64 / self.target_ns as f64).min(1.0) / 32.0;
        let mean = self.response_mean_ns / self.target_ns as f64;
        // Where all servlets are without work for long although there is more than they can do, arrivals come in clumps, and what waits until then
        // may wait longer.
        let idle_ns = sample.interval_ns.saturating_sub(sample.busy_ns) as f64;
        self.idle += (idle_ns / sample.interval_ns.max(1) as f64 - self.idle) * step;
        if mean > 0.5 || self.correction > 1.0 && self.idle < IDLE / 2.0 {
            self.correction *= 1.0 - step;
        } else if self.correction < 1.0 {
            self.correction = (self.correction * (1.0 + step)).min(1.0);
        } else if self.idle > IDLE {
            self.correction *= 1.0 + 4.0 * step;
        }
        let most = WAIT_SHARE_CLUMPS / WAIT_SHARE_MAX;
        self.correction = self.correction.clamp(0.25, most);
    }

    /// What so many events cost.
    fn credits(&self, events: f64) -> u64 {
        let credits = (events * self.cost_256 as f64 / 256.0).round();
        (credits as u64).min(u64::MAX >> 1)
    }

    /// Learns how much of the capacity each class takes.
    fn share(&mut self, sample: &Sample<'_>, per_ns: f64) {
        let able = per_ns * sample.interval_ns as f64;
        let weight = able / (able + TAKEN_WINDOW);
        for (taken, class) in self.taken.iter_mut().zip(sample.classes) {
            let let_in = class.arrived.saturating_sub(class.refused) as f64;
            *taken += weight * (let_in / able.max(f64::MIN_POSITIVE) - *taken);
        }
    }

    /// Sets how much room there is in overload.
    fn allot(&mut self, per_ns: f64) {
        let budget_ns = self.wait_budget_ns(per_ns);
        let lowest = usize::from(self.lowest);
        let mut above = 0.0_f64;
        for class in 0..=lowest {
            // What comes meanwhile of the classes above goes before it.
            let mut wait_ns = budget_ns * (1.0 - above).max(0.0);
            if class < lowest {
                // Servers that are kept at work by what is below find their queue full more often than it would be if this were alone.
                wait_ns *= 2.0;
            }
            // As many as can be served at the same time wait for nobody.
            let events = per_ns * (wait_ns + self.capacity.service_ns_free());
            self.room[class] = self.credits(events).max(self.servlets).max(1);
            above += self.taken[class];
        }
        // Of few services ahead, the sum is less sure than of many.
        let spread = OVERDUE / (per_ns * budget_ns).max(0.25).sqrt();
        self.sojourn_ns_max = (budget_ns * (1.0 + spread)) as u64;
        let left_ns = self.target_ns as f64 - SERVICES_LEFT_CLASSES * self.capacity.service_ns();
        self.sojourn_ns_max_since = self.sojourn_ns_max.max(left_ns as u64);
    }
}

/// Events in the queue, without places that senders have only asked for.
fn waiting(sample: &Sample<'_>) -> f64 {
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
        self.overloaded
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
        let queued = sample.queue_len as f64 * 256.0 / self.cost_256.max(1) as f64;
        let idle = self.found_idle || sample.busy_ns < sample.interval_ns;
        // A queue that could not have been emptied in the interval says so without looking at what happened in it, and so without a bias;
        // in overload no queue is that long, and hardly an interval is not full.
        let drained_ns = self.capacity.per_ns().unwrap_or(0.0) * sample.interval_ns as f64;
        let backlogged = self.queued > 3.0 * drained_ns + 4.0
            || self.overloaded && !idle && sample.queue_len > 0;
        let batch_ns = WAIT_SHARE_MAX * self.target_ns as f64;
        self.capacity.observe(sample, backlogged, batch_ns);
        let full = !idle && self.queued > 0.0 && sample.queue_len > 0;
        self.capacity.watch(sample, full);
        self.servlets = sample.servlets.target as u64;
        self.lowest = sample.classes.len().clamp(1, CLASSES_MAX) as u8 - 1;
        self.correct(sample);
        if let Some(per_ns) = self.capacity.per_ns() {
            let wait_ns = queued / per_ns;
            let target_ns = self.target_ns as f64;
            let taken = sample.admitted as f64 - sample.shed as f64 - (queued - self.queued);
            self.load
                .observe(sample, &self.capacity, idle, taken.max(0.0));
            let far = self.load.far(&self.capacity, target_ns);
            self.far = self.credits(far + RESERVED_MAX * sample.workers as f64);
            let was = self.overloaded;
            self.overloaded = if was {
                !self.load.fallen(sample, target_ns)
            } else {
                self.load.risen(queued, wait_ns, sample, target_ns) || waiting(sample) > far
            };
            if was != self.overloaded {
                self.load.turned();
                self.since_ns = now_ns;
                (self.correction, self.response_mean_ns, self.idle) = (1.0, 0.0, 0.0);
            }
            self.share(sample, per_ns);
            self.allot(per_ns);
        }
        self.queued = queued;
        (self.asked, self.asked_credits, self.found_idle) = (0, 0, false);
        Settings::default()
    }

    fn rule(&self, _class: Class) -> Rule {
        if self.overloaded {
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
        self.found_idle |= arrival.queue_len == 0 && arrival.in_service < self.servlets;
        if !self.overloaded {
            return if arrival.ahead < self.far {
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
        if self.is_overdue(departure) {
            Verdict::Shed
        } else {
            Verdict::Serve
        }
    }
}
