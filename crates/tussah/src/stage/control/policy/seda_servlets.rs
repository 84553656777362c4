//! SEDA's thread pool controller: it adds a servlet if the queue is long, and removes one if a
//! servlet is idle.
//!
//! Welsh, Culler and Brewer, "SEDA" (SOSP 2001), §3.4 and figure 8: the controller checks the queue
//! every 2 s. It adds a thread if the queue has more than 100 events, up to 20 threads per stage.
//! It removes threads that have been idle for 5 s.
//!
//! This implementation differs in one point: it detects an idle servlet by the total batch time in
//! an interval, not by a timer in each servlet. An idle stage therefore needs no timer; it shrinks
//! when the next event arrives.

use crate::stage::control::{Cadence, Controller, Owns, Sample, Settings};

/// Parameters of [`SedaServlets`]; the defaults are those of the paper's figure 8.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SedaServletsConfig {
    /// The time between two checks of the queue, in nanoseconds.
    pub interval_ns: u64,
    /// The number of queued credits above which the controller adds a servlet.
    pub queue_above: u64,
    /// The maximum number of servlets that the controller sets; at least 1.
    pub servlets_max: usize,
    /// The idle time after which the controller removes a servlet, in nanoseconds; at least 1.
    pub idle_ns: u64,
}

impl Default for SedaServletsConfig {
    fn default() -> Self {
        Self {
            interval_ns: 2_000_000_000,
            queue_above: 100,
            servlets_max: 20,
            idle_ns: 5_000_000_000,
        }
    }
}

/// A controller that adds one servlet at a time while the queue is long, and removes one servlet at
/// a time while a servlet is idle.
#[derive(Debug)]
pub struct SedaServlets {
    config: SedaServletsConfig,
    /// The time that one servlet has been idle, in nanoseconds.
    idle_ns: u64,
}

impl Default for SedaServlets {
    fn default() -> Self {
        Self::new(SedaServletsConfig::default())
    }
}

impl SedaServlets {
    /// Creates a controller, and corrects parameters that are out of range.
    #[must_use]
    pub fn new(mut config: SedaServletsConfig) -> Self {
        config.servlets_max = config.servlets_max.max(1);
        config.idle_ns = config.idle_ns.max(1);
        Self { config, idle_ns: 0 }
    }
}

impl Controller for SedaServlets {
    fn name(&self) -> &'static str {
        "seda-servlets"
    }

    fn owns(&self) -> Owns {
        Owns::SERVLETS
    }

    fn cadence(&self) -> Cadence {
        Cadence::every_ns(self.config.interval_ns)
    }

    fn sample(&mut self, sample: &Sample<'_>, _now_ns: u64) -> Settings {
        let servlets = sample.servlets;
        let now = servlets.target.max(1);
        let mut wanted = now;
        // Batches are counted when they end, so a long batch is visible only in the number of busy
        // servlets.
        let others_ns = sample.interval_ns.saturating_mul(now as u64 - 1);
        let idle = sample.queue_len == 0 && servlets.busy < now && sample.service_ns <= others_ns;
        self.idle_ns = if idle {
            self.idle_ns.saturating_add(sample.interval_ns)
        } else {
            0
        };
        if sample.queue_len > self.config.queue_above {
            let max = self.config.servlets_max.min(servlets.max).max(now);
            wanted = now.saturating_add(1).min(max);
        } else if self.idle_ns >= self.config.idle_ns {
            let removed = usize::try_from(self.idle_ns / self.config.idle_ns).unwrap_or(now);
            wanted = now.saturating_sub(removed).max(servlets.busy).max(1);
            self.idle_ns %= self.config.idle_ns;
        }
        Settings {
            servlets: (wanted != servlets.target).then_some(wanted),
            ..Settings::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::control::Servlets;
    use crate::stage::control::testing::{SECOND, quiet};

    fn look(queue_len: u64, target: usize, busy: usize, seconds: u64) -> Sample<'static> {
        Sample {
            interval_ns: seconds * SECOND,
            queue_len,
            service_ns: busy as u64 * seconds * SECOND,
            servlets: Servlets {
                busy,
                parked: target - busy,
                target,
                max: 100,
            },
            ..quiet()
        }
    }

    #[test]
    fn one_is_added_above_100_up_to_20() {
        let check = |queue_len, target, expected| {
            let mut controller = SedaServlets::default();
            let settings = controller.sample(&look(queue_len, target, target, 2), 0);
            assert_eq!(
                settings.servlets, expected,
                "{queue_len} queued, {target} servlets"
            );
        };
        check(0, 1, None);
        check(100, 1, None);
        check(101, 1, Some(2));
        check(u64::MAX, 1, Some(2));
        check(101, 19, Some(20));
        check(101, 20, None);
        // Another owner raised the number: the controller does not undo that.
        check(101, 30, None);
    }

    #[test]
    fn one_is_removed_after_5_s_without_work() {
        let mut controller = SedaServlets::default();
        let mut servlets = 3;
        let mut at = Vec::new();
        for second in (2..20).step_by(2) {
            let settings = controller.sample(&look(0, servlets, 0, 2), second * SECOND);
            if let Some(wanted) = settings.servlets {
                assert_eq!(wanted, servlets - 1);
                servlets = wanted;
                at.push(second);
            }
        }
        assert_eq!((servlets, at), (1, vec![6, 10]));
    }

    #[test]
    fn work_in_between_starts_the_5_s_again() {
        let mut controller = SedaServlets::default();
        for busy in [0, 0, 2, 0, 0, 2, 0, 0] {
            let settings = controller.sample(&look(0, 2, busy, 2), 0);
            assert_eq!(settings.servlets, None);
        }
        assert_eq!(controller.sample(&look(0, 2, 0, 2), 0).servlets, Some(1));
    }

    #[test]
    fn a_busy_servlet_is_not_removed() {
        let mut controller = SedaServlets::default();
        for _ in 0..10 {
            assert_eq!(controller.sample(&look(0, 1, 1, 2), 0).servlets, None);
            assert_eq!(controller.sample(&look(1, 2, 1, 2), 0).servlets, None);
        }
        // A batch that takes minutes: no batch ends, but no servlet is idle.
        let long = Sample {
            service_ns: 0,
            ..look(0, 2, 2, 60)
        };
        assert_eq!(controller.sample(&long, 0).servlets, None);
    }

    #[test]
    fn a_stage_that_slept_for_an_hour_is_small_at_once() {
        let mut controller = SedaServlets::default();
        assert_eq!(
            controller.sample(&look(0, 20, 1, 3600), 0).servlets,
            Some(1)
        );
    }

    #[test]
    fn a_stage_of_no_servlets_gets_one() {
        let mut controller = SedaServlets::new(SedaServletsConfig {
            servlets_max: 0,
            idle_ns: 0,
            ..SedaServletsConfig::default()
        });
        assert_eq!(controller.sample(&look(500, 0, 0, 2), 0).servlets, Some(1));
    }
}
