//! The capacity of a stage: its throughput when it has enough work.
//!
//! The capacity is measured in two ways. The first estimate is the number of allowed servlets
//! divided by the service time. It is available at any load and averages over many services. If
//! there are more servlets than workers, the computing time of an event bounds it. However, this
//! estimate is wrong if servlets slow each other down, and it follows changes slowly. The second
//! estimate counts the events that finish while others wait. It is accurate, but only available
//! while events wait. The first estimate applies until the second one clearly contradicts it.

use std::f64::consts::LN_2;

use super::super::Sample;
use super::super::cost::Cost;

/// The number of events that must have finished before there is an estimate.
const FINISHED_MIN: f64 = 16.0;

/// The length of the window of service times, in events. The counts are halved when they exceed it,
/// so the mean covers between half a window and a whole one. With this many events, the mean of
/// exponential times is accurate to 3 %.
const WINDOW: f64 = 2048.0;

/// The length of the window of events that finished while others waited.
const BACKLOG_WINDOW: f64 = 256.0;

/// The number of events that must have finished while others waited before they count, and the
/// ratio by which the measurements must then differ: four standard deviations for exponential
/// services.
const BACKLOG_MIN: f64 = 128.0;
const DIFFERENCE: f64 = 0.7;

/// The weight of a sample in the number of busy servlets, and the factor by which this number grows
/// in each sample in which no event waits.
const BUSY_PART: f64 = 1.0 / 8.0;
const BUSY_GROWTH: f64 = 1.02;

/// The weight, in events, of the estimate of another controller.
const KNOWN: f64 = 64.0;

/// The sum at which the capacity is considered to have fallen to half or less: by chance, this
/// happens less than once in 10^9 events.
const FALL_SUM: f64 = 22.0;

/// A test of whether the stage does less than it could: it sums the log-likelihood ratios of half
/// the capacity.
#[derive(Debug, Default)]
struct Fall {
    sum: f64,
    /// The number of events finished since the sum was last 0, and the time since then.
    finished: f64,
    ns: f64,
}

#[derive(Debug, Default)]
pub(super) struct Capacity {
    finished: f64,
    service_ns: f64,
    /// The part of `service_ns` that was computed, and the number of servlets that can compute at
    /// the same time.
    compute_ns: f64,
    workers: f64,
    backlog_finished: f64,
    backlog_ns: f64,
    servlets: usize,
    /// The number of servlets that are busy while events wait; at most `servlets`.
    busy: f64,
    /// The mean service time of an event when servlets do not hinder each other.
    service_ns_free: f64,
    /// The estimate from the two measurements, once there is enough data.
    per_ns: Option<f64>,
    fall: Fall,
    cost: Cost,
}

/// The measurements of another controller: the number of events, their times, their time while
/// servlets do not hinder each other, and the capacity.
#[derive(Clone, Copy, Debug)]
pub(super) struct Learned {
    finished: f64,
    service_ns: f64,
    compute_ns: f64,
    service_ns_free: f64,
    per_ns: Option<f64>,
}

impl Capacity {
    pub(super) fn learned(&self) -> Learned {
        Learned {
            finished: self.finished,
            service_ns: self.service_ns,
            compute_ns: self.compute_ns,
            service_ns_free: self.service_ns_free,
            per_ns: self.per_ns,
        }
    }

    /// Begins with what has been learned, of a weight from 0 to 1, unless it is too little.
    pub(super) fn recall(&mut self, learned: Learned, weight: f64) {
        let finished = learned.finished.min(WINDOW) * weight;
        if finished < FINISHED_MIN / 2.0 {
            return;
        }
        let part = finished / learned.finished;
        self.finished = finished;
        self.service_ns = learned.service_ns * part;
        self.compute_ns = learned.compute_ns * part;
        self.service_ns_free = learned.service_ns_free;
        self.per_ns = learned.per_ns;
    }

