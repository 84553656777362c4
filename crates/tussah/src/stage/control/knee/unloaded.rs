//! The time that a service takes while nothing is scarce.

use super::history::{History, Mark};
use super::pace::Pace;

/// The number of batches of the first estimate, and of later estimates.
const FIRST: f64 = 16.0;
const WINDOW: f64 = 32.0;

/// The share of the first batches that may be in service afterwards. If more are, the first batches
/// are mostly short ones.
const YOUNG: f64 = 1.0 / 4.0;

/// The weight of a new window with a shorter or a longer time. A shorter time is reliable, since no
/// load makes a service shorter. A longer time may be due to load.
const SHORTER: f64 = 0.3;
const LONGER: f64 = 0.1;

/// The share of the workers' time above which services may take long because the workers are busy.
const WORKERS_FULL: f64 = 0.75;

/// The number of standard errors of a mean above which a difference is not due to chance.
const ERRORS: f64 = 2.0;

/// The maximum number of batches that counts as the basis of the estimate, since old batches are
/// gradually forgotten.
const KNOWN_MAX: f64 = 256.0;

/// The load counts as near zero while working off the excess takes less than this share of the
/// target.
const NEAR: f64 = 1.0 / 8.0;

/// The 90th percentile of a normal distribution, in standard deviations above the mean. For an
/// exponential distribution it is 1.3.
const P90: f64 = 1.28;

/// The unloaded time of a service: its mean, and its 90th percentile.
#[derive(Debug)]
pub(super) struct Unloaded {
    target_ns: f64,
    mean_ns: f64,
    p90_ns: f64,
    /// A longer mean that would explain an excess without scarcity, or 0.
    supposed_ns: f64,
    /// The number of batches on which the estimate is based, up to [`KNOWN_MAX`].
    known: f64,
    /// The last time without an event in service, before the first estimate.
    began: Mark,
    /// True if the first estimate may be too low, because most services had not ended.
    is_young: bool,
    /// The start of the current window.
    from: Mark,
    /// The number of batches, since the start of the stage, of which the last may have begun during
    /// an excess.
    clean_from: f64,
}

/// An estimate: the mean, the 90th percentile, and the number of batches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Learned(f64, f64, f64);

impl Unloaded {
    pub(super) fn learned(&self) -> Learned {
        Learned(self.mean_ns, self.p90_ns, self.known)
    }

    /// Begins with what has been learned, of a weight from 0 to 1, unless it is too little.
    pub(super) fn recall(&mut self, learned: Learned, weight: f64) {
        let Learned(mean_ns, p90_ns, known) = learned;
        if known * weight >= FIRST / 2.0 {
            (self.mean_ns, self.p90_ns, self.known) = (mean_ns, p90_ns, known * weight);
        }
    }

    pub(super) fn new(target_ns: f64) -> Self {
        Self {
            target_ns,
            mean_ns: 0.0,
            p90_ns: 0.0,
            supposed_ns: 0.0,
            known: 0.0,
            began: Mark::default(),
            is_young: false,
            from: Mark::default(),
            clean_from: 0.0,
        }
    }

    /// Returns the mean, in nanoseconds, or 0 before there are enough batches.
    pub(super) fn mean_ns(&self) -> f64 {
        self.mean_ns
    }

    /// Returns the configured target, in nanoseconds.
    pub(super) fn own_target_ns(&self) -> f64 {
        self.target_ns
    }

    /// Returns a target that can be met, in nanoseconds. If services take most of the configured
    /// target or more, it leaves half of that target for waits.
    pub(super) fn effective_target_ns(&self) -> f64 {
        if self.p90_ns > self.target_ns / 2.0 {
            self.p90_ns + self.target_ns / 2.0
        } else {
            self.target_ns
        }
    }

    /// Discards the current window.
    pub(super) fn restart(&mut self, history: &History) {
        self.from = history.total();
    }

    /// Returns the mean and the 90th percentile in the current window, both without waits for
    /// permits, and its number of batches.
    fn window(&self, history: &History) -> (f64, f64, f64) {
        let (now, from) = (history.total(), &self.from);
        let batches = now.batches - from.batches;
        let mean = |sum: fn(&Mark) -> f64| (sum(&now) - sum(from)) / batches.max(1.0);
        let all_ns = mean(|mark| mark.service_ns + mark.limited_ns);
        let mean_ns = (all_ns - mean(|mark| mark.permits_ns)).max(0.0);
        // The squares include the waits for permits.
        let deviation_ns = (mean(|mark| mark.squares) - all_ns * all_ns)
            .max(0.0)
            .sqrt();
        let variation = deviation_ns / all_ns.max(1.0);
        (mean_ns, mean_ns * (1.0 + P90 * variation), batches)
    }

