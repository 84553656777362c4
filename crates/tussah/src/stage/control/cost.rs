//! The cost of a batch and the cost of each event in it.
//!
//! Servlet time is modeled as a linear function of the number of batches and the number of events.
//! Weighted least squares over the samples estimate the two slopes. The weights account for the
//! larger variance of samples with many events.

/// The number of samples after which the weight of earlier samples is halved. This is enough to
/// distinguish the slopes from the noise of exponential times.
const WINDOW: f64 = 256.0;

/// The minimum numbers of samples and of standard errors for the cost of a batch to be significant.
const SAMPLES_MIN: f64 = 16.0;
const ERRORS: f64 = 3.0;

/// The smallest time of an event, as a share of the mean time.
const EVENT_MIN: f64 = 0.05;

/// Sums over samples, each divided by its number of events.
#[derive(Debug, Default)]
pub(super) struct Cost {
    samples: f64,
    batches_batches: f64,
    batches: f64,
    events: f64,
    batches_ns: f64,
    ns: f64,
    ns_ns: f64,
}

impl Cost {
    /// Adds a sample: `batches` batches with `events` events together took `ns` nanoseconds.
    pub(super) fn observe(&mut self, batches: u64, events: u64, ns: u64) {
        if batches == 0 || events == 0 {
            return;
        }
        let (m, n, s) = (batches as f64, events as f64, ns as f64);
        self.samples += 1.0;
        self.batches_batches += m * m / n;
        self.batches += m;
        self.events += n;
        self.batches_ns += m * s / n;
        self.ns += s;
        self.ns_ns += s * s / n;
        if self.samples > WINDOW {
            for sum in [
                &mut self.samples,
                &mut self.batches_batches,
                &mut self.batches,
                &mut self.events,
                &mut self.batches_ns,
                &mut self.ns,
                &mut self.ns_ns,
            ] {
                *sum /= 2.0;
            }
        }
    }

    /// Forgets all samples.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Returns the costs of a batch and of an event, in nanoseconds. The cost of a batch is 0
    /// unless it is significant. Returns `None` without samples.
    pub(super) fn fit(&self) -> Option<(f64, f64)> {
        if self.events == 0.0 {
            return None;
        }
        let mean_ns = self.ns / self.events;
        let spread = self.batches_batches * self.events - self.batches * self.batches;
        if self.samples < SAMPLES_MIN || spread <= 1e-3 * self.batches_batches * self.events {
            return Some((0.0, mean_ns));
        }
        let batch_ns = (self.batches_ns * self.events - self.ns * self.batches) / spread;
        let event_ns = (self.ns - batch_ns * self.batches) / self.events;
        let off = self.ns_ns - batch_ns * self.batches_ns - event_ns * self.ns;
        let variance = off.max(0.0) / (self.samples - 2.0);
        let error_ns = (variance * self.events / spread).sqrt();
        let batch_ns = (batch_ns - ERRORS * error_ns).max(0.0);
        let event_ns = (self.ns - batch_ns * self.batches) / self.events;
        Some((batch_ns, event_ns.max(EVENT_MIN * mean_ns)))
    }

    /// Returns the inverse of the mean batch length.
    pub(super) fn batches_per_event(&self) -> f64 {
        self.batches / self.events.max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::sim::Random;

    /// Observes batches of one to `most` events, whose times vary like exponential ones.
    fn fit(most: u64, batch_ns: f64, event_ns: f64) -> (f64, f64) {
        let mut random = Random::new(3);
        let mut cost = Cost::default();
        for i in 0..1000 {
            let events = 1 + i % most;
            let mut ns = batch_ns;
            for _ in 0..events {
                let unit = (random.next() >> 11) as f64 / (1u64 << 53) as f64;
                ns -= event_ns * (1.0 - unit).ln();
            }
            cost.observe(1, events, ns as u64);
        }
        cost.fit().expect("there are samples")
    }

    #[test]
    fn a_batch_costs_nothing_unless_that_is_sure() {
        let (batch_ns, event_ns) = fit(5, 0.0, 1000.0);
        assert!(batch_ns < 50.0, "{batch_ns}");
        assert!((900.0..1100.0).contains(&event_ns), "{event_ns}");
    }

    #[test]
    fn the_cost_of_a_batch_is_separated_from_that_of_its_events() {
        let (batch_ns, event_ns) = fit(5, 5000.0, 1000.0);
        // The batch cost is reduced by at most three standard errors, which are then part of the
        // events' costs.
        assert!((4000.0..5000.0).contains(&batch_ns), "{batch_ns}");
        assert!((900.0..1500.0).contains(&event_ns), "{event_ns}");
    }

    #[test]
    fn batches_of_one_size_do_not_separate_the_costs() {
        let (batch_ns, event_ns) = fit(1, 5000.0, 1000.0);
        assert_eq!(batch_ns, 0.0);
        assert!((5800.0..6200.0).contains(&event_ns), "{event_ns}");
        assert_eq!(Cost::default().fit(), None);
    }
}
