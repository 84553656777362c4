//! What a stage counts of itself, and the controllers that are shown it.

use tussah_core::{Guarded, caught};

use super::control::{
    Admission, Arrival, ClassSample, Controller, Departure, Owns, Rule, Sample, Servlets, Settings,
    Verdict,
};
use super::digest::Digest;
use super::error::BuildError;
use super::event::{CLASSES_MAX, Class};

/// Counts since the stage began, in events unless they say otherwise.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) arrived: u64,
    pub(crate) refused: u64,
    pub(crate) shed: u64,
    pub(crate) expired: u64,
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
    pub(crate) ready_ns: u64,
    pub(crate) busy_ns: u64,
    /// Of sockets: the bytes of what finished.
    pub(crate) bytes: u64,
    pub(crate) classes: [ClassCounts; CLASSES_MAX],
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClassCounts {
    pub(crate) arrived: u64,
    pub(crate) refused: u64,
    pub(crate) finished: u64,
}

/// How a stage is when a sample is taken.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Now {
    pub(crate) now_ns: u64,
    pub(crate) queue_len: u64,
    pub(crate) queue_max: u64,
    pub(crate) threshold: u64,
    pub(crate) in_service: u64,
    pub(crate) batch_max: usize,
    pub(crate) servlets: Servlets,
    pub(crate) waiting: usize,
    pub(crate) workers: usize,
    pub(crate) blocking: bool,
    pub(crate) process_servlets: usize,
    pub(crate) process_servlets_mean: f64,
    pub(crate) pace_ns: u64,
    pub(crate) outgoing_max: u64,
    pub(crate) random: u64,
    pub(crate) queued: [u64; CLASSES_MAX],
}

/// The interval of a controller that is shown nothing any more, since it panicked.
const NEVER: u64 = u64::MAX;

/// A controller with what it was last shown.
struct Seat {
    controller: Guarded<Box<dyn Controller>>,
    owns: Owns,
    interval_ns: u64,
    arrived: u64,
    finished: u64,
    last_ns: u64,
    last: Counts,
    /// By class; none if the controller does not look at responses.
    responses: Vec<Digest>,
}

impl Seat {
    #[inline]
    fn is_due(&self, counts: &Counts, now_ns: u64) -> bool {
        if now_ns < self.last_ns.saturating_add(self.interval_ns) {
            return false;
        }
        let arrived = self.arrived > 0 && counts.arrived - self.last.arrived >= self.arrived;
        let finished = self.finished > 0 && counts.finished - self.last.finished >= self.finished;
        arrived || finished || self.arrived == 0 && self.finished == 0
    }
}

/// What a controller said to a sample.
pub(crate) struct Decided<'a> {
    pub(crate) controller: &'static str,
    pub(crate) owns: Owns,
    pub(crate) settings: Settings,
    pub(crate) sample: &'a Sample<'a>,
    /// By what it lets each class in, before and after.
    pub(crate) rules: [(Rule, Rule); CLASSES_MAX],
}

/// The controllers of a stage.
pub(crate) struct Council {
    seats: Vec<Seat>,
    admission: Option<usize>,
    classes: usize,
}

impl Council {
    /// Whether a controller may be added to those of a stage that has these settings.
    ///
    /// # Errors
    /// As [`one_owner`].
    pub(crate) fn check(
        &self,
        stage: &str,
        has: Owns,
        one: &dyn Controller,
    ) -> Result<(), BuildError> {
        one_owner(stage, has, self.names(), one)
    }

    /// Each setting goes to the first that owns it; that no two do has been seen to.
    pub(crate) fn new(controllers: Vec<Box<dyn Controller>>, classes: usize, now_ns: u64) -> Self {
        let mut council = Self {
            seats: Vec::with_capacity(controllers.len()),
            admission: None,
            classes,
        };
        for controller in controllers {
            council.add(controller, &Counts::default(), now_ns);
        }
        council
    }

