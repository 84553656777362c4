//! Gnutella: the messages of version 0.4, and the handshake of version 0.6.
//!
//! Section numbers refer to "The Annotated Gnutella Protocol Specification v0.4", document revision
//! 1.6. The module [`handshake`] follows a different specification, which its documentation names.
//!
//! A stream of descriptors follows the handshake. A router needs only [`Descriptor::parse`],
//! [`Header::forwarded`] and [`Routes`]; [`Payload::parse`] parses the payload of a descriptor.
//!
//! ```
//! use tussah_wire::gnutella::{self, Descriptor, Guid, Limits, Payload, Query};
//!
//! let query = Query { min_speed: 0, criteria: b"wild silk", extension: b"" };
//! let mut bytes = Vec::new();
//! gnutella::push_descriptor(&mut bytes, Guid([1; 16]), 7, 0, &Payload::Query(query))?;
//!
//! let descriptor = Descriptor::parse(&bytes, &Limits::default())?.expect("it is complete");
//! let payload = Payload::parse(descriptor.header.kind, descriptor.payload)?;
//! assert_eq!(payload, Payload::Query(query));
//!
//! let forwarded = descriptor.header.forwarded(gnutella::LIFE_MAX).expect("it has hops left");
//! assert_eq!((forwarded.ttl, forwarded.hops), (6, 1));
//! # Ok::<(), tussah_wire::Malformed>(())
//! ```

mod descriptor;
mod guid;
pub mod handshake;
mod hits;
mod payload;
mod reader;
mod routes;

pub use descriptor::{
    Descriptor, Dropped, HEADER_BYTES, Header, Kind, LIFE_MAX, Limits, PAYLOAD_BYTES_MAX,
};
pub use guid::Guid;
pub use hits::{HitResult, QueryHits, Results, Trailer};
pub use payload::{Bye, Payload, Pong, Push, Query, push_descriptor};
pub use routes::Routes;
