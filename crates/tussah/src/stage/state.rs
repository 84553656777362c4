//! The state of a stage and its decisions, without its handler: queue, admission, starting of
//! servlets, and counters.
//!
//! This module never waits, reads a clock or runs a handler: time is a parameter. A real stage
//! ([`Shared`](super::run::Shared)) keeps the state behind a lock. The simulator runs the same
//! state on a virtual clock.
//!
//! | file | contents |
//! |---|---|
//! | `entry.rs` | admission, and room reserved in advance |
//! | `staff.rs` | servlets: which of them become busy, park or end |
//! | `keys.rs` | the keys of a keyed stage, and their load |
//! | `scarce.rs` | the resource that is scarce, and the events rejected for lack of it |
//! | `late.rs` | queued events that end before their turn |
//! | `numbered.rs` | events that are handled in the order of the queue |
//! | `work.rs` | events that a servlet takes, returns and finishes |
//! | `tuning.rs` | settings, from controllers and from other sources |

mod account;
mod digest;
mod entry;
mod keys;
mod late;
mod numbered;
mod process;
mod random;
mod run;
mod scarce;
mod staff;
mod stall;
mod tally;
mod tuning;
mod work;

use std::sync::Arc;

use super::control::{Order, Servlets, WhileAllWait, log::Log};
use super::event::{CLASSES_MAX, Classes, Event, Home, Reason, Watch};
use super::queue::Queue;

pub use self::digest::Digest;
pub use self::random::Random;

pub(crate) use account::{ControllerSet, Counts, Now};
pub(crate) use entry::How;
pub(crate) use numbered::Numbers;
pub(crate) use process::Process;
pub(crate) use run::{Run, WaitsFor};
pub(crate) use scarce::{Awaited, Scarcity, Waiting, Waits};
pub(crate) use staff::Wake;
pub(crate) use tally::Tally;
pub(crate) use work::EXACT_NS;

/// The bounds of a stage, which its controllers cannot exceed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Credits in the queue.
    pub(crate) queue_max: u64,
    /// Events of each class in the queue.
    pub(crate) class_max: [u64; CLASSES_MAX],
    /// Events in a batch.
    pub(crate) batch_max: usize,
    /// Servlets at work.
    pub(crate) servlets_max: usize,
}

/// True if a stage admits events and works on them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Gate {
    Open,
    /// Events are queued, but none are taken.
    Paused,
    /// No event is admitted; the queued events are still handled.
    Draining,
    /// Nothing is admitted or taken.
    Closed,
}

/// The way in which a stage's servlets use CPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A servlet computes unless it reports that it waits.
    Async,
    /// A servlet has its own OS thread, and may be waiting at any time.
    Blocking,
}
pub(crate) struct State<E> {
    pub(crate) queue: Queue<E>,
    pub(crate) controllers: ControllerSet,
    pub(crate) counts: Counts,
    pub(crate) responses: Digest,
    pub(crate) scarcity: Scarcity,
    pub(crate) log: Log,
    pub(crate) bounds: Bounds,
    pub(crate) servlets: Servlets,
    pub(crate) gate: Gate,
    /// True if there is a handler; without one, events are only queued.
    pub(crate) has_handler: bool,
    /// The number of swaps of this handler, or of one that it calls, that are in progress; until
    /// they end, no batch begins.
    pub(crate) held: usize,
    /// True if the runtime has stopped starting servlets.
    pub(crate) orphaned: bool,
    /// True if the stage was closed and its waiting senders have not been notified yet.
    pub(crate) closing: bool,
    /// The reason that the handler gave when it closed the stage.
    pub(crate) closed_for: Option<Arc<str>>,
    /// The drop reason of the events that are still queued when the stage ends.
    pub(crate) ends: Reason,
    pub(crate) threshold: u64,
    pub(crate) batch: usize,
    pub(crate) order: Order,
    pub(crate) workers: usize,
    /// The maximum number of servlets at work, whatever the target: the stage's share of the
    /// process's servlets.
    pub(crate) cap: usize,
    /// True if no servlet may be started for now, because there is no OS thread for it.
    pub(crate) held_back: bool,
    pub(crate) kind: Kind,
    /// The number of classes, which is read often.
    pub(crate) classes: usize,
    /// The same classes with their shares.
    all_classes: Classes,
    pub(crate) queued: [u64; CLASSES_MAX],
    pub(crate) len: u64,
    pub(crate) credits: u64,
    /// Credits that senders have reserved but not used yet.
    reserved: u64,
    /// Events that were dropped but whose drop callbacks have not run yet.
    pub(crate) undelivered: u64,
    /// True if there is free room that waiting senders have not been given yet.
    pub(crate) freed: bool,
    /// For each stage with a back edge to this one: its own room in the queue, in credits, in
    /// addition to the shared room.
    pub(crate) back_rooms: Vec<(u32, u64)>,
    /// The number of queued events that carry more than their value.
    pub(crate) extras: u64,
    /// The number of cancelled events that are still in the queue; `len` does not count them.
    pub(crate) buried: u64,
    /// Cancelled events that have left the queue. Their drop callbacks run after the lock has been
    /// released.
    pub(crate) swept: Vec<Event<E>>,
    /// The stage, for callers that cancel events in its queue.
    pub(crate) home: Option<Home>,
    /// The name of the stage, for the paths of its queued events.
    pub(crate) named: Option<Arc<str>>,
    /// The numbers of events that leave the queue, if the stage numbers its events.
    pub(crate) numbers: Option<Numbers<E>>,
    pub(crate) watch: Watch,
    in_service: u64,
    /// The number of busy servlets whose handlers wait.
    waiting: usize,
    /// Of these, the servlets that have only yielded to others.
    yielding: usize,
    /// Of the waiting servlets, those that wait for room in another stage, and those that wait for
    /// a permit of a limit.
    held_up: usize,
    limited: usize,
    /// The treatment of queued events while all servlets wait.
    while_all_wait: WhileAllWait,
    /// The number of servlets that may be at work beyond the target, because of a stall.
    relief: usize,
    /// The number of events that had ended when the next check for a stall was scheduled.
    stall_ended: u64,
    /// The moving mean of the computing time of an event, in nanoseconds; 0 before the first event.
    mean_ns: f64,
    /// The moving mean of the time of an event including its waits, in nanoseconds.
    service_mean_ns: f64,
    busy_since_ns: u64,
    /// The time at which the number of servlets was last changed.
    retuned_ns: u64,
    random: Random,
    process: Arc<Process>,
}

