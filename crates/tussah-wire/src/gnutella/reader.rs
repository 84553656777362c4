//! A reader for the parts of a payload.

use std::net::Ipv4Addr;

use super::Guid;
use crate::malformed::{Found, Malformed};

/// The part of a payload that is still unread.
pub(super) struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Reader<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(super) fn rest(&self) -> &'b [u8] {
        &self.bytes[self.at..]
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    fn array<const N: usize>(&mut self, expected: &'static str) -> Result<[u8; N], Malformed> {
        let Some((array, _)) = self.rest().split_first_chunk() else {
            let found = Found::Text("the end of the payload");
            return Err(Malformed::new(self.bytes.len() as u64, expected, found));
        };
        self.at += N;
        Ok(*array)
    }

    pub(super) fn byte(&mut self, expected: &'static str) -> Result<u8, Malformed> {
        self.array(expected).map(|[byte]| byte)
    }

    pub(super) fn number16(&mut self, expected: &'static str) -> Result<u16, Malformed> {
        self.array(expected).map(u16::from_le_bytes)
    }

    pub(super) fn number32(&mut self, expected: &'static str) -> Result<u32, Malformed> {
        self.array(expected).map(u32::from_le_bytes)
    }

    /// Reads an address, the only number in network byte order.
    pub(super) fn address(&mut self) -> Result<Ipv4Addr, Malformed> {
        self.array::<4>("an address of four bytes").map(Into::into)
    }

    pub(super) fn guid(&mut self) -> Result<Guid, Malformed> {
        self.array("the identifier of a servent, of 16 bytes")
            .map(Guid)
    }

    /// Reads text and the NUL after it.
    pub(super) fn text(&mut self, expected: &'static str) -> Result<&'b [u8], Malformed> {
        let Some(len) = memchr::memchr(0, self.rest()) else {
            let found = Found::Text("the end of the payload");
            return Err(Malformed::new(self.bytes.len() as u64, expected, found));
        };
        let text = &self.rest()[..len];
        self.at += len + 1;
        Ok(text)
    }
}

/// Appends text and the NUL after it.
pub(super) fn push_text(out: &mut Vec<u8>, text: &[u8]) -> Result<(), Malformed> {
    if let Some(at) = memchr::memchr(0, text) {
        return Err(Malformed::new(
            at as u64,
            "text without NUL",
            Found::Byte(0),
        ));
    }
    out.extend_from_slice(text);
    out.push(0);
    Ok(())
}
