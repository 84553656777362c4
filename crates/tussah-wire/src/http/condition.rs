//! Conditional requests (RFC 9110, section 13).

use super::head::{Field, Head};
use super::syntax::trim;
use super::{Method, date};

/// The validators of a representation (RFC 9110, section 8.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Validators<'a> {
    /// The value of `ETag`: `"..."`, or `W/"..."` for a weak tag.
    pub etag: Option<&'a str>,
    /// The value of `Last-Modified`, in seconds since 1970.
    pub modified: Option<u64>,
}

/// The outcome of a conditional request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Process the request as usual.
    Proceed,
    /// Respond with status 304 and without a body.
    NotModified,
    /// Respond with status 412.
    Failed,
}

/// Evaluates the conditions of a request, except `If-Range`, in the order that section 13.2.2
/// specifies.
///
/// `bytes` is the buffer from which `head` was parsed. `current` is `None` if the resource has no
/// representation. If [`Head::conditional`] is false, the outcome is `Proceed`.
///
/// ```
/// use tussah_wire::http::{condition, head};
///
/// let bytes = b"GET / HTTP/1.1\r\nHost: a\r\nIf-None-Match: \"1\", \"2\"\r\n\r\n";
/// let head = head::parse(bytes, &head::Limits::default())?.expect("the head is complete");
/// let current = condition::Validators { etag: Some("\"2\""), modified: None };
/// assert_eq!(condition::evaluate(&head, bytes, Some(&current)), condition::Outcome::NotModified);
/// # Ok::<(), tussah_wire::http::Refusal>(())
/// ```
pub fn evaluate(head: &Head, bytes: &[u8], current: Option<&Validators<'_>>) -> Outcome {
    let has = |field| head.field(field, bytes).is_some();
    // A date is ignored if it is invalid or if the resource has none. It is compared only if it is
    // decisive.
    let date = |field| {
        let asked = head.field_single(field, bytes).and_then(date::parse)?;
        Some(current?.modified?.cmp(&asked))
    };
    let any_match =
        |field, matches: fn(&str, &[u8]) -> bool| any_match(head, bytes, field, current, matches);
    let reads = matches!(head.method, Method::Get | Method::Head);
    if has(Field::IfMatch) {
        if !any_match(Field::IfMatch, strong_match) {
            return Outcome::Failed;
        }
    } else if date(Field::IfUnmodifiedSince).is_some_and(|order| order.is_gt()) {
        return Outcome::Failed;
    }
    if has(Field::IfNoneMatch) {
        return match any_match(Field::IfNoneMatch, weak_match) {
            true if reads => Outcome::NotModified,
            true => Outcome::Failed,
            false => Outcome::Proceed,
        };
    }
    if reads && date(Field::IfModifiedSince).is_some_and(|order| order.is_le()) {
        return Outcome::NotModified;
    }
    Outcome::Proceed
}

/// Returns whether the `Range` of a request applies. `Range` applies unless the request has an
/// `If-Range` that does not match the current version (section 13.1.5).
///
/// A date in `If-Range` must equal `Last-Modified` to the second. A date cannot distinguish two
/// versions that were written within the same second. If a resource can change more than once a
/// second, send an `ETag`, which clients use instead of the date.
pub fn range_counts(head: &Head, bytes: &[u8], current: &Validators<'_>) -> bool {
    if head.field(Field::IfRange, bytes).is_none() {
        return true;
    }
    // With several `If-Range` fields it is unclear which one applies, and sending everything is
    // always correct.
    let Some(value) = head.field_single(Field::IfRange, bytes) else {
        return false;
    };
    match etag_len(value) {
        Some(len) => {
            len == value.len() && current.etag.is_some_and(|etag| strong_match(etag, value))
        }
        None => current.modified.is_some() && date::parse(value) == current.modified,
    }
}

/// Returns whether a list of entity tags, possibly on several lines, contains the current version,
/// or is `*` and a version exists.
fn any_match(
    head: &Head,
    bytes: &[u8],
    field: Field,
    current: Option<&Validators<'_>>,
    matches: fn(&str, &[u8]) -> bool,
) -> bool {
    let Some(current) = current else { return false };
    head.field_lines(field, bytes).any(|line| {
        line == b"*"
            || current
                .etag
                .is_some_and(|etag| etags(line).any(|listed| matches(etag, listed)))
    })
}

