//! The default controllers of a stage.
//!
//! If the stage's handlers wait, [Aspen's rule](super::aspen) sets the number of servlets. If they
//! compute, more servlets than workers would only take turns. Such a stage therefore has one
//! servlet per worker, plus a share for the time in which handlers wait.
//!
//! Servlets that are tussah threads cost almost nothing. A waiting stage of such servlets therefore
//! has twice as many as are busy on average, without viscosity. A servlet that was not needed for a
//! second or two is removed, so that the number shows what the load needs. The upper bound is twice
//! the number that keeps the workers busy: beyond it, additional servlets would delay every event
//! and speed up none. A new stage, which has no measurements yet, has all servlets that it may
//! have.
//!
//! While all servlets wait and events are queued, their number doubles, because the averages do not
//! show the new waits yet. In a blocking stage, every busy servlet counts as waiting.
//!
//! These numbers come from events that have ended, and say nothing about events that have just
//! begun to wait. If no event ends while all servlets wait, the stage therefore begins further
//! events ([`WhileAllWait::BeginSoon`]).
//!
//! [SEDA's controller](super::seda_batch) sets the batch size. With a latency target,
//! [`AutoTarget`] sets the number of servlets and controls admission. It rejects events that would
//! miss the target, and detects scarcity of a resource that handlers wait for. Without a target,
//! the stage refuses events only at the bounds of its queue.

mod lately;
mod memory;
mod switch;
mod target;
mod trial;

use std::time::Duration;

use self::lately::Lately;
pub use self::memory::Memory;
pub use self::switch::{Mode, Observed, Switch};
pub use self::target::AutoTarget;
use self::trial::{Trial, Window};
use super::{
    Cadence, Controller, Owns, Predict, Sample, Settings, WhileAllWait,
    policy::{Aspen, AspenConfig, SedaBatch, SedaBatchConfig},
};

/// Returns the default controllers for a stage; `target` is the stage's latency target, if any.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tussah::stage::control::auto;
///
/// let names = |target| -> Vec<_> { auto(target).iter().map(|c| c.name()).collect() };
/// assert_eq!(names(None), ["auto-servlets", "seda-batch"]);
/// assert_eq!(names(Some(Duration::from_millis(5))), ["auto", "seda-batch"]);
/// ```
#[must_use]
pub fn auto(target: Option<Duration>) -> Vec<Box<dyn Controller>> {
    auto_besides(target, Owns::NOTHING)
}

/// Returns the default controllers for all settings that are not in `taken`. The settings in
/// `taken` belong to other controllers.
///
/// If `taken` contains admission but not servlets, [`AutoServlets`] owns servlets. If `taken`
/// contains servlets but not admission, and there is a target, [`Predict`] owns admission.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tussah::stage::control::{Owns, auto_besides};
///
/// let target = Some(Duration::from_millis(5));
/// let rest = auto_besides(target, Owns::BATCH | Owns::ADMISSION);
/// assert_eq!(rest.iter().map(|c| c.name()).collect::<Vec<_>>(), ["auto-servlets"]);
/// ```
#[must_use]
pub fn auto_besides(target: Option<Duration>, taken: Owns) -> Vec<Box<dyn Controller>> {
    let batch = SedaBatchConfig {
        target_ns: target.map(|target| u64::try_from(target.as_nanos()).unwrap_or(u64::MAX)),
        ..SedaBatchConfig::default()
    };
    let mut controllers: Vec<Box<dyn Controller>> = Vec::new();
    match target {
        Some(target) if taken.both(Owns::SERVLETS | Owns::ADMISSION) == Owns::NOTHING => {
            controllers.push(Box::new(AutoTarget::new(target)));
            controllers.push(Box::new(SedaBatch::new(batch)));
        }
        target => {
            controllers.push(Box::new(AutoServlets::default()));
            controllers.push(Box::new(SedaBatch::new(batch)));
            if let Some(target) = target {
                controllers.push(Box::new(Predict::new(target)));
            }
        }
    }
    controllers.retain(|one| one.owns().both(taken) == Owns::NOTHING);
    controllers
}

/// A stage counts as waiting if it computes for less than the first share of its service time. It
/// counts as computing again if it computes for more than the second share.
const WAITS_BELOW: f64 = 0.25;
const COMPUTES_ABOVE: f64 = 0.5;

/// The share of all workers' time above which the workers limit a stage. Additional servlets would
/// then only share the workers.
const WORKERS_FULL: f64 = 0.9;

/// The number of busy workers below which servlets do not wait for each other, but for something
/// else.
const EACH_OTHER: f64 = 0.5;

