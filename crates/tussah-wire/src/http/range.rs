//! Range requests (RFC 9110, section 14): parsing the requested ranges, and writing the response.

use std::fmt;

mod multipart;

pub use multipart::{Multipart, Part};

use super::Method;
use super::condition::{self, Validators};
use super::head::{Field, Head};
use super::syntax::list;

/// Bound, in ranges: the number of ranges in one request. The number is limited because each range
/// adds a part with its own header to the response. If a request asks for more ranges than this,
/// the whole representation is sent.
pub const RANGES_MAX: usize = 32;

/// A range of bytes of a representation, from `first` to `last` inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// The position of the first byte, counted from 0.
    pub first: u64,
    /// The position of the last byte, which is not less than `first`.
    pub last: u64,
}

impl ByteRange {
    /// Returns the number of bytes, which is at least one.
    #[expect(clippy::len_without_is_empty, reason = "no range is empty")]
    pub fn len(&self) -> u64 {
        self.last - self.first + 1
    }
}

/// The interpretation of a `Range` field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ranges {
    /// No range applies: send the whole representation with status 200.
    Whole,
    /// One range: send its bytes with status 206 and `Content-Range`.
    Single(ByteRange),
    /// Several ranges, in the requested order: send their bytes as [`Multipart`], with status 206.
    Several(Vec<ByteRange>),
    /// No requested range is satisfiable: respond with status 416 and [`ContentRange::none`].
    Unsatisfiable,
}

impl Ranges {
    /// Returns the ranges that a request asks for. `bytes` is the buffer from which `head` was
    /// parsed. `len` is the length of the representation in bytes, and `current` contains its
    /// validators.
    ///
    /// Returns `Whole` if the method is not GET, because ranges are defined only for GET (section
    /// 14.2). Also returns `Whole` if the request has several `Range` lines, or if `If-Range` does
    /// not match.
    pub fn of(head: &Head, bytes: &[u8], current: &Validators<'_>, len: u64) -> Self {
        match head.field_single(Field::Range, bytes) {
            Some(value)
                if head.method == Method::Get && condition::range_counts(head, bytes, current) =>
            {
                Self::parse(value, len)
            }
            _ => Self::Whole,
        }
    }

    /// Parses the value of a `Range` field for a representation of `len` bytes.
    ///
    /// As section 14.2 permits, the field is ignored in these cases:
    ///
    /// - The field is malformed, or its unit is not bytes.
    /// - The field has more than [`RANGES_MAX`] ranges.
    /// - The field asks for more bytes than the representation has, because its ranges overlap.
    ///   Overlapping ranges serve no purpose, and would let a small request cause a lot of work
    ///   (section 17.15).
    ///
    /// An empty representation has no ranges and is sent whole.
    ///
    /// ```
    /// use tussah_wire::http::range::{ByteRange, Ranges};
    ///
    /// assert_eq!(Ranges::parse(b"bytes=0-9", 100), Ranges::Single(ByteRange { first: 0, last: 9 }));
    /// assert_eq!(Ranges::parse(b"bytes=-10", 100), Ranges::Single(ByteRange { first: 90, last: 99 }));
    /// assert_eq!(Ranges::parse(b"bytes=100-", 100), Ranges::Unsatisfiable);
    /// ```
    pub fn parse(value: &[u8], len: u64) -> Self {
        let Some((unit, set)) = value.split_at_checked(6) else {
            return Self::Whole;
        };
        if !unit.eq_ignore_ascii_case(b"bytes=") {
            return Self::Whole;
        }
        let mut asked = 0;
        let mut latest = None;
        let mut several = Vec::new();
        let mut total = 0_u64;
        // A list may have a few empty members (section 5.6.1).
        for (place, member) in list(set).enumerate() {
            if place >= 2 * RANGES_MAX {
                return Self::Whole;
            }
            if member.is_empty() {
                continue;
            }
            let Some(spec) = Spec::parse(member) else {
                return Self::Whole;
            };
            asked += 1;
            let Some(range) = spec.of(len) else { continue };
            total = total.saturating_add(range.len());
            if let Some(before) = latest.replace(range) {
                several.push(before);
            }
        }
        let Some(last) = latest else {
            return if asked == 0 || len == 0 {
                Self::Whole
            } else {
                Self::Unsatisfiable
            };
        };
        if asked > RANGES_MAX || total > len {
            return Self::Whole;
        }
        if several.is_empty() {
            return Self::Single(last);
        }
        several.push(last);
        Self::Several(several)
    }
}

