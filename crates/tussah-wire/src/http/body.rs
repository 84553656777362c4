//! The decoding of bodies: how much of what came is body, and where it ends (RFC 9112, sections 6 and 7).

mod chunked;

use std::ops::Range;

use super::Framing;
use super::refusal::{Kind, Refusal};
use chunked::Chunked;

/// What a body may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bound, in bytes: the whole body, decoded; 1 MiB by default. A longer one is refused with 413.
    pub body_bytes_max: u64,
    /// Bound, in bytes: the chunk extensions of the whole body; 1 KiB by default, since nobody uses them.
    pub extension_bytes_max: usize,
    /// Bound, in bytes: the trailers; 8 KiB by default.
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

/// What a call of [`Decoder::decode`] has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// So many of the bytes have been dealt with.
    pub consumed: usize,
    /// Where among them the next piece of the body is; it may be empty.
    pub body: Range<usize>,
    /// Whether the body is over; what comes after `consumed` belongs to the next message.
    pub done: bool,
}

/// Decodes one body. Trailers are checked and dropped.
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
    /// So many bytes are to come.
    Left(u64),
    Chunked(Chunked),
    /// All is body, up to so many bytes; `seen` have come.
    UntilClose {
        seen: u64,
        max: u64,
    },
}

impl Decoder {
    /// A decoder for a body of this framing.
    ///
    /// # Errors
    ///
    /// It is longer than the limit (413).
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

    /// Whether the body is over; never true of one that lasts until the connection is closed.
    pub fn is_done(&self) -> bool {
        match &self.state {
            State::Left(left) => *left == 0,
            State::Chunked(chunked) => chunked.is_done(),
            State::UntilClose { .. } => false,
        }
    }

    /// Looks at the bytes that come next, those that have not been consumed.
    ///
    /// Something is consumed whenever there are bytes and the body is not done. There is one piece of body
    /// in a step, so call it again while bytes are left.
    ///
    /// # Errors
    ///
    /// The chunks break the rules or are over a limit. The decoder is of no use then.
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