/// The ratio of service time to computing time below which one servlet for each worker is enough.
/// Above it, the stage has spare servlets if additional servlets help.
const WAITS_LITTLE: f64 = 1.5;

/// The number of spare servlets, as a multiple of the square root of the number that keeps the
/// workers busy. Four servlets that wait as long as they compute all wait at once for 1.5 % of the
/// time; three, for 6 % (the machine repair model, with exponential times).
const SPARE_ROOT: f64 = 1.5;

/// The maximum number of servlets of a waiting stage, as a multiple of the number needed to keep
/// the workers busy.
const SPARE: f64 = 2.0;

/// Aspen's LOW for cheap servlets: with twice as many as are busy on average, all of them are
/// rarely busy, if they are not few.
const CHEAP_LOW: f64 = 0.5;

/// The shortest time between two decisions, in nanoseconds. If events take less than a microsecond,
/// ten arrivals are too few to pay for a decision.
const INTERVAL_NS: u64 = 100_000;

/// The number of events in the sums of times, of which the older half is then dropped.
const WINDOW: u64 = 200;

/// The number of events that must have finished before a stage can count as waiting.
const FINISHED_MIN: u64 = 10;

/// A controller that sets the number of servlets. If the stage's handlers wait, the controller uses
/// Aspen's rule. If the handlers mostly compute, the controller provides one servlet per worker, or
/// more if the handlers also wait.
///
/// A blocking stage always counts as waiting, because its OS threads occupy no workers. For a
/// non-blocking stage, the controller compares the time that batches spend on workers with the
/// total time of these batches. The controller starts with one servlet per worker, because with
/// more servlets, time spent waiting for a worker would count as waiting for something else. After
/// a yield, a handler waits only for a worker, so this wait is not counted.
#[derive(Debug)]
pub struct AutoServlets {
    /// Aspen for servlets that are tussah threads, and for servlets that are OS threads.
    cheap: Aspen,
    dear: Aspen,
    /// The load of servlets that are tussah threads.
    lately: Lately,
    times: Times,
    /// The sums of the work since the last check of the workers, with the elapsed time.
    window: Window,
    /// The number of workers that the stage kept busy in the last window, and whether these were
    /// all workers.
    at_work: f64,
    full: bool,
    trial: Trial,
}

/// The times of the latest events.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    /// True if the stage counts as waiting.
    waits: bool,
    finished: u64,
    service_ns: u64,
    compute_ns: u64,
    /// The time that the waiting handlers have spent, so far, on batches that have not ended.
    pending_ns: u64,
}

impl Times {
    /// Returns the times with a weight from 0 to 1.
    fn aged(self, weight: f64) -> Self {
        let part = |sum: u64| (sum as f64 * weight) as u64;
        Self {
            waits: self.waits,
            finished: part(self.finished),
            service_ns: part(self.service_ns),
            compute_ns: part(self.compute_ns),
            pending_ns: 0,
        }
    }
}

impl Default for AutoServlets {
    fn default() -> Self {
        Self {
            cheap: Aspen::new(AspenConfig {
                low: CHEAP_LOW,
                // `Lately` decides how long idle servlets stay.
                high: 1.0 / CHEAP_LOW,
                exponent_max: 0.0,
                ..AspenConfig::default()
            }),
            dear: Aspen::default(),
            lately: Lately::default(),
            times: Times::default(),
            window: Window::default(),
            at_work: f64::INFINITY,
            full: false,
            trial: Trial::default(),
        }
    }
}

