//! A limit on the events in a stage, based on the ratio of response times without a queue to
//! current ones.
//!
//! Source: Netflix's Gradient2 (`Gradient2Limit` in the library concurrency-limits). Let short be
//! the response time in the last interval, and let long be its long-term mean. Then gradient =
//! max(0.5, min(1, tolerance · long / short)), and the new limit is limit · gradient + allowance,
//! smoothed. As in the library, the limit does not change while less than half of it is used.
//!
//! This implementation differs in two points, because the library's limit is known to grow without
//! end in two cases:
//! - Under modest overload, the long-term mean adapts to the queueing delay. Every response then
//!   seems normal, and the limit grows. Here the mean only learns from intervals without rejections
//!   in which the limit was not reached. It is at least the mean service time, which includes no
//!   queueing.
//! - If a downstream service fails with a constant timeout (issue 137 of the library), all response
//!   times are equal. Here an interval with too many failed events reduces the limit, and the mean
//!   does not learn from it.
//!
//! Other differences exist because stages are smaller and faster than the clients for which the
//! library was made:
//! - The limit ranges from 4 to 1000 instead of from 20 to 200: two servlets have no use for 18
//!   waiting events.
//! - An interval is 10 ms and ten responses instead of 1 s and ten responses. Response times below
//!   100 µs count, too (the library's `WindowedLimit` ignores them).
//! - The long-term mean starts with the response time of the first interval, not with the mean of
//!   the first ten.

use crate::stage::control::{
    Admission, Arrival, Cadence, Controller, Owns, Rule, Sample, Settings,
};
use crate::stage::event::Class;

/// Parameters of [`Gradient`]; the defaults are those of the original library, except where this
/// module documents a difference.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct GradientConfig {
    /// The initial limit on the sum of queued credits and events in service.
    pub limit: f64,
    /// The lowest value of the limit; at least 1.
    pub limit_min: f64,
    /// Bound, in queued credits plus events in service: the highest value of the limit; at least
    /// `limit_min`.
    pub limit_max: f64,
    /// The time between two changes of the limit, in nanoseconds.
    pub interval_ns: u64,
    /// The factor by which response times may exceed the long-term mean before the limit shrinks;
    /// at least 1.
    pub tolerance: f64,
    /// The growth of the limit per interval while response times are normal; at least 1, because
    /// with a lower value, the limit could not grow.
    pub allowance: f64,
    /// The weight of the newly computed limit when it is averaged with the current one; above 0 and
    /// at most 1 (other values count as 0.2).
    pub smoothing: f64,
    /// The weight of the last interval's response time in the long-term mean; above 0 and at most 1
    /// (other values count as 2/601).
    pub weight: f64,
    /// The share of failed events at or above which an interval counts as failed; above 0 and at
    /// most 1 (other values count as 0.1).
    pub failed: f64,
    /// The factor by which the controller multiplies the limit after a failed interval; at least 0
    /// and below 1 (other values count as 0.9).
    pub backoff: f64,
}

impl Default for GradientConfig {
    fn default() -> Self {
        Self {
            limit: 20.0,
            limit_min: 4.0,
            limit_max: 1000.0,
            interval_ns: 10_000_000,
            tolerance: 1.5,
            allowance: 4.0,
            smoothing: 0.2,
            weight: 2.0 / 601.0,
            failed: 0.1,
            backoff: 0.9,
        }
    }
}

impl GradientConfig {
    fn in_range(mut self) -> Self {
        let default = GradientConfig::default();
        let share = |value: &mut f64, or: f64| {
            if !(*value > 0.0 && *value <= 1.0) {
                *value = or;
            }
        };
        share(&mut self.smoothing, default.smoothing);
        share(&mut self.weight, default.weight);
        share(&mut self.failed, default.failed);
        if !(0.0..1.0).contains(&self.backoff) {
            self.backoff = default.backoff;
        }
        // `f64::max` of a number and NaN is the number.
        self.limit_min = self.limit_min.max(1.0);
        self.limit_max = self.limit_max.max(self.limit_min);
        self.limit = self.limit.max(self.limit_min).min(self.limit_max);
        self.tolerance = self.tolerance.max(1.0);
        self.allowance = self.allowance.max(1.0);
        self
    }
}

