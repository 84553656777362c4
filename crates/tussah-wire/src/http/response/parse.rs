//! The parser for response heads, for clients.

use super::has_body;
use crate::http::connection::Connection;
use crate::http::framing::{self, Framing, decimal};
use crate::http::head::{Fields, Limits, Version};
use crate::http::line::{Stop, field_line, head_within, line_end, refuse_at};
use crate::http::refusal::{Kind, Refusal};
use crate::http::span::Span;
use crate::http::syntax::{is_word, text_len};
use crate::http::{Method, Status, date};

/// The fields whose positions a response head stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// `Content-Length`.
    ContentLength,
    /// `Content-Type`.
    ContentType,
    /// `Content-Encoding`.
    ContentEncoding,
    /// `Content-Range`.
    ContentRange,
    /// `ETag`.
    ETag,
    /// `Last-Modified`.
    LastModified,
    /// `Location`.
    Location,
}

/// The number of fields whose positions a head stores.
const FIELDS: usize = Field::Location as usize + 1;

/// The time after which a client may retry (RFC 9110, section 10.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAfter {
    /// After this many seconds.
    Seconds(u64),
    /// At this time, in seconds since 1970.
    At(u64),
}

/// The head of a response.
///
/// A head stores offsets into the parsed buffer, not the text itself. The accessors that return
/// text take the parsed buffer as an argument, and may panic if it is shorter than the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// The framing of the body.
    pub framing: Framing,
    /// The value of `Retry-After`, if it is valid.
    pub retry_after: Option<RetryAfter>,
    spans: [Span; FIELDS],
    fields_start: u16,
    len: u16,
    /// The status of the response.
    pub status: Status,
    /// The HTTP version of the server.
    pub version: Version,
    /// True if the connection can be used for another request after the body.
    pub keep_alive: bool,
}

impl ResponseHead {
    /// Returns the length of the head in bytes, including the final empty line. The body starts at
    /// this offset.
    #[expect(clippy::len_without_is_empty, reason = "no head is empty")]
    pub fn len(&self) -> usize {
        self.len.into()
    }

    /// Returns the value of a field without surrounding white space. If the field occurs on several
    /// lines, returns the value of the first line.
    pub fn field<'b>(&self, field: Field, bytes: &'b [u8]) -> Option<&'b [u8]> {
        let span = self.spans[field as usize];
        (!span.is_absent()).then(|| span.of(bytes))
    }

    /// Returns the names and values of all fields, in order. The iterator parses the head again.
    pub fn fields<'b>(&self, bytes: &'b [u8]) -> Fields<'b> {
        Fields::new(&bytes[..self.len()], self.fields_start.into())
    }
}

/// Parses the head of a response to a `method` request, at the start of `bytes`. Returns `None` if
/// the head is incomplete.
///
/// Interim responses (1xx), such as `100 Continue`, have a head of their own and no body; the final
/// response follows. The parser is as strict as the parser for requests, except that the reason
/// phrase and the space before it may be missing.
///
/// ```
/// use tussah_wire::http::{Framing, Method, head::Limits, response};
///
/// let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
/// let head = response::parse(bytes, Method::Get, &Limits::default())?.expect("the head is complete");
/// assert_eq!((head.status.code(), head.framing, head.len()), (200, Framing::Length(2), 38));
/// # Ok::<(), tussah_wire::http::Refusal>(())
/// ```
///
/// # Errors
///
/// Returns a [`Refusal`] if the head breaks the rules of RFC 9112 or exceeds a limit.
pub fn parse(
    bytes: &[u8],
    method: Method,
    limits: &Limits,
) -> Result<Option<ResponseHead>, Refusal> {
    head_within(bytes, limits, |seen| {
        response(seen, method, limits.fields_max)
    })
}

