//! Filtering by event type: each class may fill the queue up to its own share.
//!
//! SEDA (Welsh, Culler and Brewer, SOSP 2001), §5.2.3: "admit all packets into the system, but have
//! the application event handler filter out query packets (which are the source of the overload)".
//! Here each type of event is a class. If the queue is filled to the share of a class, the
//! controller rejects events of that class before they are queued. Expensive events therefore leave
//! room for cheap ones.

use crate::stage::control::{Admission, Arrival, Cadence, Controller, Owns, Sample, Settings};
use crate::stage::event::CLASSES_MAX;

/// A controller that admits an event only if the length of the queue, including this event, is at
/// most the class's share of the queue's bound.
#[derive(Debug)]
pub struct ByClass {
    shares: [f64; CLASSES_MAX],
    limits: [u64; CLASSES_MAX],
}

impl ByClass {
    /// Creates a controller that admits an event of class i only if the length of the queue,
    /// including this event, is at most `shares[i]` times the queue's bound. If a share is 0, the
    /// controller rejects all events of the class.
    ///
    /// Shares are clamped to the range from 0 to 1, and NaN counts as 1. Classes beyond the end of
    /// the slice use the last share, or 1 if the slice is empty.
    ///
    /// # Panics
    /// Panics if `shares` has more than [`CLASSES_MAX`] elements.
    #[must_use]
    pub fn new(shares: &[f64]) -> Self {
        let given = shares.len();
        assert!(
            given <= CLASSES_MAX,
            "{given} shares for {CLASSES_MAX} classes at most"
        );
        let mut all = [shares.last().copied().unwrap_or(1.0); CLASSES_MAX];
        all[..given].copy_from_slice(shares);
        for share in &mut all {
            *share = if share.is_nan() {
                1.0
            } else {
                share.clamp(0.0, 1.0)
            };
        }
        // Until the queue's bound is known, only classes with a share of 0 are rejected.
        let limits = all.map(|share| if share == 0.0 { 0 } else { u64::MAX });
        Self {
            shares: all,
            limits,
        }
    }
}

impl Controller for ByClass {
    fn name(&self) -> &'static str {
        "by-class"
    }

    fn owns(&self) -> Owns {
        Owns::ADMISSION
    }

    fn looks_at_departures(&self) -> bool {
        false
    }

    fn cadence(&self) -> Cadence {
        // This sample serves only to learn the queue's bound.
        Cadence::every_ns(1_000_000)
    }

    fn sample(&mut self, sample: &Sample<'_>, _now_ns: u64) -> Settings {
        for (limit, share) in self.limits.iter_mut().zip(self.shares) {
            *limit = (sample.queue_max as f64 * share) as u64;
        }
        Settings::default()
    }

    fn on_enqueue(&mut self, arrival: &Arrival) -> Admission {
        let class = arrival.class.among(CLASSES_MAX);
        let with_it = arrival.queue_len.saturating_add(u64::from(arrival.credits));
        if with_it <= self.limits[class] {
            Admission::Admit
        } else {
            Admission::Reject
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::control::testing::{arrival, quiet};

    #[test]
    fn each_class_has_its_share_of_the_queue() {
        let mut by_class = ByClass::new(&[1.0, 0.5, 0.0]);
        by_class.sample(&quiet(), 0);
        let mut check = |class, queue_len, expected| {
            let got = by_class.on_enqueue(&arrival(class, queue_len, 9));
            assert_eq!(got, expected, "class {class} at {queue_len}");
        };
        check(0, 999, Admission::Admit);
        check(0, 1000, Admission::Reject);
        check(1, 499, Admission::Admit);
        check(1, 500, Admission::Reject);
        check(2, 0, Admission::Reject);
        check(7, 0, Admission::Reject);
        check(255, 0, Admission::Reject);
    }

    #[test]
    fn an_event_counts_with_all_its_credits() {
        let mut by_class = ByClass::new(&[0.1]);
        by_class.sample(&quiet(), 0);
        let mut large = arrival(0, 90, 0);
        large.credits = 11;
        assert_eq!(by_class.on_enqueue(&large), Admission::Reject);
        large.credits = 10;
        assert_eq!(by_class.on_enqueue(&large), Admission::Admit);
    }

    #[test]
    fn a_class_is_filtered_out_from_the_first_event_on() {
        let mut by_class = ByClass::new(&[f64::NAN, -1.0]);
        assert_eq!(by_class.on_enqueue(&arrival(0, 500, 0)), Admission::Admit);
        assert_eq!(by_class.on_enqueue(&arrival(1, 0, 0)), Admission::Reject);
    }

    #[test]
    #[should_panic(expected = "9 shares for 8 classes at most")]
    fn there_are_no_more_shares_than_classes() {
        let _ = ByClass::new(&[1.0; 9]);
    }
}
