//! The chunked transfer coding (RFC 9112, section 7.1).

use super::{Limits, Step};
use crate::http::refusal::{Kind, Refusal};
use crate::http::syntax::{TOKEN, is, is_blank, is_text};

/// Bound, in digits: the maximum number in the size of a chunk, including leading zeros; as many as
/// a `u64` needs. A longer size is refused.
const SIZE_DIGITS_MAX: u8 = 16;

/// The state of the decoder: what it expects next.
///
/// The rest of the chunk size line is checked in full against the grammar of section 7.1.1,
/// including quoted strings, because request smuggling exploits lines that two programs read
/// differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expect {
    /// A digit of the size, after the given number of digits, or what follows the size.
    Size { digits: u8 },
    /// The `;` of an extension, after white space.
    Extension,
    /// The name of an extension, after its `;` and white space.
    NameStart,
    /// More of the name, or what follows it.
    Name,
    /// A `=` or `;`, after the name and white space.
    NameEnd,
    /// The value, after its `=` and white space.
    ValueStart,
    /// More of an unquoted value, or what follows it.
    Value,
    /// More of a quoted value.
    Quoted,
    /// Any character, after a backslash within quotes.
    QuotedPair,
    /// The end of an extension, after its closing quote.
    ValueEnd,
    /// LF at the end of the chunk size line.
    SizeFeed,
    /// `left` bytes of chunk data.
    Data,
    /// CR after the chunk.
    DataReturn,
    /// LF after that CR.
    DataFeed,
    /// A trailer, or the empty line.
    TrailerStart,
    /// More of a trailer's name, or its colon.
    TrailerName,
    /// More of a trailer's value, or CR.
    TrailerValue,
    /// LF at the end of a trailer.
    TrailerFeed,
    /// LF of the empty line.
    LastFeed,
    /// Nothing.
    Nothing,
}

#[derive(Clone, Debug)]
pub(super) struct Chunked {
    expect: Expect,
    /// The remaining bytes of the chunk. While the size is being read, its value so far.
    left: u64,
    /// The bytes that the body may still have, excluding this chunk.
    body_left: u64,
    extension_left: usize,
    trailer_left: usize,
    /// Bytes consumed so far, for the position in a refusal.
    at: u64,
}

