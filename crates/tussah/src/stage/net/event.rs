//! The events of sockets, which stages receive.

use std::fmt;
use std::io;

use super::connection::Connection;
use super::server::Server;

/// An event of a socket. See the [module documentation](super) for the order of events.
///
/// A stage that also takes other events can define its own enum that implements
/// `From<SocketEvent>`.
#[derive(Debug)]
pub enum SocketEvent {
    /// A server has accepted a connection.
    Accepted(Connection),
    /// A requested connection has been established.
    Connected(Connection),
    /// A requested connection could not be established. The number is the one that
    /// [`Sockets::connect`](super::Sockets::connect) returned, and the error names the peer and the
    /// reason.
    NotConnected(u64, io::Error),
    /// Bytes have arrived: at least 1 byte, and at most 16 KiB. Each packet contains the bytes of
    /// one read.
    Packet(Connection, Vec<u8>),
    /// All packets up to this number have been written to the socket; [`Connection::send`] returns
    /// the number of a packet. This event is sent only if
    /// [`SocketOptions::completions`](super::SocketOptions::completions) is on. One event may cover
    /// several packets: to count them, subtract the number in the previous event.
    Sent(Connection, u64),
    /// The peer has finished sending, but it may still be reading. The stage can send until it
    /// [closes](Connection::close) the connection or drops the last [`Connection`].
    Ended(Connection),
    /// The connection is closed. This is the last event of the connection.
    Closed(Connection, CloseReason),
    /// A server could not accept a connection, because the process or the system has run out of
    /// descriptors or memory. The server keeps trying. The server sends this event for the first
    /// failure, and not again until it has accepted a connection.
    AcceptFailed(Server, io::Error),
    /// A server has stopped: it was [closed](Server::close), or it failed with this error. This is
    /// the last event of the server.
    Stopped(Server, Option<io::Error>),
}

/// The reason why a connection ended.
#[derive(Debug)]
#[non_exhaustive]
pub enum CloseReason {
    /// The connection ended normally: all queued bytes were written.
    Finished,
    /// [`Connection::break_off`] aborted the connection.
    BrokenOff,
    /// A controller of the stage rejected a packet, and
    /// [`WhenRejected::Close`](super::WhenRejected::Close) closed the connection.
    Rejected,
    /// The peer did not read fast enough: the write queue was full
    /// ([`SocketOptions::when_full`](super::SocketOptions::when_full)), or writing the remaining
    /// bytes took too long ([`SocketOptions::finish_max`](super::SocketOptions::finish_max)).
    Slow(io::Error),
    /// A read or a write failed; the error names the operation and the peer.
    Failed(io::Error),
}

impl SocketEvent {
    /// Returns the number of the event's connection or server, as a key for
    /// [`StageBuilder::keyed_by`](crate::stage::StageBuilder::keyed_by). Numbers are unique within
    /// the process and never reused.
    #[must_use]
    pub fn id(&self) -> u64 {
        match self {
            Self::Accepted(connection)
            | Self::Connected(connection)
            | Self::Packet(connection, _)
            | Self::Sent(connection, _)
            | Self::Ended(connection)
            | Self::Closed(connection, _) => connection.id(),
            Self::NotConnected(id, _) => *id,
            Self::AcceptFailed(server, _) | Self::Stopped(server, _) => server.id(),
        }
    }
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finished => f.write_str("finished"),
            Self::BrokenOff => f.write_str("aborted on this side"),
            Self::Rejected => f.write_str("a packet was rejected"),
            Self::Slow(error) | Self::Failed(error) => error.fmt(f),
        }
    }
}
