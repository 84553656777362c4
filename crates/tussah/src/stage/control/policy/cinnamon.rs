//! Cinnamon: a PID controller determines the share of requests to reject, and priorities select
//! them.
//!
//! Sources: Uber Engineering, "Cinnamon: Using Century Old Tech to Build a Mean Load Shedder"
//! (November 2023) and "PID Controller for Cinnamon" (November 2023). In every interval, the error
//! is `(in - (out + free)) / out`, where `in` requests entered the queue, `out` requests left it
//! for service, and `free` more requests could have been in service. A PID controller computes the
//! share to reject from the error.
//!
//! A request has one of six tiers and one of 128 cohorts; a user always has the same cohort. Tier
//! and cohort together are the priority. The controller rejects the lowest priorities, up to the
//! share to reject. Lower tiers are therefore rejected first. Within a tier, some users are
//! rejected completely, instead of all users partially. A request that has waited in the queue for
//! too long is dropped.
//!
//! This implementation differs in these points:
//! - The error is divided by the number of offered events if that exceeds `out`. Otherwise the gain
//!   of the loop would grow with the overload.
//! - `free` is the number of events that idle servlets could have handled in the interval. If
//!   service times are short, the number of idle servlets at the end of the interval says little.
//! - If the queue is empty, nothing kept events from leaving it, so the error is at most 0.
//! - The tiers are the classes of the stage.
//! - The gains and the interval are our own, chosen for this error. The similar implementation in
//!   failsafe-go initially used gains of 0.1 and 0.14.
//! - The priority distribution covers the last 500 to 1000 arrivals; in the original, it covers the
//!   last 1000.

use std::time::Duration;

use crate::stage::control::{
    Admission, Arrival, Cadence, Controller, Departure, Owns, Rule, Sample, Settings, Verdict,
};
use crate::stage::event::{CLASSES_MAX, Class};

/// Bound, in cohorts per class: the fixed number of cohorts, as in the original Cinnamon. A cohort
/// is the smallest part of a class that can be rejected.
pub const COHORTS: usize = 128;

/// The length of the window of the distribution of priorities, in arrivals. The counts cover
/// between half a window and a whole one.
const WINDOW: u32 = 1000;

/// Parameters of [`Cinnamon`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CinnamonConfig {
    /// The time between two changes of the share of events to reject, in nanoseconds.
    pub interval_ns: u64,
    /// The maximum time that an event may spend in the queue, in nanoseconds.
    pub queued_ns_max: u64,
    /// The proportional gain: the coefficient of the error; 0 or more (other values count as 0.1).
    pub proportional: f64,
    /// The integral gain: the coefficient of the sum of all errors; 0 or more (other values count
    /// as 0.2).
    pub integral: f64,
    /// The derivative gain: the coefficient of the change of the error; 0 or more (other values
    /// count as 0).
    pub differential: f64,
    /// The maximum share of events to reject; from 0 to 1 (other values count as 0.99). With a
    /// value below 1, some events are still admitted, so the controller notices the end of an
    /// overload.
    pub reject_max: f64,
}

impl CinnamonConfig {
    /// Creates parameters with the given maximum time in the queue, and with defaults for the other
    /// parameters.
    #[must_use]
    pub fn new(queued_max: Duration) -> Self {
        Self {
            interval_ns: 10_000_000,
            queued_ns_max: u64::try_from(queued_max.as_nanos()).unwrap_or(u64::MAX),
            proportional: 0.1,
            integral: 0.2,
            differential: 0.0,
            reject_max: 0.99,
        }
    }

    fn in_range(mut self) -> Self {
        let gain = |value: f64, or: f64| {
            let good = value >= 0.0 && value.is_finite();
            if good { value } else { or }
        };
        self.proportional = gain(self.proportional, 0.1);
        self.integral = gain(self.integral, 0.2);
        self.differential = gain(self.differential, 0.0);
        if !(0.0..=1.0).contains(&self.reject_max) {
            self.reject_max = 0.99;
        }
        self
    }
}

/// A controller that rejects the events with the lowest priorities. A PID controller determines the
/// share of events to reject.
#[derive(Debug)]
pub struct Cinnamon {
    config: CinnamonConfig,
    sum: f64,
    error: f64,
    share: f64,
    /// The highest priority that is rejected. A priority is a class times [`COHORTS`] plus a
    /// cohort; a higher number is a lower priority.
    rejected_from: usize,
    /// Recent arrivals by priority.
    arrivals: Box<[u32; CLASSES_MAX * COHORTS]>,
    arrived: u32,
}

impl Cinnamon {
    /// Creates a controller, and corrects parameters that are out of range.
    #[must_use]
    pub fn new(config: CinnamonConfig) -> Self {
        Self {
            config: config.in_range(),
            sum: 0.0,
            error: 0.0,
            share: 0.0,
            rejected_from: CLASSES_MAX * COHORTS,
            arrivals: Box::new([0; CLASSES_MAX * COHORTS]),
            arrived: 0,
        }
    }

