//! Aspen's rule for servlets: as many as the arrivals keep busy.
//!
//! Upadhyaya, Pai and Midkiff, "Expressing and Exploiting Concurrency in Networked Applications
//! with Aspen" (PPoPP 2007), §4, "Adaptive thread allocation". By Little's law, R S servlets are
//! busy, where R is the arrival rate and S is the service time of an event. The rule keeps the
//! number of servlets between
//!
//! - L = R S / (LOW ν_spawn) and
//! - U = R S HIGH ν_kill.
//!
//! The viscosities slow down changes while the number of servlets in the process differs from its
//! average. With Δ = |servlets - average| and ρ = sgn(servlets - average), ν_spawn = e^(Δ^ρ) and
//! ν_kill = e^(Δ^-ρ).
//!
//! This implementation differs in four ways:
//!
//! - As printed, e^Δ overflows for a large Δ. As Δ approaches 0, e^(1/Δ) grows without bound, so a
//!   stage that needs servlets would never get one. Here exponents are at most 2, and if Δ is below
//!   half a servlet, both viscosities are 1.
//! - The arrival rate counts all offered events, admitted or not. Otherwise an admission controller
//!   could starve a stage that only needs more servlets.
//! - The paper does not specify the period of its average. Here the monitor moves the average by an
//!   eighth of the difference in each interval of 100 ms.
//! - In the paper, the monitor sets the viscosities. Here each decision computes them from the
//!   current number of servlets.

use std::collections::VecDeque;

use crate::stage::control::{Cadence, Controller, Owns, Sample, Settings};

/// The default of the largest exponent of a viscosity: the value of 1/Δ for the smallest Δ that
/// counts.
const EXPONENT_MAX: f64 = 2.0;

/// A difference of less than half a servlet from the average counts as none.
const DIFFERENCE_MIN: f64 = 0.5;

/// The maximum number of events over which the service time is averaged, as in the paper. Each
/// entry represents at least one event.
const ITEMS: u64 = 100;

/// Parameters of [`Aspen`]; the defaults are those of the paper. The *load* is the number of
/// servlets that the arrivals keep busy.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AspenConfig {
    /// LOW: the lower bound is the load divided by this number; positive (other values count as 1).
    /// With a number above 1, the lower bound covers only part of the load.
    pub low: f64,
    /// HIGH: the upper bound is the load multiplied by this number; at least `1 / low` (lower
    /// values are raised to it). A larger number keeps idle servlets longer.
    pub high: f64,
    /// k: the number of arrivals between two decisions; at least 1.
    pub arrivals: u64,
    /// The maximum exponent of the viscosities, which slow down changes; 0 or more (other values
    /// count as 2). With 0, the viscosities have no effect.
    pub exponent_max: f64,
}

impl Default for AspenConfig {
    fn default() -> Self {
        Self {
            low: 1.0,
            high: 20.0,
            arrivals: 10,
            exponent_max: EXPONENT_MAX,
        }
    }
}

/// A controller that keeps the number of servlets between two bounds. Both bounds depend on the
/// load, that is, on the number of servlets that the arrivals keep busy.
#[derive(Debug)]
pub struct Aspen {
    config: AspenConfig,
    /// The events that ended in recent samples, and their total time in nanoseconds.
    services: VecDeque<(u64, u64)>,
    finished: u64,
    service_ns: u64,
    /// The arrivals since the last decision, and the time since then in nanoseconds.
    arrived: u64,
    interval_ns: u64,
}

impl Default for Aspen {
    fn default() -> Self {
        Self::new(AspenConfig::default())
    }
}

impl Aspen {
    /// Creates a controller, and corrects parameters that are out of range.
    #[must_use]
    pub fn new(mut config: AspenConfig) -> Self {
        if !(config.low.is_finite() && config.low > 0.0) {
            config.low = 1.0;
        }
        // This also replaces NaN.
        config.high = config.high.max(1.0 / config.low);
        config.arrivals = config.arrivals.max(1);
        if !(config.exponent_max.is_finite() && config.exponent_max >= 0.0) {
            config.exponent_max = EXPONENT_MAX;
        }
        Self {
            config,
            services: VecDeque::new(),
            finished: 0,
            service_ns: 0,
            arrived: 0,
            interval_ns: 0,
        }
    }