    /// Adds a controller, which is shown what comes after these counts; it gets what it owns and no other does.
    pub(crate) fn add(&mut self, controller: Box<dyn Controller>, counts: &Counts, now_ns: u64) {
        let owned = self.seats.iter().map(|seat| seat.owns);
        let taken = owned.fold(Owns::NOTHING, |all, owns| all | owns);
        let owns = controller.owns().without(taken);
        if owns.has(Owns::ADMISSION) {
            self.admission = Some(self.seats.len());
        }
        let cadence = controller.cadence();
        let looked_at = if controller.looks_at_responses() {
            self.classes
        } else {
            0
        };
        self.seats.push(Seat {
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

    /// Whether somebody decides about each event.
    #[inline]
    pub(crate) fn admits(&self) -> bool {
        self.admission.is_some()
    }

    #[inline]
    pub(crate) fn on_enqueue(&mut self, arrival: &Arrival) -> Admission {
        self.ask(Admission::Admit, |owner| owner.on_enqueue(arrival))
    }

    /// How many of so many events that come one after the other are let in at once.
    pub(crate) fn on_enqueue_many(&mut self, first: &Arrival, most: u64) -> u64 {
        self.ask(0, |owner| owner.on_enqueue_many(first, most).min(most))
    }

    /// Whether the next events that leave are to be shown to `on_dequeue`.
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

    /// Asks the owner of admission, if there is one. One that panics is asked no more: events are in the middle of their way.
    #[inline]
    fn ask<R>(&mut self, otherwise: R, question: impl FnOnce(&mut dyn Controller) -> R) -> R {
        let Some(at) = self.admission else {
            return otherwise;
        };
        let seat = &mut self.seats[at];
        let answer = caught(|| question(&mut **seat.controller));
        answer.unwrap_or_else(|| {
            seat.interval_ns = NEVER;
            self.admission = None;
            otherwise
        })
    }

    /// The name of who decides about admission.
    pub(crate) fn gatekeeper(&self) -> &'static str {
        match self.admission {
            None => "the queue's bound",
            Some(at) => self.seats[at].controller.name(),
        }
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = (&'static str, Owns)> {
        self.seats
            .iter()
            .map(|seat| (seat.controller.name(), seat.owns))
    }

    /// Notes the response of so many events of a class.
    #[inline]
    pub(crate) fn responded(&mut self, class: usize, ns: u64, count: u64) {
        for seat in &mut self.seats {
            if let Some(digest) = seat.responses.get_mut(class) {
                digest.add(ns, count);
            }
        }
    }

    #[inline]
    pub(crate) fn is_due(&self, counts: &Counts, now_ns: u64) -> bool {
        self.seats.iter().any(|seat| seat.is_due(counts, now_ns))
    }

    /// Shows each controller that is due a sample, and hands what it wants to `apply`.
    pub(crate) fn decide(
        &mut self,
        counts: &Counts,
        now: &Now,
        mut apply: impl FnMut(&Decided<'_>),
    ) {
        let classes_max = self.classes;
        for (at, seat) in self.seats.iter_mut().enumerate() {
            if !seat.is_due(counts, now.now_ns) {
                continue;
            }
            let mut classes = [ClassSample::default(); CLASSES_MAX];
            for (class, sample) in classes.iter_mut().enumerate().take(classes_max) {
                let (is, was) = (&counts.classes[class], &seat.last.classes[class]);
                *sample = class_sample(is, was, seat.responses.get(class));
                sample.queued = now.queued[class];
            }
            let interval_ns = (now.now_ns - seat.last_ns).max(1);
            let sample = sample(
                counts,
                &seat.last,
                now,
                interval_ns,
                &classes[..classes_max],
            );
            let admits = seat.owns.has(Owns::ADMISSION);
            let ruled = if admits { classes_max } else { 0 };
            let controller = &mut seat.controller;
            let decided = caught(|| {
                let mut rules = [(Rule::All, Rule::All); CLASSES_MAX];
                for (class, rule) in (0..).map(Class).zip(&mut rules[..ruled]) {
                    rule.0 = controller.rule(class);
                }
                let settings = controller.sample(&sample, now.now_ns);
                for (class, rule) in (0..).map(Class).zip(&mut rules[..ruled]) {
                    rule.1 = controller.rule(class);
                }
                Decided {
                    controller: controller.name(),
                    owns: seat.owns,
                    settings,
                    sample: &sample,
                    rules,
                }
            });
            match decided {
                Some(decided) => apply(&decided),
                None => {
                    seat.interval_ns = NEVER;
                    self.admission.take_if(|admission| *admission == at);
                }
            }
            (seat.last_ns, seat.last) = (now.now_ns, *counts);
            seat.responses.iter_mut().for_each(Digest::clear);
        }
    }
}

/// Whether a controller may be added to others of a stage that has these settings.
///
/// # Errors
/// If it decides what the stage does not have, or what another decides.
pub(crate) fn one_owner(
    stage: &str,
    has: Owns,
    mut others: impl Iterator<Item = (&'static str, Owns)>,
    one: &dyn Controller,
) -> Result<(), BuildError> {
    let owns = one.owns();
    if !has.has(owns) {
        return Err(BuildError::NoSuchSetting {
            stage: stage.to_owned(),
            controller: one.name(),
            settings: owns.without(has),
            has,
        });
    }
    let both = |(_, other): &(&str, Owns)| other.both(owns) != Owns::NOTHING;
    match others.find(both) {
        None => Ok(()),
        Some((other, settings)) => Err(BuildError::TwoOwners {
            stage: stage.to_owned(),
            controllers: [other, one.name()],
            settings: settings.both(owns),
        }),
    }
}

fn class_sample(is: &ClassCounts, was: &ClassCounts, responses: Option<&Digest>) -> ClassSample {
    let counted = ClassSample {
        arrived: is.arrived - was.arrived,
        refused: is.refused - was.refused,
        finished: is.finished - was.finished,
        ..ClassSample::default()
    };
    match responses {
        None => counted,
        Some(digest) => ClassSample {
            response_mean_ns: digest.mean_ns(),
            response_min_ns: digest.min_ns(),
            response_p50_ns: digest.permille(500),
            response_p90_ns: digest.permille(900),
            response_p99_ns: digest.permille(990),
            ..counted
        },
    }
}

fn sample<'a>(
    is: &Counts,
    was: &Counts,
    now: &Now,
    interval_ns: u64,
    classes: &'a [ClassSample],
) -> Sample<'a> {
    Sample {
        interval_ns,
        busy_ns: is.busy_ns - was.busy_ns,
        queue_len: now.queue_len,
        queue_max: now.queue_max,
        threshold: now.threshold,
        arrived: is.arrived - was.arrived,
        admitted: (is.arrived - was.arrived) - (is.refused - was.refused),
        refused: is.refused - was.refused,
        shed: (is.shed - was.shed) + (is.expired - was.expired),
        finished: is.finished - was.finished,
        failed: is.failed - was.failed,
        in_service: now.in_service,
        batches: is.batches - was.batches,
        service_ns: is.service_ns - was.service_ns,
        compute_ns: is.compute_ns - was.compute_ns,
        held_up_ns: is.held_up_ns - was.held_up_ns,
        ready_ns: is.ready_ns - was.ready_ns,
        bytes: is.bytes - was.bytes,
        batch_max: now.batch_max,
        servlets: now.servlets,
        workers: now.workers,
        waiting: now.waiting,
        blocking: now.blocking,
        process_servlets: now.process_servlets,
        process_servlets_mean: now.process_servlets_mean,
        pace_ns: now.pace_ns,
        outgoing_max: now.outgoing_max,
        random: now.random,
        classes,
    }
}
