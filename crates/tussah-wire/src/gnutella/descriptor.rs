//! Descriptors: the header, the frame, and the rules for hops.

use super::Guid;
use crate::malformed::{Found, Malformed};

/// The length of the header of a descriptor, in bytes (section 3.1).
pub const HEADER_BYTES: usize = 23;

/// Bound, in bytes: the longest payload that can be sent or received; a higher limit in `Limits`
/// has no effect.
/// Section 3.2.4.2 advises against descriptors of more than 64 KB.
pub const PAYLOAD_BYTES_MAX: usize = 64 * 1024;

/// Bound, in hops: the maximum number of hops from the first sender of a descriptor to its last
/// receiver. Section 3.1 allows up to 7 hops.
pub const LIFE_MAX: u8 = 7;

/// The limits on descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bound, in bytes: the maximum length of a descriptor's payload; 64 KiB by default. Values
    /// over [`PAYLOAD_BYTES_MAX`] are reduced to that limit.
    pub payload_bytes_max: usize,
    /// Bound, in bytes: the maximum length of the payload of a ping or a query; 4 KiB by default,
    /// because a router sends such a descriptor to all of its peers.
    pub broadcast_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            payload_bytes_max: PAYLOAD_BYTES_MAX,
            broadcast_bytes_max: 4 * 1024,
        }
    }
}

/// The kind of a descriptor (section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A search for servents. A router sends a ping to all peers except the ping's sender.
    Ping,
    /// A response to a ping. Routers send a pong back along the path of the ping.
    Pong,
    /// The last descriptor on a connection.
    Bye,
    /// A request to open a connection. Routers send a push back along the path of a query hit.
    Push,
    /// A search for files. A router sends a query to all peers except the query's sender.
    Query,
    /// A response to a query. Routers send query hits back along the path of the query.
    QueryHits,
    /// A kind without a variant of its own, such as a query routing table or a vendor message.
    /// Routers never forward a descriptor of kind `Other`.
    Other(u8),
}

impl Kind {
    /// Returns the kind with this number.
    pub fn from_number(number: u8) -> Self {
        match number {
            0x00 => Self::Ping,
            0x01 => Self::Pong,
            0x02 => Self::Bye,
            0x40 => Self::Push,
            0x80 => Self::Query,
            0x81 => Self::QueryHits,
            other => Self::Other(other),
        }
    }

    /// Returns the number of this kind.
    pub fn number(self) -> u8 {
        match self {
            Self::Ping => 0x00,
            Self::Pong => 0x01,
            Self::Bye => 0x02,
            Self::Push => 0x40,
            Self::Query => 0x80,
            Self::QueryHits => 0x81,
            Self::Other(number) => number,
        }
    }

    /// Returns whether a router sends descriptors of this kind to all peers except the sender.
    pub fn is_broadcast(self) -> bool {
        matches!(self, Self::Ping | Self::Query)
    }

    /// Returns whether descriptors of this kind are meant only for the servent that receives them,
    /// and are therefore never forwarded.
    pub fn is_local(self) -> bool {
        matches!(self, Self::Bye | Self::Other(_))
    }
}

/// The header of a descriptor, without the length of its payload (section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The identifier. A response has the same identifier as its request.
    pub id: Guid,
    /// The kind of descriptor.
    pub kind: Kind,
    /// The number of hops that the descriptor may still travel, including the current hop.
    pub ttl: u8,
    /// The number of times that the descriptor has been forwarded.
    pub hops: u8,
}

/// The reason why a descriptor is not forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dropped {
    /// The TTL and the number of hops are both 0. Ignore the descriptor, because no correct servent
    /// sends these values.
    Invalid,
    /// The descriptor is meant only for the servent that received it.
    Local,
    /// The TTL has expired. The servent that received the descriptor still answers it.
    Expired,
    /// The path of the descriptor would be longer than the limit.
    TooFar,
}

