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

use super::history::{Mark, own_ns};
use crate::stage::control::Sample;

/// The minimum number of batches of a comparison, in all and for each servlet. Before that,
/// services that started together also end together.
const BATCHES_MIN: f64 = 16.0;
const EACH_MIN: f64 = 2.0;

/// The number of standard errors at which a comparison is considered certain. One comparison in
/// forty is wrong, and it is repeated.
const SURE: f64 = 2.0;

/// The minimum dispersion of counts of completions. Even the counts of constant services vary with
/// the start of the window.
const DISPERSION_MIN: f64 = 0.25;

/// The number of batches after which a comparison is decided on the current evidence, if service
/// times vary as little as constant ones. If the elasticity is near a half, the cost decides: more
/// servlets stay if it is above a half, and fewer stay unless it is well above.
pub(super) const ENOUGH: f64 = 128.0;
const DOUBT: f64 = 1.0;

/// The number of batches below which the other side has too few, if this side has more. For
/// exponential services and twice the number in service, this number on both sides is enough.
const MANY: f64 = 96.0;

/// A share of the earlier throughput, and the number of batches that the earlier throughput would
/// have completed. Below this share of at least this number, fewer servlets clearly do less, even
/// if the service times vary strongly.
const FALL: f64 = 1.0 / 3.0;
const FALL_BATCHES: f64 = 64.0;

/// The ratio of service times above which only the long services of a mixture are left. If no new
/// service begins, exponential ones that end within their mean time have taken twice that at most.
const LEFT_OVER: f64 = 2.0;

/// The ratio of a later throughput to an earlier one above which hardly any service could have
/// ended in the earlier period.
const BEGINS: f64 = 4.0;

/// The mean number of servlets that wait for permits above which the permits are scarce.
const LIMITED_MIN: f64 = 0.5;

/// The growth of the number in service, as a share of the completions, above which a period shows
/// no steady throughput.
const GROWS: f64 = 1.0;

/// The minimum number of batches in each half of a period of growth, and the minimum growth of the
/// number in service, as a factor. Without more growth, chance decides.
const HALF_MIN: f64 = 4.0;
const GROWN: f64 = 2.0;

/// The number of times that the batches in service end in a period that shows a steady state, and
/// the standard deviations by which their number may change in it.
const ROUNDS: f64 = 8.0;
const CHANCE: f64 = 1.5;

/// The share of the workers' time above which the workers are the scarce resource.
const WORKERS_FULL: f64 = 0.9;

/// The result of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// There are too few batches of this side.
    Unknown,
    /// There are too few batches of the other side, which has more servlets.
    OldUnsure,
    /// Fewer servlets achieve the same throughput.
    Scarce,
    /// The throughput is proportional to the number in service.
    Proportional,
}

/// The batches completed in a period.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    pub(super) batches: f64,
    pub(super) ns: f64,
    /// The numbers in service at the begin and at the end.
    first: f64,
    last: f64,
    /// The integral of the number in service over time.
    servlets_ns: f64,
    /// The sum of the service times, and of their squares with their waits for permits.
    times_ns: f64,
    squares: f64,
    /// The sum of the times for which the batches waited for permits.
    limited_ns: f64,
    /// The sum of the computing times, and the time that all workers had.
    compute_ns: f64,
    able_ns: f64,
}

impl Pace {
    /// Returns the batches completed between two marks.
    pub(super) fn between(from: &Mark, to: &Mark) -> Self {
        Self {
            batches: to.batches - from.batches,
            ns: to.at_ns - from.at_ns,
            first: from.in_service,
            last: to.in_service,
            servlets_ns: to.in_service_ns - from.in_service_ns,
            times_ns: to.service_ns - from.service_ns,
            squares: to.squares - from.squares,
            limited_ns: to.limited_ns - from.limited_ns,
            ..Self::default()
        }
    }

