//! The input of a controller.

/// The activity of a stage since the last sample, and its current state. Queue lengths are in
/// credits; if each event costs one credit, a queue length is the number of events in the queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample<'a> {
    /// The time since the last sample or, for the first sample, since the stage was created; in
    /// nanoseconds, never zero.
    pub interval_ns: u64,
    /// The part of the interval in which events were queued or in service, in nanoseconds.
    pub busy_ns: u64,
    /// The number of credits in the queue, including those that senders have reserved.
    pub queue_len: u64,
    /// The part of `queue_len` that waits only for a servlet. In a keyed stage, these are the
    /// events of keys of which no event is in service, up to one batch of each key.
    pub ready: u64,
    /// The capacity of the queue, in credits, as set by `StageBuilder::queue` or
    /// `Stage::set_queue_max`.
    pub queue_max: u64,
    /// The current admission threshold of the queue, in credits; at most `queue_max`.
    pub threshold: u64,
    /// The number of events offered in the interval.
    pub arrived: u64,
    /// The number of offered events that were admitted.
    pub admitted: u64,
    /// The number of events that the queue's bounds or a controller refused in the interval.
    pub refused: u64,
    /// The number of events that were shed from the queue in the interval, either by a controller
    /// or because their deadline had passed.
    pub shed: u64,
    /// The number of events whose batch ended in the interval, except events that failed, expired
    /// or were cancelled.
    pub finished: u64,
    /// The number of events that failed in the interval because the handler panicked, or reported a
    /// failure (`Batch::fail`), for example a timeout. Failed events are not included in
    /// `finished`.
    pub failed: u64,
    /// The number of events in service, that is, the events that servlets have taken and whose
    /// batches have not ended.
    pub in_service: u64,
    /// The number of batches that ended in the interval.
    pub batches: u64,
    /// The total duration of the batches that ended in the interval, including waits, in
    /// nanoseconds.
    pub service_ns: u64,
    /// The part of `service_ns` that handlers spent on a worker or, if they block, on their OS
    /// thread, without the waits in `limited_ns`.
    pub compute_ns: u64,
    /// The part of `service_ns` during which handlers waited for capacity in the queues of other
    /// stages.
    pub held_up_ns: u64,
    /// The part of `service_ns` during which handlers waited for a permit of a
    /// [`Limit`](crate::sync::Limit).
    pub limited_ns: u64,
    /// The number of batches for which handlers acquired a permit of a scarce
    /// [`Limit`](crate::sync::Limit): one that had no free permit within the last second. At most
    /// the number of finished events.
    pub permits: u64,
    /// The part of `service_ns` during which handlers waited for a worker after a yield
    /// (`yield_now`).
    pub ready_ns: u64,
    /// The number of batches, out of `batches`, that servlets took from the queue after the last
    /// change of the number of servlets.
    pub fresh_batches: u64,
    /// The sum of the squared batch durations, excluding waits for capacity in the queues of other
    /// stages, in seconds squared.
    pub service_squares: f64,
    /// The number of bytes transferred by the socket operations that finished in the interval; 0 if
    /// the controller does not control sockets.
    pub bytes: u64,
    /// The current maximum number of events in a batch.
    pub batch_max: usize,
    /// The counts of busy and parked servlets, the current limit on busy servlets, and the maximum
    /// of this limit.
    pub servlets: Servlets,
    /// The number of busy servlets whose handlers have waited at least once since their batch
    /// began. A yield does not count as waiting, and servlets that are waiting for capacity in
    /// another stage's queue are not counted.
    pub waiting: usize,
    /// The number of busy servlets whose handlers are waiting for a permit of a
    /// [`Limit`](crate::sync::Limit).
    pub limited: usize,
    /// The number of servlets that can compute at the same time, which is the number of the
    /// runtime's workers.
    pub workers: usize,
    /// True if the handler blocks. The servlets of a blocking handler are OS threads, which do not
    /// take turns on workers.
    pub blocking: bool,
    /// The current number of servlets in all stages of the process.
    pub process_servlets: usize,
    /// The moving average of `process_servlets`.
    pub process_servlets_mean: f64,
    /// The current minimum time between two reads from sockets, in nanoseconds.
    pub pace_ns: u64,
    /// The current maximum number of bytes in the write queue of each socket; `u64::MAX` if no
    /// controller has set a maximum.
    pub outgoing_max: u64,
    /// A random 64-bit number.
    pub random: u64,
    /// The statistics of each class of the stage.
    pub classes: &'a [ClassSample],
}

/// Counts of the busy and parked servlets of a stage, and the limits on busy servlets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Servlets {
    /// The number of servlets that are working on a batch.
    pub busy: usize,
    /// The number of servlets that are waiting for events.
    pub parked: usize,
    /// The current limit on the number of busy servlets.
    pub target: usize,
    /// The maximum of `target`.
    pub max: usize,
}

/// The statistics of one class in a sample. A response time runs from an event's arrival in the
/// queue to the end of its batch.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct ClassSample {
    /// The class's share of the stage's capacity (`StageBuilder::class_shares`); 0 if the classes
    /// have priorities.
    pub share: u32,
    /// The number of events in the queue.
    pub queued: u64,
    /// The number of events offered in the interval.
    pub arrived: u64,
    /// The number of events refused in the interval.
    pub refused: u64,
    /// The number of events that finished in the interval.
    pub finished: u64,
    /// The mean response time of the finished events, in nanoseconds; 0 if no event finished.
    pub response_mean_ns: u64,
    /// The shortest response time of the finished events, in nanoseconds; 0 if no event finished.
    pub response_min_ns: u64,
    /// The median response time, in nanoseconds; at most 7 % too high, and 0 if no event finished.
    pub response_p50_ns: u64,
    /// The 90th percentile of response times, in nanoseconds; at most 7 % too high, and 0 if no
    /// event finished.
    pub response_p90_ns: u64,
    /// The 99th percentile of response times, in nanoseconds; at most 7 % too high, and 0 if no
    /// event finished.
    pub response_p99_ns: u64,
}
