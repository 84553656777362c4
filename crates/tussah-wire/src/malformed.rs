//! The error for bytes that break the rules of FastCGI, CGI or Gnutella.

use std::error::Error;
use std::fmt;

/// The error for malformed bytes. The error states the position, what was expected, and what was
/// found.
///
/// Unless the documentation of the function says otherwise, close the connection after this error,
/// because the start of the next message is unknown.
///
/// ```
/// use std::num::NonZeroU16;
/// use tussah_wire::fastcgi::Parser;
///
/// let error = Parser::new(NonZeroU16::MIN).parse(b"HTTP/1.1 200 OK").unwrap_err();
/// assert_eq!(error.to_string(), "byte 0: expected version 1 of FastCGI, found 72");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    at: u64,
    expected: &'static str,
    found: Found,
}

/// The text or number that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Byte(u8),
    Number(u64),
    Text(&'static str),
}

impl Malformed {
    #[cold]
    pub(crate) fn new(at: u64, expected: &'static str, found: Found) -> Self {
        Self {
            at,
            expected,
            found,
        }
    }

    /// Moves the position by `before` bytes, if that many precede the parsed bytes.
    pub(crate) fn after(self, before: u64) -> Self {
        Self {
            at: self.at.saturating_add(before),
            ..self
        }
    }

    /// Returns the position of the error, in bytes from the start of the parsed bytes.
    pub fn at(&self) -> u64 {
        self.at
    }
}

/// Formats as `byte 0: expected version 1 of FastCGI, found 72`.
impl fmt::Display for Malformed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "byte {}: expected {}, found ", self.at, self.expected)?;
        match self.found {
            Found::Byte(byte) => write!(out, "0x{byte:02x}"),
            Found::Number(number) => write!(out, "{number}"),
            Found::Text(text) => out.write_str(text),
        }
    }
}

impl Error for Malformed {}
