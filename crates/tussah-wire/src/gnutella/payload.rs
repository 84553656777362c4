//! The payloads of descriptors (section 3.2).

use std::net::Ipv4Addr;

use super::descriptor::{HEADER_BYTES, Header, Kind, PAYLOAD_BYTES_MAX};
use super::reader::{Reader, push_text};
use super::{Guid, QueryHits};
use crate::malformed::{Found, Malformed};

/// The payload of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload<'b> {
    /// A ping, which may carry an extension.
    Ping(&'b [u8]),
    /// A pong.
    Pong(Pong<'b>),
    /// The announcement that the sender is closing the connection.
    Bye(Bye<'b>),
    /// A request that asks a servent to push a file to the requester.
    Push(Push<'b>),
    /// A query.
    Query(Query<'b>),
    /// Files that match a query.
    QueryHits(QueryHits<'b>),
    /// A payload of any other kind, with the number of that kind.
    Other(u8, &'b [u8]),
}

/// The address of a servent, and the amount of data that it shares (section 3.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pong<'b> {
    /// The port for connections; 0 if the servent accepts no connections.
    pub port: u16,
    /// The address for connections.
    pub address: Ipv4Addr,
    /// The number of shared files.
    pub files: u32,
    /// The total length of the shared files, in kilobytes.
    pub kilobytes: u32,
    /// Additional data, such as a GGEP block.
    pub extension: &'b [u8],
}

/// A search for files (section 3.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query<'b> {
    /// The minimum speed, in kbit/s, of the servents that should answer. If bit 7 is set, the
    /// number contains flags instead. The flags are big-endian, so bit 7 of this number is bit 15
    /// of the flags.
    pub min_speed: u16,
    /// The search words, separated by spaces, without the terminating NUL.
    pub criteria: &'b [u8],
    /// Additional data, such as a GGEP block.
    pub extension: &'b [u8],
}

/// A request that asks a servent behind a firewall to connect to another servent (section 3.2.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Push<'b> {
    /// The identifier of the servent that has the file. A router sends the request back along the
    /// path of this servent's query hits.
    pub servent: Guid,
    /// The number of the file.
    pub index: u32,
    /// The address to which the servent should connect.
    pub address: Ipv4Addr,
    /// The port to which the servent should connect.
    pub port: u16,
    /// Additional data.
    pub extension: &'b [u8],
}

/// The reason for closing a connection (section 2 of "Introducing New Bye (0x02) Packet in Gnutella
/// 0.4" by Raphael Manfredi).
///
/// A bye is sent with TTL 1 and hops 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bye<'b> {
    /// The reason as a code: 2xx for an orderly close, 4xx for an error that the receiver of the
    /// bye caused, and 5xx for an error that the sender caused.
    pub code: u16,
    /// The reason as text, optionally followed by CR LF and header lines. The terminating NUL is
    /// not included.
    pub text: &'b [u8],
}

impl<'b> Payload<'b> {
    /// Parses the payload of a descriptor of this kind.
    ///
    /// # Errors
    ///
    /// Returns an error if a part of the payload is missing. After such an error, drop the
    /// descriptor; the next descriptor is intact. The error states the position in bytes from the
    /// start of the payload.
    pub fn parse(kind: Kind, bytes: &'b [u8]) -> Result<Self, Malformed> {
        Ok(match kind {
            Kind::Ping => Self::Ping(bytes),
            Kind::Pong => Self::Pong(Pong::parse(bytes)?),
            Kind::Bye => Self::Bye(Bye::parse(bytes)?),
            Kind::Push => Self::Push(Push::parse(bytes)?),
            Kind::Query => Self::Query(Query::parse(bytes)?),
            Kind::QueryHits => Self::QueryHits(QueryHits::parse(bytes)?),
            Kind::Other(number) => Self::Other(number, bytes),
        })
    }

    /// Returns the kind of descriptor for this payload.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Ping(_) => Kind::Ping,
            Self::Pong(_) => Kind::Pong,
            Self::Bye(_) => Kind::Bye,
            Self::Push(_) => Kind::Push,
            Self::Query(_) => Kind::Query,
            Self::QueryHits(_) => Kind::QueryHits,
            Self::Other(number, _) => Kind::from_number(*number),
        }
    }

    fn push(&self, out: &mut Vec<u8>) -> Result<(), Malformed> {
        match self {
            Self::Ping(bytes) | Self::Other(_, bytes) => out.extend_from_slice(bytes),
            Self::Pong(pong) => pong.push(out),
            Self::Bye(bye) => bye.push(out)?,
            Self::Push(push) => push.push(out),
            Self::Query(query) => query.push(out)?,
            Self::QueryHits(hits) => hits.push(out),
        }
        Ok(())
    }
}

