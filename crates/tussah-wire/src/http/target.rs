//! Decoding the path and the query of a target (RFC 3986, sections 2.1, 5.2.4 and 6.2.2).

use std::borrow::Cow;

use super::refusal::{Kind, Refusal};
use super::syntax::{PLAIN, run};

/// Decodes and normalizes a path, so that each resource has a single name.
///
/// The result starts with a slash, has no `.` or `..` segments, and has no empty segment except
/// possibly the last. The result can contain any byte except control characters and the backslash.
/// If the path is already normalized, the result usually borrows it.
///
/// - As in section 6.2.2, `%XX` is decoded once, before dot segments are removed. Thus, `%2e%2e`
///   counts as `..`.
/// - An encoded slash is refused, and so is any backslash, encoded or not. Intermediaries may treat
///   such a character as a separator.
/// - A `..` that would lead above the root is refused as a probable attack. The algorithm in
///   section 5.2.4 would drop such a segment.
/// - Consecutive slashes are merged, although RFC 3986 treats them as empty segments. File systems
///   also merge them, and a redirect to a path that starts with two slashes would lead to another
///   host.
///
/// ```
/// use tussah_wire::http::target;
///
/// assert_eq!(target::path(b"/a%20b/./c/../d/")?, &b"/a b/d/"[..]);
/// assert!(target::path(b"/../etc/passwd").is_err());
/// # Ok::<(), tussah_wire::http::Refusal>(())
/// ```
///
/// # Errors
///
/// Returns a [`Refusal`] if the path does not start with a slash, has a `%` without two hexadecimal
/// digits, contains a control character, a backslash or an encoded slash, or leads above the root.
pub fn path(raw: &[u8]) -> Result<Cow<'_, [u8]>, Refusal> {
    if raw.first() != Some(&b'/') {
        return Err(Refusal::new(Kind::PathStart, 0));
    }
    if is_normal(raw) {
        Ok(Cow::Borrowed(raw))
    } else {
        normalize(raw, Escapes::Decode).map(Cow::Owned)
    }
}

/// Decodes and normalizes a path as [`path`] does, except that encoded slashes (`%2F`), backslashes
/// (`%5C`) and control characters (such as `%0A`) stay encoded instead of being refused. In the
/// result, the hexadecimal digits of encoded bytes are uppercase.
///
/// An encoded slash therefore never separates segments. The result does not show whether the client
/// sent `%2F` or `%252F`; the result of [`segments`] does. Use the result as a key in tables of
/// paths, not as a file name.
///
/// ```
/// use tussah_wire::http::target;
///
/// assert_eq!(target::path_with_escapes(b"/files/./a%2fb%20c")?, b"/files/a%2Fb c");
/// assert!(target::path_with_escapes(b"/../etc/passwd").is_err());
/// # Ok::<(), tussah_wire::http::Refusal>(())
/// ```
///
/// # Errors
///
/// Returns the same errors as [`path`], except those about encoded separators and encoded control
/// characters.
pub fn path_with_escapes(raw: &[u8]) -> Result<Vec<u8>, Refusal> {
    normal(raw, Escapes::Separators)
}

/// Returns the segments of a path, each decoded separately. Like [`path`], this function removes
/// dot segments and empty segments. However, if the path ends with a slash, the last segment is
/// empty.
///
/// A segment can contain any bytes, even `/../`. Never build a file path from segments.
///
/// ```
/// use tussah_wire::http::target;
///
/// let segments: Vec<_> = target::segments(b"/files//./a%2Fb/")?.collect();
/// assert_eq!(segments, [&b"files"[..], b"a/b", b""]);
/// # Ok::<(), tussah_wire::http::Refusal>(())
/// ```
///
/// # Errors
///
/// Returns the same errors as [`path_with_escapes`].
pub fn segments(raw: &[u8]) -> Result<impl Iterator<Item = Vec<u8>> + use<>, Refusal> {
    let path = normal(raw, Escapes::All)?;
    let mut at = 0;
    Ok(std::iter::from_fn(move || {
        let rest = path.get(at + 1..)?;
        let len = rest.iter().position(|&byte| byte == b'/');
        let segment = &rest[..len.unwrap_or(rest.len())];
        at += 1 + segment.len();
        let mut decoded = Vec::with_capacity(segment.len());
        let mut from = 0;
        while let Some(&byte) = segment.get(from) {
            let escaped = escaped(segment, from).filter(|_| byte == b'%');
            let (byte, len) = escaped.map_or((byte, 1), |byte| (byte, 3));
            decoded.push(byte);
            from += len;
        }
        Some(decoded)
    }))
}

