//! Addresses as text.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

/// Parses `IP:PORT`; a port alone, and `localhost:PORT`, are on 127.0.0.1.
pub(crate) fn read_address(text: &str) -> Option<SocketAddr> {
    let port = text.strip_prefix("localhost:").unwrap_or(text);
    match port.parse() {
        Ok(port) => Some((Ipv4Addr::LOCALHOST, port).into()),
        Err(_) => text.parse().ok(),
    }
}

/// Parses an address to listen on.
///
/// # Errors
/// Returns a sentence that states what was expected.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    read_address(text).ok_or_else(|| {
        format!("expected an address such as 127.0.0.1:8080, [::]:8080 or 8080, not `{text}`")
    })
}

/// Parses an IPv4 address to listen on.
///
/// # Errors
/// Returns a sentence that states what was expected.
pub(crate) fn address_v4(text: &str) -> Result<SocketAddrV4, String> {
    match read_address(text) {
        Some(SocketAddr::V4(address)) => Ok(address),
        _ => Err(format!(
            "expected an IPv4 address such as 127.0.0.1:6346, 0.0.0.0:6346 or 6346, not `{text}`"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let table = [
            ("127.0.0.1:80", Some("127.0.0.1:80")),
            ("[::1]:0", Some("[::1]:0")),
            ("8080", Some("127.0.0.1:8080")),
            ("localhost:8080", Some("127.0.0.1:8080")),
            ("localhost", None),
            ("localhost:", None),
            ("localhost:127.0.0.1:80", None),
            ("example.org:80", None),
            ("127.0.0.1", None),
            ("65536", None),
            ("", None),
        ];
        for (text, expected) in table {
            let found = read_address(text).map(|address| address.to_string());
            assert_eq!(found.as_deref(), expected, "{text}");
        }
        assert!(address_v4("8080").is_ok());
        assert!(address_v4("[::1]:8080").is_err());
    }
}