    /// Returns the number of servlets for the arrivals in the sample, even if they are few.
    pub(in super::super) fn servlets(&mut self, sample: &Sample<'_>) -> usize {
        self.learn(sample);
        self.wanted(sample.arrived, sample.interval_ns, sample)
    }

    fn learn(&mut self, sample: &Sample<'_>) {
        if sample.finished > 0 {
            self.services
                .push_back((sample.finished, sample.service_ns));
            self.finished = self.finished.saturating_add(sample.finished);
            self.service_ns = self.service_ns.saturating_add(sample.service_ns);
        }
        while let Some(&(finished, service_ns)) = self.services.front() {
            if self.finished.saturating_sub(finished) < ITEMS {
                break;
            }
            self.services.pop_front();
            self.finished = self.finished.saturating_sub(finished);
            self.service_ns = self.service_ns.saturating_sub(service_ns);
        }
    }

    fn wanted(&self, arrived: u64, interval_ns: u64, sample: &Sample<'_>) -> usize {
        let now = sample.servlets.target;
        if self.finished == 0 {
            return now;
        }
        let service_ns = self.service_ns as f64 / self.finished as f64;
        let busy = arrived as f64 / interval_ns.max(1) as f64 * service_ns;
        let (spawn, kill) =
            self.viscosity(sample.process_servlets as f64, sample.process_servlets_mean);
        // A float that is too large converts to the largest integer.
        let lower = (busy / (self.config.low * spawn)).ceil() as usize;
        let upper = (busy * self.config.high * kill).floor() as usize;
        now.min(upper)
            .max(lower)
            .clamp(1, sample.servlets.max.max(1))
    }

    /// Returns ν_spawn and ν_kill.
    fn viscosity(&self, servlets: f64, average: f64) -> (f64, f64) {
        let difference = (servlets - average).abs();
        if difference.is_nan() || difference < DIFFERENCE_MIN {
            return (1.0, 1.0);
        }
        let growing = difference.min(self.config.exponent_max).exp();
        let shrinking = (1.0 / difference).min(self.config.exponent_max).exp();
        if servlets > average {
            (growing, shrinking)
        } else {
            (shrinking, growing)
        }
    }
}

