//! The reasons why a connection ended, or was never made.

use std::fmt;
use std::io;

use tussah_wire::Malformed;
use tussah_wire::http::Status;

/// The reason why a connection ended, or was never made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// The peer disconnected.
    Gone,
    /// The peer took its leave.
    Bye(u16, String),
    /// The outgoing queue was full.
    Slow,
    /// The peer sent nothing for too long.
    Silent,
    /// The peer sent something that is not Gnutella.
    Malformed(Malformed),
    /// The peer sent too many packets whose payloads are malformed.
    Broken,
    /// This router shuts down.
    Stopping,
    /// There are enough peers.
    Full,
    /// The peer's address has enough connections.
    Greedy,
    /// The peer is connected, or is this router itself.
    Known,
    /// The peer rejected the connection.
    Rejected(Status),
    /// No connection could be made.
    Unreachable(String),
    /// The system failed to read or write.
    Failed(String),
}

impl Why {
    /// Returns the reason for an error of a connection.
    pub(super) fn of(error: &io::Error) -> Self {
        use io::ErrorKind as Kind;
        match error.kind() {
            Kind::ConnectionReset
            | Kind::ConnectionAborted
            | Kind::BrokenPipe
            | Kind::NotConnected
            | Kind::HostUnreachable
            | Kind::NetworkUnreachable
            | Kind::TimedOut => Self::Gone,
            _ => Self::Failed(error.to_string()),
        }
    }

    /// The number of reasons, for an array of counters.
    pub(super) const COUNT: usize = 13;

    /// The names with their meanings, in the order of [`number`](Self::number).
    pub(super) const KINDS: [(&'static str, &'static str); Self::COUNT] = [
        ("gone", "the peer disconnected"),
        ("bye", "the peer took its leave"),
        ("slow", "the peer's outgoing queue was full (--limit-queue)"),
        ("silent", "the peer sent nothing for too long (--silence)"),
        ("malformed", "the peer sent something that is not Gnutella"),
        (
            "broken",
            "the peer sent ten packets with malformed payloads",
        ),
        ("stopping", "this router shuts down"),
        ("full", "there were enough peers (--limit-peers)"),
        (
            "greedy",
            "the address had enough connections (--limit-each)",
        ),
        ("known", "the peer was connected, or was this router itself"),
        ("rejected", "the peer rejected the connection"),
        ("unreachable", "no connection could be made"),
        ("failed", "the system failed to read or write"),
    ];

    pub(super) fn number(&self) -> usize {
        match self {
            Self::Gone => 0,
            Self::Bye(..) => 1,
            Self::Slow => 2,
            Self::Silent => 3,
            Self::Malformed(_) => 4,
            Self::Broken => 5,
            Self::Stopping => 6,
            Self::Full => 7,
            Self::Greedy => 8,
            Self::Known => 9,
            Self::Rejected(_) => 10,
            Self::Unreachable(_) => 11,
            Self::Failed(_) => 12,
        }
    }

    /// Returns the code of the Bye that states the reason to the peer; `None` if there is no use in
    /// sending one.
    pub(super) fn bye(&self) -> Option<u16> {
        match self {
            Self::Stopping => Some(200),
            Self::Malformed(_) | Self::Broken => Some(400),
            Self::Silent => Some(408),
            _ => None,
        }
    }

    /// Returns the status of the answer to a peer that is not admitted.
    pub(super) fn status(&self) -> Status {
        match self {
            Self::Malformed(_) => Status::BAD_REQUEST,
            Self::Known => Status::CONFLICT,
            Self::Greedy => Status::TOO_MANY_REQUESTS,
            _ => Status::SERVICE_UNAVAILABLE,
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => f.write_str("the peer disconnected"),
            Self::Bye(code, text) => write!(f, "the peer took its leave: {code} {text}"),
            Self::Slow => f.write_str("the peer is too slow: its outgoing queue is full"),
            Self::Silent => f.write_str("the peer sent nothing for too long"),
            Self::Malformed(malformed) => write!(f, "the peer sent malformed data: {malformed}"),
            Self::Broken => f.write_str("the peer sent too many malformed payloads"),
            Self::Stopping => f.write_str("this router shuts down"),
            Self::Full => f.write_str("there are enough peers"),
            Self::Greedy => f.write_str("the address has enough connections"),
            Self::Known => f.write_str("the peer is already connected, or is this router itself"),
            Self::Rejected(status) => write!(f, "the peer rejected the connection: {status}"),
            Self::Unreachable(why) => write!(f, "cannot connect: {why}"),
            Self::Failed(why) => write!(f, "cannot read or write: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_system_are_not_those_of_a_peer() {
        let check = |kind: io::ErrorKind, is_gone: bool| {
            let why = Why::of(&kind.into());
            assert_eq!(why == Why::Gone, is_gone, "{kind}");
            assert_eq!(matches!(why, Why::Failed(_)), !is_gone, "{kind}");
        };
        check(io::ErrorKind::ConnectionReset, true);
        check(io::ErrorKind::BrokenPipe, true);
        check(io::ErrorKind::OutOfMemory, false);
        check(io::ErrorKind::Other, false);
    }
}
