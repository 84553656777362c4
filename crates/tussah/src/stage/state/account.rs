//! The counters of a stage, and the controllers that receive samples of them.

mod shown;

use std::time::Duration;

use tussah_core::{Guarded, caught};

use self::shown::{class_sample, sample};
use super::digest::Digest;
use crate::stage::control::{
    Admission, Arrival, ClassSample, Controller, Departure, Owns, Rule, Sample, Servlets, Settings,
    Verdict, WhileAllWait, one_owner,
};
use crate::stage::error::BuildError;
use crate::stage::event::{CLASSES_MAX, Class, Classes};

/// Counts since the stage began, in events unless stated otherwise.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) arrived: u64,
    pub(crate) refused: u64,
    pub(crate) shed: u64,
    pub(crate) expired: u64,
    pub(crate) cancelled: u64,
    pub(crate) shut_down: u64,
    pub(crate) finished: u64,
    pub(crate) failed: u64,
    /// Batches whose handlers panicked, and the events that these had taken and not settled.
    pub(crate) panicked: u64,
    pub(crate) lost: u64,
    pub(crate) batches: u64,
    pub(crate) service_ns: u64,
    pub(crate) compute_ns: u64,
    pub(crate) held_up_ns: u64,
    pub(crate) limited_ns: u64,
    pub(crate) permits: u64,
    pub(crate) ready_ns: u64,
    /// The sum over batches of the squares of their part of `service_ns` without `held_up_ns`, in
    /// square seconds.
    pub(crate) service_squares: f64,
    /// The part of `batches` that began after the last change of the number of servlets.
    pub(crate) fresh_batches: u64,
    pub(crate) busy_ns: u64,
    /// For sockets: the bytes of the finished operations.
    pub(crate) bytes: u64,
    pub(crate) classes: [ClassCounts; CLASSES_MAX],
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClassCounts {
    pub(crate) arrived: u64,
    pub(crate) refused: u64,
    pub(crate) finished: u64,
}

/// The state of a stage when a sample is taken.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Now {
    pub(crate) now_ns: u64,
    pub(crate) queue_len: u64,
    pub(crate) ready: u64,
    pub(crate) queue_max: u64,
    pub(crate) threshold: u64,
    pub(crate) in_service: u64,
    pub(crate) batch_max: usize,
    pub(crate) servlets: Servlets,
    pub(crate) waiting: usize,
    pub(crate) limited: usize,
    pub(crate) workers: usize,
    pub(crate) blocking: bool,
    pub(crate) process_servlets: usize,
    pub(crate) process_servlets_mean: f64,
    pub(crate) pace_ns: u64,
    pub(crate) outgoing_max: u64,
    pub(crate) random: u64,
    pub(crate) queued: [u64; CLASSES_MAX],
}

/// The interval of a controller that receives no more samples because it panicked.
const NEVER: u64 = u64::MAX;

/// A controller and its last sample.
struct Slot {
    controller: Guarded<Box<dyn Controller>>,
    owns: Owns,
    interval_ns: u64,
    arrived: u64,
    finished: u64,
    last_ns: u64,
    last: Counts,
    /// One entry per class; empty if the controller does not look at responses.
    responses: Vec<Digest>,
}

impl Slot {
    #[inline]
    fn is_due(&self, counts: &Counts, now_ns: u64) -> bool {
        if now_ns < self.last_ns.saturating_add(self.interval_ns) {
            return false;
        }
        let arrived = self.arrived > 0 && counts.arrived - self.last.arrived >= self.arrived;
        let ended = |counts: &Counts| counts.finished + counts.failed;
        let finished = self.finished > 0 && ended(counts) - ended(&self.last) >= self.finished;
        arrived || finished || self.arrived == 0 && self.finished == 0
    }
}

/// A controller's decision on a sample.
pub(crate) struct Decided<'a> {
    pub(crate) controller: &'static str,
    pub(crate) owns: Owns,
    pub(crate) settings: Settings,
    pub(crate) sample: &'a Sample<'a>,
    /// The rules by which it admits each class, before and after the sample.
    pub(crate) rules: [(Rule, Rule); CLASSES_MAX],
    /// The effective target before and after the sample, if the controller owns admission.
    pub(crate) targets: Option<(Duration, Duration)>,
}