impl AutoServlets {
    /// Returns whether the controller treats the stage as one whose handlers wait.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.times.waits
    }

    fn learn(&mut self, sample: &Sample<'_>) {
        self.times.finished = self.times.finished.saturating_add(sample.finished);
        self.times.service_ns = self.times.service_ns.saturating_add(sample.service_ns);
        self.times.compute_ns = self.times.compute_ns.saturating_add(sample.compute_ns);
        // The batches that have ended do not show waits that have just begun.
        let begun_ns = (sample.waiting as u64).saturating_mul(sample.busy_ns);
        let ended_ns = sample.service_ns.saturating_sub(sample.compute_ns);
        let pending_ns = self.times.pending_ns.saturating_add(begun_ns);
        self.times.pending_ns = match sample.waiting {
            0 => 0,
            _ => pending_ns.saturating_sub(ended_ns),
        };
        if self.times.finished > WINDOW {
            self.times.finished /= 2;
            self.times.service_ns /= 2;
            self.times.compute_ns /= 2;
        }
        if self.times.finished >= FINISHED_MIN {
            let limit = if self.times.waits {
                COMPUTES_ABOVE
            } else {
                WAITS_BELOW
            };
            let service_ns = self.times.service_ns.saturating_add(self.times.pending_ns);
            let waits = (self.times.compute_ns as f64) < limit * service_ns as f64;
            // If all workers are busy, the service time may be long because handlers wait for a
            // worker.
            let may = self.times.waits || !self.full;
            self.times.waits = waits && may && (!self.trial.is_on() || self.at_work < EACH_OTHER);
        }
        if !self.times.waits {
            self.trial.learn(sample);
        }
        self.times.waits |= sample.blocking;
        let window = &mut self.window;
        window.add(sample);
        // The computing time of a batch is known when it ends. A few ended batches therefore show
        // little, unless more should have ended.
        let enough = window.finished >= FINISHED_MIN.max(sample.servlets.busy as u64);
        let mean_ns = self.times.service_ns / self.times.finished.max(1);
        if enough || window.interval_ns > mean_ns.saturating_mul(2) {
            let full = WORKERS_FULL * sample.workers as f64;
            self.at_work = window.workers();
            self.full = !sample.blocking && self.at_work > full;
            self.window = Window::default();
        }
    }

    /// Returns the number of servlets, including waiting ones, that keeps the workers busy.
    fn kept_at_work(&self, workers: usize) -> f64 {
        workers as f64 * self.times.service_ns as f64 / self.times.compute_ns.max(1) as f64
    }

    /// Returns the number of servlets for a stage that computes most of the time.
    fn computing(&mut self, sample: &Sample<'_>) -> usize {
        let (workers, now) = (sample.workers, sample.servlets.target);
        let needed = self.kept_at_work(workers);
        if self.times.finished < FINISHED_MIN || needed < WAITS_LITTLE * workers as f64 {
            self.trial.break_off();
            return workers;
        }
        let spare = SPARE_ROOT * (needed * workers as f64).sqrt();
        let wanted = (needed + spare).round() as usize;
        // A difference of one is measurement noise.
        let wanted = if now.abs_diff(wanted) <= 1 {
            now
        } else {
            wanted
        };
        self.trial.servlets(sample, wanted)
    }
}

/// Returns `by_load`, which is twice the mean number of busy servlets, or more if that number is so
/// small that chance matters: the mean, 1.5 times its square root, and one. If a mean of three
/// events are in service, and arrive independently, more than seven are in service for 1.2 % of the
/// time.
fn with_spare(by_load: usize) -> usize {
    let mean = by_load as f64 * CHEAP_LOW;
    by_load.max((mean + SPARE_ROOT * mean.sqrt() + 1.0).ceil() as usize)
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

    fn while_all_wait(&self) -> WhileAllWait {
        WhileAllWait::BeginSoon
    }

    fn sample(&mut self, sample: &Sample<'_>, now_ns: u64) -> Settings {
        // If servlets wait for room in the next stage or for a worker, additional servlets would
        // only wait, too.
        let not_ns = sample.held_up_ns.saturating_add(sample.ready_ns);
        let sample = &Sample {
            service_ns: sample.service_ns.saturating_sub(not_ns),
            ..*sample
        };
        self.learn(sample);
        let now = sample.servlets.target;
        let by_load = if sample.blocking {
            self.dear.sample(sample, now_ns).servlets.unwrap_or(now)
        } else {
            let sample = self.lately.sample(sample, now_ns);
            let by_load = self.cheap.servlets(&sample);
            let needed = if self.times.waits {
                with_spare(by_load)
            } else {
                0
            };
            let needed = self.lately.needed(needed.max(sample.servlets.busy));
            needed.min(sample.servlets.max)
        };
        let unknown = !sample.blocking && self.times.finished < FINISHED_MIN;
        // If all servlets wait, additional servlets could begin events; the load does not show this
        // yet.
        let waiting = if sample.blocking {
            sample.servlets.busy
        } else {
            sample.waiting
        };
        let stuck = self.times.waits && waiting >= now && sample.queue_len > 0 && !self.full;
        let wanted = if unknown {
            // There is no known reason to hold back an event. In any case, only as many servlets
            // compute at the same time as there are workers, and others begin when these wait.
            sample.servlets.max
        } else if stuck {
            let more = by_load.max(now.saturating_mul(2));
            more.min(sample.servlets.max).max(now)
        } else if !self.times.waits {
            self.computing(sample).clamp(1, sample.servlets.max.max(1))
        } else if self.full {
            by_load.min(now)
        } else {
            by_load
        };
        let wanted = if self.times.waits && !sample.blocking {
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
mod tests;
