//! Protocols without I/O: bytes in, valid types out, and back.
//!
//! Nothing here reads a socket, a clock or a file, so each part can be fuzzed, and used with any runtime.

#![forbid(unsafe_code)]

pub mod http;