    /// Makes the first estimate. If these batches kept the workers busy, most of their time may
    /// have been waits for a worker; so only their computing time counts. The `waiting` batches
    /// have not ended, but they have used CPU time as well, so they count towards how busy the
    /// workers were.
    pub(super) fn see(&mut self, history: &History, workers: usize, waiting: usize) {
        if self.mean_ns > 0.0 {
            return;
        }
        if history.total().in_service == 0.0 {
            self.began = history.total();
        }
        let (mean_ns, p90_ns, batches) = self.window(history);
        if batches < FIRST {
            return;
        }
        (self.mean_ns, self.p90_ns, self.known) = (mean_ns, p90_ns, batches);
        let now = history.total();
        let compute_ns = now.compute_ns - self.from.compute_ns;
        let computed_ns = compute_ns * (batches + waiting as f64) / batches;
        if computed_ns > WORKERS_FULL * workers as f64 * (now.at_ns - self.from.at_ns) {
            self.scale(compute_ns / batches);
        } else {
            self.is_young = now.in_service > YOUNG * batches;
        }
        self.restart(history);
    }

    /// Returns whether the estimate may be too low, and the throughput has grown with the number in
    /// service, as it does if nothing is scarce.
    pub(super) fn is_growing(&self, history: &History) -> bool {
        self.is_young && !history.stagnates(&self.began)
    }

    /// Ends the doubt about the first estimate, since a trial corrects it.
    pub(super) fn believe(&mut self) {
        self.is_young = false;
    }

    /// Makes a young estimate anew if the number in service is steady.
    fn grow_up(&mut self, history: &History) {
        let pace = Pace::between(&self.from, &history.total());
        if pace.batches < self.known {
            return;
        }
        self.known += pace.batches;
        if pace.is_stationary() {
            let (mean_ns, p90_ns, _) = self.window(history);
            (self.mean_ns, self.p90_ns) = (mean_ns, p90_ns);
            self.scale(pace.pending_ns());
            self.is_young = false;
        }
        self.restart(history);
    }

    /// Learns from a full window, while working off the excess takes `delay_ns`. If the excess is
    /// not due to chance, `in_service` is the number of batches that are in service during it.
    ///
    /// A longer time must last for a target, with a steady number in service: while the number
    /// grows, each window would raise the mean, and hide the excess.
    pub(super) fn learn(&mut self, delay_ns: f64, in_service: Option<f64>, history: &History) {
        if self.is_young {
            return self.grow_up(history);
        }
        let long_ns = self.target_ns.max(self.mean_ns);
        let near_ns = NEAR * long_ns;
        if let Some(in_service) = in_service.filter(|_| delay_ns >= near_ns) {
            self.is_loaded(in_service, history);
        }
        let (mean_ns, p90_ns, batches) = self.window(history);
        if batches < WINDOW {
            return;
        }
        let error_ns = self.deviation_ns() / batches.sqrt();
        let shorter = mean_ns < self.mean_ns - ERRORS * error_ns;
        let pace = Pace::between(&self.from, &history.total());
        if !shorter && pace.ns < long_ns {
            return;
        }
        if mean_ns < self.supposed_ns {
            self.supposed_ns += LONGER * (mean_ns - self.supposed_ns);
        }
        let is_clean = self.from.batches >= self.clean_from && pace.is_steady();
        if shorter || is_clean && delay_ns < near_ns {
            let part = if shorter { SHORTER } else { LONGER };
            self.mean_ns += part * (mean_ns - self.mean_ns);
            self.p90_ns += part * (p90_ns - self.p90_ns);
            self.known = (self.known + batches).min(KNOWN_MAX);
        }
        self.restart(history);
    }

    /// Records that services may wait for each other. The `in_service` batches may still do so
    /// later.
    pub(super) fn is_loaded(&mut self, in_service: f64, history: &History) {
        self.clean_from = history.total().batches + in_service;
    }

    fn deviation_ns(&self) -> f64 {
        (self.p90_ns - self.mean_ns).max(0.0) / P90
    }

    /// Returns an upper bound of the mean, in nanoseconds. If a few services take long, the mean of
    /// a few dozen services differs from the mean of all.
    pub(super) fn mean_ns_max(&self) -> f64 {
        let mean_ns = self.mean_ns.max(self.supposed_ns);
        mean_ns + ERRORS * self.deviation_ns() / self.known.max(1.0).sqrt()
    }

