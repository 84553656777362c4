//! SEDA's later overload controller: each class has an admission rate, which follows the 90th
//! percentile of its response times.
//!
//! Source: Welsh and Culler, "Adaptive Overload Control for Busy Internet Servers" (USITS 2003),
//! §3. Every 100 requests, the controller filters the 90th percentile (an exponential average with
//! α = 0.7) and compares it with the target: err = (p90 - target) / target. If err is above err_d,
//! the rate is divided by adj_d. If err is below err_i, the rate is raised by -(err - c_i) adj_i. A
//! token bucket enforces the rate. With classes (§3.3), a class that misses its target first takes
//! from lower classes. With degradation (§3.4), the stage reduces its quality before it rejects
//! events.
//!
//! This implementation differs from the paper or, where the paper is silent, from its authors' code
//! (`ResponseTimeControllerMulticlass` in Sandstorm):
//! - No class is limited until a class misses its target. The first cut starts from the admitted
//!   rate, and a limit ends after an interval without rejections. In the paper, the rate is always
//!   limited, to at most 5000 per second; the code begins with 100.
//! - The controller decides after 100 finished or 1000 offered events of all classes, so it also
//!   decides if all events are rejected. In the paper, each class counts its own events, with a
//!   timeout of 1 s.
//! - At each decision, a class that misses its target divides the rate of one class by adj_d: the
//!   lowest class that can still give, or finally itself. The authors' code divides the rates of
//!   all lower classes by 10, and keeps them there while the higher class misses its target.
//! - The credit that a class may accumulate is a time, so it grows with the rate. In the authors'
//!   code, the credit is one event.
//! - The filter starts with the first measured percentile, not with 0.
//! - Quality has two levels. The higher one is restored after an interval in which err was below
//!   err_i and no event was rejected.
//!
//! As in the paper, adj_i is 2 events per second, which suits services that handle hundreds of
//! events per second. A faster service should use a larger value; otherwise it takes minutes to
//! recover from an overload.

use std::time::Duration;

use crate::stage::control::{
    Admission, Arrival, Cadence, Controller, Owns, Rule, Sample, Settings,
};
use crate::stage::event::{CLASSES_MAX, Class};

/// Parameters of [`ResponseP90`]. For the parameters in the paper's table, the defaults are
/// the paper's values.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ResponseP90Config {
    /// The target for the 90th percentile of each class's response times, in nanoseconds; at least
    /// 1.
    pub target_ns: u64,
    /// nreq: the number of finished events between two decisions; at least 1.
    pub finished: u64,
    /// α: the weight of the previous value in the filtered percentile; at least 0 and below 1
    /// (other values count as 0.7).
    pub keep: f64,
    /// err_d: the error, relative to the target, above which the rate is cut; a finite number
    /// (other values count as 0).
    pub error_cut: f64,
    /// err_i: the error, relative to the target, below which the rate is raised; a finite number
    /// (other values count as -0.5), at most `error_cut` (higher values are lowered to it).
    pub error_raise: f64,
    /// adj_d: the number by which a cut divides the rate; above 1 (other values count as 1.2).
    pub cut: f64,
    /// adj_i: the coefficient of a rate increase, in events per second; above 0 (other values count
    /// as 2).
    pub raise: f64,
    /// c_i: the error at which the increase is zero; a finite number (other values count as -0.1),
    /// at least `error_raise` (lower values are raised to it).
    pub raise_offset: f64,
    /// rate_min: the minimum rate, in events per second; above 0 (other values count as 0.05).
    pub rate_min: f64,
    /// The time for which a class can accumulate unused admissions, in nanoseconds. Every class can
    /// accumulate at least one admission.
    pub burst_ns: u64,
    /// True if the stage degrades the quality of its service before it rejects events. If the stage
    /// has no degradation hook, this field has no effect.
    pub degrade: bool,
}

impl ResponseP90Config {
    /// Creates parameters for the given target, with defaults for the other parameters.
    #[must_use]
    pub fn new(target: Duration) -> Self {
        Self {
            target_ns: u64::try_from(target.as_nanos()).unwrap_or(u64::MAX),
            finished: 100,
            keep: 0.7,
            error_cut: 0.0,
            error_raise: -0.5,
            cut: 1.2,
            raise: 2.0,
            raise_offset: -0.1,
            rate_min: 0.05,
            burst_ns: 10_000_000,
            degrade: true,
        }
    }

    fn in_range(mut self) -> Self {
        let or = |good: bool, value: f64, or: f64| {
            let good = good && value.is_finite();
            if good { value } else { or }
        };
        self.keep = or((0.0..1.0).contains(&self.keep), self.keep, 0.7);
        self.cut = or(self.cut > 1.0, self.cut, 1.2);
        self.raise = or(self.raise > 0.0, self.raise, 2.0);
        self.rate_min = or(self.rate_min > 0.0, self.rate_min, 0.05);
        self.error_cut = or(true, self.error_cut, 0.0);
        self.error_raise = or(true, self.error_raise, -0.5).min(self.error_cut);
        // With a lower offset, an error within the target would lower the rate.
        self.raise_offset = or(true, self.raise_offset, -0.1).max(self.error_raise);
        self.target_ns = self.target_ns.max(1);
        self.finished = self.finished.max(1);
        self
    }
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// Events per second; infinite while no event is rejected.
    rate: f64,
    tokens: f64,
    filled_ns: u64,
    /// The filtered 90th percentile, in nanoseconds; `None` before the first one.
    p90_ns: Option<f64>,
    degraded: bool,
    /// An upper bound on the class's events that are queued or in service: events that are shed or
    /// expire are not reported by class.
    inside: u64,
}