/// The controllers of a stage.
pub(crate) struct ControllerSet {
    slots: Vec<Slot>,
    admission: Option<usize>,
    classes: Classes,
}

impl ControllerSet {
    /// Checks whether a controller may be added to a stage with these settings.
    ///
    /// # Errors
    /// Returns the same errors as [`one_owner`].
    pub(crate) fn check(
        &self,
        stage: &str,
        has: Owns,
        one: &dyn Controller,
    ) -> Result<(), BuildError> {
        one_owner(stage, has, self.names(), one)
    }

    /// Returns whether the stage has no controllers.
    pub(crate) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Creates the set. Each setting belongs to the first controller that owns it; the caller has
    /// checked that no two controllers own the same setting.
    pub(crate) fn new(
        controllers: Vec<Box<dyn Controller>>,
        classes: Classes,
        now_ns: u64,
    ) -> Self {
        let mut set = Self {
            slots: Vec::with_capacity(controllers.len()),
            admission: None,
            classes,
        };
        for controller in controllers {
            set.add(controller, &Counts::default(), now_ns);
        }
        set
    }

    /// Adds a controller, whose first sample begins at these counts. It gets the settings that no
    /// other controller owns.
    pub(crate) fn add(&mut self, controller: Box<dyn Controller>, counts: &Counts, now_ns: u64) {
        let owned = self.slots.iter().map(|slot| slot.owns);
        let taken = owned.fold(Owns::NOTHING, |all, owns| all | owns);
        let owns = controller.owns().without(taken);
        if owns.has(Owns::ADMISSION) {
            self.admission = Some(self.slots.len());
        }
        let cadence = controller.cadence();
        let looked_at = if controller.looks_at_responses() {
            self.classes.count()
        } else {
            0
        };
        self.slots.push(Slot {
            owns,
            interval_ns: if cadence.arrived == 0 && cadence.finished == 0 {
                cadence.interval_ns.max(1)
            } else {
                cadence.interval_ns
            },
            arrived: cadence.arrived,
            finished: cadence.finished,
            last_ns: now_ns,
            last: *counts,
            responses: vec![Digest::default(); looked_at],
            controller: Guarded::new(controller),
        });
    }

    /// Returns whether a controller decides about each event.
    #[inline]
    pub(crate) fn admits(&self) -> bool {
        self.admission.is_some()
    }

    #[inline]
    pub(crate) fn on_enqueue(&mut self, arrival: &Arrival) -> Admission {
        self.ask(Admission::Admit, |owner| owner.on_enqueue(arrival))
    }

    /// Returns how many of `most` consecutive events are admitted immediately.
    pub(crate) fn on_enqueue_many(&mut self, first: &Arrival, most: u64) -> u64 {
        self.ask(0, |owner| owner.on_enqueue_many(first, most).min(most))
    }

    /// Returns whether the next events that leave must be shown to `on_dequeue`.
    pub(crate) fn looks_at_departures(&mut self) -> bool {
        self.ask(false, |owner| owner.looks_at_departures())
    }

    #[inline]
    pub(crate) fn on_dequeue(&mut self, departure: &Departure) -> Verdict {
        self.ask(Verdict::Serve, |owner| owner.on_dequeue(departure))
    }

    pub(crate) fn is_overdue(&mut self, departure: &Departure) -> bool {
        self.ask(false, |owner| owner.is_overdue(departure))
    }

    /// Asks the owner of admission, if there is one. If the controller panics, it is not asked
    /// again, because events are in transit.
    #[inline]
    fn ask<R>(&mut self, otherwise: R, question: impl FnOnce(&mut dyn Controller) -> R) -> R {
        let Some(at) = self.admission else {
            return otherwise;
        };
        let slot = &mut self.slots[at];
        let answer = caught(|| question(&mut **slot.controller));
        answer.unwrap_or_else(|| {
            slot.interval_ns = NEVER;
            self.admission = None;
            otherwise
        })
    }