impl Header {
    /// Returns the header with which a router forwards the descriptor (section 4, rule 5).
    ///
    /// The TTL decreases by 1, or by more if the path from the first sender to the last receiver
    /// would otherwise exceed `life_max` hops (section 3.1). The usual value of `life_max` is
    /// [`LIFE_MAX`]. The field `hops` increases by 1.
    ///
    /// # Errors
    ///
    /// If the descriptor must not be forwarded, returns the reason as the error.
    pub fn forwarded(self, life_max: u8) -> Result<Self, Dropped> {
        if self.kind.is_local() {
            return Err(Dropped::Local);
        }
        match (self.ttl, self.hops) {
            (0, 0) => return Err(Dropped::Invalid),
            (0 | 1, _) => return Err(Dropped::Expired),
            _ => {}
        }
        // One hop brought it here from the sender or the last router, and one more leads on.
        let left = life_max.saturating_sub(self.hops).saturating_sub(1);
        if left == 0 {
            return Err(Dropped::TooFar);
        }
        Ok(Self {
            ttl: (self.ttl - 1).min(left),
            hops: self.hops + 1,
            ..self
        })
    }

    /// Returns the header for a response to this descriptor, with a TTL that suffices for the
    /// return path (section 3.2.4).
    pub fn response(self, kind: Kind) -> Self {
        Self {
            kind,
            ttl: self.hops.saturating_add(1),
            hops: 0,
            ..self
        }
    }

    /// Returns the header as bytes, for a payload of this length.
    pub fn to_bytes(self, payload_len: u32) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..16].copy_from_slice(&self.id.0);
        bytes[16] = self.kind.number();
        bytes[17] = self.ttl;
        bytes[18] = self.hops;
        bytes[19..].copy_from_slice(&payload_len.to_le_bytes());
        bytes
    }
}

/// A descriptor whose payload is not parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor<'b> {
    /// The header.
    pub header: Header,
    /// The payload.
    pub payload: &'b [u8],
}

