//! Classes of bytes, lines and spans: what all parts of a message are made of (RFC 9110, section 5, and RFC 9112, section 2).

use super::refusal::{Kind, Refusal};

/// May be in a token: a method, the name of a field.
pub(crate) const TOKEN: u8 = 1;
/// May be in the path of a target.
pub(crate) const PATH: u8 = 2;
/// May be in the query of a target.
pub(crate) const QUERY: u8 = 4;
/// May be in the name of a host.
pub(crate) const HOST: u8 = 8;

static CLASSES: [u8; 256] = classes();

/// RFC 9110, section 5.6.2; RFC 3986, section 3.2.2.
///
/// A target may hold any visible ASCII character but `"`, `#`, `<` and `>`. That is more than RFC 3986
/// allows, since browsers send `|`, `[`, `{` and others as they are.
const fn classes() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut at = 0;
    while at < 256 {
        let byte = at as u8;
        if byte.is_ascii_alphanumeric() {
            classes[at] = TOKEN | PATH | QUERY | HOST;
        } else if byte.is_ascii_graphic() {
            classes[at] = match byte {
                b'"' | b'#' | b'<' | b'>' => 0,
                b'?' => QUERY,
                _ => PATH | QUERY,
            };
            if matches!(
                byte,
                b'!' | b'#'
                    | b'$'
                    | b'%'
                    | b'&'
                    | b'\''
                    | b'*'
                    | b'+'
                    | b'-'
                    | b'.'
                    | b'^'
                    | b'_'
                    | b'`'
                    | b'|'
                    | b'~'
            ) {
                classes[at] |= TOKEN;
            }
            if matches!(
                byte,
                b'!' | b'$'
                    | b'&'
                    | b'\''
                    | b'('
                    | b')'
                    | b'*'
                    | b'+'
                    | b','
                    | b'-'
                    | b'.'
                    | b';'
                    | b'='
                    | b'_'
                    | b'~'
            ) {
                classes[at] |= HOST;
            }
        }
        at += 1;
    }
    classes
}

#[inline(always)]
pub(crate) fn is(byte: u8, class: u8) -> bool {
    CLASSES[usize::from(byte)] & class != 0
}

/// Where the bytes of `class` that begin at `at` end.
#[inline(always)]
pub(crate) fn run(bytes: &[u8], at: usize, class: u8) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest
        .iter()
        .position(|&byte| !is(byte, class))
        .unwrap_or(rest.len())
}

/// Where the text that begins at `at` ends: at the first control character but for tabs.
///
/// Eight bytes at a time; the lowest byte that a subtraction marks is marked rightly
/// (H. S. Warren, "Hacker's Delight", section 6-1).
#[inline(always)]
pub(crate) fn text_end(bytes: &[u8], mut at: usize) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = ONES << 7;
    while let Some(eight) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*eight);
        let delete = word ^ (ONES * 0x7f);
        let below_space = word.wrapping_sub(ONES * 0x20) & !word;
        let found = (below_space | (delete.wrapping_sub(ONES) & !delete)) & HIGHS;
        if found == 0 {
            at += 8;
            continue;
        }
        at += found.trailing_zeros() as usize / 8;
        if bytes[at] != b'\t' {
            return at;
        }
        at += 1;
    }
    while bytes
        .get(at)
        .is_some_and(|&byte| byte == b'\t' || !byte.is_ascii_control())
    {
        at += 1;
    }
    at
}

/// Why parsing cannot go on.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Nothing is wrong so far, but more bytes are needed.
    More,
    /// The message is refused.
    Refused(Refusal),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// The refusal of the byte at `at`, or the wish for it if it is not there yet.
#[cold]
pub(crate) fn refuse_at(bytes: &[u8], at: usize, kind: Kind) -> Stop {
    match bytes.get(at) {
        None => Stop::More,
        Some(&byte) => Refusal::of_byte(kind, at, byte).into(),
    }
}

/// Where the line goes on that comes after the CR LF at `at`; `kind` is what anything else there is.
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

/// A part of the buffer that the head of a message is in.
///
/// Offsets have 16 bits: a head has at most [`HEAD_BYTES_MAX`](super::head::HEAD_BYTES_MAX) bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    start: u16,
    end: u16,
}

impl Span {
    #[inline(always)]
    pub(crate) fn new(start: usize, end: usize) -> Self {
        debug_assert!(start <= end && end <= usize::from(u16::MAX));
        Self {
            start: start as u16,
            end: end as u16,
        }
    }

    #[inline(always)]
    pub(crate) fn start(self) -> usize {
        self.start.into()
    }

    #[inline(always)]
    pub(crate) fn end(self) -> usize {
        self.end.into()
    }

    /// Whether it stands for a part that is not there: none that is there begins at 0.
    #[inline(always)]
    pub(crate) fn is_absent(self) -> bool {
        self.start == 0
    }

    /// The bytes of this part.
    #[inline(always)]
    pub(crate) fn of(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.start()..self.end()]
    }
}

/// The line of a field.
pub(crate) struct FieldLine {
    pub(crate) name: Span,
    /// Without the white space around it.
    pub(crate) value: Span,
    /// Where the next line begins.
    pub(crate) next: usize,
}

/// Reads the line of a field at `at` (RFC 9112, section 5).
#[inline(always)]
pub(crate) fn field_line(bytes: &[u8], at: usize) -> Result<FieldLine, Stop> {
    let colon = run(bytes, at, TOKEN);
    if colon == at || bytes.get(colon) != Some(&b':') {
        return Err(name_refused(bytes, at, colon));
    }
    let mut from = colon + 1;
    while bytes.get(from).is_some_and(|&byte| is_blank(byte)) {
        from += 1;
    }
    let stop = text_end(bytes, from);
    let next = line_end(bytes, stop, Kind::ValueByte)?;
    let mut to = stop;
    while to > from && is_blank(bytes[to - 1]) {
        to -= 1;
    }
    Ok(FieldLine {
        name: Span::new(at, colon),
        value: Span::new(from, to),
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

/// The line ends within its name; what is wrong with its end comes first.
fn no_colon(bytes: &[u8], at: usize) -> Stop {
    match line_end(bytes, at, Kind::NameByte) {
        Ok(_) => refuse_at(bytes, at, Kind::NameByte),
        Err(stop) => stop,
    }
}

#[inline(always)]
pub(crate) fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// `text` without the blanks around it.
pub(crate) fn trim(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

/// The members of a list without quoted strings, empty ones too (RFC 9110, section 5.6.1).
pub(crate) fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(trim)
}
