//! What happens on sockets, as stages are told of it.

use std::fmt;
use std::io;

use super::connection::Connection;
use super::server::Server;

/// What happens on a socket. [The module](super) says in which order.
///
/// A stage that takes other events besides has an enum of its own, with `impl From<SocketEvent>`.
#[derive(Debug)]
pub enum SocketEvent {
    /// A server has accepted a connection.
    Accepted(Connection),
    /// A connection was made that was asked for.
    Connected(Connection),
    /// The connection with this number, which [`Sockets::connect`](super::Sockets::connect) has given, could not be made; the error says with
    /// whom, and why.
    NotConnected(u64, io::Error),
    /// Bytes have come: at least one, at most 16 KB, wherever the system has cut.
    Packet(Connection, Vec<u8>),
    /// All packets up to this number were given to the system; [`Connection::send`] has told the numbers. Told if
    /// [`SocketOptions::completions`](super::SocketOptions::completions) says so. One event may stand for several packets: how many
    /// is not told by a bounded queue, but by the difference of numbers.
    Sent(Connection, u64),
    /// The peer sends nothing more. It may still read: what is sent from here on is written, until the connection is
    /// [closed](Connection::close), or nobody has a [`Connection`] of it any more.
    Ended(Connection),
    /// The connection is closed. This is its last event.
    Closed(Connection, Closed),
    /// A server could not accept, and goes on: the process or the system has no descriptor or no memory left. Told once until it succeeds
    /// again.
    AcceptFailed(Server, io::Error),
    /// A server has stopped: it was [closed](Server::close), or the error says what ended it. This is its last event.
    Stopped(Server, Option<io::Error>),
}

/// How a connection has come to its end.
#[derive(Debug)]
#[non_exhaustive]
pub enum Closed {
    /// In order: all that was sent was written.
    Finished,
    /// By [`Connection::break_off`].
    BrokenOff,
    /// A controller of the stage has turned a packet away, and [`WhenRejected::Close`](super::WhenRejected::Close) says that this ends the connection.
    Rejected,
    /// The peer did not read what was sent to it: the queue was full ([`SocketOptions::when_full`](super::SocketOptions::when_full)), or the rest took too
    /// long ([`SocketOptions::finish_max`](super::SocketOptions::finish_max)).
    Slow(io::Error),
    /// Reading or writing failed; the error says which, and with whom.
    Failed(io::Error),
}

impl SocketEvent {
    /// The number of the connection or server that it belongs to, for [`Builder::keyed_by`](crate::stage::Builder::keyed_by). No two sockets
    /// of the process ever have the same.
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

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finished => f.write_str("finished"),
            Self::BrokenOff => f.write_str("broken off here"),
            Self::Rejected => f.write_str("a packet was turned away"),
            Self::Slow(error) | Self::Failed(error) => error.fmt(f),
        }
    }
}
