//! A parser for the head of a response, as far as a measuring client needs it.

/// The properties of a response that a client needs before the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The status code.
    pub status: u16,
    /// The length of the head in bytes, including the empty line.
    pub len: usize,
    /// The length of the body in bytes.
    pub body: usize,
    /// True if the server closes the connection afterwards.
    pub close: bool,
    /// The value of `Retry-After` in seconds, if the server sends it.
    pub retry_after_s: Option<u32>,
}

/// Parses the head at the beginning of `bytes`. Returns `None` if it is incomplete.
///
/// # Errors
///
/// Returns an error if the head is not an HTTP/1.1 head with a length (RFC 9112, section 6.3).
pub fn head(bytes: &[u8]) -> Result<Option<Head>, String> {
    let Some(end) = memchr::memmem::find(bytes, b"\r\n\r\n") else {
        return Ok(None);
    };
    let text = &bytes[..end];
    let wrong = || format!("a head of {:?}", String::from_utf8_lossy(text));
    let status = text.strip_prefix(b"HTTP/1.1 ").ok_or_else(wrong)?;
    let status = number(status.get(..3).ok_or_else(wrong)?).ok_or_else(wrong)?;
    let mut head = Head {
        status: status as u16,
        len: end + 4,
        body: 0,
        close: false,
        retry_after_s: None,
    };
    let mut has_length = status == 304;
    let mut at = 0;
    while let Some(line) = memchr::memchr(b'\n', &text[at..]) {
        at += line + 1;
        let line = &text[at..];
        // Most lines are none of these, as their first letter shows.
        match line.first().map(u8::to_ascii_lowercase) {
            Some(b'c') => {
                if let Some(value) = value(line, b"content-length:") {
                    head.body = number(value).ok_or_else(wrong)?;
                    has_length = true;
                } else if let Some(value) = value(line, b"connection:") {
                    head.close = value.eq_ignore_ascii_case(b"close");
                }
            }
            Some(b'r') => {
                if let Some(value) = value(line, b"retry-after:") {
                    head.retry_after_s = number(value).map(|seconds| seconds as u32);
                }
            }
            _ => {}
        }
    }
    if !has_length {
        return Err(wrong());
    }
    Ok(Some(head))
}

/// Returns the value of the field that begins here, if it has this name.
fn value<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (begin, rest) = line.split_at_checked(name.len())?;
    if !begin.eq_ignore_ascii_case(name) {
        return None;
    }
    let end = memchr::memchr(b'\r', rest).unwrap_or(rest.len());
    Some(rest[..end].trim_ascii())
}

fn number(digits: &[u8]) -> Option<usize> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads() {
        let check = |text: &str, status, body, close, retry_after_s| {
            let expected = Head {
                status,
                len: text.find("\r\n\r\n").unwrap() + 4,
                body,
                close,
                retry_after_s,
            };
            assert_eq!(head(text.as_bytes()), Ok(Some(expected)), "{text}");
        };
        check(
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            200,
            5,
            false,
            None,
        );
        check(
            "HTTP/1.1 404 No\r\nDate: x\r\ncontent-length:0\r\nCONNECTION:  Close\r\n\r\n",
            404,
            0,
            true,
            None,
        );
        check(
            "HTTP/1.1 503 No\r\nRetry-After: 7\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\n",
            503,
            1,
            false,
            Some(7),
        );
        check(
            "HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n",
            304,
            0,
            false,
            None,
        );
    }

    #[test]
    fn invalid_and_incomplete_heads() {
        assert_eq!(head(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n"), Ok(None));
        for text in [
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n",
            "HTTP/1.1 20\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\n",
        ] {
            assert!(head(text.as_bytes()).is_err(), "{text}");
        }
    }
}
