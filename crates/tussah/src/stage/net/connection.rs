//! A connection as stages hold it.

use std::any::{Any, type_name};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use super::address::Address;
use super::buffer::Buffer;
use super::desk::Desk;
use super::hub::Member;
use super::stats::SocketStats;
use crate::net::{Outgoing, OutgoingStats, PushError};

/// A connection whose events come to a stage. Cheap to clone; two are equal if they are of the same connection.
///
/// Holding one keeps the connection open for writing after the peer has [ended](super::SocketEvent::Ended); it does not keep the descriptor
/// open after the connection is [closed](super::SocketEvent::Closed).
pub struct Connection {
    shared: Arc<Shared>,
}

/// A connection, as its thread and all who hold it share it.
pub(super) struct Shared {
    id: u64,
    local: Address,
    peer: Address,
    pub(super) outgoing: Outgoing<Buffer>,
    /// The controllers of what is written.
    writes: Arc<Desk>,
    /// How many buffers that may hold.
    buffers_max: usize,
    /// How many `Connection`s there are of it.
    handles: AtomicUsize,
    /// The peer sends nothing more.
    ended: AtomicBool,
    data: OnceLock<Box<dyn Any + Send + Sync>>,
    pub(super) counts: Counts,
}

/// What a connection's thread has done. It alone changes this.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) packets: AtomicU64,
    pub(super) bytes: AtomicU64,
    /// Packets that were turned away by the stage.
    pub(super) rejected: AtomicU64,
    /// Packets that came after the connection was closed here.
    pub(super) late: AtomicU64,
    /// Reads that a limit has delayed.
    pub(super) delayed: AtomicU64,
    /// The length of the packet that waits for room in the stage's queue; 0 is none.
    pub(super) waiting_bytes: AtomicU64,
    /// The connection came to its end because the peer was slow, or because of an error.
    pub(super) slow: AtomicBool,
    pub(super) failed: AtomicBool,
}

impl Shared {
    pub(super) fn new(
        id: u64,
        local: Address,
        peer: Address,
        outgoing: Outgoing<Buffer>,
        writes: Arc<Desk>,
        buffers_max: usize,
    ) -> Arc<Self> {
        Arc::new(Self {
            id,
            local,
            peer,
            outgoing,
            writes,
            buffers_max,
            handles: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
            data: OnceLock::new(),
            counts: Counts::default(),
        })
    }

    /// A handle of it.
    pub(super) fn handle(self: &Arc<Self>) -> Connection {
        self.handles.fetch_add(1, Ordering::Relaxed);
        Connection {
            shared: Arc::clone(self),
        }
    }

