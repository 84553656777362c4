//! A test of whether the stage completes more events if more are in service.
//!
//! # Related work
//! Welsh and Culler ("Adaptive overload control for busy Internet servers", USITS 2003) control the
//! admission rate by the 90th percentile of response times; this needs no model but reacts slowly.
//! Breakwater (Cho et al., OSDI 2020) issues credits based on the queueing delay, which the server
//! must be able to measure. Netflix's gradient limit compares short-term with long-term response
//! times, but the latter drift upward under sustained load. BBR (Cardwell et al., "BBR:
//! Congestion-based congestion control", ACM Queue 2016) faces the same problem: the delay can be
//! measured only below the knee, and the rate only above it. BBR therefore alternates between
//! probing up and down, as this controller does. Little's law is from "A proof for the queuing
//! formula L = λW" (Operations Research 1961).

use super::unloaded::P90;
use crate::stage::control::Sample;

/// The number of batches over which the spread of service times is measured.
const WINDOW: f64 = 256.0;

/// The minimum number of batches, and of long services, of a comparison. Before that, the services
/// that began together also end together.
const BATCHES_MIN: f64 = 16.0;
const SERVICES_MIN: f64 = 2.0;

/// The number of standard errors at which a comparison is considered certain. One comparison in
/// forty is wrong, and it is repeated.
const SURE: f64 = 2.0;

/// The minimum dispersion of counts of completions. Even the counts of constant services vary with
/// the start of the window.
const DISPERSION_MIN: f64 = 0.25;

/// The number of batches after which a comparison is decided as it stands, if services are spread
/// like constant ones. The cost decides if the elasticity is near a half: more servlets stay if it
/// is above a half, and fewer stay unless it is well above.
pub(super) const ENOUGH: f64 = 128.0;
const DOUBT: f64 = 1.0;

/// The number of batches at which one side counts as having many.
const MANY: f64 = 64.0;

/// The result of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// There are too few batches of this side.
    Unknown,
    /// There are too few batches of the other side.
    OldUnsure,
    /// Fewer servlets achieve the same throughput.
    Scarce,
    /// The throughput is proportional to the number in service.
    Proportional,
}

/// The spread of service times.
#[derive(Debug, Default)]
pub(super) struct Spread {
    batches: f64,
    service_ns: f64,
    squares: f64,
}

impl Spread {
    pub(super) fn note(&mut self, sample: &Sample<'_>) {
        self.batches += sample.batches as f64;
        self.service_ns += sample.service_ns.saturating_sub(sample.held_up_ns) as f64;
        self.squares += sample.service_squares * 1e18;
        if self.batches > WINDOW {
            self.batches /= 2.0;
            self.service_ns /= 2.0;
            self.squares /= 2.0;
        }
    }

    /// Returns approximately the 90th percentile of services, in nanoseconds, and the dispersion:
    /// the variance of the number completed, divided by its mean. For as many renewal processes as
    /// there are servlets, that is the square of the coefficient of variation.
    fn long_and_dispersion(&self) -> (f64, f64) {
        let mean_ns = self.service_ns / self.batches.max(1.0);
        let variance = (self.squares / self.batches.max(1.0) - mean_ns * mean_ns).max(0.0);
        let dispersion = DISPERSION_MIN + variance / (mean_ns * mean_ns).max(1.0);
        (mean_ns + P90 * variance.sqrt(), dispersion)
    }
}

/// The batches completed in a period.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    pub(super) batches: f64,
    ns: f64,
    /// The integral of the number in service over time.
    servlets_ns: f64,
}

impl Pace {
    pub(super) fn add(&mut self, sample: &Sample<'_>) {
        self.batches += sample.batches as f64;
        let ns = sample.busy_ns as f64;
        self.ns += ns;
        self.servlets_ns += ns * sample.servlets.busy as f64;
    }

    /// Returns the batches per nanosecond.
    pub(super) fn per_ns(&self) -> f64 {
        self.batches / self.ns.max(1.0)
    }

    /// Returns the time of a batch, by Little's law.
    pub(super) fn service_ns(&self) -> f64 {
        self.servlets_ns / self.batches.max(1.0)
    }

    fn in_service(&self) -> f64 {
        self.servlets_ns / self.ns.max(1.0)
    }

    /// Compares the throughput with the earlier throughput, at another number in service. It tests
    /// the elasticity of the throughput against a half.
    pub(super) fn compare(&self, old: &Pace, spread: &Spread) -> Verdict {
        let (long_ns, dispersion) = spread.long_and_dispersion();
        if self.batches < BATCHES_MIN || self.ns < SERVICES_MIN * long_ns {
            return Verdict::Unknown;
        }
        let change = (self.in_service() / old.in_service()).ln();
        let elasticity = (self.per_ns() / old.per_ns()).ln() / change;
        let error = (dispersion * (1.0 / self.batches + 1.0 / old.batches)).sqrt();
        let z = (elasticity - 0.5) * change.abs() / error;
        if z.abs() < SURE && self.batches > MANY && old.batches < MANY {
            return Verdict::OldUnsure;
        }
        if z.abs() < SURE && self.batches < ENOUGH * dispersion {
            return Verdict::Unknown;
        }
        let doubt = if change > 0.0 { 0.0 } else { DOUBT };
        if z > doubt {
            Verdict::Proportional
        } else {
            Verdict::Scarce
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Servlets;
    use super::super::super::testing::{MS, quiet};
    use super::*;

    /// A second with `servlets` in service, in which `batches` batches were completed.
    fn pace(servlets: usize, batches: u64) -> Pace {
        let mut pace = Pace::default();
        pace.add(&Sample {
            busy_ns: 1000 * MS,
            batches,
            servlets: Servlets {
                busy: servlets,
                ..quiet().servlets
            },
            ..quiet()
        });
        pace
    }

    fn spread(deviation_s: f64) -> Spread {
        let mut spread = Spread::default();
        spread.note(&Sample {
            batches: 100,
            service_ns: 1000 * MS,
            service_squares: 100.0 * (0.01_f64.powi(2) + deviation_s * deviation_s),
            ..quiet()
        });
        spread
    }

    #[test]
    fn equal_throughput_with_fewer_servlets_means_scarcity() {
        let check = |new: (usize, u64), old: (usize, u64), expected| {
            let verdict = pace(new.0, new.1).compare(&pace(old.0, old.1), &spread(0.01));
            assert_eq!(verdict, expected, "{new:?} {old:?}");
        };
        check((20, 800), (40, 800), Verdict::Scarce);
        check((20, 400), (40, 800), Verdict::Proportional);
        check((80, 800), (40, 800), Verdict::Scarce);
        check((80, 1600), (40, 800), Verdict::Proportional);
        // A few batches decide nothing, whichever side has too few.
        check((20, 15), (40, 30), Verdict::Unknown);
        check((20, 30), (40, 45), Verdict::Unknown);
        // In doubt, the smaller number of servlets stays, and the larger one does not.
        check((20, 800), (40, 1150), Verdict::Scarce);
    }

    #[test]
    fn scattered_samples_need_more_evidence() {
        let verdict = |deviation_s| pace(20, 100).compare(&pace(40, 180), &spread(deviation_s));
        assert_eq!(verdict(0.001), Verdict::Proportional);
        assert_eq!(verdict(0.03), Verdict::Unknown);
        let few = pace(20, 65).compare(&pace(40, 45), &spread(0.03));
        assert_eq!(few, Verdict::OldUnsure);
    }
}
