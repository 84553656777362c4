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

/// A byte of value one in each place.
const ONES: u64 = 0x0101_0101_0101_0101;

/// How many bytes come before the first for which `marks` sets the high bit of its place, eight at a time; or how
/// many there are in whole eights.
///
/// `marks` may also set that bit in places above the first, but in none below.
#[inline(always)]
fn eights_before(bytes: &[u8], marks: impl Fn(u64) -> u64) -> usize {
    let mut before = 0;
    for eight in bytes.as_chunks::<8>().0 {
        let marked = marks(u64::from_le_bytes(*eight)) & (ONES << 7);
        if marked != 0 {
            return before + marked.trailing_zeros() as usize / 8;
        }
        before += 8;
    }
    before
}

/// The length of the name of a field at the start of `bytes`.
#[inline(always)]
fn name_len(bytes: &[u8]) -> usize {
    // Names are made of letters and hyphens, but for few.
    let len = eights_before(bytes, |word| {
        let ascii = word & (ONES * 0x7f);
        let small = ascii | (ONES * 0x20);
        // The high bit of a place is set where the sum says so; no sum leaves its place.
        let not_before_a = small + ONES * (0x80 - u64::from(b'a'));
        let after_z = small + ONES * (0x7f - u64::from(b'z'));
        let not_hyphen = (ascii ^ (ONES * u64::from(b'-'))) + ONES * 0x7f;
        (!not_before_a | after_z) & not_hyphen | word
    });
    match bytes.get(len) {
        Some(b':') => len,
        _ => run(bytes, len, TOKEN),
    }
}

/// The length of the text at the start of `bytes`: up to the first control character but for tabs.
#[inline(always)]
pub(crate) fn text_len(bytes: &[u8]) -> usize {
    let mut len = 0;
    loop {
        // The subtractions set the high bit of a byte that is below the space, or is DEL
        // (H. S. Warren, "Hacker's Delight", section 6-1).
        len += eights_before(&bytes[len..], |word| {
            let below_space = word.wrapping_sub(ONES * 0x20);
            let delete = (word ^ (ONES * 0x7f)).wrapping_sub(ONES);
            (below_space | delete) & !word
        });
        match bytes.get(len) {
            Some(&byte) if is_text(byte) => len += 1,
            _ => return len,
        }
    }
}

/// Whether `byte` may be in the value of a field (RFC 9110, section 5.5).
pub(crate) fn is_text(byte: u8) -> bool {
    byte == b'\t' || !byte.is_ascii_control()
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
pub(crate) struct FieldLine<'b> {
    pub(crate) name: &'b [u8],
    /// Without the white space around it.
    pub(crate) value: Span,
    /// Where the next line begins.
    pub(crate) next: usize,
}

/// Reads the line of a field at `at` (RFC 9112, section 5).
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

/// Whether `text` is `word`, which is in small letters and hyphens and has four of them at least.
///
/// Four bytes at a time, the last of which may be looked at twice. To set bit 5 maps no other character
/// to a small letter or a hyphen but CR, which is neither in a name nor in a value.
#[inline(always)]
pub(crate) fn is_word<const N: usize>(text: &[u8], word: &[u8; N]) -> bool {
    let Ok(text) = <&[u8; N]>::try_from(text) else {
        return false;
    };
    let four =
        |of: &[u8; N], at: usize| u32::from_le_bytes([of[at], of[at + 1], of[at + 2], of[at + 3]]);
    let mut at = 0;
    while at < N {
        let start = at.min(N - 4);
        if four(text, start) | 0x2020_2020 != four(word, start) {
            return false;
        }
        at += 4;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Eight at a time is the same as one at a time: each byte, at each place, before and after another that ends it.
    #[test]
    fn lengths() {
        for byte in 0..=u8::MAX {
            for place in 0..20 {
                let mut text = [b'a'; 20];
                text[place] = byte;
                assert_eq!(
                    text_len(&text),
                    if is_text(byte) { 20 } else { place },
                    "{byte} at {place}"
                );
                assert_eq!(
                    name_len(&text),
                    if is(byte, TOKEN) { 20 } else { place },
                    "{byte} at {place}"
                );
                if place > 0 {
                    text[0] = b'\r';
                    assert_eq!((text_len(&text), name_len(&text)), (0, 0));
                }
            }
        }
    }

    #[test]
    fn words() {
        let check = |text: &str, expected| {
            assert_eq!(is_word(text.as_bytes(), b"if-match"), expected, "{text}")
        };
        check("if-match", true);
        check("IF-mAtCh", true);
        check("if-matc", false);
        check("if-match2", false);
        check("if_match", false);
        check("if-matcH", true);
        check("xf-match", false);
    }

    /// The bytes that RFC 9110, section 5.6.2, lists, and the bytes that a target may hold.
    #[test]
    fn classes() {
        let all = |class| {
            (0..=u8::MAX)
                .filter(|&byte| is(byte, class))
                .map(char::from)
                .collect::<String>()
        };
        let (digits, letters) = ("0123456789", "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
        let small = letters.to_lowercase();
        assert_eq!(
            all(TOKEN),
            format!("!#$%&'*+-.{digits}{letters}^_`{small}|~")
        );
        assert_eq!(
            all(QUERY),
            format!("!$%&'()*+,-./{digits}:;=?@{letters}[\\]^_`{small}{{|}}~")
        );
        assert_eq!(all(PATH), all(QUERY).replace('?', ""));
        assert_eq!(
            all(HOST),
            format!("!$&'()*+,-.{digits};={letters}_{small}~")
        );
    }
}
