//! What a controller is shown.

/// What happened in a stage since the controller's last sample, and how it is now. Queues are counted in credits, which is in events unless
/// events cost more than one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample<'a> {
    /// The time since the last sample, or since the stage began, in nanoseconds; never zero.
    pub interval_ns: u64,
    /// Of that, how long something was queued or in service, in nanoseconds.
    pub busy_ns: u64,
    /// Credits in the queue now, those included that senders have reserved.
    pub queue_len: u64,
    /// The bound on these that the queue was built with.
    pub queue_max: u64,
    /// The threshold in force, at most `queue_max`.
    pub threshold: u64,
    /// Events offered in the interval.
    pub arrived: u64,
    /// Of these, events that were let in.
    pub admitted: u64,
    /// Events that the queue's bounds or a controller refused in the interval.
    pub refused: u64,
    /// Events that were shed from the queue in the interval: by a controller, or after their deadline.
    pub shed: u64,
    /// Events whose batch ended in the interval.
    pub finished: u64,
    /// Of these, events that the handler called failed (`Batch::fail`), such as after a time limit.
    pub failed: u64,
    /// Events in service now: taken, and their batch has not ended.
    pub in_service: u64,
    /// Batches that ended in the interval.
    pub batches: u64,
    /// What those batches took from beginning to end, waits included, in nanoseconds; summed over the servlets.
    pub service_ns: u64,
    /// Of that, what they spent on a worker or, in a blocking handler, on their OS thread.
    pub compute_ns: u64,
    /// Of `service_ns`, what they waited for room in other stages, in nanoseconds.
    pub held_up_ns: u64,
    /// Of `service_ns`, what they waited for their next turn on a worker after they let others have theirs (`yield_now`), in nanoseconds.
    pub ready_ns: u64,
    /// The bytes of what finished in the interval; 0 but of sockets.
    pub bytes: u64,
    /// The most events that a batch may have now.
    pub batch_max: usize,
    /// Servlets, and what they do.
    pub servlets: Servlets,
    /// Of the busy ones, those whose handler has waited since it began its batch; to let others have their turn is not to wait.
    pub waiting: usize,
    /// How many can compute at the same time: the runtime's workers.
    pub workers: usize,
    /// Whether the handler blocks, so that its servlets are OS threads of their own instead of taking turns on workers.
    pub blocking: bool,
    /// Servlets of all stages of the process, now.
    pub process_servlets: usize,
    /// The moving average of that number.
    pub process_servlets_mean: f64,
    /// The time between two reads of sockets in force, in nanoseconds.
    pub pace_ns: u64,
    /// The bound in force on what is queued to each peer of sockets, in bytes; `u64::MAX` if no controller has set one.
    pub outgoing_max: u64,
    /// A random number of 64 bits.
    pub random: u64,
    /// By class, as many as the stage has.
    pub classes: &'a [ClassSample],
}

/// The servlets of a stage.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Servlets {
    /// At work on a batch.
    pub busy: usize,
    /// Parked: they exist and wait for events.
    pub parked: usize,
    /// How many may be at work at once now.
    pub target: usize,
    /// The most that the target may be.
    pub max: usize,
}

/// One class in a sample. A response is from an event's arrival in the queue to the end of its batch.
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
    /// The mean response of what finished, in nanoseconds; 0 if nothing did.
    pub response_mean_ns: u64,
    /// The shortest response of what finished, in nanoseconds; 0 if nothing did.
    pub response_min_ns: u64,
    /// The median of the responses, at most 7 % too high; 0 if nothing finished.
    pub response_p50_ns: u64,
    /// The 90th percentile of the responses, as the median.
    pub response_p90_ns: u64,
    /// The 99th percentile of the responses, as the median.
    pub response_p99_ns: u64,
}
