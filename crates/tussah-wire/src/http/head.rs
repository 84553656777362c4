//! Request heads: the parts that a server needs, as offsets into the buffer.

use super::{Framing, Method};
use crate::http::line::field_line;
use crate::http::span::Span;

mod host;
mod parse;
mod scan;

pub use parse::parse;
pub use scan::Scan;

/// Bound, in bytes: the maximum length of a head; a higher `head_bytes_max` has no effect. Offsets
/// in a head therefore fit in 16 bits.
pub const HEAD_BYTES_MAX: usize = u16::MAX as usize;

/// Bound, in lines: the number of empty lines that are skipped before a request (RFC 9112, section
/// 2.2).
pub const EMPTY_LINES_MAX: usize = 4;

/// Bound, in bytes: the length of the longest method name that the parser accepts. No registered
/// name exceeds 17 bytes.
pub const METHOD_BYTES_MAX: usize = 32;

/// The limits on the head of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bound, in bytes: the length of the whole head, including the final empty line; 16 KiB by
    /// default, which is enough for three 4 KiB cookies. Values over [`HEAD_BYTES_MAX`] are reduced
    /// to that limit.
    pub head_bytes_max: usize,
    /// Bound, in fields: the number of field lines in the head; 100 by default, as in nginx and
    /// Apache.
    pub fields_max: usize,
    /// Bound, in bytes: the length of the request target; 8 KiB by default. RFC 9112, section 3,
    /// recommends at least 8000 bytes.
    pub target_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_bytes_max: 16 * 1024,
            fields_max: 100,
            target_bytes_max: 8 * 1024,
        }
    }
}

/// The fields whose positions a head stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// The host in the target, if there is one; otherwise, `Host` (RFC 9112, section 3.2.2).
    Host,
    /// `Range`.
    Range,
    /// `If-Range`.
    IfRange,
    /// `If-Match`.
    IfMatch,
    /// `If-None-Match`.
    IfNoneMatch,
    /// `If-Modified-Since`.
    IfModifiedSince,
    /// `If-Unmodified-Since`.
    IfUnmodifiedSince,
    /// `Accept-Encoding`.
    AcceptEncoding,
    /// `User-Agent`.
    UserAgent,
    /// `Referer`.
    Referer,
    /// `Forwarded` (RFC 7239).
    Forwarded,
    /// `X-Forwarded-For`.
    ForwardedFor,
}

/// The number of fields whose positions a head stores.
const FIELDS: usize = Field::ForwardedFor as usize + 1;

impl Field {
    /// Returns the name of the field in its standard spelling.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Host => "Host",
            Self::Range => "Range",
            Self::IfRange => "If-Range",
            Self::IfMatch => "If-Match",
            Self::IfNoneMatch => "If-None-Match",
            Self::IfModifiedSince => "If-Modified-Since",
            Self::IfUnmodifiedSince => "If-Unmodified-Since",
            Self::AcceptEncoding => "Accept-Encoding",
            Self::UserAgent => "User-Agent",
            Self::Referer => "Referer",
            Self::Forwarded => "Forwarded",
            Self::ForwardedFor => "X-Forwarded-For",
        }
    }

    /// Returns whether the field requests a range or makes the request conditional.
    const fn is_condition(self) -> bool {
        matches!(
            self,
            Self::Range
                | Self::IfRange
                | Self::IfMatch
                | Self::IfNoneMatch
                | Self::IfModifiedSince
                | Self::IfUnmodifiedSince
        )
    }
}

/// The version of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1, or a later minor version of HTTP/1.
    Http11,
}

/// The head of a request.
///
/// A head stores offsets into the parsed buffer, not the text itself. The accessors that return
/// text take this buffer as an argument.
///
/// # Panics
///
/// The accessors that return text panic if the buffer is shorter than the head. With a buffer other
/// than the parsed one, these accessors return meaningless text.
///
/// ```
/// use tussah_wire::http::{Framing, Method, head};
///
/// let bytes = b"GET /a?b HTTP/1.1\r\nHost: example.org\r\nRange: bytes=0-9\r\n\r\nGET /c";
/// let head = head::parse(bytes, &head::Limits::default())?.expect("the first head is complete");
/// assert_eq!((head.method, head.framing), (Method::Get, Framing::None));
/// assert_eq!((head.path(bytes), head.query(bytes)), (&b"/a"[..], Some(&b"b"[..])));
/// assert_eq!(head.field(head::Field::Range, bytes), Some(&b"bytes=0-9"[..]));
/// assert_eq!(&bytes[head.len()..], b"GET /c");
/// # Ok::<(), tussah_wire::http::Refusal>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The framing of the body; never [`Framing::UntilClose`].
    pub framing: Framing,
    spans: [Span; FIELDS],
    method_span: Span,
    target: Span,
    path: Span,
    fields_start: u16,
    len: u16,
    /// A bit for each field that occurred on several lines.
    repeated: u16,
    /// The request method.
    pub method: Method,
    /// The HTTP version of the request.
    pub version: Version,
    /// True if the client wants to keep the connection open (RFC 9112, section 9.3).
    pub keep_alive: bool,
    /// True if the client waits for `100 Continue` before it sends the body (RFC 9110, section
    /// 10.1.1).
    pub expect_continue: bool,
    /// True if the request has a `Range` field or any of the `If-` fields in [`Field`]. If the
    /// request has none of these fields, a server need not evaluate conditions or ranges.
    pub conditional: bool,
}