/// A controller that limits the number of events in the stage, and rejects further events. The
/// limit follows the ratio of the long-term mean response time to the mean response time of the
/// last interval (the gradient).
#[derive(Debug)]
pub struct Gradient {
    config: GradientConfig,
    limit: f64,
    /// The integer part of the limit, which decides about arrivals.
    limit_now: u64,
    /// The largest number of events in the stage in this interval.
    used: u64,
    /// The mean response without a queue, in nanoseconds; 0 before the first sample.
    long_ns: f64,
}

impl Default for Gradient {
    fn default() -> Self {
        Self::new(GradientConfig::default())
    }
}

impl Gradient {
    /// Creates a controller, and corrects parameters that are out of range.
    #[must_use]
    pub fn new(config: GradientConfig) -> Self {
        let config = config.in_range();
        Self {
            config,
            limit: config.limit,
            limit_now: config.limit as u64,
            used: 0,
            long_ns: 0.0,
        }
    }

    /// Returns the current limit on the sum of queued credits and events in service.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.limit_now
    }

    fn learn(&mut self, sample: &Sample<'_>, short_ns: f64) {
        let free = sample.refused == 0 && self.used < self.limit_now;
        if self.long_ns == 0.0 {
            self.long_ns = short_ns;
        } else if free {
            self.long_ns += self.config.weight * (short_ns - self.long_ns);
        }
        if self.long_ns > 2.0 * short_ns {
            // As in the library, a mean that was learned in a bad period is forgotten faster than
            // it was learned.
            self.long_ns *= 0.95;
        }
        let service_ns = sample.service_ns as f64 / sample.finished.max(1) as f64;
        self.long_ns = self.long_ns.max(service_ns.min(short_ns));
        // The first response may contain a wait.
        if !free {
            self.long_ns = self.long_ns.min(short_ns);
        }
    }

    fn follow(&mut self, sample: &Sample<'_>, short_ns: f64) {
        let config = self.config;
        let ended = sample.finished.saturating_add(sample.failed);
        if sample.failed as f64 >= config.failed * ended as f64 && sample.failed > 0 {
            self.limit *= config.backoff;
            return;
        }
        self.learn(sample, short_ns);
        if (self.used as f64) < self.limit / 2.0 {
            return;
        }
        let gradient = (config.tolerance * self.long_ns / short_ns).clamp(0.5, 1.0);
        let wanted = self.limit * gradient + config.allowance;
        self.limit += config.smoothing * (wanted - self.limit);
    }
}

