//! What a stage tells of itself.

use std::sync::Arc;
use std::time::Duration;

use super::control::{Order, Owns, Servlets};
use super::state::{Gate, State};

/// What a stage does at one moment, and what it has done since it was made. Counts are in events unless they say otherwise.
#[derive(Clone, Debug)]
pub struct StageStats {
    /// The stage's name.
    pub name: Arc<str>,
    /// Whether it takes events and works on them: `new` (without a handler), `open`, `paused`, `swapping`, `draining` or `closed`.
    pub gate: &'static str,
    /// Events in the queue.
    pub queued: u64,
    /// Credits in the queue, those included that senders have reserved.
    pub queue_len: u64,
    /// The most credits that the queue may hold.
    pub queue_max: u64,
    /// The threshold in force, at most `queue_max`.
    pub threshold: u64,
    /// Events in the queue, by class.
    pub queued_by_class: Vec<u64>,
    /// Keys that have events or are busy; 0 in a stage that is not by key.
    pub keys: usize,
    /// Bytes that the queue has for events, what they own on the heap not counted.
    pub queue_bytes: u64,
    /// Events in service: taken, and their batch has not ended.
    pub in_service: u64,
    /// Servlets, and what they do.
    pub servlets: Servlets,
    /// The most servlets that the network's governor has for it, if that is less than the target.
    pub cap: Option<usize>,
    /// Of the busy servlets, those whose handlers wait.
    pub waiting: usize,
    /// The most events in a batch now.
    pub batch_max: usize,
    /// Which end of the queue is served.
    pub order: Order,
    /// Events offered.
    pub arrived: u64,
    /// Events that were refused: by a bound or by a controller.
    pub refused: u64,
    /// Events that a controller took out of the queue.
    pub shed: u64,
    /// Events whose deadline passed in the queue.
    pub expired: u64,
    /// Events that were in the queue when the stage was closed.
    pub shut_down: u64,
    /// Events whose batch ended.
    pub finished: u64,
    /// Of these, events that the handler called failed.
    pub failed: u64,
    /// Panics of the handler.
    pub panicked: u64,
    /// Events that a handler had taken and not [settled](super::Batch::settle) when it panicked. They are among those that finished.
    pub lost: u64,
    /// Why the stage is closed, if its handler closed it: how often that panicked, and in which time.
    pub closed: Option<Arc<str>>,
    /// Batches that ended.
    pub batches: u64,
    /// Events that came by calls.
    pub called: u64,
    /// How long batches took, waits included, summed.
    pub service: Duration,
    /// Of that, how long they computed.
    pub compute: Duration,
    /// From arrival to the end of the batch: the mean, median, 90th and 99th percentile since the beginning. Percentiles are at most 1/16 too high.
    pub response: Responses,
    /// The controllers, with what each decides.
    pub controllers: Vec<(&'static str, Owns)>,
}

/// How long events took from their arrival to the end of their batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Responses {
    /// How many were seen.
    pub count: u64,
    /// The mean.
    pub mean: Duration,
    /// The median.
    pub p50: Duration,
    /// The 90th percentile.
    pub p90: Duration,
    /// The 99th percentile.
    pub p99: Duration,
}

impl StageStats {
    pub(crate) fn of<E>(name: &Arc<str>, state: &mut State<E>, called: u64, now_ns: u64) -> Self {
        state.decide(now_ns);
        let counts = &state.counts;
        let digest = &state.responses;
        let response = Responses {
            count: digest.count(),
            mean: Duration::from_nanos(digest.mean_ns()),
            p50: Duration::from_nanos(digest.permille(500)),
            p90: Duration::from_nanos(digest.permille(900)),
            p99: Duration::from_nanos(digest.permille(990)),
        };
        Self {
            name: Arc::clone(name),
            gate: match state.gate {
                Gate::Closed => "closed",
                Gate::Draining => "draining",
                Gate::Paused => "paused",
                Gate::Open if !state.manned => "new",
                Gate::Open if state.swapping => "swapping",
                Gate::Open => "open",
            },
            queued: state.len(),
            queue_len: state.credits(),
            queue_max: state.bounds.queue_max,
            threshold: state.threshold,
            queued_by_class: state.queued_by_class().to_vec(),
            keys: state.queue.keys(),
            queue_bytes: state.len() * size_of::<super::Event<E>>() as u64,
            in_service: state.in_service(),
            servlets: state.servlets,
            cap: (state.cap < state.servlets.target).then_some(state.cap),
            waiting: state.waiting(),
            batch_max: state.batch,
            order: state.order,
            arrived: counts.arrived,
            refused: counts.refused,
            shed: counts.shed,
            expired: counts.expired,
            shut_down: counts.shut_down,
            finished: counts.finished,
            failed: counts.failed,
            panicked: counts.panicked,
            lost: counts.lost,
            closed: state.closed_for.clone(),
            batches: counts.batches,
            called,
            service: Duration::from_nanos(counts.service_ns),
            compute: Duration::from_nanos(counts.compute_ns),
            response,
            controllers: state.council.names().collect(),
        }
    }
}