/// Appends a descriptor with this payload.
///
/// # Errors
///
/// Returns an error, and appends nothing, if a string contains a NUL or the payload is longer than
/// [`PAYLOAD_BYTES_MAX`].
pub fn push_descriptor(
    out: &mut Vec<u8>,
    id: Guid,
    ttl: u8,
    hops: u8,
    payload: &Payload<'_>,
) -> Result<(), Malformed> {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_BYTES]);
    let pushed = payload.push(out);
    let len = out.len() - start - HEADER_BYTES;
    let fits = pushed.and_then(|()| match len {
        0..=PAYLOAD_BYTES_MAX => Ok(()),
        _ => Err(Malformed::new(
            0,
            "a payload of at most 64 KiB",
            Found::Number(len as u64),
        )),
    });
    if fits.is_err() {
        out.truncate(start);
        return fits;
    }
    let header = Header {
        id,
        kind: payload.kind(),
        ttl,
        hops,
    };
    out[start..start + HEADER_BYTES].copy_from_slice(&header.to_bytes(len as u32));
    Ok(())
}

impl<'b> Pong<'b> {
    fn parse(bytes: &'b [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        Ok(Self {
            port: reader.number16("a port of two bytes")?,
            address: reader.address()?,
            files: reader.number32("a number of files in four bytes")?,
            kilobytes: reader.number32("a number of kilobytes in four bytes")?,
            extension: reader.rest(),
        })
    }

    fn push(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.port.to_le_bytes());
        out.extend_from_slice(&self.address.octets());
        out.extend_from_slice(&self.files.to_le_bytes());
        out.extend_from_slice(&self.kilobytes.to_le_bytes());
        out.extend_from_slice(self.extension);
    }
}

impl<'b> Query<'b> {
    fn parse(bytes: &'b [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        Ok(Self {
            min_speed: reader.number16("a minimum speed of two bytes")?,
            criteria: reader.text("a NUL after the search criteria")?,
            extension: reader.rest(),
        })
    }

    fn push(&self, out: &mut Vec<u8>) -> Result<(), Malformed> {
        out.extend_from_slice(&self.min_speed.to_le_bytes());
        push_text(out, self.criteria)?;
        out.extend_from_slice(self.extension);
        Ok(())
    }
}

impl<'b> Push<'b> {
    fn parse(bytes: &'b [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        Ok(Self {
            servent: reader.guid()?,
            index: reader.number32("the number of a file in four bytes")?,
            address: reader.address()?,
            port: reader.number16("a port of two bytes")?,
            extension: reader.rest(),
        })
    }

    fn push(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.servent.0);
        out.extend_from_slice(&self.index.to_le_bytes());
        out.extend_from_slice(&self.address.octets());
        out.extend_from_slice(&self.port.to_le_bytes());
        out.extend_from_slice(self.extension);
    }
}

impl<'b> Bye<'b> {
    /// The NUL may be missing: there is nothing after the text.
    fn parse(bytes: &'b [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let code = reader.number16("a code of two bytes")?;
        let rest = reader.rest();
        let text = reader.text("a NUL").unwrap_or(rest);
        Ok(Self { code, text })
    }

    fn push(&self, out: &mut Vec<u8>) -> Result<(), Malformed> {
        out.extend_from_slice(&self.code.to_le_bytes());
        push_text(out, self.text)
    }
}

#[cfg(test)]
mod tests;