    pub(super) fn add(&mut self, sample: &Sample<'_>) {
        self.batches += sample.batches as f64;
        self.times_ns += own_ns(sample);
        self.squares += sample.service_squares * 1e18;
        self.limited_ns += sample.limited_ns as f64;
        // In a blocking stage, the part of the time that an OS thread computes is not known.
        if !sample.blocking {
            self.compute_ns += sample.compute_ns as f64;
        }
        self.able_ns += sample.interval_ns as f64 * sample.workers as f64;
        self.last = sample.servlets.busy as f64;
        if self.ns == 0.0 {
            self.first = self.last;
        }
        let ns = sample.busy_ns as f64;
        self.ns += ns;
        self.servlets_ns += ns * sample.servlets.busy as f64;
    }

    /// Returns the batches per nanosecond.
    pub(super) fn per_ns(&self) -> f64 {
        self.batches / self.ns.max(1.0)
    }

    /// Returns the mean time of the batches that have ended.
    pub(super) fn mean_ns(&self) -> f64 {
        self.times_ns / self.batches.max(1.0)
    }

    /// Returns whether services that take `mean_ns` are those left over after the short ones of
    /// this period. The throughput of the long services says little about that of the mixture.
    pub(super) fn is_left_by(&self, mean_ns: f64) -> bool {
        mean_ns > LEFT_OVER * self.mean_ns()
    }

    /// Returns the mean time if few batches have ended: by Little's law, those in service take
    /// longer. Some of them may fail, so the result is at most the length of the period.
    pub(super) fn pending_ns(&self) -> f64 {
        let by_number_ns = self.servlets_ns / self.batches.max(1.0);
        by_number_ns.min(self.ns).max(self.mean_ns())
    }

    fn in_service(&self) -> f64 {
        self.servlets_ns / self.ns.max(1.0)
    }

    /// Returns whether permits are known to be scarce, because servlets wait for them. By Little's
    /// law, the waits per time are the mean number of these servlets.
    pub(super) fn lacks_permits(&self) -> bool {
        self.limited_ns > LIMITED_MIN * self.ns
    }

    /// Returns whether the number in service grew so much that the throughput says little about a
    /// steady number: the short services of a mixture end, while the long ones accumulate.
    pub(super) fn grows(&self) -> bool {
        self.last - self.first > GROWS * self.batches
    }

    /// Returns whether the throughput is far below the earlier throughput.
    pub(super) fn falls(&self, old: &Pace) -> bool {
        let expected = old.per_ns() * self.ns;
        expected > FALL_BATCHES && self.batches < FALL * expected
    }

    /// Returns whether this period was too short to show a throughput: its batches end far faster
    /// `later`.
    pub(super) fn only_begins(&self, later: &Pace) -> bool {
        later.batches >= BATCHES_MIN && later.per_ns() > BEGINS * self.per_ns()
    }

