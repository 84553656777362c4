//! The head of a CGI response (RFC 3875, section 6).

use crate::http::span::Span;
use crate::http::syntax::{is_blank, is_word, trim};
use crate::http::{Status, decimal, head::HEAD_BYTES_MAX};
use crate::line::{self, Stop};
use crate::malformed::{Found, Malformed};

/// The limits on the head of a CGI response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bound, in bytes: the maximum length of the whole head, including the final empty line; 32
    /// KiB by default, which is enough for several 4 KiB cookies. Values over [`HEAD_BYTES_MAX`]
    /// are reduced to that limit.
    pub head_bytes_max: usize,
    /// Bound, in fields: the maximum number of field lines in the head; 100 by default, as for a
    /// request.
    pub fields_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_bytes_max: 32 * 1024,
            fields_max: 100,
        }
    }
}

/// The head of a CGI response.
///
/// A head stores offsets into the parsed buffer, not the text itself. The accessors that return
/// text take the parsed buffer as an argument, and may panic if it is shorter than the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CgiHead {
    /// The status to send to the client: the value of the `Status` field. Without a `Status` field,
    /// the status is 302 if there is a `Location` field, and otherwise 200.
    pub status: Status,
    /// `Content-Length`.
    pub content_length: Option<u64>,
    /// True if the server must drop this response, and handle the path in
    /// [`location`](Self::location) as a new request (section 6.2.2).
    pub is_local_redirect: bool,
    content_type: Span,
    location: Span,
    len: u16,
}

impl CgiHead {
    /// Returns the length of the head in bytes, including the final empty line. The body starts at
    /// this offset.
    #[expect(clippy::len_without_is_empty, reason = "no head is empty")]
    pub fn len(&self) -> usize {
        self.len.into()
    }

    /// Returns the value of `Content-Type`.
    pub fn content_type<'b>(&self, bytes: &'b [u8]) -> Option<&'b [u8]> {
        (!self.content_type.is_absent()).then(|| trim(self.content_type.of(bytes)))
    }

    /// Returns the value of `Location`.
    pub fn location<'b>(&self, bytes: &'b [u8]) -> Option<&'b [u8]> {
        (!self.location.is_absent()).then(|| trim(self.location.of(bytes)))
    }

    /// Returns the names and values of the fields for the client, in order. The iterator parses the
    /// head again.
    ///
    /// The iterator skips `Status`, and the fields that only the server may set: `Content-Length`
    /// and the connection-specific fields (RFC 9110, section 7.6.1).
    pub fn fields<'b>(&self, bytes: &'b [u8]) -> impl Iterator<Item = (&'b [u8], &'b [u8])> {
        let head = &bytes[..self.len()];
        let mut at = 0;
        let all = std::iter::from_fn(move || {
            let (name, value, next) = line::field(head, at).ok()?;
            at = next;
            Some((name, trim(value.of(head))))
        });
        all.filter(|(name, _)| !OF_SERVER.iter().any(|of| of.eq_ignore_ascii_case(name)))
    }
}

/// The fields that the server sends itself, or not at all.
const OF_SERVER: [&[u8]; 9] = [
    b"status",
    b"content-length",
    b"connection",
    b"keep-alive",
    b"proxy-connection",
    b"te",
    b"trailer",
    b"transfer-encoding",
    b"upgrade",
];

/// Parses the head at the start of `bytes`, the standard output of an application. Returns `None`
/// if the head is incomplete.
///
/// Lines end with LF, or with CR LF (section 7.2). The parser deviates from section 6 in two
/// respects:
///
/// - Like nginx, the parser accepts a head with none of the fields `Content-Type`, `Location` and
///   `Status`.
/// - A redirect with a `Status` field goes to the client, even if its location is a path, because
///   PHP sends `Status` with `Location: /path`.
///
/// ```
/// use tussah_wire::cgi;
///
/// let bytes = b"Status: 404 Not Found\nContent-Type: text/html\n\n<p>";
/// let head = cgi::parse(bytes, &cgi::Limits::default())?.expect("the head is complete");
/// assert_eq!((head.status.code(), head.content_type(bytes)), (404, Some(&b"text/html"[..])));
/// assert_eq!(&bytes[head.len()..], b"<p>");
/// # Ok::<(), tussah_wire::Malformed>(())
/// ```
///
/// # Errors
///
/// Returns an error if the head breaks the rules of RFC 3875 or exceeds a limit. After such an
/// error, respond to the client with status 502.
pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Option<CgiHead>, Malformed> {
    let len_max = limits.head_bytes_max.min(HEAD_BYTES_MAX);
    line::head_within(bytes, len_max, |seen| head(seen, limits.fields_max))
}