fn response(bytes: &[u8], method: Method, fields_max: usize) -> Result<ResponseHead, Stop> {
    let (version, status, fields_start) = status_line(bytes)?;
    let mut head = ResponseHead {
        framing: Framing::None,
        retry_after: None,
        spans: Default::default(),
        fields_start: fields_start as u16,
        len: 0,
        status,
        version,
        keep_alive: false,
    };
    let mut body = framing::Fields::default();
    let mut connection = Connection::default();
    let mut at = fields_start;
    let mut fields = 0;
    while bytes.get(at) != Some(&b'\r') {
        let line = field_line(bytes, at)?;
        fields += 1;
        if fields > fields_max {
            return Err(Refusal::new(Kind::FieldsMany, at).into());
        }
        let value = line.value.of(bytes);
        match Known::of(line.name) {
            Some(Known::Noted(field)) => {
                if field == Field::ContentLength {
                    body.content_length(bytes, line.value)?;
                }
                let span = &mut head.spans[field as usize];
                if span.is_absent() {
                    *span = line.value;
                }
            }
            Some(Known::TransferEncoding) => body.transfer_encoding(bytes, line.value)?,
            Some(Known::RetryAfter) => head.retry_after = retry_after(value),
            Some(Known::Connection) => connection.field(value),
            None => {}
        }
        at = line.next;
    }
    let len = line_end(bytes, at, Kind::NameByte)?;
    let framing = body.of_response(version == Version::Http11, len)?;
    if has_body(method, status) {
        head.framing = framing;
    }
    head.keep_alive = connection.is_kept(version) && head.framing != Framing::UntilClose;
    head.len = len as u16;
    Ok(head)
}

/// Returns the status line and the start of the next line (RFC 9112, section 4).
fn status_line(bytes: &[u8]) -> Result<(Version, Status, usize), Stop> {
    for (at, expected) in b"HTTP/1.".iter().enumerate() {
        if bytes.get(at) != Some(expected) {
            let is_major = at == 5 && bytes.get(at).is_some_and(u8::is_ascii_digit);
            let kind = if is_major {
                Kind::VersionMajor
            } else {
                Kind::Version
            };
            return Err(refuse_at(bytes, at, kind));
        }
    }
    let version = match bytes.get(7) {
        Some(b'0') => Version::Http10,
        Some(b'1'..=b'9') => Version::Http11,
        _ => return Err(refuse_at(bytes, 7, Kind::Version)),
    };
    if bytes.get(8) != Some(&b' ') {
        return Err(refuse_at(bytes, 8, Kind::Version));
    }
    let mut code = 0;
    for at in 9..12 {
        match bytes.get(at) {
            Some(digit) if digit.is_ascii_digit() => code = code * 10 + u16::from(digit - b'0'),
            _ => return Err(refuse_at(bytes, at, Kind::StatusCode)),
        }
    }
    let status = Status::new(code).ok_or(Refusal::new(Kind::StatusCode, 9))?;
    let end = if bytes.get(12) == Some(&b' ') {
        13 + text_len(&bytes[13..])
    } else {
        12
    };
    Ok((version, status, line_end(bytes, end, Kind::ReasonByte)?))
}

/// The fields that this parser interprets.
enum Known {
    Noted(Field),
    Connection,
    TransferEncoding,
    RetryAfter,
}

impl Known {
    fn of(name: &[u8]) -> Option<Self> {
        Some(match name.len() {
            4 if is_word(name, b"etag") => Self::Noted(Field::ETag),
            8 if is_word(name, b"location") => Self::Noted(Field::Location),
            10 if is_word(name, b"connection") => Self::Connection,
            11 if is_word(name, b"retry-after") => Self::RetryAfter,
            12 if is_word(name, b"content-type") => Self::Noted(Field::ContentType),
            13 if is_word(name, b"content-range") => Self::Noted(Field::ContentRange),
            13 if is_word(name, b"last-modified") => Self::Noted(Field::LastModified),
            14 if is_word(name, b"content-length") => Self::Noted(Field::ContentLength),
            16 if is_word(name, b"content-encoding") => Self::Noted(Field::ContentEncoding),
            17 if is_word(name, b"transfer-encoding") => Self::TransferEncoding,
            _ => return None,
        })
    }
}

fn retry_after(value: &[u8]) -> Option<RetryAfter> {
    decimal(value)
        .map(RetryAfter::Seconds)
        .or_else(|| date::parse(value).map(RetryAfter::At))
}
