//! The refusal of a message or of a part of one.

use std::error::Error;
use std::fmt;

use super::Status;

/// The error for a refused message. The error states the status, the position, what was expected,
/// and what was found.
///
/// Close the connection after the response, because the start of the next message is unknown.
///
/// ```
/// use tussah_wire::http::head;
///
/// let refusal = head::parse(b"GET / HTTP/1.1\r\nHost : a\r\n\r\n", &head::Limits::default()).unwrap_err();
/// assert_eq!(refusal.status().code(), 400);
/// assert_eq!(refusal.to_string(), "byte 20: expected a colon directly after the name of the field, found 0x20");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    kind: Kind,
    /// The byte that was found, if the error is about a single byte.
    byte: Option<u8>,
    at: u64,
}

macro_rules! kinds {
    ($($name:ident $status:ident $expected:literal $found:literal)*) => {
        /// The kind of error.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Kind {
            $($name,)*
        }

        impl Kind {
            /// Returns the status, what was expected, and what was found instead, if not a byte.
            const fn facts(self) -> (Status, &'static str, &'static str) {
                match self {
                    $(Self::$name => (Status::$status, $expected, $found),)*
                }
            }
        }
    };
}

kinds! {
    // Lines.
    LineFeedBare BAD_REQUEST "CR LF at the end of a line" "LF alone"
    ReturnBare BAD_REQUEST "LF after CR" ""
    LinesEmpty BAD_REQUEST "a request" "empty lines"
    // The request line.
    MethodByte BAD_REQUEST "a method, then a space" ""
    MethodTls BAD_REQUEST "a request in plain text" "the start of a TLS connection"
    MethodLong NOT_IMPLEMENTED "a method that is known" "a longer word"
    TargetByte BAD_REQUEST "a target of visible ASCII characters, then a space" ""
    TargetLong URI_TOO_LONG "a shorter target" "one that is over the limit"
    TargetForm BAD_REQUEST "a path, an absolute http URI, host:port for CONNECT, or * for OPTIONS" "another form of target"
    TargetHost BAD_REQUEST "a host and possibly a port in the target" "something else"
    Version BAD_REQUEST "HTTP/1.1 at the end of the request line" ""
    VersionMajor HTTP_VERSION_NOT_SUPPORTED "version 1 of HTTP" "another one"
    // The status line.
    StatusCode BAD_GATEWAY "a status of three digits" ""
    ReasonByte BAD_GATEWAY "text as the reason" ""
    // Fields.
    Fold BAD_REQUEST "the name of a field at the start of the line" "white space, a folded line"
    NameEmpty BAD_REQUEST "a name before the colon" "none"
    NameSpace BAD_REQUEST "a colon directly after the name of the field" ""
    NameByte BAD_REQUEST "the name of a field, then a colon" ""
    ValueByte BAD_REQUEST "text in the value of the field" ""
    HeadLong REQUEST_HEADER_FIELDS_TOO_LARGE "a shorter head" "one that is over the limit"
    FieldsMany REQUEST_HEADER_FIELDS_TOO_LARGE "fewer fields" "more than the limit"
    HostMissing BAD_REQUEST "a Host field" "none"
    HostTwice BAD_REQUEST "one Host field" "a second one"
    HostInvalid BAD_REQUEST "a host and possibly a port in the Host field" "something else"
    // The length of the body.
    LengthInvalid BAD_REQUEST "digits below 2^64 as Content-Length" "something else"
    LengthTwice BAD_REQUEST "one Content-Length field" "a second one"
    LengthAndCoding BAD_REQUEST "Content-Length or Transfer-Encoding" "both"
    CodingVersion BAD_REQUEST "Transfer-Encoding in HTTP/1.1 only" "it in HTTP/1.0"
    CodingUnknown NOT_IMPLEMENTED "no transfer coding but chunked" "another one"
    CodingLast BAD_REQUEST "chunked as the last transfer coding, and once" "something else"
    // The body.
    BodyLong CONTENT_TOO_LARGE "a shorter body" "one that is over the limit"
    ChunkSize BAD_REQUEST "the size of a chunk in hexadecimal digits" ""
    ChunkSizeLong BAD_REQUEST "the size of a chunk in at most 16 digits" "more"
    ChunkExtension BAD_REQUEST "the end of the line or a chunk extension" ""
    ChunkExtensionsLong BAD_REQUEST "fewer chunk extensions" "more than the limit"
    ChunkEnd BAD_REQUEST "CR LF at the end of the chunk" ""
    TrailersLong REQUEST_HEADER_FIELDS_TOO_LARGE "shorter trailers" "ones that are over the limit"
    // The path.
    PathStart BAD_REQUEST "a path that starts with a slash" "another"
    PathEscape BAD_REQUEST "two hexadecimal digits after %" "something else"
    PathControl BAD_REQUEST "a path without control characters" ""
    PathSeparator BAD_REQUEST "a path without backslashes and encoded slashes" ""
    PathAboveRoot BAD_REQUEST "a path below the root" "one that leads above it"
}

impl Refusal {
    /// Creates a refusal of the text at offset `at`.
    #[cold]
    pub(crate) fn new(kind: Kind, at: usize) -> Self {
        Self {
            kind,
            byte: None,
            at: at as u64,
        }
    }

    /// Creates a refusal of `byte` at offset `at`.
    #[cold]
    pub(crate) fn of_byte(kind: Kind, at: usize, byte: u8) -> Self {
        Self {
            kind,
            byte: Some(byte),
            at: at as u64,
        }
    }

    /// Moves the position by `before` bytes, if that many precede the parsed bytes.
    pub(crate) fn after(self, before: u64) -> Self {
        Self {
            at: self.at.saturating_add(before),
            ..self
        }
    }

    #[cfg(test)]
    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the status with which to respond if the refused message is a request.
    pub fn status(&self) -> Status {
        self.kind.facts().0
    }

    /// Returns the position of the error, in bytes from the start of the parsed head, body or path.
    pub fn at(&self) -> u64 {
        self.at
    }
}

/// Formats as `byte 20: expected a colon directly after the name of the field, found 0x20`.
impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, expected, found) = self.kind.facts();
        write!(out, "byte {}: expected {expected}, found ", self.at)?;
        match self.byte {
            Some(byte) if found.is_empty() => write!(out, "0x{byte:02x}"),
            _ => out.write_str(found),
        }
    }
}

impl Error for Refusal {}
