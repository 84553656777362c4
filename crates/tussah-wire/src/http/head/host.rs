//! The host of a request (RFC 9110, section 7.2, and RFC 3986, section 3.2).

use crate::http::syntax::{HOST, is, run};

/// Returns whether `text` is a host with an optional port. An empty host is valid, as in RFC 3986.
///
/// Names may contain every character that RFC 3986 allows. User information before the host
/// (`user@host`) is refused, because programs disagree about which of the two is the host.
pub(super) fn is_valid(text: &[u8]) -> bool {
    parts(text).is_some()
}

/// Returns whether `text` is a nonempty host with a port.
pub(super) fn has_port(text: &[u8]) -> bool {
    matches!(parts(text), Some(([_, ..], [b':', _, ..])))
}

/// Splits into the host and the port with its colon.
#[inline(always)]
fn parts(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let host_len = match text {
        [b'[', rest @ ..] => literal_len(rest)? + 2,
        _ => name_len(text)?,
    };
    let (host, port) = text.split_at(host_len);
    match port {
        [] => Some((host, port)),
        [b':', digits @ ..] if is_port(digits) => Some((host, port)),
        _ => None,
    }
}

/// Returns whether `text` is a port number or empty.
#[inline(always)]
fn is_port(digits: &[u8]) -> bool {
    let mut port = 0;
    digits.iter().all(|digit| {
        let digit = u32::from(digit.wrapping_sub(b'0'));
        port = 10 * port + digit;
        digit < 10 && port <= u16::MAX.into()
    })
}

/// Returns the length of the name at the start of `text`, or `None` if a `%` lacks its two
/// hexadecimal digits.
fn name_len(text: &[u8]) -> Option<usize> {
    let mut at = run(text, 0, HOST);
    while text.get(at) == Some(&b'%') {
        if !text.get(at + 1..at + 3)?.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        at = run(text, at + 3, HOST);
    }
    Some(at)
}

/// Returns the length of the bracketed part, an IPv6 or later address. `text` starts after the
/// opening bracket.
fn literal_len(text: &[u8]) -> Option<usize> {
    let len = text.iter().position(|&byte| byte == b']')?;
    let literal = str::from_utf8(&text[..len]).ok()?;
    let is_address = match literal.strip_prefix(['v', 'V']) {
        Some(later) => {
            let (version, address) = later.split_once('.')?;
            let digits =
                !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_hexdigit());
            digits
                && !address.is_empty()
                && address.bytes().all(|byte| byte == b':' || is(byte, HOST))
        }
        None => literal.parse::<std::net::Ipv6Addr>().is_ok(),
    };
    is_address.then_some(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts() {
        let check = |text: &str, valid| assert_eq!(is_valid(text.as_bytes()), valid, "{text:?}");
        for text in [
            "",
            "a",
            "example.org",
            "example.org:",
            "127.0.0.1:8080",
            "[::1]",
            "[::1]:80",
            "a:00080",
            "a_b",
            "a%41",
            "[v1.a:b]",
        ] {
            check(text, true);
        }
        for text in [
            "a b", "a,b c", "u@a", "a/b", "a:b", "a:65536", "a:123456", "a:+1", "[::1", "[]",
            "::1", "[::1]a", "[::g]", "a%", "a%4", "a%4g", "a\\b", "a?", "a#", "a:80:80", "é",
            "[v1]",
        ] {
            check(text, false);
        }
    }

    #[test]
    fn ports() {
        let check = |text: &str, has| assert_eq!(has_port(text.as_bytes()), has, "{text:?}");
        check("a:1", true);
        check("[::1]:443", true);
        check("a", false);
        check("a:", false);
        check(":1", false);
        check("[::1]", false);
        check("a/b:1", false);
    }
}
