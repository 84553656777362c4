//! The controllers of a stage that names none.
//!
//! Servlets are [Aspen's](super::aspen) if the stage waits, and else as many as keep the workers at work, since servlets that compute only take turns: one for
//! each worker, and more in proportion to what they wait besides. Those that are
//! tussah threads cost next to nothing, so there are twice as many as are busy on average, without viscosity; and while all of them wait and events are
//! queued, they are doubled, since what they wait for shows in no average yet. But more than could keep the workers at work twice over would make each
//! late, and nothing sooner. Batches are
//! [SEDA's](super::seda_batch); and if there is a latency target, [`Predict`] rejects what would not meet it. Without one, only
//! the queue's own bounds reject.

mod trial;

use std::time::Duration;

use self::trial::{Trial, Window};
use super::{
    Aspen, Cadence, Controller, Owns, Predict, Sample, SedaBatch, Settings, aspen, seda_batch,
};

/// The default controllers, with a latency target or without one.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tussah::stage::control::auto;
///
/// let names = |target| -> Vec<_> { auto(target).iter().map(|c| c.name()).collect() };
/// assert_eq!(names(None), ["auto-servlets", "seda-batch"]);
/// assert_eq!(names(Some(Duration::from_millis(5))), ["auto-servlets", "seda-batch", "predict"]);
/// ```
#[must_use]
pub fn auto(target: Option<Duration>) -> Vec<Box<dyn Controller>> {
    let mut controllers: Vec<Box<dyn Controller>> = vec![
        Box::new(AutoServlets::default()),
        Box::new(SedaBatch::new(seda_batch::Config {
            target_ns: target.map(|target| u64::try_from(target.as_nanos()).unwrap_or(u64::MAX)),
            ..seda_batch::Config::default()
        })),
    ];
    if let Some(target) = target {
        controllers.push(Box::new(Predict::new(target)));
    }
    controllers
}

/// A stage that computes for less than this share of its service time waits; one that waited computes when it is above
/// the second.
const WAITS_BELOW: f64 = 0.25;
const COMPUTES_ABOVE: f64 = 0.5;

/// The share of all workers' time above which a stage is held up by the workers, so that more servlets would only share them.
const WORKERS_FULL: f64 = 0.9;

/// A stage whose service time is so many times its computing keeps the workers at work with one servlet each; above it, there are some to spare, if more do help.
const WAITS_LITTLE: f64 = 1.5;

/// Servlets to spare of such a stage, in square roots of those that keep the workers at work. Of four servlets that wait as long as they compute, all wait for 1.5 % of
/// the time; of three, for 6 % (the machine repair model, with exponential times).
const SPARE_ROOT: f64 = 1.5;

/// How many times over the servlets of a stage that waits may keep the workers at work.
const SPARE: f64 = 2.0;

/// LOW of Aspen where servlets cost little: with twice as many as are busy on average, hardly ever all are.
const CHEAP_LOW: f64 = 0.5;

/// Bound, in servlets for each worker: how many there are at most before it is known what the stage does.
const UNKNOWN_MAX: usize = 8;

/// Bound, in nanoseconds: the shortest time between two decisions, since ten arrivals are too few to pay for one where events take less than a microsecond.
const INTERVAL_NS: u64 = 100_000;

/// Events whose times are summed before the oldest half is forgotten.
const WINDOW: u64 = 200;

/// Events that must have been finished before a stage is said to wait.
const FINISHED_MIN: u64 = 10;

/// Aspen's servlets on a stage that waits, and one a worker on a stage that computes.
///
/// A blocking stage waits: its OS threads take no worker. Elsewhere the time that batches spent on workers is compared with how long they took. This
/// begins with a servlet a worker, so that servlets that wait for each other's worker are not taken for servlets that wait for something else. What handlers wait for after
/// they let others have their turn is known to be a worker, and does not count.
#[derive(Debug)]
pub struct AutoServlets {
    /// For servlets that are tussah threads, and for those that are OS threads.
    cheap: Aspen,
    dear: Aspen,
    waits: bool,
    finished: u64,
    service_ns: u64,
    compute_ns: u64,
    /// The same since it was last found out whether the workers are full, with what time has passed.
    window: Window,
    full: bool,
    trial: Trial,
}