impl Controller for Gradient {
    fn name(&self) -> &'static str {
        "gradient"
    }

    fn owns(&self) -> Owns {
        Owns::ADMISSION
    }

    fn looks_at_departures(&self) -> bool {
        false
    }

    fn looks_at_responses(&self) -> bool {
        true
    }

    fn cadence(&self) -> Cadence {
        Cadence {
            interval_ns: self.config.interval_ns,
            arrived: 0,
            finished: 10,
        }
    }

    fn sample(&mut self, sample: &Sample<'_>, _now_ns: u64) -> Settings {
        let (mut finished, mut response_ns) = (0.0, 0.0);
        for class in sample.classes {
            finished += class.finished as f64;
            response_ns += class.finished as f64 * class.response_mean_ns as f64;
        }
        // If all events have failed, there are no responses.
        if finished > 0.0 || sample.failed > 0 {
            self.follow(sample, (response_ns / finished.max(1.0)).max(1.0));
            self.limit = self
                .limit
                .clamp(self.config.limit_min, self.config.limit_max);
            self.limit_now = self.limit as u64;
        }
        self.used = sample.queue_len.saturating_add(sample.in_service);
        Settings::default()
    }

    fn rule(&self, _class: Class) -> Rule {
        Rule::Below(self.limit_now)
    }

    fn on_enqueue(&mut self, arrival: &Arrival) -> Admission {
        let inside = arrival.queue_len.saturating_add(arrival.in_service);
        self.used = self.used.max(inside);
        if inside < self.limit_now {
            Admission::Admit
        } else {
            Admission::Reject
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::control::ClassSample;
    use crate::stage::control::testing::{MS, SECOND, arrival, quiet};
    use crate::stage::sim::{Arrivals, Distribution, EventEnd, Service, Simulation};

    #[test]
    fn the_long_term_mean_weighs_an_interval_as_the_library_does() {
        // `ExpAvgMeasurement` with a window of n has a weight of 2 / (n + 1), and n is 600.
        assert_eq!(GradientConfig::default().weight, 2.0 / 601.0);
    }

    /// Two servlets that handle 20,000 events per second, until the factor of the service times
    /// changes. Returns the most events queued and in service from `from_ns` on, and the answers
    /// in the last second.
    fn run(
        rates: &[(u64, f64)],
        factors: &[(u64, f64)],
        from_ns: u64,
        until_ns: u64,
    ) -> (u64, u64) {
        let service = |ns| Service::computing(Distribution::Exponential(ns));
        let factors = factors.iter();
        let stage = Simulation {
            until_ns,
            servlets_max: 2,
            batch_max: 1,
            queue_max: 1_000_000,
            services: factors.map(|it| (it.0, service(it.1 * 1e5))).collect(),
            arrivals: Arrivals::steps(rates),
            ..Simulation::default()
        };
        let mut served = 0;
        let ticks = stage.run(vec![Box::new(Gradient::default())], 1, |outcome| {
            let counts = outcome.end == EventEnd::Served && outcome.ended_ns + SECOND >= until_ns;
            served += u64::from(counts);
        });
        let ticks = ticks.iter().filter(|tick| tick.at_ns >= from_ns);
        let inside = ticks.map(|tick| tick.queue_len + tick.busy as u64);
        (inside.max().expect("there are ticks"), served)
    }

    #[test]
    fn modest_overload_does_not_make_it_grow_without_end() {
        for load in [1.02, 1.1, 1.4] {
            let rates = [(0, 10_000.0), (SECOND, load * 20_000.0)];
            let (inside, served) = run(&rates, &[(0, 1.0)], SECOND, 8 * SECOND);
            assert!(inside < 40, "{load}: {inside}");
            assert!(served > 18_000, "{load}: {served} in a second");
        }
    }

    #[test]
    fn overload_from_the_first_event_on_does_not_make_it_grow_without_end() {
        let (inside, _) = run(&[(0, 28_000.0)], &[(0, 1.0)], 0, 8 * SECOND);
        assert!(inside < 40, "{inside}");
    }

    #[test]
    fn constant_timeouts_make_it_shrink() {
        let mut gradient = Gradient::default();
        for _ in 0..100 {
            gradient.on_enqueue(&arrival(0, 0, 1000));
            let sample = Sample {
                failed: 20,
                classes: &[ClassSample::default()],
                ..quiet()
            };
            gradient.sample(&sample, 0);
        }
        assert_eq!(gradient.limit(), 4);
        assert_eq!(gradient.long_ns, 0.0);
    }

    #[test]
    fn a_limit_that_is_not_used_stays() {
        let mut gradient = Gradient::default();
        let classes = [ClassSample {
            finished: 20,
            response_mean_ns: MS,
            ..ClassSample::default()
        }];
        for _ in 0..1000 {
            gradient.on_enqueue(&arrival(0, 4, 5));
            let sample = Sample {
                finished: 20,
                service_ns: 20 * MS,
                classes: &classes,
                ..quiet()
            };
            gradient.sample(&sample, 0);
        }
        assert_eq!(gradient.limit(), 20);
    }

    #[test]
    fn the_limit_counts_what_is_queued_and_what_is_in_service() {
        let mut gradient = Gradient::default();
        assert_eq!(gradient.on_enqueue(&arrival(0, 10, 9)), Admission::Admit);
        assert_eq!(gradient.on_enqueue(&arrival(0, 10, 10)), Admission::Reject);
    }

    #[test]
    fn the_limit_follows_a_slower_service() {
        let factors = [(0, 1.0), (SECOND, 5.0)];
        let (inside, served) = run(&[(0, 10_000.0)], &factors, 6 * SECOND, 7 * SECOND);
        assert!(served > 3_600, "{served} in a second");
        assert!(inside < 40, "{inside}");
    }

    #[test]
    fn parameters_are_brought_into_their_range() {
        let config = GradientConfig {
            limit: f64::NAN,
            limit_min: -1.0,
            limit_max: 0.0,
            interval_ns: 0,
            tolerance: 0.0,
            allowance: f64::NAN,
            smoothing: 0.0,
            weight: 7.0,
            failed: 0.0,
            backoff: 1.0,
        };
        let expected = GradientConfig {
            limit: 1.0,
            limit_min: 1.0,
            limit_max: 1.0,
            interval_ns: 0,
            tolerance: 1.0,
            allowance: 1.0,
            ..GradientConfig::default()
        };
        assert_eq!(config.in_range(), expected);
    }
}
