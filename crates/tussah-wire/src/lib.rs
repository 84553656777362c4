//! Parsers and encoders for protocols and file formats, without I/O.
//!
//! No code in this crate reads a socket, a clock or a file, so every part can be fuzzed and used
//! with any runtime.

#![forbid(unsafe_code)]

pub mod cgi;
pub mod fastcgi;
pub mod gnutella;
pub mod http;
mod line;
mod malformed;
pub mod mp4;
pub mod mpeg_ts;

pub use malformed::Malformed;
