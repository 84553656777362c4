//! The pause between two trials of the free phase.
//!
//! A trial costs throughput if nothing is scarce, or if only some events need a scarce resource.
//! The pause after it is therefore a multiple of the time that it took. It ends early if the number
//! in service doubles, because the trial says nothing about so large an excess. At the maximum,
//! less growth is enough, but one more busy servlet is not.

use crate::stage::control::Sample;

/// The first pause after an unsuccessful trial and the longest, as multiples of the time that the
/// trial took.
const FACTOR_MIN: f64 = 4.0;
const FACTOR_MAX: f64 = 64.0;

/// The first pause if fewer servlets clearly do far less.
const FACTOR_SURE: f64 = 16.0;

/// The growth of the number in service that ends a pause, and the growth that ends it at the
/// maximum, beyond which the number cannot grow.
const GROWN: f64 = 2.0;
const GROWN_TO_MAX: f64 = 1.25;

#[derive(Debug)]
pub(super) struct Pause {
    /// The time at which the last trial began, and the number in service before it.
    from_ns: f64,
    before: f64,
    /// The rest of the pause. It is negative if the pause is over.
    left_ns: f64,
    /// The length of the next pause, as a multiple of the time of its trial.
    factor: f64,
}

impl Default for Pause {
    fn default() -> Self {
        Self {
            from_ns: 0.0,
            before: 0.0,
            left_ns: 0.0,
            factor: FACTOR_MIN,
        }
    }
}

impl Pause {
    /// Records that a trial begins.
    pub(super) fn try_fewer(&mut self, now_ns: f64, before: f64) {
        (self.from_ns, self.before) = (now_ns, before);
    }

    /// Starts the pause after an unsuccessful trial. It is longer if the trial was `sure`.
    pub(super) fn start(&mut self, now_ns: f64, sure: bool) {
        let trial_ns = now_ns - self.from_ns;
        if self.left_ns < -FACTOR_MAX * trial_ns {
            self.reset();
        }
        let least = if sure { FACTOR_SURE } else { FACTOR_MIN };
        self.factor = self.factor.max(least);
        self.left_ns = self.factor * trial_ns;
        self.factor = (2.0 * self.factor).min(FACTOR_MAX);
    }

    /// Lets the next pause be short again.
    pub(super) fn reset(&mut self) {
        self.factor = FACTOR_MIN;
    }

    /// Records a sample of the free phase, and returns whether the next trial has to wait.
    pub(super) fn lasts(&mut self, sample: &Sample<'_>) -> bool {
        self.left_ns -= sample.interval_ns as f64;
        let (busy, max) = (sample.servlets.busy as f64, sample.servlets.max as f64);
        let grown = if busy < max { GROWN } else { GROWN_TO_MAX };
        if busy >= grown * self.before {
            self.left_ns = self.left_ns.min(0.0);
        }
        self.left_ns > 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Servlets;
    use super::super::super::testing::{MS, quiet};
    use super::*;

    #[test]
    fn a_pause_depends_on_its_trial_and_ends_if_the_number_doubles() {
        // Returns for how many milliseconds the pause lasts.
        let lasts = |pause: &mut Pause, busy: usize| {
            let sample = Sample {
                interval_ns: MS,
                servlets: Servlets {
                    busy,
                    max: 100,
                    ..quiet().servlets
                },
                ..quiet()
            };
            (0..10_000).take_while(|_| pause.lasts(&sample)).count()
        };
        let mut pause = Pause::default();
        assert_eq!(lasts(&mut pause, 40), 0);
        let ms = MS as f64;
        for (sure, expected) in [(false, 39), (false, 79), (true, 159), (false, 319)] {
            pause.try_fewer(5.0 * ms, 40.0);
            pause.start(15.0 * ms, sure);
            assert_eq!(lasts(&mut pause, 79), expected);
        }
        pause.start(15.0 * ms, false);
        assert_eq!(lasts(&mut pause, 80), 0);
        // The number cannot double, but it can reach the maximum.
        pause.try_fewer(5.0 * ms, 60.0);
        pause.start(15.0 * ms, false);
        assert_eq!(lasts(&mut pause, 100), 0);
        for before in [99.0, 100.0] {
            pause.try_fewer(5.0 * ms, before);
            pause.start(15.0 * ms, false);
            assert!(lasts(&mut pause, 100) > 0);
        }
    }
}