/// One member of the range set (section 14.1.1).
enum Spec {
    From(u64),
    Between(u64, u64),
    Last(u64),
}

impl Spec {
    fn parse(text: &[u8]) -> Option<Self> {
        let dash = text.iter().position(|&byte| byte == b'-')?;
        match (&text[..dash], &text[dash + 1..]) {
            ([], suffix) => position(suffix).map(Self::Last),
            (first, []) => position(first).map(Self::From),
            (first, last) => {
                let (first, last) = (position(first)?, position(last)?);
                (first <= last).then_some(Self::Between(first, last))
            }
        }
    }

    /// Returns the part that exists in a representation of `len` bytes.
    fn of(&self, len: u64) -> Option<ByteRange> {
        let end = len.checked_sub(1)?;
        let (first, last) = match *self {
            Self::From(first) => (first, end),
            Self::Between(first, last) => (first, last.min(end)),
            Self::Last(0) => return None,
            Self::Last(suffix) => (len.saturating_sub(suffix), end),
        };
        (first <= end).then_some(ByteRange { first, last })
    }
}

/// Parses a position. A position that exceeds 64 bits lies beyond every end.
fn position(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let add = |number: u64, digit: &u8| {
        number
            .saturating_mul(10)
            .saturating_add((digit - b'0').into())
    };
    Some(digits.iter().fold(0, add))
}

/// A value of the field `Content-Range` (section 14.4); `Display` formats the value as it appears
/// in the field.
///
/// ```
/// use tussah_wire::http::range::{ByteRange, ContentRange};
///
/// assert_eq!(ContentRange::of(ByteRange { first: 0, last: 9 }, 100).to_string(), "bytes 0-9/100");
/// assert_eq!(ContentRange::none(100).to_string(), "bytes */100");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentRange {
    range: Option<ByteRange>,
    len: u64,
}

impl ContentRange {
    /// Creates the value for a response that contains `range` of a representation of `len` bytes.
    pub fn of(range: ByteRange, len: u64) -> Self {
        Self {
            range: Some(range),
            len,
        }
    }

    /// Creates the value, without a range, for a response with status 416.
    pub fn none(len: u64) -> Self {
        Self { range: None, len }
    }
}

impl fmt::Display for ContentRange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.range {
            Some(range) => write!(out, "bytes {}-{}/{}", range.first, range.last, self.len),
            None => write!(out, "bytes */{}", self.len),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range((first, last): (u64, u64)) -> ByteRange {
        ByteRange { first, last }
    }

    #[test]
    fn single() {
        let check = |value: &str, len, expected| {
            assert_eq!(
                Ranges::parse(value.as_bytes(), len),
                Ranges::Single(range(expected)),
                "{value} of {len}"
            );
        };
        check("bytes=0-0", 1, (0, 0));
        check("bytes=0-", 10, (0, 9));
        check("bytes=3-5", 10, (3, 5));
        check("bytes=3-100", 10, (3, 9));
        check("bytes=9-9", 10, (9, 9));
        check("bytes=-1", 10, (9, 9));
        check("bytes=-10", 10, (0, 9));
        check("bytes=-11", 10, (0, 9));
        check("bytes=-99999999999999999999999", 10, (0, 9));
        check("bytes=0-99999999999999999999999", 10, (0, 9));
        check("bytes=00-001", 10, (0, 1));
        check("BYTES=0-1", 10, (0, 1));
        check("bytes= 0-1 ,", 10, (0, 1));
        check("bytes=0-1, 20-30", 10, (0, 1));
        check("bytes=20-30, -2", 10, (8, 9));
        check("bytes=0-", u64::MAX, (0, u64::MAX - 1));
    }

