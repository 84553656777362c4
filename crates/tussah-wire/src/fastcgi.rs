//! FastCGI 1.0, for a web server that passes requests to an application.
//!
//! Section numbers refer to the FastCGI Specification by Mark R. Brown, version 1.0 of 29 April
//! 1996. A web server sends a request with the functions `push_*` and [`chunks`], and reads the
//! response with [`Parser`]. The module [`cgi`](crate::cgi) creates the variables of the request,
//! and parses the head of the response.
//!
//! ```
//! use std::num::NonZeroU16;
//! use tussah_wire::fastcgi::{self, Event, Parser, Role, Stream};
//!
//! let id = NonZeroU16::MIN;
//! let mut request = Vec::new();
//! fastcgi::push_begin_request(&mut request, id, Role::Responder, true);
//! let mut variables = Vec::new();
//! fastcgi::push_pair(&mut variables, b"REQUEST_METHOD", b"GET");
//! fastcgi::push_stream(&mut request, Stream::Params, id, &variables);
//! fastcgi::push_stream_end(&mut request, Stream::Params, id);
//! fastcgi::push_stream_end(&mut request, Stream::Stdin, id);
//!
//! let mut response = &b"\x01\x06\0\x01\0\x02\0\0hi\x01\x03\0\x01\0\x08\0\0\0\0\0\0\0\0\0\0"[..];
//! let mut parser = Parser::new(id);
//! let mut output = Vec::new();
//! while !parser.is_done() {
//!     let step = parser.parse(response)?;
//!     response = &response[step.consumed..];
//!     match step.event {
//!         Some(Event::Stdout(text)) => output.extend_from_slice(text),
//!         Some(Event::End(end)) => assert!(end.status.is_complete()),
//!         _ => assert!(!response.is_empty(), "more bytes have to be read here"),
//!     }
//! }
//! assert_eq!(output, b"hi");
//! # Ok::<(), tussah_wire::Malformed>(())
//! ```

mod pairs;
mod parse;
mod write;

pub use pairs::{Pairs, push_pair};
pub use parse::{EndRequest, Event, Parser, ProtocolStatus, Step, VALUES_BYTES_MAX, Values};
pub use write::{
    CONTENT_BYTES_MAX, Chunk, Role, Stream, chunks, push_abort_request, push_begin_request,
    push_get_values, push_stream, push_stream_end,
};

/// The length of a record's header, in bytes (section 3.3).
const HEADER_BYTES: usize = 8;

/// The only version of the protocol (section 8).
const VERSION: u8 = 1;

/// The names that `GET_VALUES` asks for (section 4.1).
const MAX_CONNS: &[u8] = b"FCGI_MAX_CONNS";
const MAX_REQS: &[u8] = b"FCGI_MAX_REQS";
const MPXS_CONNS: &[u8] = b"FCGI_MPXS_CONNS";

/// The types of records (section 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Record {
    BeginRequest = 1,
    AbortRequest = 2,
    EndRequest = 3,
    Params = 4,
    Stdin = 5,
    Stdout = 6,
    Stderr = 7,
    Data = 8,
    GetValues = 9,
    GetValuesResult = 10,
    UnknownType = 11,
}
