//! SEDA's batch controller: the smallest batches that sustain the output rate.
//!
//! Welsh, Culler and Brewer, "SEDA" (SOSP 2001), §3.4 and figure 9: large batches are efficient,
//! and small batches give responses sooner. The controller observes a moving average of the rate at
//! which events leave the stage. It shrinks batches until this rate begins to degrade. It then
//! makes them slightly larger or, after a sudden drop of the rate, as large as possible.
//!
//! This implementation differs in these points:
//! - The paper accepts any output rate, even that of a lightly loaded stage, which is just its
//!   arrival rate. Here a rate only counts if the stage was busy for the whole interval, and left
//!   more than a batch in the queue or refused events. If it refused events, batches do not grow
//!   beyond the observed batches. In a lightly loaded stage, batches are not limited, because a
//!   servlet takes a queue shorter than a batch as a whole anyway.
//! - The rate to sustain is the highest average so far, which decays slowly. If the controller
//!   compared rates only with the last average, many small losses would go unnoticed. If even the
//!   largest batches do not reach the rate to sustain, their rate replaces it.
//! - The controller also estimates the cost of batches and events, and tries no batch size whose
//!   estimated rate is far below that of the largest size. If a stage refuses events, fewer of them
//!   arrive as fewer complete, and a search by the rate alone can get stuck at the bottom. In that
//!   case, batches are large enough to reach nearly the rate of the largest size.
//! - If there is a target, a batch takes at most half of it, because all events of a batch are
//!   answered at its end. This limit does not apply if an empty batch would already take a quarter
//!   of the target.

use crate::stage::control::cost::Cost;
use crate::stage::control::{Cadence, Controller, Owns, Sample, Settings};

/// Parameters of [`SedaBatch`]. The paper specifies no numbers; the defaults are our own.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SedaBatchConfig {
    /// The time between two checks of the output rate, in nanoseconds. Checks are more frequent
    /// while the stage refuses events.
    pub interval_ns: u64,
    /// The maximum number of events in a batch; at least 1. The stage's own bound also applies.
    pub batch_max: usize,
    /// The weight of a new output rate in the average; above 0 and at most 1 (other values count as
    /// 0.3).
    pub weight: f64,
    /// The output rate above which batches shrink, as a share of the highest average. The value
    /// must be above 0 and at most 1; any other value counts as 0.95.
    pub sustained: f64,
    /// The output rate below which the controller assumes a sudden drop, as a share of the highest
    /// average; at least 0 and below `sustained`. Any other value counts as 0.5, or as `sustained`
    /// if that is lower.
    pub drop: f64,
    /// The latency target for an event, in nanoseconds, if there is a target; at least 1. The
    /// controller aims for batches that take at most half of the target.
    pub target_ns: Option<u64>,
    /// The relative change of the batch size in one step; above 0 and at most 1 (other values count
    /// as 0.1). A step is at least one event.
    pub step: f64,
}

impl Default for SedaBatchConfig {
    fn default() -> Self {
        Self {
            interval_ns: 10_000_000,
            batch_max: 100,
            weight: 0.3,
            sustained: 0.95,
            drop: 0.5,
            step: 0.1,
            target_ns: None,
        }
    }
}

/// The share of its distance to the average that the highest average loses per nanosecond. One
/// lucky measurement thus loses its effect after tens of seconds.
const FADING: f64 = 1e-10;

/// The minimum time between two checks while the stage refuses events, in nanoseconds.
const LOOK_NS: u64 = 1_000_000;

/// The minimum number of events over which the rate is averaged. The rate of exponential services
/// is then accurate to 2 %.
const EVENTS: f64 = 4000.0;

/// The number of events that must have ended before their rate can count as a sudden drop.
const DROP_EVENTS: f64 = 100.0;

/// The minimum number of events between two checks.
const LOOK_EVENTS: u64 = 32;

/// The number of consecutive events without a rejection after which batches have no limit.
const CALM_EVENTS: u64 = 256;