    /// Returns the share of arrivals to reject, from 0 to 1.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.share
    }

    fn control(&mut self, sample: &Sample<'_>) {
        let config = self.config;
        let entered = sample.admitted as f64;
        let left = sample.finished as f64;
        let free = sample.servlets.target.saturating_sub(sample.servlets.busy) as f64;
        let service_ns = sample.service_ns as f64;
        let idle_ns = sample.servlets.target as f64 * sample.interval_ns as f64 - service_ns;
        let free = if service_ns > 0.0 {
            free.max(left * idle_ns / service_ns)
        } else {
            free
        };
        let mut error = (entered - (left + free)) / left.max(sample.arrived as f64).max(1.0);
        if sample.queue_len == 0 {
            error = error.min(0.0);
        }
        let change = error - self.error;
        self.error = error;
        // The sum stays in the range that the share can follow.
        self.sum = (self.sum + config.integral * error).clamp(0.0, config.reject_max);
        let share = self.sum + config.proportional * error + config.differential * change;
        self.share = share.clamp(0.0, config.reject_max);
    }

    fn cut(&mut self) {
        let mut rejected = f64::from(self.arrived) * self.share;
        self.rejected_from = self.arrivals.len();
        for (priority, arrivals) in self.arrivals.iter().enumerate().rev() {
            // A cohort that exceeds the share is admitted: a share smaller than a cohort rejects
            // nobody.
            rejected -= f64::from(*arrivals);
            if rejected < 0.0 {
                break;
            }
            self.rejected_from = priority;
        }
        if self.share == 0.0 {
            self.rejected_from = self.arrivals.len();
        }
    }
}

