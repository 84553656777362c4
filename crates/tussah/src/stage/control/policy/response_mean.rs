//! SEDA's response-time controller, as printed: the queue threshold follows the mean response time.
//!
//! Welsh, Culler and Brewer, "SEDA" (SOSP 2001), §5.1.4: the controller "observes the average
//! response time of requests passing through the stage. When the response time exceeds a threshold
//! of 5 sec, the controller exponentially reduces the stage's queue threshold. When the response
//! time is below the threshold, the controller increases the queue threshold by a fixed amount."
//!
//! The paper itself shows that the controller misses its target: the 90th percentile was 11.8 s for
//! a target of 5 s. A mean says little about the slowest responses, and the threshold is still high
//! when a burst arrives. This module exists for comparison.
//!
//! The paper specifies neither the factor, nor the amount, nor the interval. The defaults are our
//! own.

use std::time::Duration;

use crate::stage::control::{Cadence, Controller, Owns, Sample, Settings};

/// Parameters of [`ResponseMean`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ResponseMeanConfig {
    /// The target for the mean response time, in nanoseconds; at least 1.
    pub target_ns: u64,
    /// The time between two changes of the threshold, in nanoseconds.
    pub interval_ns: u64,
    /// The factor by which the controller multiplies the threshold while the mean response time is
    /// above the target; above 0 and below 1 (other values count as 0.5).
    pub factor: f64,
    /// The number of credits added to the threshold while the mean response time is below the
    /// target; at least 1.
    pub raise: u64,
}

impl ResponseMeanConfig {
    /// Creates parameters for the given target. The interval is a tenth of the target, the factor
    /// is one half, and each increase adds ten credits.
    #[must_use]
    pub fn new(target: Duration) -> Self {
        let target_ns = u64::try_from(target.as_nanos()).unwrap_or(u64::MAX);
        Self {
            target_ns,
            interval_ns: target_ns / 10,
            factor: 0.5,
            raise: 10,
        }
    }
}

/// A controller that reduces the threshold exponentially while the mean response time is above the
/// target, and raises it linearly while the mean is below the target.
#[derive(Debug)]
pub struct ResponseMean {
    config: ResponseMeanConfig,
}

impl ResponseMean {
    /// Creates a controller, and corrects parameters that are out of range.
    #[must_use]
    pub fn new(mut config: ResponseMeanConfig) -> Self {
        config.target_ns = config.target_ns.max(1);
        config.raise = config.raise.max(1);
        if !(config.factor > 0.0 && config.factor < 1.0) {
            config.factor = 0.5;
        }
        Self { config }
    }
}

impl Controller for ResponseMean {
    fn name(&self) -> &'static str {
        "response-mean"
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
        Cadence::every_ns(self.config.interval_ns)
    }

    fn sample(&mut self, sample: &Sample<'_>, _now_ns: u64) -> Settings {
        let (mut finished, mut response_ns) = (0u128, 0u128);
        for class in sample.classes {
            finished += u128::from(class.finished);
            let class_ns = u128::from(class.finished) * u128::from(class.response_mean_ns);
            response_ns = response_ns.saturating_add(class_ns);
        }
        if finished == 0 {
            // There were no observations.
            return Settings::default();
        }
        let now = sample.threshold;
        let wanted = if response_ns > finished.saturating_mul(u128::from(self.config.target_ns)) {
            (now as f64 * self.config.factor) as u64
        } else {
            now.saturating_add(self.config.raise)
        };
        let wanted = wanted.clamp(1, sample.queue_max.max(1));
        Settings {
            threshold: (wanted != now).then_some(wanted),
            ..Settings::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::control::ClassSample;
    use crate::stage::control::testing::{MS, quiet};

    fn class(finished: u64, response_mean_ns: u64) -> ClassSample {
        ClassSample {
            finished,
            response_mean_ns,
            ..ClassSample::default()
        }
    }

    fn decide(threshold: u64, classes: &[ClassSample]) -> Option<u64> {
        let mut controller = ResponseMean::new(ResponseMeanConfig::new(Duration::from_millis(5)));
        let sample = Sample {
            threshold,
            classes,
            ..quiet()
        };
        controller.sample(&sample, 0).threshold
    }

    #[test]
    fn the_threshold_falls_exponentially_and_rises_by_a_fixed_amount() {
        let check = |threshold, response_ns, expected| {
            assert_eq!(decide(threshold, &[class(3, response_ns)]), expected);
        };
        check(1000, 5 * MS + 1, Some(500));
        check(500, 100 * MS, Some(250));
        check(2, 6 * MS, Some(1));
        check(1, 6 * MS, None);
        check(100, 5 * MS, Some(110));
        check(995, 0, Some(1000));
        check(1000, MS, None);
    }

    #[test]
    fn the_mean_is_that_of_all_events() {
        assert_eq!(decide(100, &[class(9, MS), class(1, 40 * MS)]), Some(110));
        assert_eq!(decide(100, &[class(1, MS), class(9, 40 * MS)]), Some(50));
        assert_eq!(
            decide(100, &[class(u64::MAX, u64::MAX), class(9, 0)]),
            Some(50)
        );
    }

    #[test]
    fn without_a_response_nothing_is_known() {
        assert_eq!(decide(100, &[class(0, 0)]), None);
        assert_eq!(decide(100, &[]), None);
    }

    #[test]
    fn parameters_are_brought_into_their_range() {
        let controller = ResponseMean::new(ResponseMeanConfig {
            target_ns: 0,
            interval_ns: 0,
            factor: f64::NAN,
            raise: 0,
        });
        let config = controller.config;
        assert_eq!((config.target_ns, config.factor, config.raise), (1, 0.5, 1));
    }
}