fn head(bytes: &[u8], fields_max: usize) -> Result<CgiHead, Stop> {
    let mut head = CgiHead {
        status: Status::OK,
        content_length: None,
        is_local_redirect: false,
        content_type: Span::default(),
        location: Span::default(),
        len: 0,
    };
    let mut status = None;
    let mut at = 0;
    let mut fields = 0;
    while !line::is_empty(bytes, at) {
        let (name, value, next) = line::field(bytes, at)?;
        fields += 1;
        if fields > fields_max {
            let found = Found::Number(fields as u64);
            return Err(Malformed::new(at as u64, "fewer fields", found).into());
        }
        let text = trim(value.of(bytes));
        let is_new = match name.len() {
            6 if is_word(name, b"status") => status.replace(code(text, value)?).is_none(),
            8 if is_word(name, b"location") => set(&mut head.location, value),
            12 if is_word(name, b"content-type") => set(&mut head.content_type, value),
            14 if is_word(name, b"content-length") => {
                let expected = "digits below 2^64 as Content-Length";
                let len = decimal(text).ok_or_else(|| unlike(value, expected))?;
                head.content_length.replace(len).is_none()
            }
            _ => true,
        };
        if !is_new {
            let found = Found::Text("a second one");
            return Err(Malformed::new(at as u64, "one field of this name", found).into());
        }
        at = next;
    }
    head.len = line::line_end(bytes, at, "an empty line")? as u16;
    let location = head.location(bytes);
    // Browsers take two slashes for the start of a host.
    let is_path = location.is_some_and(|to| to.starts_with(b"/") && !to.starts_with(b"//"));
    head.is_local_redirect = is_path && status.is_none();
    head.status = match status {
        Some(status) => status,
        None if location.is_some() => Status::FOUND,
        None => Status::OK,
    };
    Ok(head)
}

/// Sets `span`. Returns whether it was absent.
fn set(span: &mut Span, value: Span) -> bool {
    let is_new = span.is_absent();
    *span = value;
    is_new
}

/// Returns the code of a `Status` field (section 6.3.3).
fn code(text: &[u8], value: Span) -> Result<Status, Malformed> {
    let (code, reason) = text.split_at(text.len().min(3));
    decimal(code)
        .filter(|_| code.len() == 3 && reason.first().is_none_or(|&byte| is_blank(byte)))
        .filter(|code| (200..600).contains(code))
        .and_then(|code| Status::new(code as u16))
        .ok_or_else(|| unlike(value, "a status from 200 to 599"))
}

