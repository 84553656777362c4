//! The types that represent addresses in calls.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// A value that can be converted to one or more socket addresses.
///
/// A string must contain an IP address and a port, with brackets around an IPv6 address:
/// `127.0.0.1:80`, `[::1]:80`. Host names (`example.com:80`, or a pair of name and port) are
/// accepted only for connecting a `TcpStream`. For any other purpose, resolve host names first.
///
/// # Examples
/// ```
/// use tussah::net::ToAddresses;
/// # use std::net::Ipv4Addr;
/// let addresses = "127.0.0.1:80".to_addresses()?;
/// assert_eq!(addresses.as_slice(), [(Ipv4Addr::LOCALHOST, 80).into()]);
/// let error = "localhost".to_addresses().expect_err("the port is missing");
/// assert_eq!(
///     error.to_string(),
///     r#"expected an address and a port, as in "127.0.0.1:80", not "localhost""#
/// );
/// # std::io::Result::Ok(())
/// ```
pub trait ToAddresses {
    /// Returns the addresses, in the order in which to try them.
    ///
    /// # Errors
    /// Returns `InvalidInput` if the value does not represent a valid socket address, that is, an
    /// IP address and a port.
    fn to_addresses(&self) -> io::Result<Addresses>;

    /// Returns the addresses, or a host name to look up. The default implementation returns
    /// addresses.
    ///
    /// # Errors
    /// Returns `InvalidInput` if the value represents neither a valid socket address nor a host
    /// name with a port.
    fn to_target(&self) -> io::Result<Target> {
        self.to_addresses().map(Target::Addresses)
    }
}

/// The target of a connection: one or more addresses, or a host name.
///
/// # Examples
/// ```
/// use tussah::net::{Target, ToAddresses};
/// # use std::net::Ipv4Addr;
/// let expected = Target::Addresses(std::net::SocketAddr::from((Ipv4Addr::LOCALHOST, 80)).into());
/// assert_eq!("127.0.0.1:80".to_target()?, expected);
/// assert_eq!(("127.0.0.1", 80).to_target()?, expected);
/// # #[cfg(feature = "dns")]
/// assert_eq!("example.com:80".to_target()?, ("example.com", 80).to_target()?);
/// # std::io::Result::Ok(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// One or more addresses, which are tried in order.
    Addresses(Addresses),
    /// A host name to look up.
    #[cfg(feature = "dns")]
    Host {
        /// The name, as given.
        name: String,
        /// The port.
        port: u16,
    },
}

/// The end of the error for a host name where an address is required.
const NO_NAMES: &str = if cfg!(feature = "dns") {
    "names are looked up only to connect"
} else {
    "names are not looked up without the feature `dns`"
};

/// One or more addresses, which are tried in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses(List);

#[derive(Clone, Debug, PartialEq, Eq)]
enum List {
    /// The usual case, which needs no allocation.
    One(SocketAddr),
    Any(Vec<SocketAddr>),
}

impl Addresses {
    /// Returns all addresses, in order.
    #[must_use]
    pub fn as_slice(&self) -> &[SocketAddr] {
        match &self.0 {
            List::One(address) => std::slice::from_ref(address),
            List::Any(addresses) => addresses,
        }
    }
}

impl fmt::Display for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = "";
        for address in self.as_slice() {
            write!(f, "{before}{address}")?;
            before = " or ";
        }
        Ok(())
    }
}

impl From<SocketAddr> for Addresses {
    fn from(address: SocketAddr) -> Self {
        Self(List::One(address))
    }
}

impl FromIterator<SocketAddr> for Addresses {
    fn from_iter<I: IntoIterator<Item = SocketAddr>>(addresses: I) -> Self {
        Self(List::Any(addresses.into_iter().collect()))
    }
}

impl ToAddresses for Addresses {
    fn to_addresses(&self) -> io::Result<Addresses> {
        Ok(self.clone())
    }
}

impl ToAddresses for SocketAddr {
    fn to_addresses(&self) -> io::Result<Addresses> {
        Ok(Addresses::from(*self))
    }
}

macro_rules! into_socket_addr {
    ($($address:ty),*) => {
        $(impl ToAddresses for $address {
            fn to_addresses(&self) -> io::Result<Addresses> {
                Ok(Addresses::from(SocketAddr::from(*self)))
            }
        })*
    };
}

into_socket_addr! { SocketAddrV4, SocketAddrV6, (IpAddr, u16), (Ipv4Addr, u16), (Ipv6Addr, u16) }

impl ToAddresses for [SocketAddr] {
    fn to_addresses(&self) -> io::Result<Addresses> {
        Ok(self.iter().copied().collect())
    }
}

impl ToAddresses for str {
    fn to_addresses(&self) -> io::Result<Addresses> {
        let address: SocketAddr = self
            .parse()
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, no_address(self)))?;
        Ok(Addresses::from(address))
    }

    #[cfg(feature = "dns")]
    fn to_target(&self) -> io::Result<Target> {
        let addresses = self.to_addresses();
        if addresses.is_err()
            && let Some((name, port)) = split_host(self)
        {
            let name = name.to_owned();
            return Ok(Target::Host { name, port });
        }
        addresses.map(Target::Addresses)
    }
}

/// Splits a string into a host name or IPv4 address and a port, if it has that form.
fn split_host(text: &str) -> Option<(&str, u16)> {
    let (name, port) = text.rsplit_once(':')?;
    let is_name = !name.is_empty() && !name.contains([':', '[', ']']);
    Some((name, port.parse().ok()?)).filter(|_| is_name)
}