    /// What its controllers allow to be queued, in bytes.
    fn bytes_max(&self) -> usize {
        usize::try_from(self.writes.setting()).unwrap_or(usize::MAX)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// The peer sends nothing more. A handle has to be made and dropped from here on, so that the connection ends when there is none.
    pub(super) fn set_ended(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

impl Member for Shared {
    fn close(&self) {
        self.outgoing.end();
    }

    fn add_now(&self, stats: &mut SocketStats) {
        stats.connections += 1;
        // One that waits for room in the stage's queue.
        stats.read.queue_max += 1;
        let buffers_max = self.buffers_max as u64;
        stats.write.queue_max = stats.write.queue_max.saturating_add(buffers_max);
    }

    fn add_to(&self, stats: &mut SocketStats) {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let counts = &self.counts;
        let waiting_bytes = count(&counts.waiting_bytes);
        stats.read.queued += u64::from(waiting_bytes > 0);
        stats.read.queued_bytes += waiting_bytes;
        stats.read.finished += count(&counts.packets);
        stats.read.bytes += count(&counts.bytes);
        stats.read.refused += count(&counts.rejected) + count(&counts.late);
        stats.read.delayed += count(&counts.delayed);
        let written = self.outgoing.stats();
        stats.write.queued += written.buffers as u64;
        stats.write.queued_bytes += written.bytes as u64;
        stats.write.finished += written.pushed - written.lost - written.buffers as u64;
        stats.write.bytes += written.bytes_written;
        stats.write.refused += written.refused;
        stats.write.failed += written.lost;
        stats.slow += u64::from(counts.slow.load(Ordering::Relaxed));
        stats.failed += u64::from(counts.failed.load(Ordering::Relaxed));
    }
}

impl Connection {
    /// Its number; see [`SocketEvent::id`](super::SocketEvent::id).
    #[must_use]
    pub fn id(&self) -> u64 {
        self.shared.id
    }

    /// The address of this end.
    #[must_use]
    pub fn local(&self) -> &Address {
        &self.shared.local
    }

    /// The address of the other end.
    #[must_use]
    pub fn peer(&self) -> &Address {
        &self.shared.peer
    }

    /// Queues bytes to be written, without waiting; says the number of the packet, counted from 1.
    ///
    /// # Errors
    /// With the bytes inside: if the queue is full, which has [done](super::SocketOptions::when_full) what was chosen; if the connection is closed, or
    /// being closed.
    pub fn try_send(&self, bytes: impl Into<Buffer>) -> Result<u64, PushError<Buffer>> {
        let shared = &self.shared;
        shared.writes.look();
        let bytes_max = shared.bytes_max();
        shared.outgoing.try_push_numbered(bytes.into(), bytes_max)
    }

    /// Queues bytes to be written; waits for room, if [`WhenFull::Wait`](crate::net::WhenFull::Wait) was chosen. Says the number of the packet.
    ///
    /// A stage whose servlets wait here has no others for other peers: one that is slow can hold it up, for as long as it likes.
    ///
    /// # Cancellation
    /// Dropping the future while it waits drops the bytes.
    ///
    /// # Errors
    /// As [`try_send`](Self::try_send).
    pub async fn send(&self, bytes: impl Into<Buffer>) -> Result<u64, PushError<Buffer>> {
        let shared = &self.shared;
        shared.writes.look();
        let bytes_max = || shared.bytes_max();
        shared.outgoing.push_numbered(bytes.into(), bytes_max).await
    }

    /// Sends nothing more. What is queued is written, and the connection is closed when the peer has ended too, or has
    /// [taken too long](super::SocketOptions::linger) to do so; packets that come meanwhile are dropped.
    pub fn close(&self) {
        self.shared.outgoing.end();
    }

    /// Breaks the connection off at once: what is queued is dropped.
    pub fn break_off(&self) {
        self.shared.outgoing.break_off();
    }

    /// What is queued to be written, and what was written.
    #[must_use]
    pub fn outgoing(&self) -> OutgoingStats {
        self.shared.outgoing.stats()
    }

    /// What the stage keeps with the connection; made when it is asked for the first time, and dropped with the last `Connection`.
    ///
    /// # Panics
    /// If it is of another type.
    ///
    /// # Examples
    /// ```
    /// use std::sync::Mutex;
    /// use tussah::stage::net::Connection;
    ///
    /// /// Adds what has come, and gives the lines that are whole now.
    /// fn lines(connection: &Connection, bytes: &[u8]) -> Vec<Vec<u8>> {
    ///     let rest: &Mutex<Vec<u8>> = connection.data();
    ///     let mut rest = rest.lock().expect("nobody panics with it");
    ///     rest.extend(bytes);
    ///     let end = rest.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    ///     rest.drain(..end).as_slice().split_inclusive(|&byte| byte == b'\n').map(Vec::from).collect()
    /// }
    /// ```
    #[track_caller]
    #[must_use]
    pub fn data<T: Default + Send + Sync + 'static>(&self) -> &T {
        let data = self.shared.data.get_or_init(|| Box::new(T::default()));
        match data.downcast_ref() {
            Some(data) => data,
            None => panic!(
                "the data of a connection has one type: `{}` is another than before",
                type_name::<T>()
            ),
        }
    }
}

impl Clone for Connection {
    fn clone(&self) -> Self {
        self.shared.handle()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let shared = &self.shared;
        // AcqRel: with itself. `ended` is set before a handle is made, and that one is dropped here, or its drop came before.
        if shared.handles.fetch_sub(1, Ordering::AcqRel) == 1
            && shared.ended.load(Ordering::Relaxed)
        {
            shared.outgoing.end();
        }
    }
}

impl PartialEq for Connection {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}

impl Eq for Connection {}

impl Hash for Connection {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id().hash(state);
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("id", &self.id())
            .field("local", &format_args!("{}", self.local()))
            .field("peer", &format_args!("{}", self.peer()))
            .finish_non_exhaustive()
    }
}