    #[test]
    fn several() {
        let check = |value: &str, len, expected: &[(u64, u64)]| {
            let expected = Ranges::Several(expected.iter().copied().map(range).collect());
            assert_eq!(
                Ranges::parse(value.as_bytes(), len),
                expected,
                "{value} of {len}"
            );
        };
        check("bytes=0-1,3-4", 10, &[(0, 1), (3, 4)]);
        check("bytes=5-6, 0-1", 10, &[(5, 6), (0, 1)]);
        check("bytes=0-0,,-1", 10, &[(0, 0), (9, 9)]);
        check("bytes=0-1,1-2", 10, &[(0, 1), (1, 2)]);
        check("bytes=0-1,50-,8-", 10, &[(0, 1), (8, 9)]);
        let most = format!("bytes={}", vec!["0-0"; RANGES_MAX].join(","));
        check(&most, 1000, &[(0, 0); RANGES_MAX]);
    }

    #[test]
    fn requests() {
        let check = |method: &str, fields: &str, expected| {
            let bytes = format!("{method} / HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n").into_bytes();
            let head = crate::http::head::parse(&bytes, &Default::default())
                .unwrap()
                .unwrap();
            let current = Validators {
                etag: Some("\"e\""),
                modified: None,
            };
            assert_eq!(
                Ranges::of(&head, &bytes, &current, 10),
                expected,
                "{method} {fields}"
            );
        };
        let single = Ranges::Single(range((0, 1)));
        check("GET", "Range: bytes=0-1", single.clone());
        check("GET", "Range: bytes=0-1\r\nIf-Range: \"e\"", single);
        check("GET", "Range: bytes=0-1\r\nIf-Range: \"f\"", Ranges::Whole);
        check("GET", "Range: bytes=0-1\r\nRange: bytes=0-1", Ranges::Whole);
        check("GET", "X: y", Ranges::Whole);
        check("HEAD", "Range: bytes=0-1", Ranges::Whole);
        check("POST", "Range: bytes=0-1", Ranges::Whole);
    }

    #[test]
    fn none() {
        let check = |value: &str, len, expected| {
            assert_eq!(
                Ranges::parse(value.as_bytes(), len),
                expected,
                "{value:?} of {len}"
            )
        };
        for value in [
            "bytes=10-",
            "bytes=10-20",
            "bytes=-0",
            "bytes=99999999999999999999999-",
            "bytes=10-,11-",
        ] {
            check(value, 10, Ranges::Unsatisfiable);
        }
        for value in [
            "",
            "bytes",
            "bytes=",
            "bytes=,",
            "bytes=-",
            "bytes=a-b",
            "bytes=1",
            "bytes=2-1",
            "bytes=0-1,2-1",
            "bytes=+1-2",
            "bytes=0 - 1",
            "bytes=--1",
            "bytes=0-1-2",
            "bytes 0-1",
            "lines=0-1",
            "bytes =0-1",
            "bytes=0x0-0x1",
            "bytes=0-1;2-3",
            "bytes=0-8,1-9",
        ] {
            check(value, 10, Ranges::Whole);
        }
        check("bytes=0-", 0, Ranges::Whole);
        check("bytes=-1", 0, Ranges::Whole);
        check(
            &format!("bytes={}", vec!["0-0"; RANGES_MAX + 1].join(",")),
            1000,
            Ranges::Whole,
        );
        check(
            &format!("bytes=0-0{}", ",".repeat(1000)),
            1000,
            Ranges::Whole,
        );
        check("bytes=0-0,0-0", 1, Ranges::Whole);
        check("bytes=0-,0-,0-", u64::MAX - 1, Ranges::Whole);
    }
}
