//! The lines of a head (RFC 9112, sections 2 and 5).

use super::head::{HEAD_BYTES_MAX, Limits};
use super::refusal::{Kind, Refusal};
use super::span::Span;
use super::syntax::{name_len, text_len};

/// The reason why parsing stops.
#[derive(Debug)]
pub(crate) enum Stop {
    /// There is no error so far, but more bytes are needed.
    More,
    /// The message is refused.
    Refused(Refusal),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Calls `parse` for the head at the start of `bytes`, limited to the maximum length. Returns
/// `None` if the head is incomplete.
#[inline(always)]
pub(crate) fn head_within<H>(
    bytes: &[u8],
    limits: &Limits,
    parse: impl FnOnce(&[u8]) -> Result<H, Stop>,
) -> Result<Option<H>, Refusal> {
    let len_max = limits.head_bytes_max.min(HEAD_BYTES_MAX);
    let seen = &bytes[..bytes.len().min(len_max)];
    match parse(seen) {
        Ok(head) => Ok(Some(head)),
        Err(Stop::Refused(refusal)) => Err(refusal),
        Err(Stop::More) if seen.len() == len_max => Err(Refusal::new(Kind::HeadLong, len_max)),
        Err(Stop::More) => Ok(None),
    }
}

/// Returns the refusal of the byte at `at`, or `Stop::More` if that byte has not arrived yet.
#[cold]
pub(crate) fn refuse_at(bytes: &[u8], at: usize, kind: Kind) -> Stop {
    match bytes.get(at) {
        None => Stop::More,
        Some(&byte) => Refusal::of_byte(kind, at, byte).into(),
    }
}

/// Returns the start of the line after the CR LF at `at`. Anything else there is refused with
/// `kind`.
#[inline(always)]
pub(crate) fn line_end(bytes: &[u8], at: usize, kind: Kind) -> Result<usize, Stop> {
    if bytes.get(at..at + 2) == Some(b"\r\n") {
        return Ok(at + 2);
    }
    Err(line_end_missing(bytes, at, kind))
}

#[cold]
fn line_end_missing(bytes: &[u8], at: usize, kind: Kind) -> Stop {
    match bytes.get(at) {
        Some(b'\n') => Refusal::new(Kind::LineFeedBare, at).into(),
        Some(b'\r') => refuse_at(bytes, at + 1, Kind::ReturnBare),
        _ => refuse_at(bytes, at, kind),
    }
}

/// One field line.
pub(crate) struct FieldLine<'b> {
    pub(crate) name: &'b [u8],
    /// The value without surrounding white space.
    pub(crate) value: Span,
    /// The start of the next line.
    pub(crate) next: usize,
}

/// Reads the field line at `at` (RFC 9112, section 5).
#[inline(always)]
pub(crate) fn field_line(bytes: &[u8], at: usize) -> Result<FieldLine<'_>, Stop> {
    let line = &bytes[at..];
    let name_len = name_len(line);
    let (name, [b':', after @ ..]) = line.split_at(name_len) else {
        return Err(name_refused(bytes, at, at + name_len));
    };
    if name.is_empty() {
        return Err(name_refused(bytes, at, at));
    }
    let mut text = after;
    while let [b' ' | b'\t', rest @ ..] = text {
        text = rest;
    }
    let start = bytes.len() - text.len();
    let mut value = &text[..text_len(text)];
    let next = line_end(bytes, start + value.len(), Kind::ValueByte)?;
    while let [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    Ok(FieldLine {
        name,
        value: Span::new(start, start + value.len()),
        next,
    })
}

#[cold]
fn name_refused(bytes: &[u8], at: usize, stop: usize) -> Stop {
    let kind = match bytes.get(stop) {
        Some(b' ' | b'\t') if stop == at => Kind::Fold,
        Some(b' ' | b'\t') => Kind::NameSpace,
        Some(b':') => Kind::NameEmpty,
        Some(b'\r' | b'\n') => return no_colon(bytes, stop),
        _ => Kind::NameByte,
    };
    refuse_at(bytes, stop, kind)
}

/// Handles a line that ends within its name. An invalid line ending is reported first.
fn no_colon(bytes: &[u8], at: usize) -> Stop {
    match line_end(bytes, at, Kind::NameByte) {
        Ok(_) => refuse_at(bytes, at, Kind::NameByte),
        Err(stop) => stop,
    }
}
