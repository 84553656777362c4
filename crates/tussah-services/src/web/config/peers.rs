//! Groups of clients, by their addresses.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::{AddrParseError, IpNet};

/// A group of clients.
///
/// ```
/// use tussah_services::web::config::Peers;
///
/// assert_eq!("unix".parse(), Ok(Peers::Unix));
/// let local: Peers = "127.0.0.0/8".parse()?;
/// assert!(local.contains(Some([127, 0, 0, 9].into())) && !local.contains(None));
/// # Ok::<(), ipnet::AddrParseError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peers {
    /// Clients whose addresses are in this network.
    Network(IpNet),
    /// Clients on a Unix socket, which have no address.
    Unix,
}

impl Peers {
    /// Returns whether a client belongs to the group; `None` stands for a client without an
    /// address.
    #[must_use]
    pub fn contains(&self, address: Option<IpAddr>) -> bool {
        match (self, address) {
            (Self::Network(network), Some(address)) => network.contains(&address),
            (Self::Unix, None) => true,
            _ => false,
        }
    }
}

impl FromStr for Peers {
    type Err = AddrParseError;

    /// Parses an address, a network, or `unix`.
    fn from_str(text: &str) -> Result<Self, AddrParseError> {
        if text == "unix" {
            return Ok(Self::Unix);
        }
        let address = text.parse::<IpAddr>().map(IpNet::from);
        address.or_else(|_| text.parse()).map(Self::Network)
    }
}

impl fmt::Display for Peers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network(network) => network.fmt(f),
            Self::Unix => f.write_str("unix"),
        }
    }
}
