//! How long the body of a message is (RFC 9112, section 6).

use super::refusal::{Kind, Refusal};
use super::span::Span;
use super::syntax::list;

/// How the end of a body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is no body.
    None,
    /// So many bytes, as `Content-Length` says; it may say 0.
    Length(u64),
    /// In chunks, the last of which is empty.
    Chunked,
    /// Until the connection is closed; only in responses.
    UntilClose,
}

/// What the fields of a head have said about its body so far.
#[derive(Clone, Copy, Default)]
pub(crate) struct Fields {
    length: Option<u64>,
    coding: Coding,
}

/// What `Transfer-Encoding` has listed, over all of its lines.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Coding {
    #[default]
    Absent,
    Chunked,
    /// Others, and `chunked` is not among them.
    Other,
    /// Others, and `chunked` after them.
    OtherChunked,
}

impl Fields {
    /// Takes a line of `Content-Length`.
    ///
    /// A second one is refused even if it says the same, and so is a list: RFC 9110, section 8.6,
    /// allows it, and no client that means well sends it.
    pub(crate) fn content_length(&mut self, bytes: &[u8], value: Span) -> Result<(), Refusal> {
        if self.length.is_some() {
            return Err(Refusal::new(Kind::LengthTwice, value.start()));
        }
        let digits = value.of(bytes);
        let length = decimal(digits).ok_or(Refusal::new(Kind::LengthInvalid, value.start()))?;
        self.length = Some(length);
        Ok(())
    }

    /// Takes a line of `Transfer-Encoding`.
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

    /// How the body of a request ends; `head_len` is where a refusal points to.
    ///
    /// As RFC 9112, sections 6.1 and 6.3, but stricter: a request with both fields is refused.
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

    /// How the body of a response ends that has one.
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

/// Why a message with a transfer coding is refused.
#[cold]
fn coded(length: Option<u64>, coding: Coding, chunks_known: bool) -> Kind {
    match coding {
        _ if length.is_some() => Kind::LengthAndCoding,
        _ if !chunks_known => Kind::CodingVersion,
        Coding::OtherChunked => Kind::CodingUnknown,
        _ => Kind::CodingLast,
    }
}

/// The number that is written in `digits`: at least one digit, nothing else, at most `u64::MAX`.
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