impl Controller for Cinnamon {
    fn name(&self) -> &'static str {
        "cinnamon"
    }

    fn owns(&self) -> Owns {
        Owns::ADMISSION
    }

    fn cadence(&self) -> Cadence {
        Cadence::every_ns(self.config.interval_ns)
    }

    fn sample(&mut self, sample: &Sample<'_>, _now_ns: u64) -> Settings {
        self.control(sample);
        self.cut();
        Settings::default()
    }

    fn rule(&self, class: Class) -> Rule {
        let behind = (usize::from(class.0) + 1) * COHORTS;
        let rejected = behind.saturating_sub(self.rejected_from).min(COHORTS);
        match rejected * 1000 / COHORTS {
            0 => Rule::All,
            permille => Rule::AllBut(permille as u16),
        }
    }

    fn on_enqueue(&mut self, arrival: &Arrival) -> Admission {
        let class = arrival.class.among(CLASSES_MAX);
        let priority = class * COHORTS + usize::from(arrival.cohort) % COHORTS;
        self.arrivals[priority] += 1;
        self.arrived += 1;
        if self.arrived > WINDOW {
            self.arrived = 0;
            for arrivals in self.arrivals.iter_mut() {
                *arrivals /= 2;
                self.arrived += *arrivals;
            }
        }
        if priority >= self.rejected_from {
            Admission::Reject
        } else {
            Admission::Admit
        }
    }

    fn on_dequeue(&mut self, departure: &Departure) -> Verdict {
        if departure.sojourn_ns > self.config.queued_ns_max {
            Verdict::Shed
        } else {
            Verdict::Serve
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::control::Servlets;
    use crate::stage::control::testing::{MS, SECOND, arrival, quiet};
    use crate::stage::sim::{
        Arrivals, Distribution, EventEnd, Outcome, Random, Service, Simulation,
    };

    fn cinnamon() -> Cinnamon {
        Cinnamon::new(CinnamonConfig::new(Duration::from_millis(5)))
    }

    fn show(cinnamon: &mut Cinnamon, arrived: u64, admitted: u64, finished: u64, busy: usize) {
        let sample = Sample {
            arrived,
            admitted,
            finished,
            queue_len: 1,
            servlets: Servlets {
                busy,
                target: 10,
                ..Servlets::default()
            },
            ..quiet()
        };
        cinnamon.sample(&sample, 0);
    }

    #[test]
    fn the_error_is_what_enters_but_cannot_leave() {
        let check = |arrived, admitted, finished, busy, expected: f64| {
            let mut c = cinnamon();
            show(&mut c, arrived, admitted, finished, busy);
            assert!((c.error - expected).abs() < 1e-9, "{}", c.error);
        };
        check(100, 100, 100, 10, 0.0);
        check(140, 140, 100, 10, 40.0 / 140.0);
        check(140, 140, 100, 0, 30.0 / 140.0);
        check(1000, 100, 100, 10, 0.0);
        check(50, 50, 50, 5, -0.1);
        check(0, 0, 0, 10, 0.0);
    }

    #[test]
    fn all_three_parts_count_and_the_sum_does_not_wind_up() {
        let mut c = Cinnamon::new(CinnamonConfig {
            differential: 0.05,
            ..CinnamonConfig::new(Duration::ZERO)
        });
        show(&mut c, 200, 200, 100, 10);
        assert!((c.share() - (0.2 + 0.1 + 0.05) * 0.5).abs() < 1e-9);
        show(&mut c, 200, 200, 100, 10);
        assert!((c.share() - (0.4 + 0.1) * 0.5).abs() < 1e-9);
        for _ in 0..1000 {
            show(&mut c, 200, 200, 100, 10);
        }
        assert_eq!(c.share(), 0.99);
        // Within ten quiet intervals it admits all events again.
        for _ in 0..10 {
            show(&mut c, 1, 1, 1, 0);
        }
        assert_eq!(c.share(), 0.0);
    }

    #[test]
    fn the_share_is_cut_off_the_lowest_priorities() {
        let mut c = cinnamon();
        let mut random = Random::new(1);
        let ask = |c: &mut Cinnamon, class, cohort| {
            let mut arrival = arrival(class, 0, 0);
            arrival.cohort = cohort;
            c.on_enqueue(&arrival)
        };
        for i in 0..10_000 {
            ask(&mut c, (i % 4) as u8, random.next() as u16);
        }
        c.share = 0.4;
        c.cut();
        for cohort in [0, 127, 65_535] {
            assert_eq!(ask(&mut c, 3, cohort), Admission::Reject);
            assert_eq!(ask(&mut c, 1, cohort), Admission::Admit);
        }
        // Of class 2, always the same six of ten cohorts are rejected.
        let rejected = |c: &mut Cinnamon, cohort| ask(c, 2, cohort) == Admission::Reject;
        let count = (0..128).filter(|cohort| rejected(&mut c, *cohort)).count();
        assert!((60..=90).contains(&count), "{count}");
        assert!(!rejected(&mut c, 0) && rejected(&mut c, 127) && rejected(&mut c, 255));
    }

    /// Runs two servlets that handle 20,000 events per second, in six classes, for 1 s.
    fn outcomes(load: f64) -> Vec<Outcome> {
        let stage = Simulation {
            until_ns: SECOND,
            servlets_max: 2,
            batch_max: 1,
            queue_max: 1_000_000,
            services: vec![(0, Service::computing(Distribution::Exponential(100_000.0)))],
            arrivals: Arrivals {
                classes: vec![1.0; 6],
                users: u16::MAX,
                cohorts: true,
                ..Arrivals::steps(&[(0, load * 20_000.0)])
            },
            ..Simulation::default()
        };
        let mut outcomes = Vec::new();
        stage.run(vec![Box::new(cinnamon())], 1, |outcome| {
            outcomes.push(*outcome)
        });
        outcomes
    }

    #[test]
    fn nothing_is_rejected_without_overload() {
        let outcomes = outcomes(0.5);
        let rejected = outcomes.iter().filter(|it| it.end == EventEnd::Rejected);
        let rejected = rejected.count();
        assert!(rejected * 1000 < outcomes.len(), "{rejected}");
    }

    #[test]
    fn in_overload_the_admitted_load_equals_the_capacity() {
        for load in [1.4, 4.0, 10.0] {
            let mut outcomes = outcomes(load);
            outcomes.retain(|it| it.ended_ns >= SECOND / 2);
            let count = |end| outcomes.iter().filter(|it| it.end == end).count();
            let (served, shed) = (count(EventEnd::Served), count(EventEnd::Shed));
            assert!(
                served > 9_000 && shed < 1_500,
                "{load}: {served} served, {shed} shed"
            );
            let is_highest = |it: &&Outcome| it.end == EventEnd::Served && it.class == Class(0);
            let highest = outcomes.iter().filter(is_highest).count();
            assert!(highest * 6 > served, "{load}");
        }
    }

    #[test]
    fn events_that_waited_too_long_are_shed() {
        let mut c = cinnamon();
        let mut leave = |sojourn_ns| {
            c.on_dequeue(&Departure {
                class: Class(0),
                sojourn_ns,
                queue_len: 0,
                key: None,
                now_ns: 0,
            })
        };
        assert_eq!(leave(5 * MS), Verdict::Serve);
        assert_eq!(leave(5 * MS + 1), Verdict::Shed);
    }

    #[test]
    fn parameters_are_brought_into_their_range() {
        let config = CinnamonConfig {
            proportional: -1.0,
            integral: f64::NAN,
            differential: f64::INFINITY,
            reject_max: 1.1,
            ..CinnamonConfig::new(Duration::ZERO)
        };
        assert_eq!(config.in_range(), CinnamonConfig::new(Duration::ZERO));
    }
}
