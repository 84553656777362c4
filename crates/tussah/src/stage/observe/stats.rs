//! The statistics of a stage.

use std::sync::Arc;
use std::time::Duration;

use crate::stage::control::{Order, Owns, Resource, Servlets};
use crate::stage::event::Event;
use crate::stage::state::{Gate, State};

/// The current state of a stage, and its counters since it was created. Counters count events
/// unless stated otherwise.
#[derive(Clone, Debug)]
pub struct StageStats {
    /// The stage's name.
    pub name: Arc<str>,
    /// The state of the stage: `new` (no handler yet), `open`, `paused`, `swapping`, `draining` or
    /// `closed`.
    pub gate: &'static str,
    /// The number of events in the queue.
    pub queued: u64,
    /// The number of credits that queued events use, plus those that senders have reserved.
    pub queue_len: u64,
    /// The capacity of the queue, in credits.
    pub queue_max: u64,
    /// The current admission threshold of the queue, in credits; at most `queue_max`.
    pub threshold: u64,
    /// The number of events in the queue, by class.
    pub queued_by_class: Vec<u64>,
    /// The number of keys that have queued events or are being served; 0 in a stage without keys.
    /// In the stage of a module with per-flow state, `keys` counts flows instead: those that are
    /// being served, and those whose items wait for an earlier item of the same flow.
    pub keys: usize,
    /// The size of the queued events in bytes, not including heap memory that they own.
    pub queue_bytes: u64,
    /// The number of events in service, that is, the events that servlets have taken and whose
    /// batches have not ended.
    pub in_service: u64,
    /// The number of busy servlets, the number of parked servlets, the current limit on busy
    /// servlets, and the maximum of this limit.
    pub servlets: Servlets,
    /// The governor's limit on busy servlets, if it is lower than the limit that the stage's
    /// controllers set.
    pub cap: Option<usize>,
    /// The number of busy servlets whose handlers wait.
    pub waiting: usize,
    /// The current maximum number of events in a batch.
    pub batch_max: usize,
    /// The effective latency target, if there is one. Let t be the 90th percentile of the unloaded
    /// service time. If t exceeds half of the configured target, the effective target is t plus
    /// half of the configured target. Otherwise, the effective target is the configured target.
    pub target: Option<Duration>,
    /// The order in which events of the same class are served.
    pub order: Order,
    /// The number of events that senders have offered to the stage.
    pub arrived: u64,
    /// The number of events that a bound or a controller refused.
    pub refused: u64,
    /// The number of events that a controller removed from the queue.
    pub shed: u64,
    /// The number of events that the admission controller refused or shed, by the resource that
    /// limited the stage. `refused` and `shed` include the events in `rejected_by`, and also count
    /// events that exceeded a bound.
    pub rejected_by: Vec<(Resource, u64)>,
    /// The number of events that the admission controller admitted in the mode
    /// [`Observe`](crate::stage::control::Mode::Observe), but would have rejected or shed in the
    /// mode `On`.
    pub would_reject: u64,
    /// The number of events whose deadline passed before the handler took them. An event that
    /// expires in a batch created for a call also counts as arrived, unlike the handled events of
    /// such a batch.
    pub expired: u64,
    /// The number of events that were [cancelled](crate::stage::CancelHandle) before their batch
    /// ended.
    pub cancelled: u64,
    /// The number of events that were in the queue when the stage was closed.
    pub shut_down: u64,
    /// The number of events whose batch ended, including failed events, but not expired or
    /// cancelled events.
    pub finished: u64,
    /// The number of finished events that [failed](crate::stage::Batch::fail) or were lost in a
    /// panic. The times and percentiles in these statistics exclude failed events.
    pub failed: u64,
    /// The number of times the handler panicked.
    pub panicked: u64,
    /// The number of events that a handler had taken, but not
    /// [settled](crate::stage::Batch::settle), when the handler panicked. Lost events also count as
    /// finished or cancelled.
    pub lost: u64,
    /// The reason why the stage is closed, if its handler panicked too often or could not be
    /// created again.
    pub closed: Option<Arc<str>>,
    /// The number of batches that ended.
    pub batches: u64,
    /// The number of events that calls have handled, not counting events that the calls left in
    /// their batches.
    pub called: u64,
    /// The total duration of batches, including waits. If events of a batch were cancelled, failed
    /// or [left out](crate::stage::Batch::leave_out), `service` excludes their share of the batch's
    /// duration.
    pub service: Duration,
    /// The part of `service` that handlers spent on a worker or, in a blocking stage, on an OS
    /// thread.
    pub compute: Duration,
    /// A summary of the response times since the stage was created. A response time is the time
    /// from an event's arrival to the end of its batch. A percentile exceeds the exact value by at
    /// most 1/16 of that value.
    pub response: Responses,
    /// The controllers, each with the settings that it owns.
    pub controllers: Vec<(&'static str, Owns)>,
}

/// A summary of response times. A response time is the time from an event's arrival to the end of
/// its batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Responses {
    /// The number of events whose response times were measured.
    pub count: u64,
    /// The mean response time.
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
        let target = state.controllers.effective_target();
        let would_reject = state.controllers.would_reject();
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
                Gate::Open if !state.has_handler => "new",
                Gate::Open if state.held > 0 => "swapping",
                Gate::Open => "open",
            },
            queued: state.len(),
            queue_len: state.credits(),
            queue_max: state.bounds.queue_max,
            threshold: state.threshold,
            queued_by_class: state.queued_by_class().to_vec(),
            keys: state.queue.keys(),
            queue_bytes: state.len() * size_of::<Event<E>>() as u64,
            in_service: state.in_service(),
            servlets: state.servlets,
            cap: (state.cap < state.servlets.target).then_some(state.cap),
            waiting: state.waiting(),
            batch_max: state.batch,
            target,
            order: state.order,
            arrived: counts.arrived,
            refused: counts.refused,
            shed: counts.shed,
            rejected_by: state.scarcity.rejected().to_vec(),
            would_reject,
            expired: counts.expired,
            cancelled: counts.cancelled,
            shut_down: counts.shut_down,
            finished: counts.finished + counts.failed,
            failed: counts.failed,
            panicked: counts.panicked,
            lost: counts.lost,
            closed: state.closed_for.clone(),
            batches: counts.batches,
            called,
            service: Duration::from_nanos(counts.service_ns),
            compute: Duration::from_nanos(counts.compute_ns),
            response,
            controllers: state.controllers.names().collect(),
        }
    }
}