/// The share of the largest batch's estimated rate that a batch must reach to be tried. In
/// overload, the search would not recover from a smaller batch: fewer events are then admitted, so
/// the large batches that would achieve more are not observed.
const LEAST: f64 = 0.8;

/// The share to reach while the stage refuses events. If small batches lost time then, the stage
/// would refuse even more events.
const LEAST_TURNING_AWAY: f64 = 0.98;

/// A controller that searches for the smallest batch size that sustains the output rate.
#[derive(Debug)]
pub struct SedaBatch {
    config: SedaBatchConfig,
    /// Events per nanosecond; 0 before the first measurement.
    average: f64,
    highest: f64,
    /// The batch size as a real number.
    batch: f64,
    /// The number of events in the average, which may exceed `EVENTS`.
    seen: f64,
    /// The ended events and their time, in the current check and in the current check for a sudden
    /// drop.
    look: (f64, f64),
    drop: (f64, f64),
    /// The number of events that have ended since the stage last refused an event.
    calm: u64,
    cost: Cost,
}

impl Default for SedaBatch {
    fn default() -> Self {
        Self::new(SedaBatchConfig::default())
    }
}

impl SedaBatch {
    /// Creates a controller, and corrects parameters that are out of range.
    #[must_use]
    pub fn new(mut config: SedaBatchConfig) -> Self {
        let default = SedaBatchConfig::default();
        let in_range = |value: &mut f64, or: f64| {
            if !(*value > 0.0 && *value <= 1.0) {
                *value = or;
            }
        };
        in_range(&mut config.weight, default.weight);
        in_range(&mut config.sustained, default.sustained);
        in_range(&mut config.step, default.step);
        if !(0.0..config.sustained).contains(&config.drop) {
            config.drop = default.drop.min(config.sustained);
        }
        config.batch_max = config.batch_max.max(1);
        config.target_ns = config.target_ns.map(|target_ns| target_ns.max(1));
        Self {
            batch: config.batch_max as f64,
            config,
            average: 0.0,
            highest: 0.0,
            seen: 0.0,
            look: (0.0, 0.0),
            drop: (0.0, 0.0),
            calm: 0,
            cost: Cost::default(),
        }
    }

    /// Adjusts the batch after an interval in which only the stage itself limited the rate.
    fn search(&mut self, finished: f64, interval_ns: f64) {
        self.drop.0 += finished;
        self.drop.1 += interval_ns;
        if self.drop.0 >= DROP_EVENTS {
            let (finished, interval_ns) = std::mem::take(&mut self.drop);
            let rate = finished / interval_ns;
            if rate < self.config.drop * self.highest {
                self.batch = self.limit();
                (self.average, self.highest, self.seen) = (rate, rate, finished);
                return;
            }
        }
        let rate = finished / interval_ns;
        self.seen += finished;
        let weight = (finished / EVENTS)
            .min(self.config.weight)
            .max(finished / self.seen);
        self.average += weight * (rate - self.average);
        self.highest -= (FADING * interval_ns).min(1.0) * (self.highest - self.average);
        self.highest = if self.seen < EVENTS {
            self.average
        } else {
            self.highest.max(self.average)
        };
        let step = (self.batch * self.config.step).max(1.0);
        if self.average < self.config.sustained * self.highest {
            if self.batch >= self.limit() {
                self.highest = self.average;
            }
            self.batch += step;
        } else {
            self.batch -= step;
        }
        self.batch = self.batch.clamp(1.0, self.limit());
    }

    /// Returns the largest allowed batch.
    fn limit(&self) -> f64 {
        let most = self.config.batch_max as f64;
        let (Some(target_ns), Some((batch_ns, event_ns))) =
            (self.config.target_ns, self.cost.fit())
        else {
            return most;
        };
        let within_ns = target_ns as f64 / 2.0;
        if batch_ns > within_ns / 2.0 {
            return most;
        }
        ((within_ns - batch_ns) / event_ns).clamp(1.0, most)
    }

