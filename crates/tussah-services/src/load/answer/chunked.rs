//! Bodies in chunks (RFC 9112, section 7.1).

use super::{Bad, take};

/// Bound, in bytes: how long the line of a chunk's size, and all trailers, may be.
const LINE_BYTES_MAX: usize = 8 * 1024;

/// What is next in a body in chunks.
#[derive(Debug)]
pub(super) struct Chunked {
    part: Part,
    /// Bytes of the line, or of the trailers.
    line_len: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// The size, with whether it has a digit.
    Size(u64, bool),
    /// What may follow the size, up to the end of the line.
    Extension(u64),
    Data(u64),
    /// The end of the line after the data.
    After,
    /// The trailers, at the beginning of a line or within one.
    Trailer {
        begins: bool,
    },
}

impl Chunked {
    pub(super) fn new() -> Self {
        Self {
            part: Part::Size(0, false),
            line_len: 0,
        }
    }

    /// Finds the next part of the body; an empty one: the input has no more; `None`: the body ends.
    pub(super) fn step<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<&'a [u8]>, Bad> {
        loop {
            if let Part::Data(left) = self.part
                && left > 0
            {
                let len = input.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                self.part = Part::Data(left - len as u64);
                return Ok(Some(take(input, len)));
            }
            let Some((&byte, rest)) = input.split_first() else {
                return Ok(Some(&[]));
            };
            *input = rest;
            self.line_len += 1;
            if self.line_len > LINE_BYTES_MAX {
                return Err(Bad);
            }
            if self.byte(byte)? {
                return Ok(None);
            }
        }
    }

    /// Goes on by a byte outside of the data; true at the end of the body.
    fn byte(&mut self, byte: u8) -> Result<bool, Bad> {
        self.part = match (self.part, byte) {
            (Part::Size(size, _), digit) if digit.is_ascii_hexdigit() => {
                let digit = char::from(digit).to_digit(16).expect("it is a digit");
                let larger = size.checked_mul(16).ok_or(Bad)?;
                Part::Size(larger + u64::from(digit), true)
            }
            (Part::Size(size, true), b';' | b' ' | b'\t' | b'\r') => Part::Extension(size),
            (Part::Size(0, true) | Part::Extension(0), b'\n') => Part::Trailer { begins: true },
            (Part::Size(size, true) | Part::Extension(size), b'\n') => {
                self.line_len = 0;
                Part::Data(size)
            }
            (Part::Extension(size), _) => Part::Extension(size),
            (Part::Data(_), b'\r') => Part::After,
            (Part::Data(_) | Part::After, b'\n') => {
                self.line_len = 0;
                Part::Size(0, false)
            }
            (Part::Trailer { begins: true }, b'\n') => return Ok(true),
            (Part::Trailer { begins: true }, b'\r') => self.part,
            (Part::Trailer { .. }, byte) => Part::Trailer {
                begins: byte == b'\n',
            },
            _ => return Err(Bad),
        };
        Ok(false)
    }
}