/// A controller that adjusts the admission rate of each class, so that the 90th percentile of the
/// class's response times meets the target.
#[derive(Debug)]
pub struct ResponseP90 {
    config: ResponseP90Config,
    classes: [Bucket; CLASSES_MAX],
}

impl ResponseP90 {
    /// Creates a controller, and corrects parameters that are out of range.
    #[must_use]
    pub fn new(config: ResponseP90Config) -> Self {
        let unlimited = Bucket {
            rate: f64::INFINITY,
            tokens: 1.0,
            filled_ns: 0,
            p90_ns: None,
            degraded: false,
            inside: 0,
        };
        Self {
            config: config.in_range(),
            classes: [unlimited; CLASSES_MAX],
        }
    }

    /// Returns the admission rate of a class, in events per second; infinite if the rate is not
    /// limited.
    #[must_use]
    pub fn rate(&self, class: usize) -> f64 {
        self.classes
            .get(class)
            .map_or(f64::INFINITY, |class| class.rate)
    }

    /// Filters the percentile of a class. Returns its relative error, or `None` without
    /// measurements.
    fn error(&mut self, class: usize, sample: &Sample<'_>) -> Option<f64> {
        let seen = sample.classes[class];
        let bucket = &mut self.classes[class];
        let admitted = seen.arrived.saturating_sub(seen.refused);
        let came = bucket.inside.saturating_add(admitted);
        let most = seen.queued.saturating_add(sample.in_service);
        bucket.inside = came.saturating_sub(seen.finished).min(most);
        if seen.finished > 0 {
            let p90_ns = seen.response_p90_ns as f64;
            let keep = self.config.keep;
            bucket.p90_ns = Some(
                bucket
                    .p90_ns
                    .map_or(p90_ns, |old| keep * old + (1.0 - keep) * p90_ns),
            );
        } else if seen.refused > 0 && bucket.inside == 0 {
            // The stage holds no event of the class, and some were rejected.
            bucket.p90_ns = Some(0.0);
        } else {
            return None;
        }
        let target_ns = self.config.target_ns as f64;
        bucket.p90_ns.map(|p90_ns| (p90_ns - target_ns) / target_ns)
    }

    /// Degrades the lowest class at or below `class` that is not yet degraded. If there is none,
    /// cuts the rate of the lowest class whose rate can be cut.
    fn relieve(&mut self, class: usize, sample: &Sample<'_>) {
        let present = |c: &usize| sample.classes[*c].arrived > 0 || *c == class;
        let classes = sample.classes.len().min(CLASSES_MAX);
        let candidates = (class..classes).rev().filter(present);
        if self.config.degrade {
            let mut candidates = candidates.clone();
            if let Some(c) = candidates.find(|c| !self.classes[*c].degraded) {
                self.classes[c].degraded = true;
                return;
            }
        }
        let rate_min = self.config.rate_min;
        for c in candidates {
            let seen = sample.classes[c];
            let bucket = &mut self.classes[c];
            let seconds = sample.interval_ns.max(1) as f64 / 1e9;
            let admitted = seen.arrived.saturating_sub(seen.refused) as f64 / seconds;
            let from = if bucket.rate.is_finite() {
                bucket.rate
            } else {
                admitted
            };
            if bucket.rate > rate_min {
                bucket.rate = (from / self.config.cut).max(rate_min);
                return;
            }
        }
    }

    /// Raises the rate of a class that is well within the target, or ends a limit that no longer
    /// has an effect.
    fn ease(&mut self, class: usize, error: f64, sample: &Sample<'_>) {
        let bucket = &mut self.classes[class];
        if sample.classes[class].refused > 0 {
            bucket.rate -= (error - self.config.raise_offset) * self.config.raise;
        } else if bucket.rate.is_finite() {
            bucket.rate = f64::INFINITY;
        } else {
            bucket.degraded = false;
        }
    }
}

impl Controller for ResponseP90 {
    fn name(&self) -> &'static str {
        "response-p90"
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
            interval_ns: 0,
            arrived: self.config.finished.saturating_mul(10),
            finished: self.config.finished,
        }
    }

    fn sample(&mut self, sample: &Sample<'_>, _now_ns: u64) -> Settings {
        let classes = sample.classes.len().min(CLASSES_MAX);
        let mut relieved = false;
        for class in 0..classes {
            let Some(error) = self.error(class, sample) else {
                continue;
            };
            if error > self.config.error_cut {
                if !relieved {
                    self.relieve(class, sample);
                }
                relieved = true;
            } else if error < self.config.error_raise && !relieved {
                self.ease(class, error, sample);
            }
        }
        Settings::default()
    }

    fn rule(&self, class: Class) -> Rule {
        let bucket = &self.classes[class.among(CLASSES_MAX)];
        match bucket.degraded {
            _ if bucket.rate.is_finite() => Rule::Rate(bucket.rate.ceil() as u64),
            true => Rule::Degraded,
            false => Rule::All,
        }
    }

    fn on_enqueue(&mut self, arrival: &Arrival) -> Admission {
        let class = arrival.class.among(CLASSES_MAX);
        let bucket = &mut self.classes[class];
        if bucket.rate.is_finite() {
            let since_ns = arrival.now_ns.saturating_sub(bucket.filled_ns) as f64;
            let most = (bucket.rate * self.config.burst_ns as f64 / 1e9).max(1.0);
            bucket.tokens = (bucket.tokens + bucket.rate * since_ns / 1e9).min(most);
            bucket.filled_ns = arrival.now_ns;
            if bucket.tokens < 1.0 {
                return Admission::Reject;
            }
            bucket.tokens -= 1.0;
        }
        if bucket.degraded {
            Admission::Degrade
        } else {
            Admission::Admit
        }
    }
}

#[cfg(test)]
mod tests;