fn normal(raw: &[u8], escapes: Escapes) -> Result<Vec<u8>, Refusal> {
    if raw.first() != Some(&b'/') {
        return Err(Refusal::new(Kind::PathStart, 0));
    }
    normalize(raw, escapes)
}

/// The treatment of encoded bytes that [`path`] refuses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Escapes {
    /// Decode them, and refuse separators and control characters.
    Decode,
    /// Decode them, but keep separators and control characters encoded.
    Separators,
    /// Decode them, but keep separators, control characters and percent signs encoded, so that
    /// nothing else looks like them.
    All,
}

/// Returns whether the path can be used unchanged. It may return false for some such paths.
fn is_normal(raw: &[u8]) -> bool {
    let mut at = 0;
    loop {
        at = run(raw, at, PLAIN);
        match raw.get(at) {
            None => return true,
            Some(b'/' | b'.') if at == 0 || raw[at - 1] != b'/' => at += 1,
            Some(_) => return false,
        }
    }
}

fn normalize(raw: &[u8], escapes: Escapes) -> Result<Vec<u8>, Refusal> {
    let mut path = Vec::with_capacity(raw.len());
    let mut at = 0;
    while at < raw.len() {
        // Here `raw[at]` is a slash, and `path` does not end with one.
        path.push(b'/');
        let start = path.len();
        let segment_at = at;
        at = decode_segment(raw, at + 1, escapes, &mut path)?;
        let is_last = at == raw.len();
        match &path[start..] {
            b"" | b"." => path.truncate(start - 1),
            b".." => {
                let parent = path[..start - 1].iter().rposition(|&byte| byte == b'/');
                path.truncate(parent.ok_or(Refusal::new(Kind::PathAboveRoot, segment_at))?);
            }
            _ => continue,
        }
        if is_last {
            path.push(b'/');
        }
    }
    Ok(path)
}

/// Appends the decoded segment at `at`. Returns the position of the slash after it, or the end.
fn decode_segment(
    raw: &[u8],
    mut at: usize,
    escapes: Escapes,
    path: &mut Vec<u8>,
) -> Result<usize, Refusal> {
    while let Some(&byte) = raw.get(at) {
        let (byte, len) = match byte {
            b'/' => break,
            b'%' => (
                escaped(raw, at).ok_or(Refusal::new(Kind::PathEscape, at))?,
                3,
            ),
            _ => (byte, 1),
        };
        let is_special = matches!(byte, b'/' | b'\\') || byte.is_ascii_control();
        let stays = match escapes {
            Escapes::Decode => false,
            Escapes::Separators => is_special,
            Escapes::All => is_special || byte == b'%',
        };
        if stays && len == 3 {
            path.extend(raw[at..at + 3].to_ascii_uppercase());
            at += len;
            continue;
        }
        match byte {
            b'/' | b'\\' => return Err(Refusal::of_byte(Kind::PathSeparator, at, byte)),
            _ if byte.is_ascii_control() => {
                return Err(Refusal::of_byte(Kind::PathControl, at, byte));
            }
            _ => path.push(byte),
        }
        at += len;
    }
    Ok(at)
}

/// Returns the byte encoded by the two hexadecimal digits after the `%` at `at`.
fn escaped(raw: &[u8], at: usize) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let [_, high, low] = raw.get(at..at + 3)? else {
        return None;
    };
    u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()
}