impl Chunked {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            expect: Expect::Size { digits: 0 },
            left: 0,
            body_left: limits.body_bytes_max,
            extension_left: limits.extension_bytes_max,
            trailer_left: limits.trailer_bytes_max,
            at: 0,
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.expect == Expect::Nothing
    }

    pub(super) fn decode(&mut self, bytes: &[u8]) -> Result<Step, Refusal> {
        let mut body = 0..0;
        let mut at = 0;
        while at < bytes.len() && !self.is_done() {
            if self.expect != Expect::Data {
                self.expect = self
                    .next(bytes[at])
                    .map_err(|kind| self.refuse(kind, at, bytes[at]))?;
                at += 1;
                continue;
            }
            if !body.is_empty() {
                break;
            }
            let len = self.left.min((bytes.len() - at) as u64);
            body = at..at + len as usize;
            at = body.end;
            self.left -= len;
            if self.left == 0 {
                self.expect = Expect::DataReturn;
            }
        }
        self.at += at as u64;
        Ok(Step {
            consumed: at,
            body,
            done: self.is_done(),
        })
    }

    #[cold]
    fn refuse(&self, kind: Kind, at: usize, byte: u8) -> Refusal {
        Refusal::of_byte(kind, at, byte).after(self.at)
    }

    /// Returns the state after `byte`, which is not chunk data.
    fn next(&mut self, byte: u8) -> Result<Expect, Kind> {
        match self.expect {
            Expect::Size { digits } => self.size(digits, byte),
            Expect::SizeFeed => match byte {
                b'\n' if self.left == 0 => Ok(Expect::TrailerStart),
                b'\n' => Ok(Expect::Data),
                _ => Err(Kind::ReturnBare),
            },
            Expect::DataReturn if byte == b'\r' => Ok(Expect::DataFeed),
            Expect::DataFeed if byte == b'\n' => Ok(Expect::Size { digits: 0 }),
            Expect::DataReturn | Expect::DataFeed => Err(Kind::ChunkEnd),
            Expect::TrailerStart
            | Expect::TrailerName
            | Expect::TrailerValue
            | Expect::TrailerFeed
            | Expect::LastFeed => self.trailer(byte),
            Expect::Data | Expect::Nothing => unreachable!("no byte is looked at in these states"),
            _ => self.extension(byte),
        }
    }

    fn size(&mut self, digits: u8, byte: u8) -> Result<Expect, Kind> {
        match char::from(byte).to_digit(16) {
            Some(_) if digits == SIZE_DIGITS_MAX => Err(Kind::ChunkSizeLong),
            Some(digit) => {
                // Sixteen digits cannot overflow.
                self.left = self.left << 4 | u64::from(digit);
                Ok(Expect::Size { digits: digits + 1 })
            }
            None if digits == 0 => Err(Kind::ChunkSize),
            None => {
                self.body_left = self
                    .body_left
                    .checked_sub(self.left)
                    .ok_or(Kind::BodyLong)?;
                self.line_end_or(byte, Expect::Extension)
            }
        }
    }

    /// Returns what may follow a size, a name or a value: the end of the line, a further extension,
    /// or white space and then `blank`.
    fn line_end_or(&mut self, byte: u8, blank: Expect) -> Result<Expect, Kind> {
        match byte {
            b'\r' => return Ok(Expect::SizeFeed),
            b'\n' => return Err(Kind::LineFeedBare),
            _ => self.count_extension()?,
        }
        match byte {
            b';' => Ok(Expect::NameStart),
            _ if is_blank(byte) => Ok(blank),
            _ => Err(Kind::ChunkExtension),
        }
    }

    fn count_extension(&mut self) -> Result<(), Kind> {
        self.extension_left = self
            .extension_left
            .checked_sub(1)
            .ok_or(Kind::ChunkExtensionsLong)?;
        Ok(())
    }

    fn extension(&mut self, byte: u8) -> Result<Expect, Kind> {
        match self.expect {
            Expect::Name if byte != b'=' && !is(byte, TOKEN) => {
                return self.line_end_or(byte, Expect::NameEnd);
            }
            Expect::Value if !is(byte, TOKEN) => return self.line_end_or(byte, Expect::Extension),
            Expect::ValueEnd => return self.line_end_or(byte, Expect::Extension),
            _ => self.count_extension()?,
        }
        match (self.expect, byte) {
            (
                expect @ (Expect::Extension
                | Expect::NameStart
                | Expect::NameEnd
                | Expect::ValueStart),
                b' ' | b'\t',
            ) => Ok(expect),
            (Expect::Extension | Expect::NameEnd, b';') => Ok(Expect::NameStart),
            (Expect::Name | Expect::NameEnd, b'=') => Ok(Expect::ValueStart),
            (Expect::NameStart | Expect::Name, _) if is(byte, TOKEN) => Ok(Expect::Name),
            (Expect::ValueStart, b'"') => Ok(Expect::Quoted),
            (Expect::ValueStart | Expect::Value, _) if is(byte, TOKEN) => Ok(Expect::Value),
            (Expect::Quoted, b'"') => Ok(Expect::ValueEnd),
            (Expect::Quoted, b'\\') => Ok(Expect::QuotedPair),
            (Expect::Quoted | Expect::QuotedPair, _) if is_text(byte) => Ok(Expect::Quoted),
            _ => Err(Kind::ChunkExtension),
        }
    }

    /// Checked like the fields of a head (RFC 9112, section 5).
    fn trailer(&mut self, byte: u8) -> Result<Expect, Kind> {
        self.trailer_left = self.trailer_left.checked_sub(1).ok_or(Kind::TrailersLong)?;
        match (self.expect, byte) {
            (Expect::TrailerStart, b'\r') => Ok(Expect::LastFeed),
            (Expect::LastFeed, b'\n') => Ok(Expect::Nothing),
            (Expect::TrailerName, b':') => Ok(Expect::TrailerValue),
            (Expect::TrailerStart | Expect::TrailerName, _) if is(byte, TOKEN) => {
                Ok(Expect::TrailerName)
            }
            (Expect::TrailerValue, b'\r') => Ok(Expect::TrailerFeed),
            (Expect::TrailerValue, _) if is_text(byte) => Ok(Expect::TrailerValue),
            (Expect::TrailerFeed, b'\n') => Ok(Expect::TrailerStart),
            (Expect::LastFeed | Expect::TrailerFeed, _) => Err(Kind::ReturnBare),
            (_, b'\n') => Err(Kind::LineFeedBare),
            (Expect::TrailerStart, b' ' | b'\t') => Err(Kind::Fold),
            (Expect::TrailerStart, b':') => Err(Kind::NameEmpty),
            (Expect::TrailerName, b' ' | b'\t') => Err(Kind::NameSpace),
            (Expect::TrailerValue, _) => Err(Kind::ValueByte),
            _ => Err(Kind::NameByte),
        }
    }
}
