//! The results of lookups.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Deref;
use std::time::Duration;
use std::{fmt, slice, vec};

/// Bound, in seconds: the longest time for which a result is valid, one day. A longer time to live
/// in an answer is reduced to it. Results that did not come from a server, such as literal
/// addresses, are valid for this time, too.
pub(super) const TTL_MAX: u32 = 24 * 60 * 60;

/// The addresses of a name, in the order in which to try them.
///
/// The list is never empty.
///
/// # Examples
/// ```
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// let addresses = tussah::dns::Resolver::new().lookup_ip("127.0.0.1").await?;
/// assert_eq!(addresses.as_slice(), [std::net::Ipv4Addr::LOCALHOST]);
/// # Ok::<_, tussah::dns::Error>(())
/// # })).expect("no panic")?;
/// # std::io::Result::Ok(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpAddresses {
    list: Vec<IpAddr>,
    ttl_seconds: u32,
}

impl IpAddresses {
    pub(super) fn new(list: Vec<IpAddr>, ttl_seconds: u32) -> Self {
        let ttl_seconds = ttl_seconds.min(TTL_MAX);
        Self { list, ttl_seconds }
    }

    /// Appends the addresses of `other`.
    pub(super) fn join(mut self, other: Self) -> Self {
        self.list.extend(other.list);
        self.ttl_seconds = self.ttl_seconds.min(other.ttl_seconds);
        self
    }

    /// Returns all addresses.
    #[must_use]
    pub fn as_slice(&self) -> &[IpAddr] {
        &self.list
    }

    /// Returns an iterator over all addresses.
    pub fn iter(&self) -> slice::Iter<'_, IpAddr> {
        self.list.iter()
    }

    /// Returns an iterator over the IPv4 addresses.
    pub fn v4(&self) -> impl Iterator<Item = Ipv4Addr> + '_ {
        self.list.iter().filter_map(|address| match address {
            IpAddr::V4(address) => Some(*address),
            IpAddr::V6(_) => None,
        })
    }

    /// Returns an iterator over the IPv6 addresses.
    pub fn v6(&self) -> impl Iterator<Item = Ipv6Addr> + '_ {
        self.list.iter().filter_map(|address| match address {
            IpAddr::V4(_) => None,
            IpAddr::V6(address) => Some(*address),
        })
    }

    /// Returns the time for which the addresses remain valid, in whole seconds and at most one day.
    /// The result is the shortest TTL of the records (RFC 1035, section 3.2.1), minus the time that
    /// the records have spent in the cache.
    #[must_use]
    pub fn ttl(&self) -> Duration {
        Duration::from_secs(self.ttl_seconds.into())
    }
}

impl IntoIterator for IpAddresses {
    type Item = IpAddr;
    type IntoIter = vec::IntoIter<IpAddr>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

impl<'a> IntoIterator for &'a IpAddresses {
    type Item = &'a IpAddr;
    type IntoIter = slice::Iter<'a, IpAddr>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// One or more records of the same type. Dereferences to a slice.
///
/// # Examples
/// ```no_run
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// let servers = tussah::dns::Resolver::new().lookup_mx("example.com").await?;
/// println!("mail goes to {}, for {:?}", servers[0].exchange, servers.ttl());
/// # Ok::<_, tussah::dns::Error>(())
/// # })).expect("no panic")?;
/// # std::io::Result::Ok(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Records<T> {
    list: Vec<T>,
    ttl_seconds: u32,
}

impl<T> Records<T> {
    pub(super) fn new(list: Vec<T>, ttl_seconds: u32) -> Self {
        let ttl_seconds = ttl_seconds.min(TTL_MAX);
        Self { list, ttl_seconds }
    }

    pub(super) fn sorted_by_key<K: Ord>(mut self, key: impl FnMut(&T) -> K) -> Self {
        self.list.sort_by_key(key);
        self
    }

    /// Returns the time for which the records remain valid, like [`IpAddresses::ttl`].
    #[must_use]
    pub fn ttl(&self) -> Duration {
        Duration::from_secs(self.ttl_seconds.into())
    }

    /// Returns the records as a vector.
    #[must_use]
    pub fn into_vec(self) -> Vec<T> {
        self.list
    }
}

impl<T> Deref for Records<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.list
    }
}

impl<T> IntoIterator for Records<T> {
    type Item = T;
    type IntoIter = vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

/// An SRV record: the location of a service (RFC 2782).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Srv {
    /// The priority. Servers with a lower priority value are tried first.
    pub priority: u16,
    /// The weight of this server among servers of equal priority. A client should choose a server
    /// with a probability that is proportional to the server's weight. A server of weight zero gets
    /// a very small share of the clients.
    pub weight: u16,
    /// The port of the service.
    pub port: u16,
    /// The fully qualified host name, with a final dot. `.` means that the service is not
    /// available.
    pub target: String,
}

/// An MX record: a mail server of a domain (RFC 1035, section 3.3.9).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mx {
    /// The preference. Hosts with a lower preference value are tried first (RFC 5321, section 5.1).
    pub preference: u16,
    /// The fully qualified host name, with a final dot. `.` means that the domain accepts no mail
    /// (RFC 7505).
    pub exchange: String,
}

/// A TXT record (RFC 1035, section 3.3.14): one or more strings of up to 255 bytes, in any
/// encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Txt {
    /// The strings as the server sent them.
    pub strings: Vec<Vec<u8>>,
}

impl Txt {
    /// Returns the concatenation of the strings, which is what most applications use (RFC 7208,
    /// section 3.3).
    #[must_use]
    pub fn concat(&self) -> Vec<u8> {
        self.strings.concat()
    }
}

/// Shows the concatenated strings, escaped as in zone files (RFC 1035, section 5.1): `\"`, `\\`,
/// and `\027` for a byte that is not printable ASCII. The text of an untrusted record thus cannot
/// control the terminal. [`concat`](Txt::concat) returns the raw bytes.
///
/// # Examples
/// ```
/// let text = tussah::dns::Txt { strings: vec![b"a \"b\" ".to_vec(), b"\x1b[2J".to_vec()] };
/// assert_eq!(text.to_string(), r#"a \"b\" \027[2J"#);
/// ```
impl fmt::Display for Txt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for &byte in self.strings.iter().flatten() {
            match byte {
                b'"' | b'\\' => write!(f, "\\{}", char::from(byte))?,
                b' '..=b'~' => write!(f, "{}", char::from(byte))?,
                _ => write!(f, "\\{byte:03}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_shown_without_control_characters() {
        let check = |strings: &[&[u8]], expected: &str| {
            let strings = strings.iter().map(|string| string.to_vec()).collect();
            assert_eq!(Txt { strings }.to_string(), expected);
        };
        check(&[b"v=spf1 ", b"-all"], "v=spf1 -all");
        check(&[b"\x1b[2J\n"], r"\027[2J\010");
        check(&[br#"say "\""#], r#"say \"\\\""#);
        check(&["é".as_bytes(), b"\x7f\xff\0"], r"\195\169\127\255\000");
        check(&[b""], "");
    }
}