    /// Returns the smallest useful batch: by the measured costs, no smaller batch sustains the rate
    /// of the largest one.
    fn least(&self) -> f64 {
        let Some((batch_ns, event_ns)) = self.cost.fit() else {
            return 1.0;
        };
        let limit = self.limit();
        let share = if self.calm > CALM_EVENTS {
            LEAST
        } else {
            LEAST_TURNING_AWAY
        };
        let rate = share * limit / (batch_ns + event_ns * limit);
        (rate * batch_ns / (1.0 - rate * event_ns)).clamp(1.0, limit)
    }
}

impl Controller for SedaBatch {
    fn name(&self) -> &'static str {
        "seda-batch"
    }

    fn owns(&self) -> Owns {
        Owns::BATCH
    }

    fn cadence(&self) -> Cadence {
        Cadence {
            interval_ns: self.config.interval_ns.min(LOOK_NS),
            finished: LOOK_EVENTS,
            arrived: 0,
        }
    }

    fn sample(&mut self, sample: &Sample<'_>, _now_ns: u64) -> Settings {
        let before = self.batch as usize;
        self.cost
            .observe(sample.batches, sample.finished, sample.service_ns);
        let always_busy = sample.busy_ns >= sample.interval_ns;
        let rejects = sample.refused > 0 || sample.shed > 0;
        self.calm = if rejects {
            0
        } else {
            self.calm.saturating_add(sample.finished)
        };
        if !always_busy && self.calm > CALM_EVENTS {
            self.batch = self.limit();
        }
        if always_busy && sample.batches > 0 {
            if rejects {
                let seen = sample.finished.div_ceil(sample.batches).max(1);
                self.batch = self.batch.min(seen as f64);
            }
            if rejects || sample.queue_len > sample.batch_max as u64 {
                self.look.0 += sample.finished as f64;
                self.look.1 += sample.interval_ns.max(1) as f64;
                if rejects || self.look.1 >= self.config.interval_ns as f64 {
                    let (finished, interval_ns) = std::mem::take(&mut self.look);
                    self.search(finished, interval_ns);
                }
            }
        }
        self.batch = self.batch.max(self.least()).min(self.limit());
        let wanted = self.batch as usize;
        let changed = wanted != before || sample.batch_max > self.config.batch_max;
        Settings {
            batch: changed.then_some(wanted),
            ..Settings::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::control::testing::{MS, quiet};

    /// A stage with these costs of an event and of a batch, and work for 10 ms.
    struct Stage {
        event_ns: f64,
        batch_ns: f64,
        batch: usize,
        controller: SedaBatch,
    }

    impl Stage {
        fn new(event_ns: f64, batch_ns: f64) -> Self {
            Self {
                event_ns,
                batch_ns,
                batch: 100,
                controller: SedaBatch::default(),
            }
        }

        fn rate(&self, batch: usize) -> f64 {
            1.0 / (self.event_ns + self.batch_ns / batch as f64)
        }

        /// One check, at a rate that is off by this factor.
        fn look(&mut self, noise: f64) {
            let finished = (self.rate(self.batch) * 10.0 * MS as f64 * noise) as u64;
            self.show(finished, 1000, 10 * MS);
        }

        fn show(&mut self, finished: u64, queue_len: u64, busy_ns: u64) {
            let sample = Sample {
                interval_ns: 10 * MS,
                busy_ns,
                finished,
                queue_len,
                batch_max: self.batch,
                batches: finished.div_ceil(self.batch as u64),
                ..quiet()
            };
            let settings = self.controller.sample(&sample, 0);
            self.batch = settings.batch.unwrap_or(self.batch);
        }
    }

    #[test]
    fn batches_shrink_to_what_sustains_the_rate() {
        let check = |event_ns, batch_ns, batches: std::ops::RangeInclusive<usize>| {
            let mut stage = Stage::new(event_ns, batch_ns);
            for i in 0..500 {
                // Off by at most 1 %.
                stage.look(1.0 + f64::from((i * 7919) % 21 - 10) / 1000.0);
            }
            assert!(batches.contains(&stage.batch), "batches of {}", stage.batch);
            let lost = 1.0 - stage.rate(stage.batch) / stage.rate(100);
            assert!(lost < 0.1, "{lost} of the rate is lost");
        };
        // If a batch costs nothing, the smallest batch is as good as any other. If a batch costs as
        // much as 1 or 5 events, batches of about 13 and 50 lose 5 %.
        check(1000.0, 0.0, 1..=1);
        check(1000.0, 1000.0, 9..=30);
        check(1000.0, 5000.0, 35..=70);
    }

    #[test]
    fn a_slight_loss_is_answered_a_little_and_a_sudden_drop_with_the_maximum() {
        let mut stage = Stage::new(1000.0, 1000.0);
        for _ in 0..200 {
            stage.look(1.0);
        }
        let before = stage.batch;
        assert!(before < 40);
        while stage.batch <= before {
            stage.look(0.9);
        }
        assert!(
            stage.batch <= before + 3,
            "from {before} to {}",
            stage.batch
        );
        stage.look(0.4);
        assert_eq!(stage.batch, 100);
        // The current rate is the rate to sustain from now on.
        stage.look(0.4);
        assert_eq!(stage.batch, 90);
    }

    #[test]
    fn a_stage_with_little_to_do_may_have_the_largest_batches() {
        let mut stage = Stage::new(1000.0, 1000.0);
        for _ in 0..100 {
            stage.look(1.0);
        }
        let batch = stage.batch;
        assert!(batch < 100);
        for _ in 0..100 {
            // All queued events, no more than a batch, or none.
            stage.show(5, batch as u64, 10 * MS);
            stage.show(0, 1000, 10 * MS);
        }
        assert_eq!(stage.batch, batch);
        stage.show(300, 0, MS);
        assert_eq!(stage.batch, 100);
    }

    #[test]
    fn while_events_are_rejected_batches_begin_with_those_that_are_seen() {
        let mut controller = SedaBatch::default();
        let mut look = |refused, finished, batches| {
            let sample = Sample {
                busy_ns: MS,
                refused,
                finished,
                batches,
                queue_len: 1,
                ..quiet()
            };
            controller.sample(&sample, 0).batch
        };
        assert_eq!(look(0, 40, 10), None);
        assert_eq!(look(1, 40, 10), Some(3));
        assert_eq!(look(1, 40, 14), Some(2));
        assert_eq!(look(1, 40, 40), Some(1));
    }

    #[test]
    fn with_a_target_a_batch_takes_half_of_it_at_most() {
        let after = |batch_ns: u64| {
            let mut controller = SedaBatch::new(SedaBatchConfig {
                target_ns: Some(MS),
                ..SedaBatchConfig::default()
            });
            let mut batch = None;
            for i in 1..50 {
                let sample = Sample {
                    finished: 10,
                    batches: 1 + i % 5,
                    service_ns: 10 * 10_000 + (1 + i % 5) * batch_ns,
                    ..quiet()
                };
                batch = controller.sample(&sample, 0).batch.or(batch);
            }
            batch
        };
        assert_eq!(after(0), Some(50));
        assert_eq!(after(100_000), Some(40));
        // A batch takes long in any case.
        assert_eq!(after(300_000), Some(100));
    }

    #[test]
    fn parameters_are_brought_into_their_range() {
        let controller = SedaBatch::new(SedaBatchConfig {
            interval_ns: 0,
            batch_max: 0,
            weight: f64::NAN,
            sustained: 2.0,
            drop: 1.5,
            step: 0.0,
            target_ns: None,
        });
        let expected = SedaBatchConfig {
            interval_ns: 0,
            batch_max: 1,
            ..SedaBatchConfig::default()
        };
        assert_eq!(controller.config, expected);
    }
}
