//! The body of a response with several ranges: `multipart/byteranges` (RFC 9110, section 14.6).

use std::io::Write as _;

use super::{ByteRange, ContentRange};
use crate::http::response::FieldInvalid;
use crate::http::syntax::text_len;

/// A multipart body. To send the body, write its [parts](Self::parts) in order, each as its head
/// followed by its bytes; then write the [end](Self::end).
///
/// ```
/// use tussah_wire::http::range::{ByteRange, Multipart};
///
/// let ranges = [ByteRange { first: 0, last: 1 }, ByteRange { first: 8, last: 9 }];
/// let body = Multipart::new(&ranges, 10, "text/plain", 7)?;
/// assert_eq!(body.content_type(), "multipart/byteranges; boundary=tussah-0000000000000007");
/// assert!(body.parts[1].head.ends_with(b"\r\nContent-Type: text/plain\r\nContent-Range: bytes 8-9/10\r\n\r\n"));
/// # Ok::<(), tussah_wire::http::response::FieldInvalid>(())
/// ```
#[derive(Clone, Debug)]
pub struct Multipart {
    /// The parts, in the order of the ranges.
    pub parts: Vec<Part>,
    /// The bytes after the last part.
    pub end: Vec<u8>,
    boundary: String,
}

/// One part of a [`Multipart`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The boundary before the part, and the fields of the part.
    pub head: Vec<u8>,
    /// The range of bytes that follows the head.
    pub range: ByteRange,
}

impl Multipart {
    /// Creates a body for `ranges` of a representation of `len` bytes. The boundary is derived from
    /// `random`. An attacker who does not know `random` cannot craft a file that contains the
    /// boundary.
    ///
    /// # Errors
    ///
    /// Returns an error if `content_type`, the representation's type, contains control characters.
    pub fn new(
        ranges: &[ByteRange],
        len: u64,
        content_type: &str,
        random: u64,
    ) -> Result<Self, FieldInvalid> {
        if text_len(content_type.as_bytes()) < content_type.len() {
            return Err(FieldInvalid::Value);
        }
        let boundary = format!("tussah-{random:016x}");
        let part = |(place, &range): (usize, &ByteRange)| {
            let before = if place == 0 { "" } else { "\r\n" };
            let content_range = ContentRange::of(range, len);
            let mut head = Vec::new();
            write!(
                head,
                "{before}--{boundary}\r\nContent-Type: {content_type}\r\nContent-Range: {content_range}\r\n\r\n"
            )
            .expect("a vector takes all");
            Part { head, range }
        };
        let parts = ranges.iter().enumerate().map(part).collect();
        Ok(Self {
            parts,
            end: format!("\r\n--{boundary}--\r\n").into_bytes(),
            boundary,
        })
    }

    /// Returns the value of `Content-Type` for the response.
    pub fn content_type(&self) -> String {
        format!("multipart/byteranges; boundary={}", self.boundary)
    }

    /// Returns the length of the whole body, in bytes.
    #[expect(clippy::len_without_is_empty, reason = "no body with an end is empty")]
    pub fn len(&self) -> u64 {
        let parts = self
            .parts
            .iter()
            .map(|part| part.head.len() as u64 + part.range.len());
        parts.sum::<u64>() + self.end.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn body() {
        let file = b"0123456789";
        let ranges = [
            ByteRange { first: 0, last: 0 },
            ByteRange { first: 5, last: 9 },
        ];
        let multipart = Multipart::new(&ranges, 10, "text/plain", 0xabc).unwrap();
        let mut body = Vec::new();
        for part in &multipart.parts {
            body.extend_from_slice(&part.head);
            body.extend_from_slice(&file[part.range.first as usize..=part.range.last as usize]);
        }
        body.extend_from_slice(&multipart.end);
        assert_eq!(body.len() as u64, multipart.len());
        let expected = "--tussah-0000000000000abc\r\nContent-Type: text/plain\r\nContent-Range: bytes 0-0/10\r\n\r\n0\r\n\
            --tussah-0000000000000abc\r\nContent-Type: text/plain\r\nContent-Range: bytes 5-9/10\r\n\r\n56789\r\n\
            --tussah-0000000000000abc--\r\n";
        assert_eq!(String::from_utf8(body).unwrap(), expected);
    }

    #[test]
    fn types_with_line_ends_are_refused() {
        let refused = Multipart::new(&[], 0, "text/plain\r\nX: y", 0).unwrap_err();
        assert_eq!(refused, FieldInvalid::Value);
    }
}
