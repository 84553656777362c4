//! Whether more servlets help a stage that computes most of the time.

use super::super::Sample;

/// Servlets are added to a stage that computes most of the time after so many events with all at work, and judged by as many. They help if
/// the workers then have half as much more to do as they should, and are tried if that is so many times what they had.
const TRIAL: u64 = 64;
const HELPS: f64 = 1.1;

/// Where they do not help, since servlets wait for each other, they are added again after so many events; then after twice as many, up to the second.
const REST_MIN: u64 = 4_000;
const REST_MAX: u64 = 16_000;

/// Whether more servlets help a stage that computes most of the time. If what they wait for is each other, they do not.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trial {
    /// What was done while all servlets were at work; in a trial, while more were than before it.
    window: Window,
    /// How many there were before the trial, and how many workers are to be kept at work in it.
    before: Option<(usize, f64)>,
    /// The trial is over, and did not help; events until the next one.
    rest: u64,
    /// How many these will be the next time.
    rest_next: u64,
}

impl Trial {
    /// Whether there is one, or was one in vain not long ago.
    pub(super) fn is_on(&self) -> bool {
        self.before.is_some()
    }

    /// There is nothing to try.
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
        // What the new ones have begun with is in no sum yet.
        if self.window.finished >= TRIAL.saturating_add(sample.servlets.target as u64) {
            if self.window.workers() > aim {
                *self = Self::default();
            } else {
                self.rest = self.rest_next.clamp(REST_MIN, REST_MAX);
                self.rest_next = 2 * self.rest;
            }
        }
    }

    /// How many servlets there are to be, if so many are wanted.
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

/// What was done in some time.
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

    /// How many workers were kept at work.
    pub(super) fn workers(&self) -> f64 {
        self.compute_ns as f64 / self.interval_ns.max(1) as f64
    }
}
