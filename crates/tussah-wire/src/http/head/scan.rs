//! Reading a head that arrives in pieces.

use super::{HEAD_BYTES_MAX, Head, Limits, parse};
use crate::http::Refusal;

/// The progress of a search for the end of a head. With a scan, a head that arrives slowly is not
/// parsed again for each piece that arrives.
///
/// The first piece is parsed immediately, because most heads arrive in one piece. In later pieces,
/// the scan looks only for the end of the head, for NUL, and for a lone CR or LF. Most other errors
/// in later pieces are detected only once the head is complete, because the scan then parses it
/// again. Each byte is thus examined at most three times.
///
/// A connection can use the same scan for all of its heads, because the scan restarts after each
/// head. A scan occupies one machine word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// No head ends before this offset.
    searched: usize,
}

impl Scan {
    /// Creates a scan that has not seen any bytes.
    pub const fn new() -> Self {
        Self { searched: 0 }
    }

    /// Parses the head at the start of `bytes`, like [`parse`](super::parse()). Returns `None` if
    /// the head is incomplete.
    ///
    /// `bytes` must start with the bytes of the previous call, unless that call returned a head or
    /// a refusal.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`parse`](super::parse()).
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

    /// Returns whether parsing is worthwhile: the head is complete or too long, or contains an
    /// invalid byte.
    fn search(&mut self, bytes: &[u8], limits: &Limits) -> bool {
        if bytes.len() >= limits.head_bytes_max.min(HEAD_BYTES_MAX) {
            return true;
        }
        // The last byte may be a CR whose LF has not arrived yet.
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
