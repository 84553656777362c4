//! What sockets, and the system's own queues, tell of themselves.

use tussah_core::Handle;

/// What a queue for the system holds at one moment, and what has come of it: as it would be of a stage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IoStats {
    /// What it is called.
    pub name: &'static str,
    /// Operations that wait.
    pub queued: u64,
    /// The bytes of these.
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
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// Connections that were asked for, which SEDA has in `writeStage`. Those wait that are being made.
    pub connect: IoStats,
    /// SEDA's `readStage`: packets that were read. Those wait that the stage has no room for; those were refused that its controllers turned away, or
    /// that came after the connection had been closed here.
    pub read: IoStats,
    /// SEDA's `writeStage`: packets that were sent. Those wait that are not written; those were refused that a peer's queue had no room for; those failed
    /// that were dropped when their connection ended.
    pub write: IoStats,
}

impl Default for SocketStats {
    fn default() -> Self {
        let named = |name| IoStats {
            name,
            ..IoStats::default()
        };
        Self {
            servers: 0,
            connections: 0,
            slow: 0,
            failed: 0,
            listen: named("listen"),
            connect: named("connect"),
            read: named("read"),
            write: named("write"),
        }
    }
}

impl SocketStats {
    /// The four queues, as stages to be shown beside others.
    #[must_use]
    pub fn stages(&self) -> [&IoStats; 4] {
        [&self.listen, &self.connect, &self.read, &self.write]
    }
}

/// The queues of a runtime's own, as stages to be shown beside others: `workers`, runnable colors; `files`, what the kernel has of
/// operations on files; `blocking`, the pool of OS threads for what blocks, which is that of files where there is no `io_uring`.
///
/// # Examples
/// ```
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// for stage in tussah::stage::net::system(runtime.handle()) {
///     println!("{}: {} queued, {} in service", stage.name, stage.queued, stage.in_service);
/// }
/// # std::io::Result::Ok(())
/// ```
#[must_use]
pub fn system(runtime: &Handle) -> [IoStats; 3] {
    let stats = runtime.stats();
    let blocking = &stats.blocking;
    [
        IoStats {
            name: "workers",
            queued: stats.workers.iter().map(|one| one.queue_len as u64).sum(),
            finished: stats.workers.iter().map(|one| one.events).sum(),
            failed: stats.workers.iter().map(|one| one.panics).sum(),
            ..IoStats::default()
        },
        IoStats {
            name: "files",
            in_service: runtime.driver().files_in_flight() as u64,
            ..IoStats::default()
        },
        IoStats {
            name: "blocking",
            queued: blocking.queued as u64,
            in_service: blocking.running as u64,
            finished: blocking.completed,
            failed: blocking.panicked,
            ..IoStats::default()
        },
    ]
}