    /// Adds a sample; `backlogged` is true if events waited all the time.
    pub(super) fn observe(&mut self, sample: &Sample<'_>, backlogged: bool, batch_ns: f64) {
        self.cost
            .observe(sample.batches, sample.finished, sample.service_ns);
        let interval_ns = sample.interval_ns as f64;
        let finished = sample.finished as f64;
        if self.servlets != sample.servlets.target {
            self.servlets = sample.servlets.target;
            self.busy = self.servlets as f64;
            (self.backlog_finished, self.backlog_ns) = (0.0, 0.0);
        }
        self.finished += finished;
        self.service_ns += sample.service_ns as f64;
        self.compute_ns += sample.compute_ns as f64;
        self.workers = if sample.blocking {
            f64::INFINITY
        } else {
            sample.workers as f64
        };
        if self.finished > WINDOW {
            self.finished /= 2.0;
            self.service_ns /= 2.0;
            self.compute_ns /= 2.0;
        }
        if backlogged {
            self.backlog_finished += finished;
            self.backlog_ns += interval_ns;
            if self.backlog_finished > BACKLOG_WINDOW {
                self.backlog_finished /= 2.0;
                self.backlog_ns /= 2.0;
            }
        } else {
            // This evidence is about the past.
            self.backlog_finished *= 0.98;
            self.backlog_ns *= 0.98;
        }
        if finished > 0.0 {
            let service_ns = self.service_ns();
            let below = service_ns < self.service_ns_free || self.finished < BACKLOG_MIN;
            let weight = if below { 1.0 } else { 1.0 / 1024.0 };
            self.service_ns_free += weight * (service_ns - self.service_ns_free);
            self.per_ns = self.estimate(batch_ns).or(self.per_ns);
        }
    }

    /// Sets the rate, in events per nanosecond, and the service time that another controller knows.
    pub(super) fn is(&mut self, per_ns: f64, service_ns: f64) {
        self.per_ns = Some(per_ns);
        self.finished = KNOWN;
        (self.service_ns, self.compute_ns) = (KNOWN * service_ns, 0.0);
        self.service_ns_free = service_ns;
        (self.backlog_finished, self.backlog_ns) = (0.0, 0.0);
        self.fall = Fall::default();
    }

    /// Detects that the stage has become slower before the windows show it; `full` is true if there
    /// was work for all servlets all the time.
    pub(super) fn watch(&mut self, sample: &Sample<'_>, full: bool) {
        // Some servlets of a keyed stage find no free key, however many events wait. A few others
        // are between two events. A paused stage has none, but will have one.
        let (busy, most) = (sample.servlets.busy.max(1) as f64, self.servlets as f64);
        let able = if 2.0 * busy < most { busy } else { most };
        self.busy = match full {
            true => self.busy + BUSY_PART * (able - self.busy),
            false => (self.busy * BUSY_GROWTH).min(most),
        };
        let Some(per_ns) = self.per_ns.filter(|_| full) else {
            self.fall = Fall::default();
            return;
        };
        let (interval_ns, finished) = (sample.interval_ns as f64, sample.finished as f64);
        self.fall.sum += per_ns * interval_ns / 2.0 - finished * LN_2;
        self.fall.finished += finished;
        self.fall.ns += interval_ns;
        if self.fall.sum <= 0.0 {
            self.fall = Fall::default();
        }
        // The events in service may all end in the next moment.
        let unseen = sample.in_service as f64 * LN_2;
        if self.fall.sum > FALL_SUM * self.doubt() + unseen {
            let Fall { finished, ns, .. } = std::mem::take(&mut self.fall);
            self.per_ns = Some(finished.max(1.0) / ns);
            self.busy = able;
            self.cost.forget();
            (self.finished, self.service_ns, self.compute_ns) = (0.0, 0.0, 0.0);
            (self.backlog_finished, self.backlog_ns) = (0.0, 0.0);
        }
    }

    /// Returns the capacity in events per nanosecond, once there is enough data.
    pub(super) fn per_ns(&self) -> Option<f64> {
        self.per_ns
    }

    /// Returns the number of servlets that are busy while events wait, or that could be busy if no
    /// event waits.
    pub(super) fn busy(&self) -> u64 {
        self.busy.round() as u64
    }

    /// Returns the factor by which early estimates are less certain than later ones; 1 means no
    /// doubt.
    pub(super) fn doubt(&self) -> f64 {
        1.0 + 32.0 / self.finished.max(1.0)
    }

    /// Returns the time that a servlet takes for an event, in nanoseconds.
    pub(super) fn service_ns(&self) -> f64 {
        self.service_ns / self.finished.max(1.0)
    }

    /// Returns the time that a servlet takes for an event while the servlets do not hinder each
    /// other, in nanoseconds.
    pub(super) fn service_ns_free(&self) -> f64 {
        self.service_ns_free
    }

