//! Message framing: the length of the body (RFC 9112, section 6).

use super::refusal::{Kind, Refusal};
use super::span::Span;
use super::syntax::list;

/// The way in which the end of a body is determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// The message has no body.
    None,
    /// The body has the length given by `Content-Length`, which may be 0.
    Length(u64),
    /// The body consists of chunks; the last chunk is empty.
    Chunked,
    /// The body ends when the connection closes. This framing occurs only in responses.
    UntilClose,
}

/// The information about the body from the fields read so far.
#[derive(Clone, Copy, Default)]
pub(crate) struct Fields {
    length: Option<u64>,
    coding: Coding,
}

/// The transfer codings listed on all lines so far.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Coding {
    #[default]
    Absent,
    Chunked,
    /// Other codings without `chunked`.
    Other,
    /// Other codings followed by `chunked`.
    OtherChunked,
}

impl Fields {
    /// Adds a `Content-Length` line.
    ///
    /// A second line is refused even if it has the same value, and so is a list. RFC 9110, section
    /// 8.6, permits both, but no well-behaved client sends them.
    pub(crate) fn content_length(&mut self, bytes: &[u8], value: Span) -> Result<(), Refusal> {
        if self.length.is_some() {
            return Err(Refusal::new(Kind::LengthTwice, value.start()));
        }
        let digits = value.of(bytes);
        let length = decimal(digits).ok_or(Refusal::new(Kind::LengthInvalid, value.start()))?;
        self.length = Some(length);
        Ok(())
    }

    /// Adds a `Transfer-Encoding` line.
    pub(crate) fn transfer_encoding(&mut self, bytes: &[u8], value: Span) -> Result<(), Refusal> {
        for member in list(value.of(bytes)) {
            let chunked = member.eq_ignore_ascii_case(b"chunked");
            self.coding = match (self.coding, chunked) {
                (Coding::Absent, true) => Coding::Chunked,
                (Coding::Other, true) => Coding::OtherChunked,
                (Coding::Absent | Coding::Other, false) if !member.is_empty() => Coding::Other,
                _ => return Err(Refusal::new(Kind::CodingLast, value.start())),
            };
        }
        Ok(())
    }

    /// Returns the framing of a request's body. Refusals point to `head_len`.
    ///
    /// Follows RFC 9112, sections 6.1 and 6.3, but also refuses a request with both fields.
    #[inline]
    pub(crate) fn of_request(
        self,
        chunks_known: bool,
        head_len: usize,
    ) -> Result<Framing, Refusal> {
        match (self.length, self.coding) {
            (None, Coding::Absent) => Ok(Framing::None),
            (Some(length), Coding::Absent) => Ok(Framing::Length(length)),
            (None, Coding::Chunked) if chunks_known => Ok(Framing::Chunked),
            (length, coding) => Err(Refusal::new(coded(length, coding, chunks_known), head_len)),
        }
    }

    /// Returns the framing of a response's body, if the response has one.
    pub(crate) fn of_response(
        self,
        chunks_known: bool,
        head_len: usize,
    ) -> Result<Framing, Refusal> {
        match (self.length, self.coding) {
            (None, Coding::Absent | Coding::Other) => Ok(Framing::UntilClose),
            _ => self.of_request(chunks_known, head_len),
        }
    }
}

/// Returns the reason for refusing a message with a transfer coding.
#[cold]
fn coded(length: Option<u64>, coding: Coding, chunks_known: bool) -> Kind {
    match coding {
        _ if length.is_some() => Kind::LengthAndCoding,
        _ if !chunks_known => Kind::CodingVersion,
        Coding::OtherChunked => Kind::CodingUnknown,
        _ => Kind::CodingLast,
    }
}

/// Parses a decimal number: at least one digit, nothing else, at most `u64::MAX`.
pub(crate) fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, digit| {
        let digit = digit.wrapping_sub(b'0');
        let tens = number.checked_mul(10)?;
        if digit < 10 {
            tens.checked_add(digit.into())
        } else {
            None
        }
    })
}
