//! The head of a request: what a server needs of it, as offsets into the buffer that it was read into.

use super::{Framing, Method};
use crate::http::line::field_line;
use crate::http::span::Span;

mod host;
mod parse;
mod scan;

pub use parse::parse;
pub use scan::Scan;

/// Bound, in bytes: the longest head that can be asked for, so that 16 bits hold an offset.
pub const HEAD_BYTES_MAX: usize = u16::MAX as usize;

/// Bound, in lines: the empty lines before a request that are skipped, as RFC 9112, section 2.2, asks.
pub const EMPTY_LINES_MAX: usize = 4;

/// Bound, in bytes: how long a method may be; no registered one has more than 17.
pub const METHOD_BYTES_MAX: usize = 32;

/// What the head of a message may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bound, in bytes: the whole head with the empty line at its end; 16 KiB by default, which leaves room for the
    /// 4 KiB of a cookie thrice. Over [`HEAD_BYTES_MAX`] counts as that.
    pub head_bytes_max: usize,
    /// Bound, in fields: the lines between the request line and the empty line; 100 by default, as in nginx and Apache.
    pub fields_max: usize,
    /// Bound, in bytes: the target of the request; 8 KiB by default, the 8000 that RFC 9112, section 3, asks for.
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

/// The fields that a head keeps the place of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// `Host`, or the host of an absolute target instead (RFC 9112, section 3.2.2).
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

/// How many fields a head keeps the place of.
const FIELDS: usize = Field::ForwardedFor as usize + 1;

impl Field {
    /// The name as the standards write it.
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

    /// Whether it asks for a part, or for an answer under a condition.
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
    /// HTTP/1.1, or a later 1.x.
    Http11,
}

/// The head of a request.
///
/// It owns nothing: the accessors that give text take the buffer that was parsed.
///
/// # Panics
///
/// They panic if the buffer is shorter than the head, and give nonsense if it is another one.
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
    /// How the end of the body is found; never [`Framing::UntilClose`].
    pub framing: Framing,
    spans: [Span; FIELDS],
    method_span: Span,
    target: Span,
    path: Span,
    fields_start: u16,
    len: u16,
    /// Which of the fields came on several lines, a bit each.
    repeated: u16,
    /// What is asked for.
    pub method: Method,
    /// What the client speaks.
    pub version: Version,
    /// Whether the client wants to use the connection further (RFC 9112, section 9.3).
    pub keep_alive: bool,
    /// Whether the client waits for `100 Continue` before it sends the body (RFC 9110, section 10.1.1).
    pub expect_continue: bool,
    /// Whether there is a `Range` or any `If-` field; if not, neither need be looked for.
    pub conditional: bool,
}

impl Head {
    /// How many bytes it has, the empty line at its end included; the body begins there.
    #[expect(clippy::len_without_is_empty, reason = "no head is empty")]
    #[inline]
    pub fn len(&self) -> usize {
        self.len.into()
    }

    /// The method as it was sent.
    pub fn method_text<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        self.method_span.of(bytes)
    }

    /// The target as it was sent.
    #[inline]
    pub fn target<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        self.target.of(bytes)
    }

    /// The path of the target, not decoded: it starts with a slash; but `*` for all of the server,
    /// and empty with `CONNECT`.
    #[inline]
    pub fn path<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        match self.path.of(bytes) {
            b"" if self.method != Method::Connect => b"/",
            path => path,
        }
    }

    /// The query of the target without its question mark, not decoded.
    #[inline]
    pub fn query<'b>(&self, bytes: &'b [u8]) -> Option<&'b [u8]> {
        let start = self.path.end();
        (start < self.target.end()).then(|| &bytes[start + 1..self.target.end()])
    }

    /// The value of a field, without blanks around it; its first line if it came on several.
    #[inline]
    pub fn field<'b>(&self, field: Field, bytes: &'b [u8]) -> Option<&'b [u8]> {
        let span = self.spans[field as usize];
        (!span.is_absent()).then(|| span.of(bytes))
    }

    /// The value of a field that may come once only; nothing if it came on several lines.
    pub fn field_single<'b>(&self, field: Field, bytes: &'b [u8]) -> Option<&'b [u8]> {
        self.field(field, bytes)
            .filter(|_| !self.is_repeated(field))
    }

    /// The values of a field, line by line.
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

    /// Whether a field came on several lines.
    pub fn is_repeated(&self, field: Field) -> bool {
        self.repeated & (1 << field as u16) != 0
    }

    /// The host that the request is for, with its port if one is given.
    pub fn host<'b>(&self, bytes: &'b [u8]) -> Option<&'b [u8]> {
        self.field(Field::Host, bytes)
    }

    /// All fields in their order, as names and values; the head is parsed again for it.
    pub fn fields<'b>(&self, bytes: &'b [u8]) -> Fields<'b> {
        Fields::new(&bytes[..self.len()], self.fields_start.into())
    }

    /// Notes where a field is.
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

/// The fields of a head in their order: name and value, without blanks around them.
#[derive(Clone, Debug)]
pub struct Fields<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Fields<'b> {
    /// The fields from `at` to the empty line; `head` has been parsed before.
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