    /// Returns the service time per event in a batch that takes `batch_ns`. It may be less than in
    /// the observed batches.
    fn service_in_ns(&self, batch_ns: f64) -> f64 {
        let service_ns = self.service_ns();
        let Some((each_batch_ns, event_ns)) = self.cost.fit() else {
            return service_ns;
        };
        let events = (batch_ns - each_batch_ns) / event_ns;
        let share = self.cost.batches_per_event();
        let saved_ns = each_batch_ns * (share - 1.0 / events.max(1.0));
        // The two windows do not cover the same events, so the computed saving may exceed the
        // possible saving.
        (service_ns - saved_ns.max(0.0)).max(event_ns.min(service_ns))
    }

    fn estimate(&self, batch_ns: f64) -> Option<f64> {
        if self.finished < FINISHED_MIN || self.service_ns <= 0.0 {
            return None;
        }
        let service_ns = self.service_in_ns(batch_ns);
        let computing = self.compute_ns / self.service_ns;
        let at_work = self.busy.max(1.0).min(self.workers / computing);
        let by_service = at_work / service_ns;
        if self.backlog_finished >= BACKLOG_MIN {
            let by_backlog = self.backlog_finished / self.backlog_ns;
            if !(by_service * DIFFERENCE..by_service / DIFFERENCE).contains(&by_backlog) {
                return Some(by_backlog);
            }
        }
        Some(by_service)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Servlets;
    use super::super::super::testing::{MS, Random, quiet};
    use super::*;

    /// Shows a millisecond in which this number of events ended, each of which took a tenth of it,
    /// on two servlets.
    fn show(capacity: &mut Capacity, finished: u64, backlogged: bool) {
        let sample = Sample {
            finished,
            service_ns: finished * MS / 10,
            servlets: Servlets {
                target: 2,
                ..quiet().servlets
            },
            ..quiet()
        };
        capacity.observe(&sample, backlogged, 0.0);
    }

    fn per_ms(capacity: &Capacity) -> Option<f64> {
        capacity.per_ns().map(|per_ns| per_ns * MS as f64)
    }

    #[test]
    fn the_capacity_is_known_from_services_at_any_load() {
        let mut capacity = Capacity::default();
        show(&mut capacity, 15, false);
        assert_eq!(per_ms(&capacity), None);
        show(&mut capacity, 1, false);
        assert_eq!(per_ms(&capacity), Some(20.0));
    }

    #[test]
    fn surplus_servlets_do_not_exceed_the_capacity_of_the_workers() {
        let mut capacity = Capacity::default();
        let sample = Sample {
            finished: 100,
            service_ns: 3000 * MS,
            compute_ns: 2000 * MS,
            workers: 2,
            servlets: Servlets {
                target: 8,
                ..quiet().servlets
            },
            ..quiet()
        };
        capacity.observe(&sample, false, 0.0);
        let per_ms = per_ms(&capacity).expect("enough was seen");
        assert!((per_ms - 0.1).abs() < 1e-9, "{per_ms}");
    }

    #[test]
    fn the_drain_rate_of_a_backlog_corrects_the_estimate_when_servlets_contend() {
        let mut capacity = Capacity::default();
        for _ in 0..100 {
            show(&mut capacity, 16, false);
        }
        for _ in 0..12 {
            show(&mut capacity, 10, true);
        }
        assert_eq!(per_ms(&capacity), Some(20.0));
        for _ in 0..12 {
            show(&mut capacity, 10, true);
        }
        assert_eq!(per_ms(&capacity), Some(10.0));
        // A difference that may be due to chance does not count.
        let mut capacity = Capacity::default();
        for _ in 0..100 {
            show(&mut capacity, 16, true);
        }
        assert_eq!(per_ms(&capacity), Some(20.0));
    }

    /// Feeds `capacity` `ms` samples of one millisecond each, in which `finished` events end and
    /// every servlet has work.
    fn watch(capacity: &mut Capacity, ms: u64, finished: u64, in_service: u64) {
        for _ in 0..ms {
            let sample = Sample {
                finished,
                in_service,
                ..quiet()
            };
            capacity.watch(&sample, true);
        }
    }

    #[test]
    fn a_falling_capacity_is_seen_at_once() {
        let mut capacity = Capacity::default();
        show(&mut capacity, 1000, false);
        // 22 (1 + 32 / 1000) divided by 10 - 10 ln 2 is 7.4.
        watch(&mut capacity, 7, 10, 0);
        assert_eq!(per_ms(&capacity), Some(20.0));
        watch(&mut capacity, 1, 10, 0);
        assert_eq!(per_ms(&capacity), Some(10.0));
        // No event at all counts as less than one event.
        watch(&mut capacity, 200, 0, 0);
        assert!(per_ms(&capacity) < Some(0.05), "{capacity:?}");
    }

    #[test]
    fn servlets_that_find_no_free_key_do_no_work() {
        let mut capacity = Capacity::default();
        let mut show = |busy: usize, full: bool| {
            // Each event takes 60 ms.
            let sample = Sample {
                interval_ns: 10 * MS,
                finished: busy as u64 / 6,
                service_ns: busy as u64 / 6 * 60 * MS,
                servlets: Servlets {
                    busy,
                    target: 1000,
                    ..quiet().servlets
                },
                ..quiet()
            };
            for _ in 0..400 {
                capacity.observe(&sample, false, 0.0);
                capacity.watch(&sample, full);
            }
            let at_once = per_ms(&capacity).map(|per_ms| (per_ms * 60.0).round());
            (capacity.busy(), at_once)
        };
        // 48 keys have events.
        assert_eq!(show(48, true), (48, Some(48.0)));
        // If no event waits, more servlets may find one, even after a pause.
        assert_eq!(show(48, false), (1000, Some(1000.0)));
        assert_eq!(show(0, true).0, 1);
        assert_eq!(show(48, false), (1000, Some(1000.0)));
    }

    #[test]
    fn events_in_service_may_yet_end() {
        let mut capacity = Capacity::default();
        show(&mut capacity, 1000, false);
        watch(&mut capacity, 8, 0, 100);
        assert_eq!(per_ms(&capacity), Some(20.0));
        watch(&mut capacity, 2, 0, 100);
        assert!(per_ms(&capacity) < Some(0.11), "{capacity:?}");
    }

    #[test]
    fn sufficient_throughput_changes_nothing() {
        let mut capacity = Capacity::default();
        show(&mut capacity, 1000, false);
        watch(&mut capacity, 10_000, 16, 0);
        assert_eq!(per_ms(&capacity), Some(20.0));
    }

    #[test]
    fn large_batches_have_a_higher_capacity_where_a_batch_costs() {
        let capacity = |batch_ns: u64| {
            let mut capacity = Capacity::default();
            for i in 0..100 {
                let sample = Sample {
                    finished: 1 + i % 3,
                    batches: 1,
                    service_ns: batch_ns + (1 + i % 3) * 10_000,
                    ..quiet()
                };
                // 25 events, if a batch costs as much as five.
                capacity.observe(&sample, false, 300_000.0);
            }
            per_ms(&capacity).expect("enough was seen")
        };
        assert!((99.0..101.0).contains(&capacity(0)), "{}", capacity(0));
        let with_cost = capacity(50_000);
        assert!((82.0..84.0).contains(&with_cost), "{with_cost}");
    }

    #[test]
    fn a_stage_that_changes_is_never_able_to_do_less_than_nothing() {
        let mut random = Random::new(5);
        let mut capacity = Capacity::default();
        for segment in 0..2000 {
            let batch_ns = [0, 1_000, 100_000, 10_000_000][(random.next() % 4) as usize];
            let event_ns = [1, 100, 10_000, 1_000_000][(random.next() % 4) as usize];
            let most = [1, 10, 100][(random.next() % 3) as usize];
            for _ in 0..random.next() % 300 {
                let finished = 1 + random.next() % most;
                let batches = 1 + random.next() % finished;
                let sample = Sample {
                    finished,
                    batches,
                    service_ns: batches * batch_ns + finished * event_ns,
                    ..quiet()
                };
                capacity.observe(&sample, false, 300_000.0);
                let per_ns = capacity.per_ns().unwrap_or(1.0);
                assert!(per_ns > 0.0 && per_ns.is_finite(), "{per_ns} in {segment}");
            }
        }
    }

    #[test]
    fn a_backlog_that_is_over_is_forgotten() {
        let mut capacity = Capacity::default();
        for _ in 0..100 {
            show(&mut capacity, 10, true);
        }
        for _ in 0..100 {
            show(&mut capacity, 10, false);
        }
        assert_eq!(per_ms(&capacity), Some(20.0));
    }
}
