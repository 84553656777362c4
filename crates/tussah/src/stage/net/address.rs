//! The address of a socket or of its peer.

use std::fmt;
use std::net::SocketAddr;

use crate::net::unix::{self, Shown};

/// The address of a socket or of its peer.
#[derive(Clone, Debug)]
pub enum Address {
    /// The address of a TCP socket.
    Tcp(SocketAddr),
    /// The address of a Unix socket, which may have no name.
    Unix(unix::SocketAddr),
    /// An address that the system does not report.
    Unknown,
}

impl Address {
    /// Returns the address of a TCP socket, or `None` for other addresses.
    #[must_use]
    pub fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(address) => Some(*address),
            Self::Unix(_) | Self::Unknown => None,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(address) => Shown(address).fmt(f),
            Self::Unknown => f.write_str("an unknown address"),
        }
    }
}