impl Default for AutoServlets {
    fn default() -> Self {
        Self {
            cheap: Aspen::new(aspen::Config {
                low: CHEAP_LOW,
                exponent_max: 0.0,
                ..aspen::Config::default()
            }),
            dear: Aspen::default(),
            waits: false,
            finished: 0,
            service_ns: 0,
            compute_ns: 0,
            window: Window::default(),
            full: false,
            trial: Trial::default(),
        }
    }
}

impl AutoServlets {
    /// Whether it takes the stage to wait.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.waits
    }

    fn learn(&mut self, sample: &Sample<'_>) {
        self.finished = self.finished.saturating_add(sample.finished);
        self.service_ns = self.service_ns.saturating_add(sample.service_ns);
        self.compute_ns = self.compute_ns.saturating_add(sample.compute_ns);
        if self.finished > WINDOW {
            self.finished /= 2;
            self.service_ns /= 2;
            self.compute_ns /= 2;
        }
        if self.finished >= FINISHED_MIN {
            let limit = if self.waits {
                COMPUTES_ABOVE
            } else {
                WAITS_BELOW
            };
            let waits = (self.compute_ns as f64) < limit * self.service_ns as f64;
            self.waits = waits && !self.trial.is_on();
        }
        if !self.waits {
            self.trial.learn(sample);
        }
        self.waits |= sample.blocking;
        let window = &mut self.window;
        window.add(sample);
        // What computed is known when it ends; so few that end say nothing, unless more should have.
        let enough = window.finished >= FINISHED_MIN.max(sample.servlets.busy as u64);
        let mean_ns = self.service_ns / self.finished.max(1);
        if enough || window.interval_ns > mean_ns.saturating_mul(2) {
            let full = WORKERS_FULL * sample.workers as f64;
            self.full = !sample.blocking && window.workers() > full;
            self.window = Window::default();
        }
    }

    /// How many servlets keep the workers at work, those that wait included.
    fn kept_at_work(&self, workers: usize) -> f64 {
        workers as f64 * self.service_ns as f64 / self.compute_ns.max(1) as f64
    }

    /// How many servlets a stage has that computes most of the time, and has `now`.
    fn computing(&mut self, sample: &Sample<'_>) -> usize {
        let (workers, now) = (sample.workers, sample.servlets.target);
        let needed = self.kept_at_work(workers);
        if self.finished < FINISHED_MIN || needed < WAITS_LITTLE * workers as f64 {
            self.trial.break_off();
            return workers;
        }
        let spare = SPARE_ROOT * (needed * workers as f64).sqrt();
        let wanted = (needed + spare).round() as usize;
        // One more or less, as it is measured now or then, is none.
        let wanted = if now.abs_diff(wanted) <= 1 {
            now
        } else {
            wanted
        };
        self.trial.servlets(sample, wanted)
    }
}

