//! Options of sockets.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tussah_core::Color;

use crate::net::{OutgoingOptions, OverflowPolicy, PACKET_MAX, RateLimit};

/// Bound, in connections: the default maximum number of simultaneous connections. Each has a
/// descriptor and takes about 3 KB.
const CONNECTIONS_MAX: usize = 10_000;

/// Bound, in seconds: the default maximum time to write the rest to a peer. A peer that still reads
/// needs less.
const FINISH_S_MAX: u64 = 30;

/// Bound, in seconds: the default maximum time for which a connection that was closed on this side
/// waits for the peer to finish. It allows for several round trips, even if packets are lost.
const LINGER_S_MAX: u64 = 2;

/// The action to take when a controller of the stage rejects an event. Default:
/// [`Drop`](Self::Drop).
///
/// The action applies only to packets and new connections. The other events of a connection wait
/// until the stage admits them, and are never dropped. If the stage's queue is full, every event
/// waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenRejected {
    /// Drop the event, and count it as refused. The connection continues without the packet, as if
    /// the network had lost it. If the event is a new connection, the connection is closed.
    #[default]
    Drop,
    /// Close the connection after writing its queued bytes.
    Close,
    /// Wait until the event is admitted. The pause before a retry grows from 1 ms to 100 ms. Until
    /// the event is admitted, the connection reads nothing.
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
                .when_full(OverflowPolicy::Close)
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
    /// Bound, in connections: the number of simultaneous connections, including connection
    /// attempts; 10,000 by default, at least 1. At the bound, new clients wait in the system's
    /// accept queue, and outgoing connection attempts fail.
    pub fn connections_max(mut self, connections: usize) -> Self {
        self.connections_max = connections.max(1);
        self
    }

    /// Bound, in bytes: the length of a packet; 16,384 by default, which is also the largest
    /// allowed value.
    pub fn packet_max(mut self, bytes: usize) -> Self {
        self.packet_max = bytes.clamp(1, PACKET_MAX);
        self
    }

    /// Bound, in bytes: the length of a connection's write queue; 256 KiB by default. A buffer that
    /// is longer than this bound is accepted only if the queue is empty.
    pub fn outgoing_bytes_max(mut self, bytes: usize) -> Self {
        self.outgoing = self.outgoing.bytes_max(bytes);
        self
    }

    /// Bound, in buffers: the length of a connection's write queue; 1024 by default, at least 1.
    pub fn outgoing_buffers_max(mut self, buffers: usize) -> Self {
        self.outgoing = self.outgoing.buffers_max(buffers);
        self
    }

    /// Sets the action to take if a buffer does not fit into a connection's write queue. By default
    /// the connection is closed, because slow peers could otherwise exhaust the memory (SEDA, SOSP
    /// 2001, section 5.2.2). With [`OverflowPolicy::Drop`], the sender gets an error. With
    /// [`OverflowPolicy::Wait`], the sender can wait until the buffer fits.
    pub fn when_full(mut self, when_full: OverflowPolicy) -> Self {
        self.outgoing = self.outgoing.when_full(when_full);
        self
    }

    /// Sets the maximum time for writing the queued bytes of a closing connection; 30 seconds by
    /// default.
    pub fn finish_max(mut self, time: Duration) -> Self {
        self.outgoing = self.outgoing.finish_max(time);
        self
    }

    /// Sets how long a closing connection waits for the peer to finish sending; 2 seconds by
    /// default. The wait begins when the connection has written all queued bytes.
    ///
    /// Packets that arrive in the meantime are dropped. Without this wait, unread bytes from the
    /// peer would cause the system to reset the connection, and the peer might lose the last
    /// response (RFC 9112, section 9.6).
    pub fn linger(mut self, time: Duration) -> Self {
        self.linger = time;
        self
    }

    /// Limits the rate at which packets are read from each connection. While the average rate is
    /// above the limit, each read delays the next one; see [`RateLimit`]. To limit the combined
    /// rate of all connections, use [`Sockets::control_reads`](super::Sockets::control_reads).
    pub fn limit_each(mut self, limit: RateLimit) -> Self {
        self.limit_each = Some(Arc::new(limit));
        self
    }

    /// Sets the action to take when a controller of the stage rejects a packet or a new connection.
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

    /// Sets a function that maps the number of a connection to the color of its thread. By default,
    /// each connection's thread has its own color.
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
