//! Statistics of sockets.

/// The current state and the counters of a queue of operations, similar to those of a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IoStats {
    /// The number of waiting operations.
    pub queued: u64,
    /// The maximum number of waiting operations, which grows with the number of sockets. The value
    /// is 0 if the queue has no maximum, as is the case for the queue of requested connections.
    pub queue_max: u64,
    /// The number of bytes that the waiting operations will transfer.
    pub queued_bytes: u64,
    /// The number of operations in progress.
    pub in_service: u64,
    /// The number of operations that succeeded.
    pub finished: u64,
    /// The number of bytes that the successful operations transferred.
    pub bytes: u64,
    /// The number of operations that were refused, by a controller or because the queue was full.
    pub refused: u64,
    /// The number of operations that failed.
    pub failed: u64,
    /// The number of operations that a rate limit or a controller delayed.
    pub delayed: u64,
}

/// The current state and the counters of a set of [`Sockets`](super::Sockets).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SocketStats {
    /// The number of servers that accept connections.
    pub servers: u64,
    /// The number of connections that are open, or whose last event waits for capacity in a stage's
    /// queue.
    pub connections: u64,
    /// The number of connections that were closed because the peer was too slow.
    pub slow: u64,
    /// The number of connections that ended with an error.
    pub failed: u64,
    /// Statistics of accepted connections (SEDA's `listenStage`). A connection is queued while the
    /// stage's queue is full, and refused if a controller of the stage rejects it. An operation
    /// counts as failed if the server could not accept a connection.
    pub listen: IoStats,
    /// Statistics of requested connections (part of SEDA's `writeStage`). A connection is in
    /// service while it is being established.
    pub connect: IoStats,
    /// Statistics of packets that were read (SEDA's `readStage`). A packet is queued while the
    /// stage's queue is full. A packet is refused if a controller of the stage rejects it, or if it
    /// arrives after this side has closed the connection.
    pub read: IoStats,
    /// Statistics of packets that were sent (SEDA's `writeStage`). A packet is queued until it is
    /// written, and refused if it does not fit into its write queue. If a connection ends before a
    /// packet is written, the packet counts as failed.
    pub write: IoStats,
}
