//! A handle of a connection, held by stages.

use std::any::{Any, type_name};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use super::address::Address;
use super::buffer::Buffer;
use super::pacer::Pacer;
use super::set::Entry;
use super::stats::SocketStats;
use crate::net::{Outgoing, OutgoingStats, PushError};

/// A handle to a connection whose events go to a stage. The handle is cheap to clone. Two handles
/// are equal if they belong to the same connection.
///
/// After the peer has [finished sending](super::SocketEvent::Ended), a handle keeps the connection
/// open for writing. When the connection is [closed](super::SocketEvent::Closed), its descriptor is
/// closed even if handles remain.
pub struct Connection {
    shared: Arc<Shared>,
}

/// A connection, shared by its thread and its handles.
pub(super) struct Shared {
    id: u64,
    local: Address,
    peer: Address,
    pub(super) outgoing: Outgoing<Buffer>,
    /// The controllers of the writes.
    writes: Arc<Pacer>,
    /// The maximum number of buffers in `outgoing`.
    buffers_max: usize,
    /// The number of `Connection`s.
    handles: AtomicUsize,
    /// True if the peer has finished sending.
    ended: AtomicBool,
    data: OnceLock<Box<dyn Any + Send + Sync>>,
    pub(super) counts: Counts,
}

/// The counts of a connection. Only its thread changes them.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) packets: AtomicU64,
    pub(super) bytes: AtomicU64,
    /// Packets that the stage rejected.
    pub(super) rejected: AtomicU64,
    /// Packets that arrived after the connection was closed on this side.
    pub(super) late: AtomicU64,
    /// Reads that a limit delayed.
    pub(super) delayed: AtomicU64,
    /// The length of the packet that waits for room in the stage's queue; 0 means none.
    pub(super) waiting_bytes: AtomicU64,
    /// True if the connection ended because the peer was slow, or because of an error.
    pub(super) slow: AtomicBool,
    pub(super) failed: AtomicBool,
}

impl Shared {
    pub(super) fn new(
        id: u64,
        local: Address,
        peer: Address,
        outgoing: Outgoing<Buffer>,
        writes: Arc<Pacer>,
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

    /// Returns a new handle.
    pub(super) fn handle(self: &Arc<Self>) -> Connection {
        self.handles.fetch_add(1, Ordering::Relaxed);
        Connection {
            shared: Arc::clone(self),
        }
    }

    /// Returns the controllers' bound on the queued bytes.
    fn bytes_max(&self) -> usize {
        usize::try_from(self.writes.setting()).unwrap_or(usize::MAX)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Records that the peer has finished sending. The caller must then create and drop a handle,
    /// so that the connection ends if there is no other handle.
    pub(super) fn set_ended(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

impl Entry for Shared {
    fn close(&self) {
        self.outgoing.end();
    }

    fn add_now(&self, stats: &mut SocketStats) {
        stats.connections += 1;
        // The packet that waits for room in the stage's queue.
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
    /// Returns the number of the connection; see [`SocketEvent::id`](super::SocketEvent::id).
    #[must_use]
    pub fn id(&self) -> u64 {
        self.shared.id
    }

    /// Returns the local address of the connection.
    #[must_use]
    pub fn local(&self) -> &Address {
        &self.shared.local
    }

    /// Returns the address of the peer.
    #[must_use]
    pub fn peer(&self) -> &Address {
        &self.shared.peer
    }

    /// Queues bytes for writing, without waiting. Returns the number of the packet, counted from 1.
    ///
    /// # Errors
    /// Returns an error that contains the bytes if the queue is full, or if the connection is
    /// closed or closing. If the queue is full, the connection has already taken the [configured
    /// action](super::SocketOptions::when_full).
    pub fn try_send(&self, bytes: impl Into<Buffer>) -> Result<u64, PushError<Buffer>> {
        let shared = &self.shared;
        shared.writes.look();
        let bytes_max = shared.bytes_max();
        shared.outgoing.try_push_numbered(bytes.into(), bytes_max)
    }

    /// Queues bytes for writing, and returns the number of the packet. If
    /// [`OverflowPolicy::Wait`](crate::net::OverflowPolicy::Wait) is set, this method waits until
    /// the queue has enough free space.
    ///
    /// A servlet that waits here serves no other peer in the meantime, so slow peers can block the
    /// stage indefinitely. In a serial stage, one slow peer is enough.
    ///
    /// # Cancellation
    /// If the future is dropped while it waits, the bytes are dropped, too.
    ///
    /// # Errors
    /// Returns the same errors as [`try_send`](Self::try_send).
    pub async fn send(&self, bytes: impl Into<Buffer>) -> Result<u64, PushError<Buffer>> {
        let shared = &self.shared;
        shared.writes.look();
        let bytes_max = || shared.bytes_max();
        shared.outgoing.push_numbered(bytes.into(), bytes_max).await
    }

    /// Closes the connection gracefully: writes the queued bytes, and accepts no more bytes to
    /// send. The connection ends when the peer has also finished sending, or after
    /// [`linger`](super::SocketOptions::linger). Packets that arrive in the meantime are dropped.
    pub fn close(&self) {
        self.shared.outgoing.end();
    }

    /// Aborts the connection immediately, and drops the queued bytes.
    pub fn break_off(&self) {
        self.shared.outgoing.break_off();
    }

    /// Returns the length of the write queue (in bytes and in buffers) and the counters of the data
    /// written so far.
    #[must_use]
    pub fn outgoing(&self) -> OutgoingStats {
        self.shared.outgoing.stats()
    }

    /// Returns the data that the stage attaches to the connection. The first call creates the data
    /// as `T::default()`; the data is dropped with the last handle.
    ///
    /// # Panics
    /// Panics if an earlier call created data of another type.
    ///
    /// # Examples
    /// ```
    /// use std::sync::Mutex;
    /// use tussah::stage::net::Connection;
    ///
    /// /// Adds the new bytes, and returns the lines that are complete now.
    /// fn lines(connection: &Connection, bytes: &[u8]) -> Vec<Vec<u8>> {
    ///     let rest: &Mutex<Vec<u8>> = connection.data();
    ///     let mut rest = rest.lock().expect("nobody panics with it");
    ///     rest.extend(bytes);
    ///     let end = rest.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    ///     let lines = rest.drain(..end);
    ///     lines.as_slice().split_inclusive(|&byte| byte == b'\n').map(Vec::from).collect()
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
        // AcqRel: pairs with itself. `ended` is set before the last handle of the thread is made.
        // Either this drop is the drop of that handle, or it came before that handle was counted.
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