impl Head {
    /// Returns the length of the head in bytes, including the final empty line. The body starts at
    /// this offset.
    #[expect(clippy::len_without_is_empty, reason = "no head is empty")]
    #[inline]
    pub fn len(&self) -> usize {
        self.len.into()
    }

    /// Returns the name of the method as the client sent it.
    pub fn method_text<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        self.method_span.of(bytes)
    }

    /// Returns the request target as the client sent it.
    #[inline]
    pub fn target<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        self.target.of(bytes)
    }

    /// Returns the path of the target, without decoding it. The path starts with a slash, unless it
    /// is `*` (the whole server) or empty (`CONNECT`).
    #[inline]
    pub fn path<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        match self.path.of(bytes) {
            b"" if self.method != Method::Connect => b"/",
            path => path,
        }
    }

    /// Returns the query of the target, without decoding it and without the question mark.
    #[inline]
    pub fn query<'b>(&self, bytes: &'b [u8]) -> Option<&'b [u8]> {
        let start = self.path.end();
        (start < self.target.end()).then(|| &bytes[start + 1..self.target.end()])
    }

    /// Returns the value of a field without surrounding white space. If the field occurs on several
    /// lines, returns the value of the first line.
    #[inline]
    pub fn field<'b>(&self, field: Field, bytes: &'b [u8]) -> Option<&'b [u8]> {
        let span = self.spans[field as usize];
        (!span.is_absent()).then(|| span.of(bytes))
    }

    /// Returns the value of a field that may occur only once, or `None` if the field occurs on
    /// several lines.
    pub fn field_single<'b>(&self, field: Field, bytes: &'b [u8]) -> Option<&'b [u8]> {
        self.field(field, bytes)
            .filter(|_| !self.is_repeated(field))
    }

    /// Returns the values of a field, one for each line.
    pub fn field_lines<'b>(
        &self,
        field: Field,
        bytes: &'b [u8],
    ) -> impl Iterator<Item = &'b [u8]> + use<'b> {
        let repeated = self.is_repeated(field);
        let single = if repeated {
            None
        } else {
            self.field(field, bytes)
        };
        let several = repeated.then(|| self.fields(bytes)).into_iter().flatten();
        let same = move |name: &[u8]| name.eq_ignore_ascii_case(field.name().as_bytes());
        single.into_iter().chain(
            several
                .filter(move |(name, _)| same(name))
                .map(|(_, value)| value),
        )
    }

    /// Returns whether a field occurs on several lines.
    pub fn is_repeated(&self, field: Field) -> bool {
        self.repeated & (1 << field as u16) != 0
    }

    /// Returns the host to which the request is addressed, including the port if one is given.
    pub fn host<'b>(&self, bytes: &'b [u8]) -> Option<&'b [u8]> {
        self.field(Field::Host, bytes)
    }

    /// Returns the names and values of all fields, in order. The iterator parses the head again.
    pub fn fields<'b>(&self, bytes: &'b [u8]) -> Fields<'b> {
        Fields::new(&bytes[..self.len()], self.fields_start.into())
    }

    /// Stores the position of a field.
    #[inline(always)]
    fn note(&mut self, field: Field, value: Span) {
        let span = &mut self.spans[field as usize];
        if span.is_absent() {
            *span = value;
        } else {
            self.repeated |= 1 << field as u16;
        }
        self.conditional |= field.is_condition();
    }
}

/// An iterator over the names and values of a head's fields. The values have no surrounding white
/// space.
#[derive(Clone, Debug)]
pub struct Fields<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Fields<'b> {
    /// Creates an iterator over the fields from `at` to the empty line of a head that was already
    /// parsed.
    pub(crate) fn new(head: &'b [u8], at: usize) -> Self {
        Self { bytes: head, at }
    }
}

impl<'b> Iterator for Fields<'b> {
    type Item = (&'b [u8], &'b [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let line = field_line(self.bytes, self.at).ok()?;
        self.at = line.next;
        Some((line.name, line.value.of(self.bytes)))
    }
}