    /// Compares the throughput with the earlier throughput, at another number in service. It tests
    /// the elasticity of the throughput against a half.
    pub(super) fn compare(&self, old: &Pace) -> Verdict {
        if self.batches < BATCHES_MIN.max(EACH_MIN * self.in_service()) {
            return Verdict::Unknown;
        }
        if self.compute_ns > WORKERS_FULL * self.able_ns {
            return Verdict::Scarce;
        }
        let dispersion = DISPERSION_MIN + self.variation(old);
        let change = (self.in_service() / old.in_service()).ln();
        let z = self.evidence(old);
        if z.abs() < SURE && self.batches > MANY && old.batches < MANY && change < 0.0 {
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

    /// Returns by how many standard errors the elasticity of the throughput exceeds a half.
    fn evidence(&self, old: &Pace) -> f64 {
        let dispersion = DISPERSION_MIN + self.variation(old);
        let change = (self.in_service() / old.in_service()).ln();
        let elasticity = (self.per_ns() / old.per_ns()).ln() / change;
        let error = (dispersion * (1.0 / self.batches + 1.0 / old.batches)).sqrt();
        (elasticity - 0.5) * change.abs() / error
    }

    /// Returns the evidence from a period of growth, with far more in service than in the earlier
    /// period, or 0 if there is too little: by how many standard errors the elasticity of the
    /// throughput exceeds a half.
    pub(super) fn growth(&self, old: &Pace) -> f64 {
        let enough = self.batches.min(old.batches) >= HALF_MIN;
        if enough && self.in_service() > GROWN * old.in_service() {
            self.evidence(old)
        } else {
            0.0
        }
    }

    /// Returns whether the number in service stayed about the same, apart from chance, while all
    /// of the batches in service ended several times.
    pub(super) fn is_stationary(&self) -> bool {
        self.batches > ROUNDS * self.in_service() && self.is_steady()
    }

    /// Returns whether the number in service stayed about the same, apart from chance.
    pub(super) fn is_steady(&self) -> bool {
        let change = (self.last - self.first).abs();
        change < CHANCE * self.in_service().max(1.0).sqrt()
    }

    /// Returns the square of the coefficient of variation of the service times in both periods.
    /// They include waits for permits.
    fn variation(&self, old: &Pace) -> f64 {
        let batches = (self.batches + old.batches).max(1.0);
        let all_ns = |pace: &Pace| pace.times_ns + pace.limited_ns;
        let mean_ns = (all_ns(self) + all_ns(old)) / batches;
        let squares = (self.squares + old.squares) / batches;
        (squares - mean_ns * mean_ns).max(0.0) / (mean_ns * mean_ns).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Servlets;
    use super::super::super::testing::{MS, quiet};
    use super::*;

    /// A second with `servlets` in service, in which `batches` batches were completed. `variation`
    /// is the coefficient of variation of their service times.
    fn pace(servlets: usize, batches: u64, variation: f64) -> Pace {
        let mut pace = Pace::default();
        let mean_s = servlets as f64 / batches as f64;
        pace.add(&Sample {
            interval_ns: 1000 * MS,
            busy_ns: 1000 * MS,
            batches,
            service_ns: 1000 * MS * servlets as u64,
            service_squares: batches as f64 * mean_s * mean_s * (1.0 + variation * variation),
            servlets: Servlets {
                busy: servlets,
                ..quiet().servlets
            },
            ..quiet()
        });
        pace
    }

    #[test]
    fn equal_throughput_with_fewer_servlets_means_scarcity() {
        let check = |new: (usize, u64), old: (usize, u64), expected| {
            let verdict = pace(new.0, new.1, 1.0).compare(&pace(old.0, old.1, 1.0));
            assert_eq!(verdict, expected, "{new:?} {old:?}");
        };
        check((20, 800), (40, 800), Verdict::Scarce);
        check((20, 400), (40, 800), Verdict::Proportional);
        check((80, 800), (40, 800), Verdict::Scarce);
        check((80, 1600), (40, 800), Verdict::Proportional);
        // A few batches decide nothing, whichever side has too few.
        check((4, 15), (8, 30), Verdict::Unknown);
        check((10, 30), (20, 45), Verdict::Unknown);
        // Nor do batches most of which began before the change.
        check((20, 35), (40, 800), Verdict::Unknown);
        // In doubt, the smaller number of servlets stays, and the larger one does not.
        check((20, 800), (40, 1150), Verdict::Scarce);
    }

    #[test]
    fn scattered_samples_need_more_evidence() {
        let verdict = |variation| pace(20, 100, variation).compare(&pace(40, 180, variation));
        assert_eq!(verdict(0.1), Verdict::Proportional);
        assert_eq!(verdict(3.0), Verdict::Unknown);
        let unsure = |new: usize| pace(new, 100, 3.0).compare(&pace(40, 90, 3.0));
        assert_eq!(unsure(20), Verdict::OldUnsure);
        // A larger number need not be undone to find out.
        assert_eq!(unsure(48), Verdict::Unknown);
    }

    #[test]
    fn busy_workers_are_the_scarce_resource() {
        let mut pace = pace(20, 400, 1.0);
        let old = self::pace(40, 800, 1.0);
        assert_eq!(pace.compare(&old), Verdict::Proportional);
        pace.compute_ns = 0.95 * pace.able_ns;
        assert_eq!(pace.compare(&old), Verdict::Scarce);
    }
}