    fn scale(&mut self, mean_ns: f64) {
        self.p90_ns *= mean_ns / self.mean_ns.max(1.0);
        self.mean_ns = mean_ns;
    }

    /// Raises the mean to a time that was measured without scarcity.
    pub(super) fn at_least(&mut self, mean_ns: f64) {
        if mean_ns > self.mean_ns {
            self.scale(mean_ns);
        }
    }

    /// Raises the mean to a time that would explain an excess without scarcity. Nothing has shown
    /// that all services take that time, so the effective target does not follow.
    pub(super) fn suppose(&mut self, mean_ns: f64) {
        self.supposed_ns = self.supposed_ns.max(mean_ns);
    }

    /// Lowers the mean to a time that was measured, possibly under scarcity.
    pub(super) fn at_most(&mut self, mean_ns: f64) {
        self.supposed_ns = 0.0;
        if mean_ns < self.mean_ns {
            self.scale(mean_ns);
        }
    }

    /// Lowers the mean toward a time that was measured for a while, possibly under scarcity.
    pub(super) fn lower(&mut self, mean_ns: f64) {
        if mean_ns < self.mean_ns {
            self.mean_ns += SHORTER * (mean_ns - self.mean_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Sample;
    use super::super::super::testing::{MS, quiet};
    use super::*;

    /// Records `batches` batches around `mean_ms`: half of them take less by the deviation, and
    /// half take more by it.
    fn show(history: &mut History, batches: u64, mean_ms: u64, deviation_ms: f64) {
        let squares = (mean_ms as f64).powi(2) + deviation_ms * deviation_ms;
        let sample = Sample {
            interval_ns: 100 * MS,
            batches,
            service_ns: batches * mean_ms * MS,
            service_squares: batches as f64 * squares / 1e6,
            ..quiet()
        };
        history.note(&sample, 0.0, 0.0);
    }

    #[test]
    fn the_unloaded_time_is_learned_near_no_load_and_shorter_times_at_any() {
        let (mut history, mut unloaded) = (History::default(), Unloaded::new(100.0 * MS as f64));
        let mean = |unloaded: &Unloaded| (unloaded.mean_ns() / MS as f64).round();
        show(&mut history, 15, 10, 0.0);
        unloaded.see(&history, 1, 0);
        assert_eq!(unloaded.mean_ns(), 0.0);
        show(&mut history, 1, 10, 0.0);
        unloaded.see(&history, 1, 0);
        assert_eq!(mean(&unloaded), 10.0);
        for _ in 0..100 {
            show(&mut history, 32, 40, 0.0);
            unloaded.learn(20.0 * MS as f64, None, &history);
        }
        assert_eq!(mean(&unloaded), 10.0);
        for _ in 0..100 {
            show(&mut history, 32, 40, 0.0);
            unloaded.learn(0.0, None, &history);
        }
        assert_eq!(mean(&unloaded), 40.0);
        for _ in 0..20 {
            show(&mut history, 32, 5, 0.0);
            unloaded.learn(90.0 * MS as f64, None, &history);
        }
        assert_eq!(mean(&unloaded), 5.0);
    }

    #[test]
    fn only_computing_counts_of_first_services_that_wait_for_workers() {
        let mean_ms = |waiting| {
            let (mut history, mut unloaded) =
                (History::default(), Unloaded::new(200.0 * MS as f64));
            // All services begin together, so the first one ends when all have computed.
            history.note(
                &Sample {
                    interval_ns: 420 * MS,
                    ..quiet()
                },
                0.0,
                0.0,
            );
            let ended = Sample {
                interval_ns: 320 * MS,
                batches: 16,
                service_ns: 16 * 400 * MS,
                compute_ns: 16 * 20 * MS,
                ..quiet()
            };
            history.note(&ended, 0.0, 0.0);
            unloaded.see(&history, 1, waiting);
            unloaded.mean_ns() / MS as f64
        };
        assert_eq!((mean_ms(19), mean_ms(0)), (20.0, 400.0));
    }

    #[test]
    fn services_that_take_most_of_the_target_leave_half_of_it_for_waits() {
        let effective_ms = |mean_ms, deviation_ms| {
            let (mut history, mut unloaded) =
                (History::default(), Unloaded::new(100.0 * MS as f64));
            show(&mut history, 16, mean_ms, deviation_ms);
            unloaded.see(&history, 1, 0);
            (unloaded.effective_target_ns() / MS as f64).round()
        };
        assert_eq!(effective_ms(20, 20.0), 100.0);
        assert_eq!(effective_ms(60, 0.0), 110.0);
        assert_eq!(effective_ms(200, 100.0), 378.0);
    }
}