/// Returns the reason why a string is not an address.
fn no_address(text: &str) -> String {
    if let Some((host, port)) = text.rsplit_once(':')
        && (host.ends_with(']') || !host.contains(':'))
        && !port.is_empty()
        && port.bytes().all(|byte| byte.is_ascii_digit())
        && port.parse::<u16>().is_err()
    {
        return format!("expected a port of 0 to 65535, not {text:?}");
    }
    let expected = r#"expected an address and a port, as in "127.0.0.1:80""#;
    match split_host(text) {
        Some(_) => format!("{expected}, not {text:?}: {NO_NAMES}"),
        None => format!("{expected}, not {text:?}"),
    }
}

/// A host name and a port, or an IP address without brackets and a port.
impl ToAddresses for (&str, u16) {
    fn to_addresses(&self) -> io::Result<Addresses> {
        let (host, port) = *self;
        let address: IpAddr = host.parse().map_err(|_| {
            let text = match host {
                "" => format!("expected an IP address, not {host:?}"),
                _ => format!("expected an IP address, not {host:?}: {NO_NAMES}"),
            };
            io::Error::new(io::ErrorKind::InvalidInput, text)
        })?;
        (address, port).to_addresses()
    }

    #[cfg(feature = "dns")]
    fn to_target(&self) -> io::Result<Target> {
        let (host, port) = *self;
        match self.to_addresses() {
            Err(_) if !host.is_empty() => Ok(Target::Host {
                name: host.to_owned(),
                port,
            }),
            addresses => addresses.map(Target::Addresses),
        }
    }
}

impl ToAddresses for (String, u16) {
    fn to_addresses(&self) -> io::Result<Addresses> {
        (self.0.as_str(), self.1).to_addresses()
    }

    fn to_target(&self) -> io::Result<Target> {
        (self.0.as_str(), self.1).to_target()
    }
}

impl ToAddresses for String {
    fn to_addresses(&self) -> io::Result<Addresses> {
        self.as_str().to_addresses()
    }

    fn to_target(&self) -> io::Result<Target> {
        self.as_str().to_target()
    }
}

impl<A: ToAddresses + ?Sized> ToAddresses for &A {
    fn to_addresses(&self) -> io::Result<Addresses> {
        (**self).to_addresses()
    }

    fn to_target(&self) -> io::Result<Target> {
        (**self).to_target()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_name_the_same() {
        let v4 = SocketAddr::from(([127, 0, 0, 1], 80));
        let v6 = SocketAddr::from((Ipv6Addr::LOCALHOST, 80));
        let check = |given: &dyn ToAddresses, expected: &[SocketAddr]| {
            let addresses = given.to_addresses().expect("they are addresses");
            assert_eq!(addresses.as_slice(), expected);
        };
        check(&v4, &[v4]);
        check(&"127.0.0.1:80", &[v4]);
        check(&"[::1]:80".to_string(), &[v6]);
        check(&(Ipv4Addr::LOCALHOST, 80), &[v4]);
        check(&(IpAddr::from(Ipv6Addr::LOCALHOST), 80), &[v6]);
        check(&[v4, v6].as_slice(), &[v4, v6]);
        check(&Addresses::from(v6), &[v6]);
        let both: Addresses = [v4, v6].into_iter().collect();
        assert_eq!(both.to_string(), "127.0.0.1:80 or [::1]:80");
    }

    #[test]
    fn a_name_is_no_address() {
        for text in ["localhost:80", "127.0.0.1", "::1:80", "127.0.0.1:65536", ""] {
            let error = text.to_addresses().expect_err(text);
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        }
    }

    #[test]
    fn an_error_says_what_is_wrong() {
        let check = |given: &dyn ToAddresses, expected: &str| {
            let error = given.to_addresses().expect_err(expected);
            assert_eq!(error.to_string(), expected);
        };
        let expected = r#"expected an address and a port, as in "127.0.0.1:80", not"#;
        check(&"127.0.0.1", &format!(r#"{expected} "127.0.0.1""#));
        check(&"a\n", &format!(r#"{expected} "a\n""#));
        check(
            &"localhost:7013",
            &format!(r#"{expected} "localhost:7013": {NO_NAMES}"#),
        );
        check(
            &("localhost", 7013),
            &format!(r#"expected an IP address, not "localhost": {NO_NAMES}"#),
        );
        check(&("", 7013), r#"expected an IP address, not """#);
        for text in ["127.0.0.1:99999", "[::1]:65536", "localhost:99999"] {
            check(
                &text,
                &format!("expected a port of 0 to 65535, not {text:?}"),
            );
        }
    }

    #[cfg(feature = "dns")]
    #[test]
    fn a_host_is_a_target() {
        let check = |given: &dyn ToAddresses, expected: Option<(&str, u16)>| {
            let host = match given.to_target() {
                Ok(Target::Host { name, port }) => Some((name, port)),
                Ok(Target::Addresses(_)) | Err(_) => None,
            };
            let host = host.as_ref().map(|(name, port)| (name.as_str(), *port));
            assert_eq!(host, expected);
        };
        check(&"localhost:80", Some(("localhost", 80)));
        check(&"a.example.:65535".to_string(), Some(("a.example.", 65535)));
        check(&("localhost", 80), Some(("localhost", 80)));
        check(&("localhost".to_string(), 80), Some(("localhost", 80)));
        for none in [
            "127.0.0.1:80",
            "[::1]:80",
            "::1:80",
            "[x]:80",
            ":80",
            "a",
            "a:",
            "a:x",
            "a:65536",
        ] {
            check(&none, None);
        }
        check(&("127.0.0.1", 80), None);
        check(&("::1", 80), None);
        check(&("", 80), None);
    }
}