impl Controller for AutoServlets {
    fn name(&self) -> &'static str {
        "auto-servlets"
    }

    fn owns(&self) -> Owns {
        Owns::SERVLETS
    }

    fn cadence(&self) -> Cadence {
        Cadence {
            interval_ns: INTERVAL_NS,
            ..self.cheap.cadence()
        }
    }

    fn sample(&mut self, sample: &Sample<'_>, now_ns: u64) -> Settings {
        // Where the next stage has no room, more servlets would only wait too; as they would where it is workers that are lacking.
        let not_ns = sample.held_up_ns.saturating_add(sample.ready_ns);
        let sample = &Sample {
            service_ns: sample.service_ns.saturating_sub(not_ns),
            ..*sample
        };
        self.learn(sample);
        let aspen = if sample.blocking {
            &mut self.dear
        } else {
            &mut self.cheap
        };
        let by_load = aspen.sample(sample, now_ns);
        let now = sample.servlets.target;
        // More could begin if all wait, and they have not been at it for long enough to be seen in the load.
        let may_wait = self.waits || self.finished < FINISHED_MIN;
        let stuck = may_wait && sample.waiting >= now && sample.queue_len > 0 && !self.full;
        let wanted = if stuck {
            // Nothing is known of a stage that has finished nothing: it may be held up by the next one.
            let most = if self.waits {
                sample.servlets.max
            } else {
                sample
                    .servlets
                    .max
                    .min(UNKNOWN_MAX.saturating_mul(sample.workers))
            };
            let more = by_load.servlets.unwrap_or(now).max(now.saturating_mul(2));
            more.min(most).max(now)
        } else if !self.waits {
            self.computing(sample).clamp(1, sample.servlets.max.max(1))
        } else if self.full {
            by_load.servlets.map_or(now, |servlets| servlets.min(now))
        } else {
            by_load.servlets.unwrap_or(now)
        };
        let wanted = if self.waits && !sample.blocking {
            let most = (SPARE * self.kept_at_work(sample.workers)).ceil() as usize;
            wanted.min(most.max(sample.workers)).max(1)
        } else {
            wanted
        };
        Settings {
            servlets: (wanted != now).then_some(wanted),
            ..Settings::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Servlets;
    use super::super::testing::{MS, quiet};
    use super::*;

    fn look(target: usize, service_ms: u64, compute_ms: u64) -> Sample<'static> {
        Sample {
            interval_ns: 10 * MS,
            arrived: 10,
            finished: 10,
            service_ns: service_ms * MS,
            compute_ns: compute_ms * MS,
            servlets: Servlets {
                target,
                ..quiet().servlets
            },
            ..quiet()
        }
    }

    /// What becomes of the servlets while all of them are at work, and events are queued.
    fn at_work(auto: &mut AutoServlets, sample: &Sample<'_>) -> Option<usize> {
        (0..20).find_map(|_| auto.sample(&full(*sample), 0).servlets)
    }

    fn full(sample: Sample<'_>) -> Sample<'_> {
        let servlets = Servlets {
            busy: sample.servlets.target,
            ..sample.servlets
        };
        Sample {
            queue_len: 1,
            servlets,
            ..sample
        }
    }

    #[test]
    fn servlets_that_wait_for_each_other_are_as_many_as_before() {
        let mut auto = AutoServlets::default();
        assert_eq!(at_work(&mut auto, &look(2, 20, 10)), Some(8));
        // The workers have no more to do.
        assert_eq!(at_work(&mut auto, &look(8, 80, 10)), Some(2));
        assert!(!auto.waits());
        let mut events = 0;
        while auto.sample(&full(look(2, 20, 10)), 0).servlets.is_none() {
            events += 10;
        }
        assert!((3_900..4_200).contains(&events), "{events}");
        // Now they have.
        assert_eq!(at_work(&mut auto, &look(8, 80, 20)), None);
        assert!(!auto.trial.is_on());
    }

    #[test]
    fn a_stage_that_computes_has_a_servlet_a_worker() {
        let check = |target, expected| {
            let mut auto = AutoServlets::default();
            assert_eq!(auto.sample(&look(target, 40, 40), 0).servlets, expected);
            assert!(!auto.waits());
        };
        check(1, Some(2));
        check(2, None);
        check(50, Some(2));
    }

    #[test]
    fn a_stage_that_waits_half_of_the_time_has_servlets_for_that_and_some_to_spare() {
        let first = |sample: Sample<'_>| at_work(&mut AutoServlets::default(), &sample);
        assert_eq!(first(look(2, 20, 10)), Some(8));
        assert_eq!(first(look(7, 20, 10)), None);
        assert_eq!(first(look(2, 29, 20)), None);
        // To wait for a worker is not to wait.
        let sharing = Sample {
            ready_ns: 180 * MS,
            ..look(16, 200, 10)
        };
        assert_eq!(first(sharing), Some(8));
    }

    #[test]
    fn no_more_servlets_wait_than_keep_the_workers_at_work_twice_over() {
        let mut auto = AutoServlets::default();
        // A thousand a millisecond arrive, of which few are let in.
        let rejecting = Sample {
            arrived: 10_000,
            ..look(2, 50, 10)
        };
        assert_eq!(auto.sample(&rejecting, 0).servlets, Some(20));
        assert!(auto.waits());
        let stuck = Sample {
            finished: 0,
            waiting: 20,
            queue_len: 1,
            ..look(20, 0, 0)
        };
        assert_eq!(auto.sample(&stuck, 0).servlets, None);
    }

    #[test]
    fn a_stage_that_waits_has_twice_as_many_as_are_busy() {
        let mut auto = AutoServlets::default();
        let above_the_mean = Sample {
            process_servlets: 100,
            process_servlets_mean: 2.0,
            ..look(2, 400, 1)
        };
        assert_eq!(auto.sample(&above_the_mean, 0).servlets, Some(80));
        assert!(auto.waits());
        assert_eq!(auto.sample(&look(80, 400, 1), 0).servlets, None);
    }

    #[test]
    fn servlets_are_doubled_while_all_wait_and_events_are_queued() {
        let stuck = |waiting, queue_len| Sample {
            interval_ns: 10 * MS,
            arrived: 10,
            waiting,
            queue_len,
            ..look(2, 0, 0)
        };
        let first = |sample: Sample<'_>| AutoServlets::default().sample(&sample, 0).servlets;
        assert_eq!(
            first(Sample {
                finished: 0,
                ..stuck(2, 1)
            }),
            Some(4)
        );
        assert_eq!(
            first(Sample {
                finished: 0,
                ..stuck(1, 1)
            }),
            None
        );
        assert_eq!(
            first(Sample {
                finished: 0,
                ..stuck(2, 0)
            }),
            None
        );
        let more = Sample {
            servlets: Servlets {
                target: 16,
                ..quiet().servlets
            },
            ..stuck(16, 1)
        };
        assert_eq!(
            first(Sample {
                finished: 0,
                ..more
            }),
            None
        );
        // One that is known to compute waits for nothing but the workers, or for itself.
        let computes = Sample {
            service_ns: MS,
            compute_ns: MS,
            ..stuck(2, 1)
        };
        assert_eq!(first(computes), None);
    }

    #[test]
    fn what_waits_for_room_in_the_next_stage_does_not_wait() {
        let mut auto = AutoServlets::default();
        let held_up = Sample {
            held_up_ns: 395 * MS,
            ..look(2, 400, 4)
        };
        assert_eq!(auto.sample(&held_up, 0).servlets, None);
        assert!(!auto.waits());
    }

    #[test]
    fn a_blocking_stage_waits_though_its_threads_are_taken() {
        let mut auto = AutoServlets::default();
        let sample = Sample {
            blocking: true,
            ..look(1, 30, 30)
        };
        assert_eq!(auto.sample(&sample, 0).servlets, Some(3));
    }

    #[test]
    fn no_servlets_are_added_when_the_workers_are_full() {
        let mut auto = AutoServlets::default();
        auto.sample(&look(2, 100, 1), 0);
        assert!(auto.waits());
        // They wait for workers now: 19 of 20 ms of workers were used in 10 ms.
        assert_eq!(auto.sample(&look(10, 400, 19), 0).servlets, None);
        assert_eq!(auto.sample(&look(10, 400, 10), 0).servlets, Some(60));
    }

    #[test]
    fn what_a_stage_does_may_change() {
        let mut auto = AutoServlets::default();
        auto.sample(&look(2, 100, 1), 0);
        assert!(auto.waits());
        for _ in 0..100 {
            auto.sample(&look(10, 10, 9), 0);
        }
        assert!(!auto.waits());
        assert_eq!(auto.sample(&look(10, 10, 9), 0).servlets, Some(2));
    }

    #[test]
    fn no_setting_has_two_owners() {
        let mut all = Owns::NOTHING;
        for controller in auto(Some(Duration::from_millis(1))) {
            assert_eq!(all.both(controller.owns()), Owns::NOTHING);
            all = all | controller.owns();
        }
        assert_eq!(all, Owns::SERVLETS | Owns::BATCH | Owns::ADMISSION);
    }

    #[test]
    fn batches_that_cost_something_are_not_made_small_in_overload() {
        use crate::stage::sim::{Arrivals, End, Service, Simulation, Time};
        let target = Duration::from_millis(1);
        // In batches of 12 the one CPU does 70,000 a second, in batches of 1, 16,000.
        let service = Service {
            batch_ns: 50_000,
            ..Service::computing(Time::Exponential(10_000.0))
        };
        let simulation = Simulation {
            until_ns: 1_000_000_000,
            workers: 1,
            servlets: 1,
            services: vec![(0, service)],
            arrivals: Arrivals::steps(&[(0, 30_000.0), (200_000_000, 120_000.0)]),
            ..Simulation::default()
        };
        let mut good = 0;
        simulation.run(auto(Some(target)), 1, |outcome| {
            let in_time = u128::from(outcome.response_ns()) <= target.as_nanos();
            let counts = outcome.arrived_ns >= 200_000_000 && outcome.end == End::Served;
            good += u32::from(counts && in_time);
        });
        assert!(good >= 48_000, "{good} in 0.8 s");
    }
}
