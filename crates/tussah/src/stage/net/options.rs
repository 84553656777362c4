//! Options of sockets.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tussah_core::Color;

use crate::net::{OutgoingOptions, PACKET_MAX, RateLimit, WhenFull};

/// Bound, in connections: the default number of simultaneous connections. Each has a descriptor and
/// takes about 3 KB.
const CONNECTIONS_MAX: usize = 10_000;

/// Bound, in seconds: the default time to write the rest to a peer. A peer that reads at all needs
/// less.
const FINISH_S_MAX: u64 = 30;

/// Bound, in seconds: the default time that a connection that was closed on this side waits for the
/// peer to finish. It allows for several round trips, even if packets are lost.
const LINGER_S_MAX: u64 = 2;

/// The effect of a stage's rejection on a packet or a connection. Default: [`Drop`](Self::Drop).
///
/// The setting applies only if a controller of the stage rejects the event. When the stage's queue
/// is full, all events wait. The other events of a connection always wait and are never dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenRejected {
    /// The event is dropped and counted. The connection continues without the packet, as if the
    /// packet had been lost on the way; a new connection is closed.
    #[default]
    Drop,
    /// The connection is closed after its queued bytes have been written.
    Close,
    /// The event waits until it is admitted. The pauses begin at 1 ms and grow to 100 ms. Nothing
    /// is read in the meantime.
    Wait,
}

/// Options of [`Sockets`](super::Sockets).
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tussah::net::RateLimit;
/// use tussah::stage::net::{SocketOptions, WhenRejected};
///
/// let options = SocketOptions::default()
///     .connections_max(1000)
///     .outgoing_bytes_max(64 * 1024)
///     .finish_max(Duration::from_secs(5))
///     .limit_each(RateLimit::reads(200)) // packets a second, of each connection
///     .when_rejected(WhenRejected::Close);
/// ```
#[derive(Clone)]
#[must_use = "it is for `Sockets`"]
pub struct SocketOptions {
    pub(super) connections_max: usize,
    pub(super) packet_max: usize,
    pub(super) outgoing: OutgoingOptions,
    pub(super) linger: Duration,
    pub(super) limit_each: Option<Arc<RateLimit>>,
    pub(super) when_rejected: WhenRejected,
    pub(super) completions: bool,
    pub(super) nodelay: bool,
    pub(super) color: Option<Arc<dyn Fn(u64) -> Color + Send + Sync>>,
}

impl Default for SocketOptions {
    fn default() -> Self {
        Self {
            connections_max: CONNECTIONS_MAX,
            packet_max: PACKET_MAX,
            outgoing: OutgoingOptions::default()
                .when_full(WhenFull::Close)
                .finish_max(Duration::from_secs(FINISH_S_MAX)),
            linger: Duration::from_secs(LINGER_S_MAX),
            limit_each: None,
            when_rejected: WhenRejected::default(),
            completions: false,
            nodelay: false,
            color: None,
        }
    }
}

impl SocketOptions {
    /// Bound, in connections: the maximum number of simultaneous connections, including attempts to
    /// connect; 10,000 by default, at least 1. At the bound, servers do not accept, so that clients
    /// wait in the system's queue, and connecting fails.
    pub fn connections_max(mut self, connections: usize) -> Self {
        self.connections_max = connections.max(1);
        self
    }

    /// Bound, in bytes: the maximum length of a packet; 16,384 by default, which is also the upper
    /// limit.
    pub fn packet_max(mut self, bytes: usize) -> Self {
        self.packet_max = bytes.clamp(1, PACKET_MAX);
        self
    }

    /// Bound, in bytes: the maximum amount queued to be written to one peer; 256 KiB by default. A
    /// longer buffer fits only into an empty queue.
    pub fn outgoing_bytes_max(mut self, bytes: usize) -> Self {
        self.outgoing = self.outgoing.bytes_max(bytes);
        self
    }

    /// Bound, in buffers: the maximum number queued to be written to one peer; 1024 by default, at
    /// least 1.
    pub fn outgoing_buffers_max(mut self, buffers: usize) -> Self {
        self.outgoing = self.outgoing.buffers_max(buffers);
        self
    }

    /// Sets what happens to a buffer for which a peer's queue has no room. By default the
    /// connection is closed, because slow peers would otherwise fill the memory (SEDA, SOSP 2001,
    /// section 5.2.2). With [`WhenFull::Drop`] the sender gets an error, and with
    /// [`WhenFull::Wait`] it can wait.
    pub fn when_full(mut self, when_full: WhenFull) -> Self {
        self.outgoing = self.outgoing.when_full(when_full);
        self
    }

    /// Sets how long writing the rest of a closing connection may take; 30 seconds by default.
    pub fn finish_max(mut self, time: Duration) -> Self {
        self.outgoing = self.outgoing.finish_max(time);
        self
    }

    /// Sets how long a connection closed by this side, once it has written everything, waits for
    /// the peer to finish sending; 2 seconds by default.
    ///
    /// Packets that arrive in the meantime are dropped. Without this wait, the system would reset
    /// the connection if unread bytes from the peer remained, and the peer might lose the last
    /// response (RFC 9112, section 9.6).
    pub fn linger(mut self, time: Duration) -> Self {
        self.linger = time;
        self
    }

    /// Limits the rate at which packets are read from each connection. After each read, the next
    /// one is delayed while the average is above the limit; see [`RateLimit`].
    /// [`Sockets::control_reads`](super::Sockets::control_reads) limits all connections together.
    pub fn limit_each(mut self, limit: RateLimit) -> Self {
        self.limit_each = Some(Arc::new(limit));
        self
    }

    /// Sets what happens to a packet or connection that the stage's controllers reject.
    pub fn when_rejected(mut self, when_rejected: WhenRejected) -> Self {
        self.when_rejected = when_rejected;
        self
    }

    /// Sets whether the stage receives an event when packets have been written
    /// ([`SocketEvent::Sent`](super::SocketEvent::Sent)); off by default.
    pub fn completions(mut self, on: bool) -> Self {
        self.completions = on;
        self
    }

    /// Sets whether TCP sends short packets immediately; see
    /// [`TcpStream::set_nodelay`](crate::net::TcpStream::set_nodelay). Off by default.
    pub fn nodelay(mut self, on: bool) -> Self {
        self.nodelay = on;
        self
    }

    /// Sets the color of each connection's thread, from the connection's number. By default each
    /// thread has its own color.
    pub fn color(mut self, color: impl Fn(u64) -> Color + Send + Sync + 'static) -> Self {
        self.color = Some(Arc::new(color));
        self
    }
}

impl fmt::Debug for SocketOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SocketOptions")
            .field("connections_max", &self.connections_max)
            .field("packet_max", &self.packet_max)
            .field("outgoing", &self.outgoing)
            .field("linger", &self.linger)
            .field("limit_each", &self.limit_each)
            .field("when_rejected", &self.when_rejected)
            .field("completions", &self.completions)
            .field("nodelay", &self.nodelay)
            .field("has_colors", &self.color.is_some())
            .finish()
    }
}
