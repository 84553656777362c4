//! What a stage knows and decides, without its handler: a queue, who is let in, who goes to work, and what was counted.
//!
//! Nothing here waits, reads a clock or runs a handler: time is handed in. The stage proper ([`shared`](super::shared)) keeps one behind a lock; a
//! simulator runs the same on a virtual clock.
//!
//! | file | what belongs there |
//! |---|---|
//! | `entry.rs` | who is let in, and room that is reserved ahead of time |
//! | `staff.rs` | servlets: who is called to work, who parks, who ends |
//! | `work.rs` | what a servlet takes, gives back and finishes |
//! | `tuning.rs` | settings: controllers' and others' |

mod entry;
mod staff;
mod tuning;
mod work;

use std::sync::Arc;

use super::account::{Council, Counts};
use super::control::{Log, Order, Servlets};
use super::digest::Digest;
use super::event::{CLASSES_MAX, Event, Reason};
use super::expiry::Watch;
use super::process::Process;
use super::queue::Queue;
use super::random::Random;

pub(crate) use entry::How;
pub(crate) use staff::Summon;
pub(crate) use work::Run;

/// What bounds a stage, however its controllers set it.
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

/// Whether a stage takes events, and works on them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Gate {
    Open,
    /// Events are queued, and none are taken.
    Paused,
    /// No event is let in; what is queued is worked off.
    Draining,
    /// Nothing is let in or taken.
    Closed,
}

/// How much of a stage's time its servlets compute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A servlet computes unless it says that it waits.
    Async,
    /// A servlet has an OS thread of its own, and may always be waiting.
    Blocking,
}
pub(crate) struct State<E> {
    pub(crate) queue: Queue<E>,
    pub(crate) council: Council,
    pub(crate) counts: Counts,
    pub(crate) responses: Digest,
    pub(crate) log: Log,
    pub(crate) bounds: Bounds,
    pub(crate) servlets: Servlets,
    pub(crate) gate: Gate,
    /// There is a handler: until then events are queued.
    pub(crate) manned: bool,
    /// A handler is about to take another's place: until then no batch is begun.
    pub(crate) swapping: bool,
    /// The runtime starts no servlet any more.
    pub(crate) orphaned: bool,
    /// It was closed, and those concerned have not been told.
    pub(crate) closing: bool,
    /// Why its handler closed it.
    pub(crate) closed_for: Option<Arc<str>>,
    /// What events are told that are still here then.
    pub(crate) ends: Reason,
    pub(crate) threshold: u64,
    pub(crate) batch: usize,
    pub(crate) order: Order,
    pub(crate) workers: usize,
    /// The most servlets that may be at work, whatever the target: what the process has for the stage.
    pub(crate) cap: usize,
    /// No servlet is called for now: there is no OS thread for it.
    pub(crate) held_back: bool,
    pub(crate) kind: Kind,
    classes: usize,
    queued: [u64; CLASSES_MAX],
    len: u64,
    credits: u64,
    /// Credits that senders have reserved and not used yet.
    reserved: u64,
    /// Events that were dropped, and nobody has been told yet.
    pub(crate) untold: u64,
    /// There is room that senders who wait have not been handed.
    pub(crate) freed: bool,
    /// What each of these stages has in the queue for its edge back, in credits, besides what all share.
    pub(crate) back_rooms: Vec<(u32, u64)>,
    /// Events in the queue that carry more than their value.
    extras: u64,
    pub(crate) watch: Watch,
    in_service: u64,
    /// Busy servlets whose handlers wait.
    waiting: usize,
    /// Of these, those who have only let others have their turn.
    yielding: usize,
    /// The moving mean of the computing time of an event, in nanoseconds; 0 before the first.
    mean_ns: f64,
    /// The same of the time of an event with its waits.
    service_mean_ns: f64,
    busy_since_ns: u64,
    random: Random,
    process: Arc<Process>,
}

/// What a state is made of.
pub(crate) struct Parts<E> {
    pub(crate) queue: Queue<E>,
    pub(crate) council: Council,
    pub(crate) bounds: Bounds,
    pub(crate) classes: usize,
    pub(crate) kind: Kind,
    pub(crate) workers: usize,
    pub(crate) servlets: usize,
    pub(crate) batch: usize,
    pub(crate) seed: u64,
    pub(crate) process: Arc<Process>,
}

impl<E> State<E> {
    pub(crate) fn new(parts: Parts<E>) -> Self {
        Self {
            queue: parts.queue,
            council: parts.council,
            counts: Counts::default(),
            responses: Digest::default(),
            log: Log::default(),
            bounds: parts.bounds,
            servlets: Servlets {
                target: parts.servlets.clamp(1, parts.bounds.servlets_max),
                max: parts.bounds.servlets_max,
                ..Servlets::default()
            },
            gate: Gate::Open,
            manned: false,
            swapping: false,
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
            classes: parts.classes,
            queued: [0; CLASSES_MAX],
            len: 0,
            credits: 0,
            reserved: 0,
            untold: 0,
            freed: false,
            back_rooms: Vec::new(),
            extras: 0,
            watch: Watch::default(),
            in_service: 0,
            waiting: 0,
            yielding: 0,
            mean_ns: 0.0,
            service_mean_ns: 0.0,
            busy_since_ns: 0,
            random: Random::new(parts.seed),
            process: parts.process,
        }
    }

    /// Whether batches are begun.
    pub(crate) fn works(&self) -> bool {
        matches!(self.gate, Gate::Open | Gate::Draining) && self.manned && !self.swapping
    }

    /// Lets nothing in or out any more.
    pub(crate) fn close(&mut self, why: Reason) {
        if self.gate != Gate::Closed {
            (self.gate, self.ends) = (Gate::Closed, why);
            self.closing = true;
        }
    }

    /// Events in the queue.
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

    /// Whether nothing is queued or in service, and all has been told that was dropped.
    pub(crate) fn is_empty(&self) -> bool {
        self.len + self.in_service + self.reserved + self.untold == 0
    }

    /// Credits in the queue of this class and those before it; where there are several, as if all events cost as much as they do on average.
    fn ahead(&self, class: usize) -> u64 {
        if self.classes == 1 {
            return self.credits();
        }
        let events = self.queued[..=class].iter().sum::<u64>();
        let credits = if self.credits == self.len {
            events
        } else {
            (events as f64 * self.credits as f64 / self.len.max(1) as f64) as u64
        };
        credits + self.reserved
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
