//! Admission by the length of the queue alone.
//!
//! SEDA (Welsh, Culler and Brewer, SOSP 2001), §5.2.3: "a simple policy would be to threshold each
//! stage's incoming event queue and drop packets when the threshold has been exceeded".

use crate::stage::control::{Admission, Arrival, Cadence, Controller, Owns, Sample, Settings};

/// A controller that sets a fixed threshold for the queue, below the queue's own bound.
#[derive(Debug)]
pub struct Threshold {
    queue_max: u64,
}

impl Threshold {
    /// Creates a controller with a threshold of `queue_max` credits; 0 counts as 1.
    #[must_use]
    pub fn new(queue_max: u64) -> Self {
        Self {
            queue_max: queue_max.max(1),
        }
    }
}

impl Controller for Threshold {
    fn name(&self) -> &'static str {
        "threshold"
    }

    fn owns(&self) -> Owns {
        Owns::ADMISSION
    }

    fn looks_at_departures(&self) -> bool {
        false
    }

    fn cadence(&self) -> Cadence {
        // The queue enforces the threshold itself. The threshold has to be set once, and again when
        // the queue's bound changes.
        Cadence::every_ns(100_000_000)
    }

    fn sample(&mut self, sample: &Sample<'_>, _now_ns: u64) -> Settings {
        let wanted = self.queue_max.min(sample.queue_max);
        Settings {
            threshold: (wanted != sample.threshold).then_some(wanted),
            ..Settings::default()
        }
    }

    fn on_enqueue(&mut self, arrival: &Arrival) -> Admission {
        // The queue does not know the threshold before the first sample.
        if arrival.queue_len.saturating_add(u64::from(arrival.credits)) > self.queue_max {
            Admission::Reject
        } else {
            Admission::Admit
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::control::testing::{arrival, quiet};

    #[test]
    fn the_queue_gets_its_threshold_once() {
        let check = |max, threshold, expected| {
            let sample = Sample {
                threshold,
                ..quiet()
            };
            let settings = Threshold::new(max).sample(&sample, 0);
            assert_eq!(settings.threshold, expected, "{max}");
        };
        check(100, 1000, Some(100));
        check(100, 100, None);
        check(0, 1000, Some(1));
        check(5000, 1000, None);
    }

    #[test]
    fn the_threshold_holds_from_the_first_event_on() {
        let mut threshold = Threshold::new(3);
        let mut at = |queue_len| threshold.on_enqueue(&arrival(0, queue_len, 50));
        assert_eq!([at(0), at(2)], [Admission::Admit; 2]);
        assert_eq!([at(3), at(u64::MAX - 1)], [Admission::Reject; 2]);
    }
}
