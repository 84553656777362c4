//! A trial of more servlets in a stage that computes most of the time.

use super::super::Sample;

/// The number of events with all servlets busy before a trial starts, and during the trial. More
/// servlets help if the workers then do at least half of the expected additional work. A trial
/// requires an expected gain of at least the second constant, a factor.
const TRIAL: u64 = 64;
const HELPS: f64 = 1.1;

/// The number of events after an unsuccessful trial, in which servlets waited for each other,
/// before the next trial. The pause doubles each time, up to the second constant.
const REST_MIN: u64 = 4_000;
const REST_MAX: u64 = 16_000;

/// A test of whether more servlets help a stage that computes most of the time. They do not help if
/// servlets wait for each other.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trial {
    /// The work done while all servlets were busy; in a trial, while more servlets were busy than
    /// before it.
    window: Window,
    /// The number of servlets before the trial, and the number of busy workers that the trial has
    /// to reach.
    before: Option<(usize, f64)>,
    /// The number of events until the next trial, after an unsuccessful one.
    rest: u64,
    /// The next value of `rest`.
    rest_next: u64,
}

impl Trial {
    /// Returns whether a trial is running or has recently been unsuccessful.
    pub(super) fn is_on(&self) -> bool {
        self.before.is_some()
    }

    /// Ends the trial because there is nothing to try.
    pub(super) fn break_off(&mut self) {
        if self.rest == 0 {
            self.before = None;
        }
    }

    pub(super) fn learn(&mut self, sample: &Sample<'_>) {
        if self.rest > 0 {
            self.rest = self.rest.saturating_sub(sample.finished);
            if self.rest == 0 {
                *self = Self {
                    rest_next: self.rest_next,
                    ..Self::default()
                };
            }
            return;
        }
        let at_work = match self.before {
            Some((servlets, _)) => servlets.saturating_add(1),
            None => sample.servlets.target,
        };
        if sample.servlets.busy < at_work {
            return;
        }
        self.window.add(sample);
        let Some((_, aim)) = self.before else {
            return;
        };
        // The sums do not include the events that the new servlets have started.
        if self.window.finished >= TRIAL.saturating_add(sample.servlets.target as u64) {
            if self.window.workers() > aim {
                *self = Self::default();
            } else {
                self.rest = self.rest_next.clamp(REST_MIN, REST_MAX);
                self.rest_next = 2 * self.rest;
            }
        }
    }

    /// Returns the number of servlets to use if the controller wants `wanted`.
    pub(super) fn servlets(&mut self, sample: &Sample<'_>, wanted: usize) -> usize {
        let now = sample.servlets.target;
        match self.before {
            Some((servlets, _)) if self.rest > 0 => servlets,
            Some(_) => now,
            None if wanted <= now => wanted,
            None if sample.queue_len == 0 || self.window.finished < TRIAL => now,
            None => {
                let workers = self.window.workers();
                let more = workers * wanted as f64 / now.max(1) as f64;
                let aim = (workers + more.min(sample.workers as f64)) / 2.0;
                if aim < HELPS * workers {
                    return now;
                }
                self.before = Some((now, aim));
                self.window = Window::default();
                wanted
            }
        }
    }
}

/// The work done in a period.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    pub(super) finished: u64,
    pub(super) compute_ns: u64,
    pub(super) interval_ns: u64,
}

impl Window {
    pub(super) fn add(&mut self, sample: &Sample<'_>) {
        self.finished = self.finished.saturating_add(sample.finished);
        self.compute_ns = self.compute_ns.saturating_add(sample.compute_ns);
        self.interval_ns = self.interval_ns.saturating_add(sample.interval_ns);
    }

    /// Returns the number of workers that were kept busy.
    pub(super) fn workers(&self) -> f64 {
        self.compute_ns as f64 / self.interval_ns.max(1) as f64
    }
}
