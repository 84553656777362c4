//! How sockets are to behave.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tussah_core::Color;

use crate::net::{OutgoingOptions, PACKET_MAX, RateLimit, WhenFull};

/// Bound, in connections: how many there are at a time unless it is set otherwise; each has a descriptor, and some 3 KB.
const CONNECTIONS_MAX: usize = 10_000;

/// Bound, in seconds: how long it may take to write the rest to a peer unless it is set otherwise; a peer that reads at all needs less.
const FINISH_S_MAX: u64 = 30;

/// Bound, in seconds: how long a connection that was closed here waits for the peer's end unless it is set otherwise; some round trips, even if
/// packets are lost.
const LINGER_S_MAX: u64 = 2;

/// What is done with a packet, or a connection, that a controller of the stage turns away. Default: [`Drop`](Self::Drop).
///
/// The other events of a connection are never dropped: they wait. A queue that is full turns nothing away: there, all wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenRejected {
    /// It is dropped and counted: the connection goes on without the packet, as if it were lost on the way; a connection is closed.
    #[default]
    Drop,
    /// The connection is closed, when what is to be written has been written.
    Close,
    /// It waits, 1 ms at first and up to 100 ms later, until it is let in. Meanwhile nothing is read.
    Wait,
}

/// How sockets are to behave.
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
    /// Bound, in connections: how many there are at a time, those included that are being made; 10,000 by default, at least 1. Beyond it
    /// servers do not accept, so that clients wait in the system's queue, and connecting fails.
    pub fn connections_max(mut self, connections: usize) -> Self {
        self.connections_max = connections.max(1);
        self
    }

    /// Bound, in bytes: the most that a packet has; 16,384 by default, which is also the most.
    pub fn packet_max(mut self, bytes: usize) -> Self {
        self.packet_max = bytes.clamp(1, PACKET_MAX);
        self
    }

    /// Bound, in bytes: what is queued to be written to one peer; 256 KiB by default. A buffer that is longer than this fits only into an empty queue.
    pub fn outgoing_bytes_max(mut self, bytes: usize) -> Self {
        self.outgoing = self.outgoing.bytes_max(bytes);
        self
    }

    /// Bound, in buffers: how many are queued to be written to one peer; 1024 by default, at least 1.
    pub fn outgoing_buffers_max(mut self, buffers: usize) -> Self {
        self.outgoing = self.outgoing.buffers_max(buffers);
        self
    }

    /// What is done with a buffer for which a peer's queue has no room; by default the connection is closed, as slow peers would otherwise fill the
    /// memory (SEDA, SOSP 2001, section 5.2.2). With [`WhenFull::Drop`] the sender is told, and with [`WhenFull::Wait`] it can wait.
    pub fn when_full(mut self, when_full: WhenFull) -> Self {
        self.outgoing = self.outgoing.when_full(when_full);
        self
    }

    /// How long it may take to write the rest of a connection that is being closed; 30 seconds by default.
    pub fn finish_max(mut self, time: Duration) -> Self {
        self.outgoing = self.outgoing.finish_max(time);
        self
    }

    /// How long a connection that was closed here, with all written, waits for the peer to end too; 2 seconds by default. What comes meanwhile is
    /// dropped. Without that, the system would break the connection off if the peer has sent anything that was not read, and the peer might lose
    /// the last answer (RFC 9112, section 9.6).
    pub fn linger(mut self, time: Duration) -> Self {
        self.linger = time;
        self
    }

    /// Limits the rate at which packets are read from each connection: after each read the next one is delayed for as long as the average is above the
    /// limit, see [`RateLimit`]. For all connections together there is [`Sockets::control_reads`](super::Sockets::control_reads).
    pub fn limit_each(mut self, limit: RateLimit) -> Self {
        self.limit_each = Some(Arc::new(limit));
        self
    }

    /// What is done with a packet or connection that the stage's controllers turn away.
    pub fn when_rejected(mut self, when_rejected: WhenRejected) -> Self {
        self.when_rejected = when_rejected;
        self
    }

    /// Whether the stage is told of packets that were written ([`SocketEvent::Sent`](super::SocketEvent::Sent)); off by default.
    pub fn completions(mut self, on: bool) -> Self {
        self.completions = on;
        self
    }

    /// Whether short packets are sent at once by TCP: see [`TcpStream::set_nodelay`](crate::net::TcpStream::set_nodelay). Off by default.
    pub fn nodelay(mut self, on: bool) -> Self {
        self.nodelay = on;
        self
    }

    /// The color in which the thread of a connection lives, by the connection's number. By default each thread is on its own.
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