    /// Returns the name of the owner of admission.
    pub(crate) fn admission_name(&self) -> &'static str {
        match self.admission {
            None => "the queue's bound",
            Some(at) => self.slots[at].controller.name(),
        }
    }

    /// Returns the latency target in force, if the owner of admission has one.
    pub(crate) fn effective_target(&mut self) -> Option<Duration> {
        self.ask(None, |owner| owner.effective_target())
    }

    /// Returns how queued events are treated while all servlets wait.
    pub(crate) fn while_all_wait(&mut self) -> WhileAllWait {
        let owns = |slot: &Slot| slot.owns.has(Owns::SERVLETS) && slot.interval_ns != NEVER;
        let Some(at) = self.slots.iter().position(owns) else {
            return WhileAllWait::default();
        };
        let slot = &mut self.slots[at];
        let asked = caught(|| slot.controller.while_all_wait());
        asked.unwrap_or_else(|| {
            slot.interval_ns = NEVER;
            self.admission.take_if(|admission| *admission == at);
            WhileAllWait::default()
        })
    }

    /// Returns the number of events that the owner of admission would have rejected.
    pub(crate) fn would_reject(&mut self) -> u64 {
        self.ask(0, |owner| owner.would_reject())
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = (&'static str, Owns)> {
        self.slots
            .iter()
            .map(|slot| (slot.controller.name(), slot.owns))
    }

    /// Adds the response time of `count` events of a class.
    #[inline]
    pub(crate) fn responded(&mut self, class: usize, ns: u64, count: u64) {
        for slot in &mut self.slots {
            if let Some(digest) = slot.responses.get_mut(class) {
                digest.add(ns, count);
            }
        }
    }

    #[inline]
    pub(crate) fn is_due(&self, counts: &Counts, now_ns: u64) -> bool {
        self.slots.iter().any(|slot| slot.is_due(counts, now_ns))
    }

    /// Passes a sample to each controller that is due, and its decision to `apply`.
    pub(crate) fn decide(
        &mut self,
        counts: &Counts,
        now: &Now,
        mut apply: impl FnMut(&Decided<'_>),
    ) {
        let classes_max = self.classes.count();
        for (at, slot) in self.slots.iter_mut().enumerate() {
            if !slot.is_due(counts, now.now_ns) {
                continue;
            }
            let mut classes = [ClassSample::default(); CLASSES_MAX];
            for (class, sample) in classes.iter_mut().enumerate().take(classes_max) {
                let (is, was) = (&counts.classes[class], &slot.last.classes[class]);
                *sample = class_sample(is, was, slot.responses.get(class));
                sample.queued = now.queued[class];
                sample.share = self.classes.share(class);
            }
            let interval_ns = (now.now_ns - slot.last_ns).max(1);
            let sample = sample(
                counts,
                &slot.last,
                now,
                interval_ns,
                &classes[..classes_max],
            );
            let admits = slot.owns.has(Owns::ADMISSION);
            let ruled = if admits { classes_max } else { 0 };
            let controller = &mut slot.controller;
            let decided = caught(|| {
                let mut rules = [(Rule::All, Rule::All); CLASSES_MAX];
                for (class, rule) in (0..).map(Class).zip(&mut rules[..ruled]) {
                    rule.0 = controller.rule(class);
                }
                let before = admits.then(|| controller.effective_target()).flatten();
                let settings = controller.sample(&sample, now.now_ns);
                let after = admits.then(|| controller.effective_target()).flatten();
                for (class, rule) in (0..).map(Class).zip(&mut rules[..ruled]) {
                    rule.1 = controller.rule(class);
                }
                Decided {
                    controller: controller.name(),
                    owns: slot.owns,
                    settings,
                    sample: &sample,
                    rules,
                    targets: before.zip(after),
                }
            });
            match decided {
                Some(decided) => apply(&decided),
                None => {
                    slot.interval_ns = NEVER;
                    self.admission.take_if(|admission| *admission == at);
                }
            }
            (slot.last_ns, slot.last) = (now.now_ns, *counts);
            slot.responses.iter_mut().for_each(Digest::clear);
        }
    }
}
