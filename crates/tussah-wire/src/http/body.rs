//! Body decoding: which bytes belong to the body, and where it ends (RFC 9112, sections 6 and 7).

mod chunked;

use std::ops::Range;

use super::Framing;
use super::refusal::{Kind, Refusal};
use chunked::Chunked;

/// The limits on a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bound, in bytes: the length of the whole decoded body; 1 MiB by default. A body above this
    /// limit is refused with status 413.
    pub body_bytes_max: u64,
    /// Bound, in bytes: the total length of the chunk extensions of the body; 1 KiB by default,
    /// because chunk extensions are rarely used.
    pub extension_bytes_max: usize,
    /// Bound, in bytes: the total length of the trailers; 8 KiB by default.
    pub trailer_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes_max: 1024 * 1024,
            extension_bytes_max: 1024,
            trailer_bytes_max: 8 * 1024,
        }
    }
}

/// The result of one call to [`Decoder::decode`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Number of bytes consumed.
    pub consumed: usize,
    /// The next part of the body, as a range within the consumed bytes. The range may be empty.
    pub body: Range<usize>,
    /// True if the body has ended; any bytes after `consumed` then belong to the next message.
    pub done: bool,
}

/// A decoder for one body. The decoder checks trailers, and then drops them.
///
/// ```
/// use tussah_wire::http::{Framing, body};
///
/// let mut bytes = &b"2\r\nhe\r\n3;x=1\r\nllo\r\n0\r\n\r\nGET /"[..];
/// let mut decoder = body::Decoder::new(Framing::Chunked, body::Limits::default())?;
/// let mut text = Vec::new();
/// loop {
///     let step = decoder.decode(bytes)?;
///     text.extend_from_slice(&bytes[step.body]);
///     bytes = &bytes[step.consumed..];
///     if step.done || bytes.is_empty() {
///         break;
///     }
/// }
/// assert_eq!((&text[..], bytes), (&b"hello"[..], &b"GET /"[..]));
/// # Ok::<(), tussah_wire::http::Refusal>(())
/// ```
#[derive(Clone, Debug)]
pub struct Decoder {
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    /// The given number of bytes remain.
    Left(u64),
    Chunked(Chunked),
    /// Everything is body, up to a limit; `seen` bytes have arrived.
    UntilClose {
        seen: u64,
        max: u64,
    },
}

impl Decoder {
    /// Creates a decoder for a body with this framing.
    ///
    /// # Errors
    ///
    /// Returns a [`Refusal`] with status 413 if the announced body is longer than the limit.
    pub fn new(framing: Framing, limits: Limits) -> Result<Self, Refusal> {
        let state = match framing {
            Framing::None => State::Left(0),
            Framing::Length(len) if len > limits.body_bytes_max => {
                return Err(Refusal::new(Kind::BodyLong, 0));
            }
            Framing::Length(len) => State::Left(len),
            Framing::Chunked => State::Chunked(Chunked::new(limits)),
            Framing::UntilClose => State::UntilClose {
                seen: 0,
                max: limits.body_bytes_max,
            },
        };
        Ok(Self { state })
    }

    /// Returns whether the body has ended. The result is never true for a body that ends when the
    /// connection closes.
    pub fn is_done(&self) -> bool {
        match &self.state {
            State::Left(left) => *left == 0,
            State::Chunked(chunked) => chunked.is_done(),
            State::UntilClose { .. } => false,
        }
    }

    /// Decodes the next bytes. `bytes` must start with the first byte that has not been consumed.
    ///
    /// Each call consumes at least one byte, unless `bytes` is empty or the body has ended. A call
    /// yields at most one part of the body, so call `decode` again until all bytes are consumed or
    /// the body has ended.
    ///
    /// # Errors
    ///
    /// Returns a [`Refusal`] if a chunk or a trailer breaks the rules, or if the body exceeds a
    /// limit. The decoder must not be used after an error.
    pub fn decode(&mut self, bytes: &[u8]) -> Result<Step, Refusal> {
        let len = bytes.len() as u64;
        match &mut self.state {
            State::Left(left) => {
                let body_len = len.min(*left);
                *left -= body_len;
                Ok(Step {
                    consumed: body_len as usize,
                    body: 0..body_len as usize,
                    done: *left == 0,
                })
            }
            State::Chunked(chunked) => chunked.decode(bytes),
            State::UntilClose { seen, max } if len > *max - *seen => {
                Err(Refusal::new(Kind::BodyLong, 0).after(*max))
            }
            State::UntilClose { seen, .. } => {
                *seen += len;
                Ok(Step {
                    consumed: bytes.len(),
                    body: 0..bytes.len(),
                    done: false,
                })
            }
        }
    }
}