/// Returns the entity tags of a list, up to the first invalid one.
fn etags(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = list;
    std::iter::from_fn(move || {
        while let [b' ' | b'\t' | b',', after @ ..] = rest {
            rest = after;
        }
        let (etag, after) = rest.split_at(etag_len(rest)?);
        rest = trim(after);
        // Only a comma may directly follow a tag.
        if !matches!(rest, [] | [b',', ..]) {
            rest = b"";
            return None;
        }
        Some(etag)
    })
}

/// Returns the length of the entity tag at the start of `text` (section 8.8.3).
fn etag_len(text: &[u8]) -> Option<usize> {
    let start = if text.starts_with(b"W/") { 2 } else { 0 };
    let (b'"', opaque) = text.get(start..)?.split_first()? else {
        return None;
    };
    let len = opaque
        .iter()
        .position(|&byte| !matches!(byte, 0x21 | 0x23..=0x7e | 0x80..))?;
    (opaque[len] == b'"').then_some(start + len + 2)
}

/// Returns whether both tags are strong and equal (section 8.8.3.2).
fn strong_match(current: &str, listed: &[u8]) -> bool {
    !current.starts_with("W/") && current.as_bytes() == listed
}

/// Returns whether both tags are equal, whether weak or strong.
fn weak_match(current: &str, listed: &[u8]) -> bool {
    let listed = listed.strip_prefix(b"W/").unwrap_or(listed);
    current.strip_prefix("W/").unwrap_or(current).as_bytes() == listed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::head::{Limits, parse};

    const DAY: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
    const AFTER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";
    const CURRENT: Validators<'_> = Validators {
        etag: Some("\"a\""),
        modified: Some(784_111_777),
    };
    const WEAK: Validators<'_> = Validators {
        etag: Some("W/\"a\""),
        modified: None,
    };
    const NOTHING: Validators<'_> = Validators {
        etag: None,
        modified: None,
    };

    fn head(method: &str, fields: &str) -> (Head, Vec<u8>) {
        let fields = fields
            .replace(';', "\r\n")
            .replace("BEFORE", BEFORE)
            .replace("AFTER", AFTER)
            .replace("DAY", DAY);
        let bytes = format!("{method} / HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n").into_bytes();
        let head = parse(&bytes, &Limits::default()).unwrap().unwrap();
        (head, bytes)
    }

    #[test]
    fn outcomes() {
        use Outcome::*;
        let check = |fields: &str, current: Option<&Validators<'_>>, get, put| {
            for (method, expected) in [("GET", get), ("HEAD", get), ("PUT", put)] {
                let (head, bytes) = head(method, fields);
                assert!(head.conditional);
                assert_eq!(
                    evaluate(&head, &bytes, current),
                    expected,
                    "{method} {fields} for {current:?}"
                );
            }
        };
        let current = Some(&CURRENT);
        check("If-Match: \"a\"", current, Proceed, Proceed);
        check("If-Match: \"b\", \"a\"", current, Proceed, Proceed);
        check("If-Match: \"b\";If-Match: \"a\"", current, Proceed, Proceed);
        check("If-Match: \"b\"", current, Failed, Failed);
        check("If-Match: W/\"a\"", current, Failed, Failed);
        check("If-Match: \"a\"", Some(&WEAK), Failed, Failed);
        check("If-Match: W/\"a\"", Some(&WEAK), Failed, Failed);
        check("If-Match: *", current, Proceed, Proceed);
        check("If-Match: *", Some(&NOTHING), Proceed, Proceed);
        check("If-Match: *", None, Failed, Failed);
        check("If-Match: a", current, Failed, Failed);
        check("If-Match:", current, Failed, Failed);
        check("If-Match: \"b\", \"a", current, Failed, Failed);
        check("If-Match: \"b\" \"a\"", current, Failed, Failed);
        check("If-Match: \"b, \"a\"", current, Failed, Failed);
        check(
            "If-Match: \"a\";If-Unmodified-Since: BEFORE",
            current,
            Proceed,
            Proceed,
        );
        check("If-Unmodified-Since: BEFORE", current, Failed, Failed);
        check("If-Unmodified-Since: DAY", current, Proceed, Proceed);
        check("If-Unmodified-Since: AFTER", current, Proceed, Proceed);
        check(
            "If-Unmodified-Since: BEFORE",
            Some(&NOTHING),
            Proceed,
            Proceed,
        );
        check("If-Unmodified-Since: BEFORE", None, Proceed, Proceed);
        check("If-Unmodified-Since: never", current, Proceed, Proceed);
        check("If-None-Match: \"a\"", current, NotModified, Failed);
        check("If-None-Match: W/\"a\"", current, NotModified, Failed);
        check("If-None-Match: \"a\"", Some(&WEAK), NotModified, Failed);
        check("If-None-Match: \"b\"", current, Proceed, Proceed);
        check("If-None-Match: \"b,\", \"a\"", current, NotModified, Failed);
        check(
            "If-None-Match: , \"b\",,\"a\" ,",
            current,
            NotModified,
            Failed,
        );
        check(
            "If-None-Match: \"b\";If-None-Match: \"c\", \"a\"",
            current,
            NotModified,
            Failed,
        );
        check("If-None-Match: w/\"a\"", current, Proceed, Proceed);
        check("If-None-Match: *", current, NotModified, Failed);
        check("If-None-Match: *", None, Proceed, Proceed);
        check("If-None-Match: \"a\"", Some(&NOTHING), Proceed, Proceed);
        check(
            "If-None-Match: \"b\";If-Modified-Since: AFTER",
            current,
            Proceed,
            Proceed,
        );
        check(
            "If-None-Match: \"a\";If-Modified-Since: BEFORE",
            current,
            NotModified,
            Failed,
        );
        check("If-Modified-Since: BEFORE", current, Proceed, Proceed);
        check("If-Modified-Since: DAY", current, NotModified, Proceed);
        check("If-Modified-Since: AFTER", current, NotModified, Proceed);
        check(
            "If-Modified-Since: AFTER;If-Modified-Since: AFTER",
            current,
            Proceed,
            Proceed,
        );
        check("If-Modified-Since: never", current, Proceed, Proceed);
        check("If-Modified-Since: DAY", Some(&NOTHING), Proceed, Proceed);
        check(
            "If-Match: \"a\";If-None-Match: \"a\"",
            current,
            NotModified,
            Failed,
        );
        check(
            "If-Match: \"b\";If-None-Match: \"a\"",
            current,
            Failed,
            Failed,
        );
        check(
            "If-Unmodified-Since: BEFORE;If-None-Match: \"a\"",
            current,
            Failed,
            Failed,
        );
    }

    #[test]
    fn ranges() {
        let check = |fields: &str, current: &Validators<'_>, expected| {
            let (head, bytes) = head("GET", &format!("Range: bytes=0-1{fields}"));
            assert_eq!(
                range_counts(&head, &bytes, current),
                expected,
                "{fields} for {current:?}"
            );
        };
        check("", &CURRENT, true);
        check("", &NOTHING, true);
        check(";If-Range: \"a\"", &CURRENT, true);
        check(";If-Range: \"b\"", &CURRENT, false);
        check(";If-Range: W/\"a\"", &CURRENT, false);
        check(";If-Range: \"a\"", &WEAK, false);
        check(";If-Range: W/\"a\"", &WEAK, false);
        check(";If-Range: \"a\", \"b\"", &CURRENT, false);
        check(";If-Range: \"a\";If-Range: \"a\"", &CURRENT, false);
        check(";If-Range: DAY", &CURRENT, true);
        check(";If-Range: AFTER", &CURRENT, false);
        check(";If-Range: BEFORE", &CURRENT, false);
        check(";If-Range: DAY", &NOTHING, false);
        check(";If-Range: never", &NOTHING, false);
        check(";If-Range:", &NOTHING, false);
    }
}
