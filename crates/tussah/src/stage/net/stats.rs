//! What sockets tell of themselves.

/// What a queue for the system holds at one moment, and what has come of it: as it would be of a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IoStats {
    /// Operations that wait.
    pub queued: u64,
    /// The most that may wait, with the sockets that there are now; 0 if nothing waits there, or its bound is elsewhere.
    pub queue_max: u64,
    /// The bytes of what waits.
    pub queued_bytes: u64,
    /// Operations that are under way.
    pub in_service: u64,
    /// Operations that succeeded.
    pub finished: u64,
    /// The bytes of these.
    pub bytes: u64,
    /// Operations that were refused for want of room, or turned away.
    pub refused: u64,
    /// Operations that failed.
    pub failed: u64,
    /// Operations that a limit has delayed.
    pub delayed: u64,
}

/// What all sockets of a [`Sockets`](super::Sockets) do at one moment, and what they have done.
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
    /// SEDA's `listenStage`: connections that were accepted. Those wait that the stage has no room for; those were refused that its controllers
    /// turned away; what failed are attempts to accept.
    pub listen: IoStats,
    /// Connections that were asked for, which SEDA has in `writeStage`. Those are in service that are being made.
    pub connect: IoStats,
    /// SEDA's `readStage`: packets that were read. Those wait that the stage has no room for; those were refused that its controllers turned away, or
    /// that came after the connection had been closed here.
    pub read: IoStats,
    /// SEDA's `writeStage`: packets that were sent. Those wait that are not written; those were refused that a peer's queue had no room for; those failed
    /// that were dropped when their connection ended.
    pub write: IoStats,
}
