//! The item types of the standard modules.

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use super::net::Peer;
use crate::flow::{Fields, Value};

/// A line, a frame or a datagram, together with its peer.
///
/// A message has the fields `text` and `size`, for modules such as [`Filter`](super::Filter).
#[derive(Clone)]
pub struct Message {
    /// The bytes of the message, without the line ending or the frame length.
    pub bytes: Vec<u8>,
    /// The sender of the message, or the peer to which [`Reply`](super::Reply) sends it.
    pub peer: Peer,
}

impl Message {
    /// Creates a message that comes from a peer or is to be sent to it.
    #[must_use]
    pub fn new(peer: Peer, bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self { bytes, peer }
    }

    /// Returns the bytes as a string, with U+FFFD in place of invalid UTF-8.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Message").field(&self.text()).finish()
    }
}

/// Writes the bytes as [`text`](Message::text).
impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

/// Creates a message without a source, for tests of graphs.
impl FromStr for Message {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self::new(Peer::nobody(), text))
    }
}

impl Fields for Message {
    const NAMES: &'static [&'static str] = &["text", "size"];

    fn field(&self, name: &str) -> Option<Value> {
        match name {
            "text" => Some(Value::Text(self.text().into_owned())),
            "size" => Some(Value::Size(self.bytes.len() as u64)),
            _ => None,
        }
    }
}

/// An item that a module failed to process, on its way to [`Retry`](super::Retry) and back.
///
/// A module that can fail to handle an item returns an `Attempt` as its error. Such a module
/// receives the items to retry, also as `Attempt`s, at a separate input port.
///
/// ```
/// use tussah::flow::module;
/// use tussah::modules::Attempt;
///
/// fn save(number: u64) -> Result<(), String> {
///     Err(format!("there is no room for {number}"))
/// }
///
/// #[derive(Default)]
/// struct Save;
///
/// #[module]
/// impl Save {
///     fn run(&self, number: u64) -> Result<(), Attempt<u64>> {
///         save(number).map_err(|why| Attempt::first(number, why))
///     }
///
///     #[port]
///     fn again(&self, attempt: Attempt<u64>) -> Result<(), Attempt<u64>> {
///         save(attempt.item).map_err(|why| attempt.failed(why))
///     }
/// }
/// # fn main() {}
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attempt<T> {
    /// The item that failed.
    pub item: T,
    /// The number of failed attempts.
    pub failures: u32,
    /// The reason for the last failure.
    pub why: String,
}

impl<T> Attempt<T> {
    /// Creates an `Attempt` for an item that has failed once.
    #[must_use]
    pub fn first(item: T, why: impl fmt::Display) -> Self {
        Self {
            item,
            failures: 1,
            why: why.to_string(),
        }
    }

    /// Records another failure and its reason.
    #[must_use]
    pub fn failed(self, why: impl fmt::Display) -> Self {
        Self {
            item: self.item,
            failures: self.failures.saturating_add(1),
            why: why.to_string(),
        }
    }
}