/// The parts of a new state.
pub(crate) struct Parts<E> {
    pub(crate) queue: Queue<E>,
    pub(crate) controllers: ControllerSet,
    pub(crate) bounds: Bounds,
    pub(crate) classes: Classes,
    pub(crate) kind: Kind,
    pub(crate) workers: usize,
    pub(crate) servlets: usize,
    pub(crate) batch: usize,
    pub(crate) seed: u64,
    pub(crate) process: Arc<Process>,
}

impl<E> State<E> {
    pub(crate) fn new(mut parts: Parts<E>) -> Self {
        let while_all_wait = parts.controllers.while_all_wait();
        Self {
            queue: parts.queue,
            controllers: parts.controllers,
            counts: Counts::default(),
            responses: Digest::default(),
            scarcity: Scarcity::default(),
            log: Log::default(),
            bounds: parts.bounds,
            servlets: Servlets {
                target: parts.servlets.clamp(1, parts.bounds.servlets_max),
                max: parts.bounds.servlets_max,
                ..Servlets::default()
            },
            gate: Gate::Open,
            has_handler: false,
            held: 0,
            orphaned: false,
            closing: false,
            closed_for: None,
            ends: Reason::ShutDown,
            threshold: parts.bounds.queue_max,
            batch: parts.batch.clamp(1, parts.bounds.batch_max),
            order: Order::Fifo,
            workers: parts.workers,
            cap: usize::MAX,
            held_back: false,
            kind: parts.kind,
            classes: parts.classes.count(),
            all_classes: parts.classes,
            queued: [0; CLASSES_MAX],
            len: 0,
            credits: 0,
            reserved: 0,
            undelivered: 0,
            freed: false,
            back_rooms: Vec::new(),
            extras: 0,
            buried: 0,
            swept: Vec::new(),
            home: None,
            named: None,
            numbers: None,
            watch: Watch::default(),
            in_service: 0,
            waiting: 0,
            yielding: 0,
            held_up: 0,
            limited: 0,
            while_all_wait,
            relief: 0,
            stall_ended: 0,
            mean_ns: 0.0,
            service_mean_ns: 0.0,
            busy_since_ns: 0,
            retuned_ns: 0,
            random: Random::new(parts.seed),
            process: parts.process,
        }
    }

    /// Returns whether new batches may begin.
    pub(crate) fn works(&self) -> bool {
        let is_open = matches!(self.gate, Gate::Open | Gate::Draining);
        is_open && self.has_handler && (self.held == 0 || self.has_returned())
    }

    /// Closes the stage: no event is admitted or taken any longer.
    pub(crate) fn close(&mut self, why: Reason) {
        if self.gate != Gate::Closed {
            (self.gate, self.ends) = (Gate::Closed, why);
            self.closing = true;
        }
    }

    /// Returns the number of events in the queue.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn in_service(&self) -> u64 {
        self.in_service
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    pub(crate) fn credits(&self) -> u64 {
        self.credits + self.reserved
    }

    pub(crate) fn queued_by_class(&self) -> &[u64] {
        &self.queued[..self.classes]
    }

    /// Returns whether nothing is queued or in service, and all drop callbacks have run.
    pub(crate) fn is_empty(&self) -> bool {
        self.len + self.buried + self.in_service + self.reserved + self.undelivered == 0
    }

    /// Returns the credits in the queue that are served before a new event of this class. With
    /// several classes, this is an estimate that charges each event the mean cost.
    fn ahead(&self, class: usize) -> u64 {
        if self.classes == 1 {
            return self.credits();
        }
        self.in_credits(self.all_classes.ahead(class, &self.queued)) + self.reserved
    }

    #[inline]
    pub(crate) fn class(&self, event: &Event<E>) -> usize {
        event.class_of().among(self.classes)
    }

    #[inline]
    fn cost(&self, event: &Event<E>) -> u64 {
        event.cost().min(self.bounds.queue_max)
    }
}
