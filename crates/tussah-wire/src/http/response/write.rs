//! Writing response heads.

use std::error::Error;
use std::fmt;
use std::io::Write as _;

use crate::http::Status;
use crate::http::date;
use crate::http::range::ContentRange;
use crate::http::syntax::{TOKEN, run, text_len};

/// A writer that appends the head of a response to a buffer (RFC 9112, section 4).
///
/// The writer rejects every byte that could end a line, so no value can inject a field or a
/// response.
///
/// ```
/// use tussah_wire::http::{Status, response::HeadWriter};
///
/// let mut out = Vec::new();
/// let mut head = HeadWriter::new(&mut out, Status::OK);
/// head.field("Content-Type", "text/plain")?;
/// head.content_length(2);
/// head.end();
/// assert_eq!(out, b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n");
/// # Ok::<(), tussah_wire::http::response::FieldInvalid>(())
/// ```
#[derive(Debug)]
#[must_use = "a head is complete after `end` only"]
pub struct HeadWriter<'o> {
    out: &'o mut Vec<u8>,
}

impl<'o> HeadWriter<'o> {
    /// Appends the status line. The version is HTTP/1.1 even for HTTP/1.0 clients (RFC 9110,
    /// section 6.2).
    pub fn new(out: &'o mut Vec<u8>, status: Status) -> Self {
        out.extend_from_slice(b"HTTP/1.1 ");
        push_decimal(out, status.code().into());
        out.push(b' ');
        out.extend_from_slice(status.reason().as_bytes());
        out.extend_from_slice(b"\r\n");
        Self { out }
    }

    /// Creates a writer that continues a head whose status line has already been written.
    pub fn go_on(out: &'o mut Vec<u8>) -> Self {
        Self { out }
    }

    /// Appends a field.
    ///
    /// # Errors
    ///
    /// Returns an error, and appends nothing, if the name is not a token, or if the value has
    /// surrounding white space or control characters other than tab. Control characters include CR
    /// and LF.
    pub fn field(&mut self, name: &str, value: impl AsRef<[u8]>) -> Result<(), FieldInvalid> {
        let (name, value) = (name.as_bytes(), value.as_ref());
        if name.is_empty() || run(name, 0, TOKEN) < name.len() {
            return Err(FieldInvalid::Name);
        }
        let blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
        if text_len(value) < value.len() || blank(value.first()) || blank(value.last()) {
            return Err(FieldInvalid::Value);
        }
        self.push(&[name, b": ", value, b"\r\n"]);
        Ok(())
    }

    /// Appends `Content-Length`, in bytes.
    pub fn content_length(&mut self, len: u64) {
        self.out.extend_from_slice(b"Content-Length: ");
        push_decimal(self.out, len);
        self.out.extend_from_slice(b"\r\n");
    }

    /// Appends `Date` with a date that [`date::format`] has formatted.
    pub fn date(&mut self, date: &[u8; date::LEN]) {
        self.push(&[b"Date: ", date, b"\r\n"]);
    }

    /// Appends `Connection`, which tells the client whether the server keeps the connection open. A
    /// server can omit the field if it would only state the default of the HTTP version.
    pub fn connection(&mut self, keep_alive: bool) {
        let option: &[u8] = if keep_alive { b"keep-alive" } else { b"close" };
        self.push(&[b"Connection: ", option, b"\r\n"]);
    }

    /// Appends `Content-Range`.
    pub fn content_range(&mut self, range: ContentRange) {
        write!(self.out, "Content-Range: {range}\r\n").expect("a vector takes all");
    }

    /// Appends `Transfer-Encoding: chunked`.
    pub fn chunked(&mut self) {
        self.push(&[b"Transfer-Encoding: chunked\r\n"]);
    }

    /// Appends the final empty line.
    pub fn end(self) {
        self.out.extend_from_slice(b"\r\n");
    }

    fn push(&mut self, parts: &[&[u8]]) {
        for part in parts {
            self.out.extend_from_slice(part);
        }
    }
}

/// Appends a decimal number.
pub(crate) fn push_decimal(out: &mut Vec<u8>, mut number: u64) {
    // The number of digits of `u64::MAX`.
    let mut digits = [0; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

/// The reason why a field cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldInvalid {
    /// The name is not a token.
    Name,
    /// The value has control characters or surrounding white space.
    Value,
}

impl fmt::Display for FieldInvalid {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Name => "expected a token as the name of a field, found another character or nothing",
            Self::Value => "expected text as the value of a field, found a control character or blanks around it",
        })
    }
}

impl Error for FieldInvalid {}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut HeadWriter<'_>)) -> String {
        let mut out = Vec::new();
        let mut head = HeadWriter::new(&mut out, Status::NOT_FOUND);
        write(&mut head);
        head.end();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn heads() {
        let check = |head: String, fields: &str| {
            assert_eq!(head, format!("HTTP/1.1 404 Not Found\r\n{fields}\r\n"))
        };
        check(written(|_| {}), "");
        check(
            written(|head| head.content_length(0)),
            "Content-Length: 0\r\n",
        );
        check(
            written(|head| head.content_length(u64::MAX)),
            "Content-Length: 18446744073709551615\r\n",
        );
        check(
            written(|head| head.connection(false)),
            "Connection: close\r\n",
        );
        check(
            written(|head| head.connection(true)),
            "Connection: keep-alive\r\n",
        );
        check(
            written(|head| head.chunked()),
            "Transfer-Encoding: chunked\r\n",
        );
        check(
            written(|head| head.date(&date::format(0))),
            "Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n",
        );
        check(
            written(|head| head.field("X", "a\tb é").unwrap()),
            "X: a\tb é\r\n",
        );
        check(written(|head| head.field("X", "").unwrap()), "X: \r\n");
    }

    #[test]
    fn injections() {
        let check = |name: &str, value: &str, expected| {
            let mut result = Ok(());
            let head = written(|head| result = head.field(name, value));
            assert_eq!(
                (result, &head[..]),
                (Err(expected), "HTTP/1.1 404 Not Found\r\n\r\n"),
                "{name:?}: {value:?}"
            );
        };
        check("", "a", FieldInvalid::Name);
        check("a b", "a", FieldInvalid::Name);
        check("a:", "a", FieldInvalid::Name);
        check("a\r\nb", "a", FieldInvalid::Name);
        check("é", "a", FieldInvalid::Name);
        check("a", "b\r\nc: d", FieldInvalid::Value);
        check("a", "b\n", FieldInvalid::Value);
        check("a", "b\rc", FieldInvalid::Value);
        check("a", "b\0", FieldInvalid::Value);
        check("a", "b\x7f", FieldInvalid::Value);
        check("a", "0123456789abcdef\n", FieldInvalid::Value);
        check("a", " b", FieldInvalid::Value);
        check("a", "b\t", FieldInvalid::Value);
    }

    #[test]
    fn a_status_without_reason_keeps_its_space() {
        let mut out = Vec::new();
        HeadWriter::new(&mut out, Status::new(299).unwrap()).end();
        assert_eq!(out, b"HTTP/1.1 299 \r\n\r\n");
    }
}
