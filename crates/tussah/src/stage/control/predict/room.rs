//! The room of each class in overload: the wait budget, its correction, and its distribution among
//! classes.

use super::Predict;
use crate::stage::control::Sample;

/// The share of the target that a wait may take in overload, if services are short. The rest is for
/// the service itself and for waits that turn out longer than predicted: one in a hundred
/// exponential services takes five times the mean.
pub(super) const WAIT_SHARE_MAX: f64 = 0.27;

/// The share of the target that a wait may take even if services take most of the target. With a
/// smaller share, servers would be idle in overload.
const WAIT_SHARE_MIN: f64 = 0.2;

/// The number of events that may wait in overload even if their wait exceeds the usual share of the
/// target; the wait may then take up to [`WAIT_SHARE_FEW`] of the target. With fewer events, a
/// servlet that has finished two of them would soon have none, and a stage of one servlet would be
/// idle for a tenth of the time.
const WAITING_MIN: f64 = 4.0;
const WAIT_SHARE_FEW: f64 = 0.4;

/// The part of the target that is left for the service itself, in mean services: one exponential
/// service in a thousand takes longer.
const SERVICES_LEFT: f64 = 7.0;

/// The number of standard deviations by which the time in the queue may exceed the budget in
/// overload, if the event is still to be served. Services are assumed to be exponential.
const OVERDUE: f64 = 1.4;

/// The share of idle time of all servlets in overload at which a wait may take a larger share of
/// the target, and that larger share.
const IDLE: f64 = 0.1;
const WAIT_SHARE_CLUMPS: f64 = 0.9;

/// The part of the target that is left when an event is shed in a stage with classes, in mean
/// services. Higher classes may have passed it over, and the event that would take its place
/// arrives even later: one exponential service in thirty takes longer.
const SERVICES_LEFT_CLASSES: f64 = 3.5;

/// The length of the window for the share of the capacity that a class takes, in events.
const TAKEN_WINDOW: f64 = 64.0;

impl Predict {
    /// Returns how long an event may wait in overload for servlets that serve events at a rate and
    /// each take `service_ns`, in nanoseconds.
    pub(super) fn wait_budget_ns(&self, per_ns: f64, service_ns: f64) -> f64 {
        let target_ns = self.target_ns as f64;
        let left_ns = target_ns - SERVICES_LEFT * service_ns;
        let budget_ns = left_ns.clamp(WAIT_SHARE_MIN * target_ns, WAIT_SHARE_MAX * target_ns);
        let few_ns = (WAITING_MIN / per_ns).min(WAIT_SHARE_FEW * target_ns);
        (budget_ns.max(few_ns) * self.correction).min(WAIT_SHARE_CLUMPS * target_ns)
    }

    /// Learns from responses that take longer than predicted, for example on a worker with other
    /// load. If the mean is half of the target, 90 % of responses are within the target even if
    /// they vary as much as exponential times (2.3 times the mean).
    pub(super) fn correct(&mut self, sample: &Sample<'_>) {
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
        // If all servlets are idle for long in spite of an overload, arrivals come in clumps. Then
        // queued events may wait longer.
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

    /// Returns the cost of this many events.
    pub(super) fn credits(&self, events: f64) -> u64 {
        let credits = (events * self.cost_256 as f64 / 256.0).round();
        (credits as u64).min(u64::MAX >> 1)
    }

    /// Learns the share of the capacity that each class takes.
    pub(super) fn share(&mut self, sample: &Sample<'_>, per_ns: f64) {
        let able = per_ns * sample.interval_ns as f64;
        let weight = able / (able + TAKEN_WINDOW);
        let able = able.max(f64::MIN_POSITIVE);
        let means = self.taken.iter_mut().zip(&mut self.wanted);
        for ((taken, wanted), class) in means.zip(sample.classes) {
            let let_in = class.arrived.saturating_sub(class.refused) as f64;
            *taken += weight * (let_in / able - *taken);
            *wanted += weight * (class.arrived as f64 / able - *wanted);
        }
    }

    /// Sets the room of each class in overload.
    pub(super) fn allot(&mut self, sample: &Sample<'_>, per_ns: f64) {
        let budget_ns = self.wait_budget_ns(per_ns, self.capacity.service_ns());
        let lowest = usize::from(self.lowest);
        let shares: f64 = sample
            .classes
            .iter()
            .map(|class| f64::from(class.share))
            .sum();
        // Trials of another controller need events for all its servlets.
        let at_once = match self.limit {
            Some(_) => self.servlets,
            None => self.servlets.min(self.capacity.busy()),
        };
        let mut above = 0.0_f64;
        for class in 0..=lowest {
            let mut wait_ns = budget_ns;
            let goes_first = if shares > 0.0 {
                let share = sample.classes.get(class).map_or(0, |class| class.share);
                self.wanted[class] * shares < f64::from(share)
            } else {
                // Events of higher classes that arrive in the meantime go first.
                wait_ns *= (1.0 - above).max(0.0);
                above += self.taken[class];
                class < lowest
            };
            if goes_first {
                // Servers that other classes keep busy find their queue full more often than if
                // this class were alone.
                wait_ns *= 2.0;
            }
            // The events that can be served at the same time do not wait for any other event.
            let events = per_ns * (wait_ns + self.capacity.service_ns_free());
            self.room[class] = self.credits(events).max(at_once).max(1);
        }
        // The sum of a few service times is less certain than that of many.
        let spread = OVERDUE / (per_ns * budget_ns).max(0.25).sqrt();
        self.sojourn_ns_max = (budget_ns * (1.0 + spread)) as u64;
        let left_ns = self.target_ns as f64 - SERVICES_LEFT_CLASSES * self.capacity.service_ns();
        self.sojourn_ns_max_since = self.sojourn_ns_max.max(left_ns as u64);
    }
}
