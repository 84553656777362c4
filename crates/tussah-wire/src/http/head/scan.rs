//! The reading of a head that comes in several pieces.

use super::{HEAD_BYTES_MAX, Head, Limits, parse};
use crate::http::Refusal;

/// How far a head has been searched for its end, so that one that drips in is not parsed again with each byte.
///
/// The first piece is parsed at once, since most heads come in one. What follows is only searched for
/// the end of the head, for NUL, and for CR or LF alone; then the head is parsed again, as a whole. So a
/// byte is looked at thrice at most, and a mistake of another kind is seen at the end of the head.
///
/// One scan serves a connection: it begins anew after each head. It has the size of a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// Up to here there is no end of the head.
    searched: usize,
}

impl Scan {
    /// A scan that has seen nothing.
    pub const fn new() -> Self {
        Self { searched: 0 }
    }

    /// Parses the head at the start of `bytes`, as [`parse`](super::parse()) does; nothing if it is not complete.
    ///
    /// `bytes` begins with what it was at the last call, unless that one brought a head or a refusal.
    ///
    /// # Errors
    ///
    /// As [`parse`](super::parse()).
    #[inline]
    pub fn parse(&mut self, bytes: &[u8], limits: &Limits) -> Result<Option<Head>, Refusal> {
        if self.searched > 0 && !self.search(bytes, limits) {
            return Ok(None);
        }
        let result = parse(bytes, limits);
        self.searched = match result {
            Ok(None) => bytes.len(),
            _ => 0,
        };
        result
    }

    /// Whether there is a reason to parse: the head ends or is too long, or there is a byte that is never right.
    fn search(&mut self, bytes: &[u8], limits: &Limits) -> bool {
        if bytes.len() >= limits.head_bytes_max.min(HEAD_BYTES_MAX) {
            return true;
        }
        // The last byte may have been a CR whose LF is to come.
        let start = self.searched - 1;
        self.searched = bytes.len();
        memchr::memchr3_iter(b'\r', b'\n', 0, bytes.get(start..).unwrap_or_default()).any(|found| {
            let at = start + found;
            match bytes[at] {
                b'\r' => bytes.get(at + 1).is_some_and(|&next| next != b'\n'),
                b'\n' => !bytes[..at].ends_with(b"\r") || bytes[..at].ends_with(b"\r\n\r"),
                _ => true,
            }
        })
    }
}
