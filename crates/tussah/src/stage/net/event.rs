//! The events of sockets that stages receive.

use std::fmt;
use std::io;

use super::connection::Connection;
use super::server::Server;

/// An event of a socket. [The module](super) describes the order of the events.
///
/// A stage that also takes other events has its own enum, with `impl From<SocketEvent>`.
#[derive(Debug)]
pub enum SocketEvent {
    /// A server has accepted a connection.
    Accepted(Connection),
    /// A requested connection was established.
    Connected(Connection),
    /// The connection with this number, which [`Sockets::connect`](super::Sockets::connect)
    /// returned, could not be established. The error names the peer and the reason.
    NotConnected(u64, io::Error),
    /// Bytes have arrived: at least one, at most 16 KB. The boundaries are those of the system's
    /// reads.
    Packet(Connection, Vec<u8>),
    /// All packets up to this number were given to the system; [`Connection::send`] returned the
    /// numbers. The stage receives this event only if
    /// [`SocketOptions::completions`](super::SocketOptions::completions) is on. One event may
    /// represent several packets: the difference of the numbers shows how many.
    Sent(Connection, u64),
    /// The peer has finished sending, and may still read. The stage can send until it
    /// [closes](Connection::close) the connection or drops the last [`Connection`].
    Ended(Connection),
    /// The connection is closed. This is the connection's last event.
    Closed(Connection, CloseReason),
    /// A server could not accept because the process or the system has no descriptor or no memory
    /// left. The server continues. The server sends this event for the first failure, and not for
    /// later ones until accepting has succeeded again.
    AcceptFailed(Server, io::Error),
    /// A server has stopped: it was [closed](Server::close), or it failed with this error. This is
    /// the server's last event.
    Stopped(Server, Option<io::Error>),
}

/// The way in which a connection ended.
#[derive(Debug)]
#[non_exhaustive]
pub enum CloseReason {
    /// The connection ended normally: everything that was sent was written.
    Finished,
    /// [`Connection::break_off`] aborted it.
    BrokenOff,
    /// A controller of the stage rejected a packet, and
    /// [`WhenRejected::Close`](super::WhenRejected::Close) ended the connection.
    Rejected,
    /// The peer did not read the data sent to it: its queue was full
    /// ([`SocketOptions::when_full`](super::SocketOptions::when_full)), or writing the rest took
    /// too long ([`SocketOptions::finish_max`](super::SocketOptions::finish_max)).
    Slow(io::Error),
    /// Reading or writing failed; the error names the operation and the peer.
    Failed(io::Error),
}

impl SocketEvent {
    /// Returns the number of the connection or server of this event, for
    /// [`StageBuilder::keyed_by`](crate::stage::StageBuilder::keyed_by). No two sockets of the
    /// process ever have the same number.
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
            Self::BrokenOff => f.write_str("broken off here"),
            Self::Rejected => f.write_str("a packet was turned away"),
            Self::Slow(error) | Self::Failed(error) => error.fmt(f),
        }
    }
}
