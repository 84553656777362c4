//! The settings of a stage, and the controllers that decide them.

use super::account::Now;
use super::{Bounds, Kind, State};
use crate::stage::control::{Order, Owns, Settings};

impl<E> State<E> {
    /// Changes settings, within the bounds.
    pub(crate) fn retune(&mut self, settings: Settings) {
        let mut target = self.targets();
        target.apply(Owns::STAGE, settings, &self.bounds);
        self.set_targets(&target);
    }

    /// Changes the bound of the queue, in credits. A threshold that was equal to the old bound
    /// follows it.
    pub(crate) fn set_queue_max(&mut self, credits: u64) {
        let credits = credits.max(1);
        if self.threshold == self.bounds.queue_max || self.threshold > credits {
            self.threshold = credits;
        }
        self.bounds.queue_max = credits;
        self.freed = true;
    }

    /// Changes the maximum number of events in a batch.
    pub(crate) fn set_batch_max(&mut self, events: usize) {
        self.bounds.batch_max = events;
        self.batch = self.batch.min(events);
    }

    /// Changes the maximum number of servlets.
    pub(crate) fn set_servlets_max(&mut self, servlets: usize) {
        self.bounds.servlets_max = servlets;
        self.servlets.max = servlets;
        self.servlets.target = self.servlets.target.min(servlets);
    }

    fn targets(&self) -> Targets {
        Targets {
            servlets: self.servlets.target,
            batch: self.batch,
            threshold: self.threshold,
            order: self.order,
        }
    }

    fn set_targets(&mut self, target: &Targets) {
        self.servlets.target = target.servlets;
        self.freed |= target.threshold > self.threshold;
        (self.batch, self.threshold, self.order) = (target.batch, target.threshold, target.order);
    }

    /// Passes a sample to the controllers that are due, applies their settings, and logs each
    /// change.
    #[inline]
    pub(crate) fn decide(&mut self, now_ns: u64) {
        if self.controllers.is_due(&self.counts, now_ns) {
            self.decide_now(now_ns);
        }
    }

    #[cold]
    fn decide_now(&mut self, now_ns: u64) {
        if self.len + self.in_service > 0 {
            self.counts.busy_ns += now_ns.saturating_sub(self.busy_since_ns);
            self.busy_since_ns = now_ns;
        }
        let now = Now {
            now_ns,
            queue_len: self.credits(),
            ready: self.ready(),
            queue_max: self.bounds.queue_max,
            threshold: self.threshold,
            in_service: self.in_service,
            batch_max: self.batch,
            servlets: self.servlets,
            // A handler can be counted as both, if it polls several futures.
            waiting: self.waiting.saturating_sub(self.yielding + self.held_up),
            limited: self.limited + self.scarcity.waits.blocked(),
            workers: self.workers,
            blocking: self.kind == Kind::Blocking,
            process_servlets: self.process.servlets(),
            process_servlets_mean: self.process.mean(now_ns),
            random: self.random.next(),
            queued: self.queued,
            ..Now::default()
        };
        let limit = self.scarcity.look(&self.counts, &now);
        self.log.sees(limit);
        let mut target = self.targets();
        let (bounds, log, sample_ns) = (self.bounds, &mut self.log, now_ns);
        self.controllers.decide(&self.counts, &now, |decided| {
            let (name, sample) = (decided.controller, decided.sample);
            let before = target.settings();
            target.apply(decided.owns, decided.settings, &bounds);
            let after = Settings {
                why: decided.settings.why,
                ..target.settings()
            };
            // This comes first, because the log shows the target with the other decisions.
            if let Some((before, after)) = decided.targets {
                log.note_target(sample_ns, name, before, after, sample);
            }
            log.note(sample_ns, name, &before, &after, sample);
            log.note_rules(sample_ns, name, &decided.rules, sample);
        });
        if target.servlets != self.servlets.target {
            self.retuned_ns = now_ns;
        }
        self.set_targets(&target);
        self.while_all_wait = self.controllers.while_all_wait();
        self.schedule_sweep(now_ns);
    }
}

/// The settings of a stage.
struct Targets {
    servlets: usize,
    batch: usize,
    threshold: u64,
    order: Order,
}

impl Targets {
    fn settings(&self) -> Settings {
        Settings {
            servlets: Some(self.servlets),
            batch: Some(self.batch),
            threshold: Some(self.threshold),
            order: Some(self.order),
            ..Settings::default()
        }
    }

    /// Applies the settings that the controller owns, within the stage's bounds.
    fn apply(&mut self, owns: Owns, settings: Settings, bounds: &Bounds) {
        if let (true, Some(servlets)) = (owns.has(Owns::SERVLETS), settings.servlets) {
            self.servlets = servlets.clamp(1, bounds.servlets_max);
        }
        if let (true, Some(batch)) = (owns.has(Owns::BATCH), settings.batch) {
            self.batch = batch.clamp(1, bounds.batch_max);
        }
        if !owns.has(Owns::ADMISSION) {
            return;
        }
        if let Some(threshold) = settings.threshold {
            self.threshold = threshold.clamp(1, bounds.queue_max);
        }
        if let Some(order) = settings.order {
            self.order = order;
        }
    }
}
