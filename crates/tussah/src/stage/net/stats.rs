//! The statistics of sockets.

/// The current state and the counts of a queue of system operations, analogous to those of a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IoStats {
    /// Waiting operations.
    pub queued: u64,
    /// The maximum number of waiting operations with the current sockets; 0 if no operation waits
    /// in this queue, or if another queue has the bound.
    pub queue_max: u64,
    /// The bytes of the waiting operations.
    pub queued_bytes: u64,
    /// Operations in progress.
    pub in_service: u64,
    /// Operations that succeeded.
    pub finished: u64,
    /// The bytes of the operations that succeeded.
    pub bytes: u64,
    /// Operations that were refused because there was no room, or that a controller rejected.
    pub refused: u64,
    /// Operations that failed.
    pub failed: u64,
    /// Operations that a limit has delayed.
    pub delayed: u64,
}

/// The current state and the counts of all sockets of a [`Sockets`](super::Sockets).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SocketStats {
    /// Servers that accept.
    pub servers: u64,
    /// Connections that are open, or whose last event waits for room in a stage's queue.
    pub connections: u64,
    /// Connections that were closed because the peer was too slow.
    pub slow: u64,
    /// Connections that ended with an error.
    pub failed: u64,
    /// Accepted connections (SEDA's `listenStage`). A connection is queued while the stage has no
    /// room for it, and refused if the stage's controllers reject it. Failed attempts to accept
    /// count as failed.
    pub listen: IoStats,
    /// Requested connections, which SEDA counts in `writeStage`. A connection is in service while
    /// it is being established.
    pub connect: IoStats,
    /// Packets that were read (SEDA's `readStage`). A packet is queued while the stage has no room
    /// for it. It is refused if the stage's controllers reject it, or if it arrives after the
    /// connection was closed on this side.
    pub read: IoStats,
    /// Packets that were sent (SEDA's `writeStage`). A packet is queued until it is written, and
    /// refused if the peer's queue has no room for it. Packets that were dropped when their
    /// connection ended count as failed.
    pub write: IoStats,
}
