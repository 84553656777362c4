//! The address of an application server.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use crate::address::read_address;

/// The address of an application server.
///
/// ```
/// use tussah_services::fastcgi::Address;
///
/// assert_eq!("unix:/run/php.sock".parse(), Ok(Address::Unix("/run/php.sock".into())));
/// assert_eq!("127.0.0.1:9000".parse(), Ok(Address::Tcp(([127, 0, 0, 1], 9000).into())));
/// assert_eq!("localhost:9000".parse(), Ok(Address::Tcp(([127, 0, 0, 1], 9000).into())));
/// assert!("php.sock".parse::<Address>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A TCP port.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        match text.strip_prefix("unix:") {
            Some("") => Err(AddressError),
            Some(path) => Ok(Self::Unix(path.into())),
            None => read_address(text).map(Self::Tcp).ok_or(AddressError),
        }
    }
}

/// The error for a string that cannot be parsed as an [`Address`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressError;

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "expected an address such as \"unix:/run/php/php-fpm.sock\" or \"127.0.0.1:9000\"",
        )
    }
}

impl std::error::Error for AddressError {}