impl Controller for Aspen {
    fn name(&self) -> &'static str {
        "aspen"
    }

    fn owns(&self) -> Owns {
        Owns::SERVLETS
    }

    fn cadence(&self) -> Cadence {
        Cadence {
            // Arrivals at a single moment have no rate.
            interval_ns: 1,
            arrived: self.config.arrivals,
            finished: 0,
        }
    }

    fn sample(&mut self, sample: &Sample<'_>, _now_ns: u64) -> Settings {
        self.learn(sample);
        self.arrived = self.arrived.saturating_add(sample.arrived);
        self.interval_ns = self.interval_ns.saturating_add(sample.interval_ns);
        // Another controller may ask more often. The rate of fewer arrivals varies too much.
        if self.arrived < self.config.arrivals {
            return Settings::default();
        }
        let wanted = self.wanted(self.arrived, self.interval_ns, sample);
        (self.arrived, self.interval_ns) = (0, 0);
        let now = sample.servlets.target;
        Settings {
            servlets: (wanted != now).then_some(wanted),
            ..Settings::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::control::testing::{MS, quiet};
    use crate::stage::control::{Sample, Servlets};

    /// Ten arrivals in 10 ms that take 1 ms each, so R S = 1, times `busy`.
    fn busy(busy: f64, target: usize) -> Sample<'static> {
        Sample {
            interval_ns: 10 * MS,
            arrived: 10,
            finished: 10,
            service_ns: (busy * 10.0 * MS as f64) as u64,
            servlets: Servlets {
                target,
                max: 1000,
                ..quiet().servlets
            },
            ..quiet()
        }
    }

    fn decide(sample: Sample<'_>) -> Option<usize> {
        Aspen::default().sample(&sample, 0).servlets
    }

    #[test]
    fn decisions_come_every_ten_arrivals() {
        let cadence = Aspen::default().cadence();
        assert_eq!((cadence.arrived, cadence.interval_ns), (10, 1));
    }

    #[test]
    fn the_number_is_kept_in_the_range() {
        let check = |rs, target, expected| {
            assert_eq!(
                decide(busy(rs, target)),
                expected,
                "R S = {rs}, {target} servlets"
            );
        };
        check(3.0, 1, Some(3));
        check(3.0, 2, Some(3));
        check(2.1, 1, Some(3));
        check(3.0, 3, None);
        check(3.0, 60, None);
        check(3.0, 61, Some(60));
        check(0.01, 5, Some(1));
        check(5000.0, 5, Some(1000));
    }

    #[test]
    fn a_process_above_its_average_spawns_less_and_one_below_kills_less() {
        let check = |rs, target, servlets, mean, expected| {
            let sample = Sample {
                process_servlets: servlets,
                process_servlets_mean: mean,
                ..busy(rs, target)
            };
            assert_eq!(decide(sample), expected, "{servlets} against {mean}");
        };
        let e = std::f64::consts::E;
        check(10.0 * e, 1, 11, 10.0, Some(10));
        check(10.0 * e, 1, 9, 10.0, Some(10));
        check(10.0 * e * e, 1, 12, 10.0, Some(10));
        // ν_spawn is e^(1/2) below the average, and so is ν_kill above it.
        check(10.0 * (0.5f64).exp(), 1, 8, 10.0, Some(10));
        check(1.0, 100, 12, 10.0, Some((20.0 * (0.5f64).exp()) as usize));
        check(1.0, 1000, 8, 10.0, Some((20.0 * e * e) as usize));
    }

    #[test]
    fn viscosities_stay_between_1_and_e_squared() {
        let max = EXPONENT_MAX.exp();
        for mean in [
            0.0,
            1e-300,
            9.5,
            9.999_999,
            10.0,
            10.000_001,
            10.6,
            1e9,
            f64::MAX,
        ] {
            let (spawn, kill) = Aspen::default().viscosity(10.0, mean);
            assert!((1.0..=max).contains(&spawn), "{mean}: {spawn}");
            assert!((1.0..=max).contains(&kill), "{mean}: {kill}");
        }
        assert_eq!(Aspen::default().viscosity(10.0, 10.4), (1.0, 1.0));
        assert_eq!(Aspen::default().viscosity(10.0, f64::NAN), (1.0, 1.0));
    }

    #[test]
    fn services_are_averaged_over_the_last_hundred_events() {
        let mut aspen = Aspen::default();
        for _ in 0..50 {
            aspen.sample(&busy(100.0, 1), 0);
        }
        for _ in 0..9 {
            aspen.sample(&busy(2.0, 1), 0);
        }
        assert_eq!(aspen.finished, 100);
        let settings = aspen.sample(&busy(2.0, 1), 0);
        assert_eq!(settings.servlets, Some(2));
        assert_eq!(aspen.services.len(), 10);
    }

    #[test]
    fn without_services_or_time_nothing_breaks() {
        assert_eq!(decide(quiet()), None);
        let at_once = Sample {
            interval_ns: 0,
            arrived: u64::MAX,
            finished: 1,
            service_ns: u64::MAX,
            ..quiet()
        };
        assert_eq!(decide(at_once), Some(100));
    }

    #[test]
    fn parameters_are_brought_into_their_range() {
        let config = AspenConfig {
            low: -1.0,
            high: f64::NAN,
            arrivals: 0,
            exponent_max: -1.0,
        };
        let aspen = Aspen::new(config);
        assert_eq!((aspen.config.low, aspen.config.high), (1.0, 1.0));
        assert_eq!((aspen.config.arrivals, aspen.config.exponent_max), (1, 2.0));
    }
}
