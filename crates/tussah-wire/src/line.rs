//! Lines that end with CR LF or with LF alone, as CGI and Gnutella allow.

use crate::http::span::Span;
use crate::http::syntax::{name_len, text_len};
use crate::malformed::{Found, Malformed};

/// The reason why parsing stops.
#[derive(Debug)]
pub(crate) enum Stop {
    /// There is no error so far, but more bytes are needed.
    More,
    Malformed(Malformed),
}

impl From<Malformed> for Stop {
    fn from(error: Malformed) -> Self {
        Self::Malformed(error)
    }
}

impl Stop {
    /// Returns the error for the byte at `at`, or `More` if that byte has not arrived yet.
    #[cold]
    pub(crate) fn at(bytes: &[u8], at: usize, expected: &'static str) -> Self {
        match bytes.get(at) {
            None => Self::More,
            Some(&byte) => Malformed::new(at as u64, expected, Found::Byte(byte)).into(),
        }
    }
}

/// Calls `parse` for the head at the start of `bytes`, limited to `len_max` bytes. Returns `None`
/// if the head is incomplete.
pub(crate) fn head_within<H>(
    bytes: &[u8],
    len_max: usize,
    parse: impl FnOnce(&[u8]) -> Result<H, Stop>,
) -> Result<Option<H>, Malformed> {
    let seen = &bytes[..bytes.len().min(len_max)];
    match parse(seen) {
        Ok(head) => Ok(Some(head)),
        Err(Stop::Malformed(error)) => Err(error),
        Err(Stop::More) if seen.len() == len_max => {
            let found = Found::Text("a head that is over the limit");
            Err(Malformed::new(len_max as u64, "the end of the head", found))
        }
        Err(Stop::More) => Ok(None),
    }
}

/// Returns the start of the line after the line end at `at`.
pub(crate) fn line_end(bytes: &[u8], at: usize, expected: &'static str) -> Result<usize, Stop> {
    match bytes.get(at..).unwrap_or_default() {
        [b'\n', ..] => Ok(at + 1),
        [b'\r', b'\n', ..] => Ok(at + 2),
        [b'\r', ..] => Err(Stop::at(bytes, at + 1, "LF after CR")),
        _ => Err(Stop::at(bytes, at, expected)),
    }
}

/// Returns the rest of the line at `at`, which is text, and the start of the next line.
pub(crate) fn text(bytes: &[u8], at: usize) -> Result<(Span, usize), Stop> {
    let end = at + text_len(&bytes[at..]);
    let next = line_end(bytes, end, "text or the end of the line")?;
    Ok((Span::new(at, end), next))
}

/// Returns the name and value of the field line at `at`, and the start of the next line. The value
/// may have white space around it.
pub(crate) fn field(bytes: &[u8], at: usize) -> Result<(&[u8], Span, usize), Stop> {
    let name = &bytes[at..at + name_len(&bytes[at..])];
    if name.is_empty() {
        return Err(Stop::at(bytes, at, "the name of a field, or an empty line"));
    }
    let colon = at + name.len();
    if bytes.get(colon) != Some(&b':') {
        return Err(Stop::at(
            bytes,
            colon,
            "a colon after the name of the field",
        ));
    }
    let (value, next) = text(bytes, colon + 1)?;
    Ok((name, value, next))
}

/// Returns whether the line at `at` is empty. It is not known before its first byte has arrived.
pub(crate) fn is_empty(bytes: &[u8], at: usize) -> bool {
    matches!(bytes.get(at), Some(b'\r' | b'\n'))
}