/// Returns the decoded keys and values of a query such as `key=value&other`. `+` is decoded as a
/// space, and a pair without `=` has an empty value.
///
/// Empty pairs are skipped. A `%` without two hexadecimal digits stands for itself, as in the
/// parser of `application/x-www-form-urlencoded` in the WHATWG URL standard.
///
/// ```
/// let pairs: Vec<_> = tussah_wire::http::target::query(b"name=a+b&x=%26&on").collect();
/// assert_eq!(pairs[0], (b"name".into(), b"a b".into()));
/// assert_eq!(pairs[1], (b"x".into(), b"&".into()));
/// assert_eq!(pairs[2], (b"on".into(), b"".into()));
/// ```
pub fn query(raw: &[u8]) -> impl Iterator<Item = (Cow<'_, [u8]>, Cow<'_, [u8]>)> {
    let pairs = raw
        .split(|&byte| byte == b'&')
        .filter(|pair| !pair.is_empty());
    pairs.map(|pair| {
        let key_len = pair
            .iter()
            .position(|&byte| byte == b'=')
            .unwrap_or(pair.len());
        let value = pair.get(key_len + 1..).unwrap_or_default();
        (decode_form(&pair[..key_len]), decode_form(value))
    })
}

fn decode_form(raw: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr2(b'%', b'+', raw).is_none() {
        return Cow::Borrowed(raw);
    }
    let mut text = Vec::with_capacity(raw.len());
    let mut at = 0;
    while let Some(&byte) = raw.get(at) {
        let (byte, len) = match (byte, escaped(raw, at)) {
            (b'%', Some(byte)) => (byte, 3),
            (b'+', _) => (b' ', 1),
            _ => (byte, 1),
        };
        text.push(byte);
        at += len;
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        let check = |raw: &str, expected: &str| {
            let path = path(raw.as_bytes()).unwrap_or_else(|refusal| panic!("{raw}: {refusal}"));
            assert_eq!(String::from_utf8_lossy(&path), expected, "{raw}");
        };
        check("/", "/");
        check("/a/b.html", "/a/b.html");
        check("/a/", "/a/");
        check("//", "/");
        check("//a//b//", "/a/b/");
        check("//example.org/x", "/example.org/x");
        check("/.", "/");
        check("/./a", "/a");
        check("/a/.", "/a/");
        check("/a/b/../c", "/a/c");
        check("/a/b/..", "/a/");
        check("/a/..", "/");
        check("/a/b/../../c", "/c");
        check("/a//../c", "/c");
        check("/a/%2e%2E/c", "/c");
        check("/%61%2Db", "/a-b");
        check("/%C3%A9", "/é");
        check("/a%20b%25", "/a b%");
        check("/%252e%252e/a", "/%2e%2e/a");
        check("/.well-known/x", "/.well-known/x");
        check("/...", "/...");
        check("/..a", "/..a");
        check("/a/..b/", "/a/..b/");
        check("/a;v=1,2", "/a;v=1,2");
        check("/a%3Fb%23", "/a?b#");
    }

    #[test]
    fn paths_refused() {
        let check = |raw: &[u8], kind, at| {
            let refusal = path(raw).expect_err(&String::from_utf8_lossy(raw));
            assert_eq!((refusal.kind(), refusal.at()), (kind, at), "{raw:?}");
            assert_eq!(refusal.status().code(), 400);
        };
        check(b"", Kind::PathStart, 0);
        check(b"a", Kind::PathStart, 0);
        check(b"*", Kind::PathStart, 0);
        check(b"/..", Kind::PathAboveRoot, 0);
        check(b"/../a", Kind::PathAboveRoot, 0);
        check(b"/a/../..", Kind::PathAboveRoot, 5);
        check(b"/a/%2e%2e/.%2e/b", Kind::PathAboveRoot, 9);
        check(b"/./../a", Kind::PathAboveRoot, 2);
        check(b"//../a", Kind::PathAboveRoot, 1);
        check(b"/%", Kind::PathEscape, 1);
        check(b"/%4", Kind::PathEscape, 1);
        check(b"/%4g", Kind::PathEscape, 1);
        check(b"/%+1", Kind::PathEscape, 1);
        check(b"/a%00", Kind::PathControl, 2);
        check(b"/a%0d%0aB", Kind::PathControl, 2);
        check(b"/a%7f", Kind::PathControl, 2);
        check(b"/a\0", Kind::PathControl, 2);
        check(b"/a%2fb", Kind::PathSeparator, 2);
        check(b"/..%2F..%2Fetc", Kind::PathSeparator, 3);
        check(b"/..%5c..", Kind::PathSeparator, 3);
        check(b"/..\\..", Kind::PathSeparator, 3);
    }

    #[test]
    fn paths_with_escapes_and_their_segments() {
        let check = |raw: &[u8], expected: &[u8], segments: &[&[u8]]| {
            let shown = String::from_utf8_lossy(raw);
            let path =
                path_with_escapes(raw).unwrap_or_else(|refusal| panic!("{shown}: {refusal}"));
            assert_eq!(path, expected, "{shown}");
            let found = super::segments(raw).expect("as the path is");
            assert_eq!(found.collect::<Vec<_>>(), segments, "{shown}");
            assert!(
                !super::path(raw).is_ok_and(|path| path != expected),
                "{shown}"
            );
        };
        check(b"/", b"/", &[b""]);
        check(b"/a/b", b"/a/b", &[b"a", b"b"]);
        check(b"//a/./x/../b/", b"/a/b/", &[b"a", b"b", b""]);
        check(b"/a%2fb", b"/a%2Fb", &[b"a/b"]);
        check(b"/a%252Fb", b"/a%2Fb", &[b"a%2Fb"]);
        check(b"/a%5cb%0a%00", b"/a%5Cb%0A%00", &[b"a\\b\n\0"]);
        check(b"/%20%25%C3%A9", b"/ %\xc3\xa9", &[b" %\xc3\xa9"]);
        check(b"/..%2F..%2Fetc", b"/..%2F..%2Fetc", &[b"../../etc"]);
        check(b"/a/%2e%2e/%2E/b", b"/b", &[b"b"]);
        check(b"/%2F/%2f", b"/%2F/%2F", &[b"/", b"/"]);
        for raw in [
            &b""[..],
            b"a",
            b"/..",
            b"/%2e%2e",
            b"/%",
            b"/%4",
            b"/a\\b",
            b"/a\n",
        ] {
            let shown = String::from_utf8_lossy(raw);
            assert_eq!(
                path_with_escapes(raw).err(),
                super::path(raw).err(),
                "{shown}"
            );
            assert_eq!(
                super::segments(raw).err(),
                super::path(raw).err(),
                "{shown}"
            );
        }
    }

    #[test]
    fn a_normal_path_is_borrowed() {
        assert!(matches!(path(b"/dir00001/class1_3"), Ok(Cow::Borrowed(_))));
        assert!(matches!(path(b"/a/b.tar.gz"), Ok(Cow::Borrowed(_))));
        assert!(matches!(path(b"/a/./b"), Ok(Cow::Owned(_))));
    }

    #[test]
    fn queries() {
        let check = |raw: &str, expected: &[(&str, &str)]| {
            let pairs: Vec<_> = query(raw.as_bytes())
                .map(|(key, value)| {
                    (
                        String::from_utf8(key.into()).unwrap(),
                        String::from_utf8(value.into()).unwrap(),
                    )
                })
                .collect();
            let pairs: Vec<_> = pairs
                .iter()
                .map(|(key, value)| (&key[..], &value[..]))
                .collect();
            assert_eq!(pairs, expected, "{raw}");
        };
        check("", &[]);
        check("a", &[("a", "")]);
        check("a=b", &[("a", "b")]);
        check("a=b=c&&d=", &[("a", "b=c"), ("d", "")]);
        check("=x", &[("", "x")]);
        check("a+b=%2B+%3d", &[("a b", "+ =")]);
        check(
            "p=100%&q=%zz&r=%4",
            &[("p", "100%"), ("q", "%zz"), ("r", "%4")],
        );
    }
}
