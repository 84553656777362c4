//! Messages in a byte stream: lines, or frames that start with their length.

use std::fmt;

use crate::flow::{Kind, Param, Value};

/// Bound, in bytes: the default maximum length of a message. A connection holds a buffer of up to
/// this size.
pub(super) const LONGEST: u64 = 64 << 10;

/// How messages follow one another in a byte stream: `"lines"` or `"lengths"` in Weave.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Framing {
    /// Each message ends with a line feed; a carriage return before it is not part of the message.
    #[default]
    Lines,
    /// Each message begins with its length: four bytes, the highest first.
    Lengths,
}

impl Param for Framing {
    const KIND: Kind = Kind::Text;
    const WORDS: &'static [&'static str] = &["lines", "lengths"];

    fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::Text(text) if text == "lengths" => Ok(Self::Lengths),
            _ => Ok(Self::Lines),
        }
    }
}

impl Framing {
    /// Returns the bytes of a message in a stream.
    pub(super) fn encode(self, message: &[u8]) -> Result<Vec<u8>, String> {
        let mut bytes = self.head(message.len() as u64)?;
        bytes.reserve_exact(message.len() + 1);
        bytes.extend_from_slice(message);
        if self == Self::Lines {
            bytes.push(b'\n');
        }
        Ok(bytes)
    }

    /// Returns the bytes before a message of this length.
    pub(super) fn head(self, len: u64) -> Result<Vec<u8>, String> {
        match self {
            Self::Lines => Ok(Vec::new()),
            Self::Lengths => match u32::try_from(len) {
                Ok(len) => Ok(len.to_be_bytes().to_vec()),
                Err(_) => Err("the message has 4 GiB or more".to_owned()),
            },
        }
    }
}

/// Finds the messages of a stream.
pub(super) struct Decoder {
    framing: Framing,
    longest: usize,
    buffer: Vec<u8>,
    /// The number of bytes that were searched for the end of a line.
    searched: usize,
}

/// A message that is longer than the bound.
pub(super) struct TooLong {
    longest: usize,
}

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a message has more than {} bytes", self.longest)
    }
}

impl Decoder {
    pub(super) fn new(framing: Framing, longest: u64) -> Self {
        Self {
            framing,
            longest: usize::try_from(longest).unwrap_or(usize::MAX),
            buffer: Vec::new(),
            searched: 0,
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Takes the complete messages.
    pub(super) fn messages(&mut self) -> Result<Vec<Vec<u8>>, TooLong> {
        let (mut messages, mut begin) = (Vec::new(), 0);
        let is_too_long = loop {
            let rest = &self.buffer[begin..];
            match self.framing {
                Framing::Lines => {
                    let searched = self.searched.min(rest.len());
                    let Some(end) = rest[searched..].iter().position(|byte| *byte == b'\n') else {
                        self.searched = rest.len();
                        break rest.len() > self.longest;
                    };
                    let end = searched + end;
                    let line = &rest[..end];
                    let line = line.strip_suffix(b"\r").unwrap_or(line);
                    self.searched = 0;
                    if line.len() > self.longest {
                        break true;
                    }
                    messages.push(line.to_vec());
                    begin += end + 1;
                }
                Framing::Lengths => {
                    let Some((len, rest)) = rest.split_first_chunk::<4>() else {
                        break false;
                    };
                    let len = u32::from_be_bytes(*len) as usize;
                    if len > self.longest {
                        break true;
                    }
                    let Some(message) = rest.get(..len) else {
                        break false;
                    };
                    messages.push(message.to_vec());
                    begin += 4 + len;
                }
            }
        };
        self.buffer.drain(..begin);
        // The messages before one that is too long are delivered first.
        if is_too_long && messages.is_empty() {
            // The stream ends here.
            self.buffer.clear();
            return Err(TooLong {
                longest: self.longest,
            });
        }
        Ok(messages)
    }

    /// Returns the last line of a stream that has ended, if it has no line feed. An incomplete
    /// frame is no message.
    pub(super) fn rest(self) -> Option<Vec<u8>> {
        (self.framing == Framing::Lines && !self.buffer.is_empty()).then_some(self.buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_found_however_the_stream_is_cut() {
        let check = |framing, stream: &[u8], expected: &str| {
            for cut in 1..=stream.len() {
                let (mut decoder, mut found) = (Decoder::new(framing, 5), Vec::new());
                let mut note = |message: &[u8]| {
                    found.push(String::from_utf8_lossy(message).into_owned());
                };
                'stream: for piece in stream.chunks(cut) {
                    decoder.push(piece);
                    loop {
                        match decoder.messages() {
                            Ok(messages) if messages.is_empty() => break,
                            Ok(messages) => messages.iter().for_each(|it| note(it)),
                            Err(error) => {
                                note(error.to_string().as_bytes());
                                break 'stream;
                            }
                        }
                    }
                }
                decoder.rest().iter().for_each(|it| note(it));
                assert_eq!(found.join("|"), expected, "in pieces of {cut}");
            }
        };
        let too_long = "a message has more than 5 bytes";
        check(Framing::Lines, b"a\r\n\nbcdef\nrest", "a||bcdef|rest");
        check(Framing::Lines, b"a\nbcdefg\n", &format!("a|{too_long}"));
        let frames = b"\0\0\0\x01a\0\0\0\0\0\0\0\x05bcdef\0\0";
        check(Framing::Lengths, frames, "a||bcdef");
        check(
            Framing::Lengths,
            b"\0\0\0\x01a\0\0\0\x06b",
            &format!("a|{too_long}"),
        );
    }
}