impl<'b> Descriptor<'b> {
    /// Parses the descriptor at the start of `bytes`. Returns `None` if the descriptor is
    /// incomplete.
    ///
    /// # Errors
    ///
    /// If the announced length of the payload exceeds the limit, returns an error as soon as the
    /// header has arrived. After an error, close the connection, because the sender is probably out
    /// of sync (section 3.1).
    pub fn parse(bytes: &'b [u8], limits: &Limits) -> Result<Option<Self>, Malformed> {
        let Some((header, rest)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let &[id @ .., number, ttl, hops, len0, len1, len2, len3] = header;
        let kind = Kind::from_number(number);
        let len_max = if kind.is_broadcast() {
            limits.broadcast_bytes_max.min(limits.payload_bytes_max)
        } else {
            limits.payload_bytes_max
        };
        let len = u32::from_le_bytes([len0, len1, len2, len3]);
        if len as usize > len_max.min(PAYLOAD_BYTES_MAX) {
            let found = Found::Number(len.into());
            return Err(Malformed::new(19, "a payload within the limit", found));
        }
        let header = Header {
            id: Guid(id),
            kind,
            ttl,
            hops,
        };
        let payload = rest.get(..len as usize);
        Ok(payload.map(|payload| Self { header, payload }))
    }

    /// Returns the length of the descriptor, in bytes. The next descriptor starts at this offset.
    #[expect(clippy::len_without_is_empty, reason = "no descriptor is empty")]
    pub fn len(&self) -> usize {
        HEADER_BYTES + self.payload.len()
    }

    /// Appends the descriptor to `out`, for example to forward it with a new header.
    ///
    /// # Panics
    ///
    /// Panics if the payload is longer than [`PAYLOAD_BYTES_MAX`]. Descriptors returned by
    /// [`parse`](Self::parse) never cause this panic.
    pub fn push(&self, out: &mut Vec<u8>) {
        let len = self.payload.len();
        assert!(len <= PAYLOAD_BYTES_MAX, "a payload has at most 64 KiB");
        out.extend_from_slice(&self.header.to_bytes(len as u32));
        out.extend_from_slice(self.payload);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(kind: Kind, ttl: u8, hops: u8) -> Header {
        let id = Guid(*b"0123456789abcdef");
        Header {
            id,
            kind,
            ttl,
            hops,
        }
    }

    /// The layout of section 3.1. The length is little-endian.
    #[test]
    fn a_descriptor() {
        let bytes = b"0123456789abcdef\x80\x05\x02\x04\0\0\0\0\0a\0next";
        let descriptor = Descriptor::parse(bytes, &Limits::default())
            .unwrap()
            .unwrap();
        assert_eq!(descriptor.header, header(Kind::Query, 5, 2));
        assert_eq!(
            (descriptor.payload, descriptor.len()),
            (&b"\0\0a\0"[..], 27)
        );
        let mut out = Vec::new();
        descriptor.push(&mut out);
        assert_eq!(out, bytes[..27]);
        for len in 0..27 {
            let part = Descriptor::parse(&bytes[..len], &Limits::default());
            assert_eq!(part, Ok(None));
        }
    }

    #[test]
    fn long_payloads_are_refused_by_the_header() {
        let check = |kind: Kind, len_max: u32| {
            let limits = Limits::default();
            let bytes = header(kind, 1, 0).to_bytes(len_max);
            assert_eq!(Descriptor::parse(&bytes, &limits), Ok(None));
            let bytes = header(kind, 1, 0).to_bytes(len_max + 1);
            let error = Descriptor::parse(&bytes, &limits).unwrap_err().to_string();
            let found = len_max + 1;
            let expected = format!("byte 19: expected a payload within the limit, found {found}");
            assert_eq!(error, expected);
        };
        check(Kind::Ping, 4096);
        check(Kind::Query, 4096);
        check(Kind::Pong, 65_536);
        check(Kind::QueryHits, 65_536);
        check(Kind::Other(0x30), 65_536);
    }

    #[test]
    fn kinds() {
        for number in 0..=u8::MAX {
            assert_eq!(Kind::from_number(number).number(), number);
        }
    }

    #[test]
    fn hops() {
        let check = |ttl, hops, expected: Result<(u8, u8), Dropped>| {
            let forwarded = header(Kind::Query, ttl, hops).forwarded(LIFE_MAX);
            let counts = forwarded.map(|header| (header.ttl, header.hops));
            assert_eq!(counts, expected, "TTL {ttl}, hops {hops}");
        };
        check(7, 0, Ok((6, 1)));
        check(2, 5, Ok((1, 6)));
        check(1, 0, Err(Dropped::Expired));
        check(1, 6, Err(Dropped::Expired));
        check(0, 3, Err(Dropped::Expired));
        check(0, 0, Err(Dropped::Invalid));
        // An excessive TTL is reduced.
        check(255, 0, Ok((6, 1)));
        check(7, 3, Ok((3, 4)));
        check(255, 5, Ok((1, 6)));
        check(2, 6, Err(Dropped::TooFar));
        check(255, 7, Err(Dropped::TooFar));
        check(255, 255, Err(Dropped::TooFar));
        let bye = header(Kind::Bye, 5, 0).forwarded(LIFE_MAX);
        assert_eq!(bye, Err(Dropped::Local));
    }

    /// A response reaches the sender of the request, and no servent beyond.
    #[test]
    fn a_response_suffices_for_the_way_back() {
        for routers in 0..LIFE_MAX {
            let mut query = header(Kind::Query, LIFE_MAX, 0);
            for _ in 0..routers {
                query = query.forwarded(LIFE_MAX).unwrap();
            }
            let mut hit = query.response(Kind::QueryHits);
            for _ in 0..routers {
                hit = hit.forwarded(LIFE_MAX).unwrap();
            }
            assert_eq!(hit.forwarded(LIFE_MAX), Err(Dropped::Expired));
        }
    }
}