#[cold]
fn unlike(value: Span, expected: &'static str) -> Malformed {
    Malformed::new(
        value.start() as u64,
        expected,
        Found::Text("something else"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> CgiHead {
        let head = parse(text.as_bytes(), &Limits::default());
        head.unwrap_or_else(|error| panic!("{text:?}: {error}"))
            .unwrap_or_else(|| panic!("{text:?} is incomplete"))
    }

    #[test]
    fn statuses() {
        let check = |head: &str, status: u16, is_local_redirect: bool| {
            let parsed = parsed(head);
            assert_eq!(parsed.status.code(), status, "{head:?}");
            assert_eq!(parsed.is_local_redirect, is_local_redirect, "{head:?}");
            assert_eq!(parsed.len(), head.len());
        };
        check("Content-type: text/html\r\n\r\n", 200, false);
        check("\n", 200, false);
        check("\r\n", 200, false);
        check("X: y\n\r\n", 200, false);
        check("status:404\n\n", 404, false);
        check("Status: 200 \tFine\n\n", 200, false);
        check("Status: 599 Any reason: at all\n\n", 599, false);
        // The four kinds of section 6.2.
        check("Content-Type: text/plain\n\n", 200, false);
        check("Location: /path?query\n\n", 302, true);
        check("Location: http://example.org/\n\n", 302, false);
        check(
            "Location: http://a/\nStatus: 301 x\nContent-Type: a/b\n\n",
            301,
            false,
        );
        // PHP.
        check("Status: 302 Found\r\nLocation: /path\r\n\r\n", 302, false);
        check("X-Powered-By: PHP\nLocation: /path\n\n", 302, true);
        check("Location: //example.org/\n\n", 302, false);
    }

    #[test]
    fn values_and_fields() {
        let text = "X-Powered-By: PHP\nContent-Type:\ttext/html \nContent-Length: 12\nSet-Cookie: a\n\
            Transfer-Encoding: chunked\nSet-Cookie: b\nconnection: close\nEmpty:\nStatus: 201\n\nbody";
        let (head, bytes) = (parsed(text), text.as_bytes());
        assert_eq!(&bytes[head.len()..], b"body");
        assert_eq!(head.content_type(bytes), Some(&b"text/html"[..]));
        assert_eq!(head.content_length, Some(12));
        assert_eq!(head.location(bytes), None);
        let fields: Vec<_> = head.fields(bytes).collect();
        let expected: [(&[u8], &[u8]); 5] = [
            (b"X-Powered-By", b"PHP"),
            (b"Content-Type", b"text/html"),
            (b"Set-Cookie", b"a"),
            (b"Set-Cookie", b"b"),
            (b"Empty", b""),
        ];
        assert_eq!(fields, expected);
    }

    #[test]
    fn malformed_heads() {
        let check = |head: &str, expected: &str| {
            let limits = Limits {
                head_bytes_max: 60,
                fields_max: 2,
            };
            let error = parse(head.as_bytes(), &limits).expect_err(head);
            assert_eq!(error.to_string(), expected, "{head:?}");
        };
        let colon = "expected a colon after the name of the field";
        check(
            "HTTP/1.1 200 OK\n\n",
            &format!("byte 4: {colon}, found 0x2f"),
        );
        check(
            "<html>\n",
            "byte 0: expected the name of a field, or an empty line, found 0x3c",
        );
        check("Warning\nA: b\n\n", &format!("byte 7: {colon}, found 0x0a"));
        check("A : b\n\n", &format!("byte 1: {colon}, found 0x20"));
        check(
            "A: b\n c\n",
            "byte 5: expected the name of a field, or an empty line, found 0x20",
        );
        check("A: b\rc\n", "byte 5: expected LF after CR, found 0x63");
        check(
            "A: b\0\n",
            "byte 4: expected text or the end of the line, found 0x00",
        );
        check("A: b\n\r\r\n", "byte 6: expected LF after CR, found 0x0d");
        let status = "expected a status from 200 to 599, found something else";
        for code in [
            "", "OK", "20", "2000", "199", "600", "999", "99", "+20", "200OK", "1 2",
        ] {
            check(&format!("Status:{code}\n\n"), &format!("byte 7: {status}"));
        }
        let length = "expected digits below 2^64 as Content-Length, found something else";
        for len in ["", "-1", "1,1", "18446744073709551616"] {
            check(
                &format!("Content-Length: {len}\n\n"),
                &format!("byte 15: {length}"),
            );
        }
        let one = "expected one field of this name, found a second one";
        for name in [
            "Status: 200",
            "Location: /",
            "Content-Type: a/b",
            "Content-Length: 1",
        ] {
            let second = name.len() + 1;
            check(
                &format!("{name}\n{name}\n\n"),
                &format!("byte {second}: {one}"),
            );
        }
        check(
            "A: b\nC: d\nE: f\n\n",
            "byte 10: expected fewer fields, found 3",
        );
        let long = "expected the end of the head, found a head that is over the limit";
        check(
            &format!("A: {}\n\n", "b".repeat(60)),
            &format!("byte 60: {long}"),
        );
    }
}
