//! The input of a controller.

/// The activity of a stage since the controller's last sample, and its current state. Queue lengths
/// are in credits, which equal events if each event costs one credit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample<'a> {
    /// The time since the last sample, or since the stage began, in nanoseconds; never zero.
    pub interval_ns: u64,
    /// The part of `interval_ns` for which events were queued or in service.
    pub busy_ns: u64,
    /// Credits in the queue now, including those that senders have reserved.
    pub queue_len: u64,
    /// The bound on `queue_len` that was set when the stage was built.
    pub queue_max: u64,
    /// The threshold in force, at most `queue_max`.
    pub threshold: u64,
    /// Events offered in the interval.
    pub arrived: u64,
    /// The offered events that were admitted.
    pub admitted: u64,
    /// Events that the queue's bounds or a controller refused in the interval.
    pub refused: u64,
    /// Events that were shed from the queue in the interval: by a controller, or after their
    /// deadline.
    pub shed: u64,
    /// Events whose batch ended in the interval, without events that failed.
    pub finished: u64,
    /// Events that failed in the interval: the handler reported them (`Batch::fail`), for example
    /// after a timeout, or lost them in a panic. No other count includes them.
    pub failed: u64,
    /// Events in service now: they were taken, and their batch has not ended.
    pub in_service: u64,
    /// Batches that ended in the interval.
    pub batches: u64,
    /// The time of those batches from beginning to end, including waits, in nanoseconds; summed
    /// over the servlets.
    pub service_ns: u64,
    /// The part of `service_ns` that handlers spent on a worker or, if they block, on their OS
    /// thread.
    pub compute_ns: u64,
    /// The part of `service_ns` during which handlers waited for room in other stages.
    pub held_up_ns: u64,
    /// The part of `service_ns` during which handlers waited for their next turn on a worker after
    /// they yielded (`yield_now`).
    pub ready_ns: u64,
    /// The part of `batches` in runs that began after the last change of the number of servlets.
    pub fresh_batches: u64,
    /// The sum of the squares of the batches' times, without waits for room in other stages, in
    /// square seconds.
    pub service_squares: f64,
    /// The bytes of the operations that finished in the interval; only for sockets, otherwise 0.
    pub bytes: u64,
    /// The current maximum number of events in a batch.
    pub batch_max: usize,
    /// The servlets and their states.
    pub servlets: Servlets,
    /// The part of the busy servlets whose handlers have waited since they began their batch.
    /// Yielding does not count as waiting.
    pub waiting: usize,
    /// The number of servlets that can compute at the same time: the number of the runtime's
    /// workers.
    pub workers: usize,
    /// True if the handler blocks, so that its servlets are OS threads and do not take turns on
    /// workers.
    pub blocking: bool,
    /// The current number of servlets of all stages of the process.
    pub process_servlets: usize,
    /// The moving average of `process_servlets`.
    pub process_servlets_mean: f64,
    /// The time between two reads of sockets that is in force, in nanoseconds.
    pub pace_ns: u64,
    /// The bound in force on the bytes that are queued to each peer of sockets; `u64::MAX` if no
    /// controller has set a bound.
    pub outgoing_max: u64,
    /// A random number of 64 bits.
    pub random: u64,
    /// The numbers for each class of the stage.
    pub classes: &'a [ClassSample],
}

/// The servlets of a stage.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Servlets {
    /// Servlets that are working on a batch.
    pub busy: usize,
    /// Servlets that exist and wait for events.
    pub parked: usize,
    /// The number of servlets that may currently be at work at the same time.
    pub target: usize,
    /// The upper bound of the target.
    pub max: usize,
}

/// One class in a sample. A response time is the time from an event's arrival in the queue to the
/// end of its batch.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct ClassSample {
    /// Events in the queue now.
    pub queued: u64,
    /// Events offered in the interval.
    pub arrived: u64,
    /// Events refused in the interval.
    pub refused: u64,
    /// Events finished in the interval.
    pub finished: u64,
    /// The mean response time of the finished events, in nanoseconds; 0 if there are none.
    pub response_mean_ns: u64,
    /// The shortest response time of the finished events, in nanoseconds; 0 if there are none.
    pub response_min_ns: u64,
    /// The median of the response times, in nanoseconds, at most 7 % too high; 0 if no event
    /// finished.
    pub response_p50_ns: u64,
    /// The 90th percentile of the response times, with the same error.
    pub response_p90_ns: u64,
    /// The 99th percentile of the response times, with the same error.
    pub response_p99_ns: u64,
}
