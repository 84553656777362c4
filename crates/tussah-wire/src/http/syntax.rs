//! Character classes (RFC 9110, section 5.6, and RFC 3986).

/// Allowed in a token: a method or a field name.
pub(crate) const TOKEN: u8 = 1;
/// Allowed in the path of a target.
pub(crate) const PATH: u8 = 2;
/// Allowed in the query of a target.
pub(crate) const QUERY: u8 = 4;
/// Allowed in a host name.
pub(crate) const HOST: u8 = 8;
/// A byte that stands for itself in a path, regardless of its neighbors.
pub(crate) const PLAIN: u8 = 16;

static CLASSES: [u8; 256] = classes();

/// RFC 9110, section 5.6.2; RFC 3986, section 3.2.2.
///
/// A target may contain any visible ASCII character except `"`, `#`, `<` and `>`. This is more than
/// RFC 3986 allows, since browsers send `|`, `[`, `{` and others unescaped.
const fn classes() -> [u8; 256] {
    let classes = with(TOKEN | PATH | QUERY | HOST, b"0123456789", [0; 256]);
    let classes = with(
        TOKEN | PATH | QUERY | HOST,
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        classes,
    );
    let classes = with(
        TOKEN | PATH | QUERY | HOST,
        b"abcdefghijklmnopqrstuvwxyz",
        classes,
    );
    let classes = with(TOKEN, b"!#$%&'*+-.^_`|~", classes);
    let classes = with(PATH | QUERY, b"!$%&'()*+,-./:;=@[\\]^_`{|}~", classes);
    let classes = with(QUERY, b"?", classes);
    let mut classes = with(HOST, b"!$&'()*+,-.;=_~", classes);
    let mut byte = 0;
    while byte < classes.len() {
        if !matches!(byte as u8, b'%' | b'\\' | b'/' | b'.') && !(byte as u8).is_ascii_control() {
            classes[byte] |= PLAIN;
        }
        byte += 1;
    }
    classes
}

/// Returns `classes` with these bytes added to `class`.
const fn with(class: u8, bytes: &[u8], mut classes: [u8; 256]) -> [u8; 256] {
    let mut at = 0;
    while at < bytes.len() {
        classes[bytes[at] as usize] |= class;
        at += 1;
    }
    classes
}

#[inline(always)]
pub(crate) fn is(byte: u8, class: u8) -> bool {
    CLASSES[usize::from(byte)] & class != 0
}

/// Returns the end of the run of `class` bytes that starts at `at`.
#[inline(always)]
pub(crate) fn run(bytes: &[u8], mut at: usize, class: u8) -> usize {
    while let Some(&byte) = bytes.get(at)
        && is(byte, class)
    {
        at += 1;
    }
    at
}

/// The value one in each byte.
const ONES: u64 = 0x0101_0101_0101_0101;

/// Returns the number of bytes before the first one for which `marks` sets the high bit, checking
/// eight at a time. If there is none, returns the length rounded down to a multiple of eight.
///
/// `marks` may also set that bit in later bytes, but in no earlier one.
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

/// Returns the length of the field name at the start of `bytes`.
#[inline(always)]
pub(crate) fn name_len(bytes: &[u8]) -> usize {
    // Nearly all names consist of letters and hyphens.
    let len = eights_before(bytes, |word| {
        let ascii = word & (ONES * 0x7f);
        let small = ascii | (ONES * 0x20);
        // The sum sets the high bit of a matching byte, and no sum carries into the next byte.
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

/// Returns the length of the text at the start of `bytes`, up to the first control character other
/// than tab.
#[inline(always)]
pub(crate) fn text_len(bytes: &[u8]) -> usize {
    let mut len = 0;
    loop {
        // The subtractions set the high bit of each byte that is below space or is DEL (H. S.
        // Warren, "Hacker's Delight", section 6-1).
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

/// Returns whether `byte` is allowed in a field value (RFC 9110, section 5.5).
pub(crate) fn is_text(byte: u8) -> bool {
    byte == b'\t' || !byte.is_ascii_control()
}

#[inline(always)]
pub(crate) fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// Returns `text` without surrounding white space.
pub(crate) fn trim(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

/// Returns the members of a list without quoted strings, including empty members (RFC 9110, section
/// 5.6.1).
pub(crate) fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(trim)
}

/// Returns whether `text` equals `word` in any case. `word` consists of at least four lowercase
/// letters and hyphens.
///
/// It compares four bytes at a time, and may compare the last bytes twice. Setting bit 5 maps no
/// other character to a lowercase letter or hyphen, except CR, which never occurs in a name or
/// value.
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

    /// Checks eight bytes at a time against one at a time: each byte value, at each position,
    /// before and after a byte that ends the run.
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

    /// The bytes listed in RFC 9110, section 5.6.2, and the bytes allowed in a target.
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
