//! Body decoding.

use tussah_wire::http::Framing;
use tussah_wire::http::body::{Decoder, Limits, Step};

const LIMITS: Limits = Limits {
    body_bytes_max: 10,
    extension_bytes_max: 8,
    trailer_bytes_max: 12,
};

/// Returns the decoded body and the remaining bytes, or the status of the refusal.
fn decode(framing: Framing, bytes: &[u8]) -> Result<(Vec<u8>, bool, &[u8]), u16> {
    let status = |refusal: tussah_wire::http::Refusal| refusal.status().code();
    let mut decoder = Decoder::new(framing, LIMITS).map_err(status)?;
    let mut body = Vec::new();
    let mut rest = bytes;
    loop {
        let step = decoder.decode(rest).map_err(status)?;
        body.extend_from_slice(&rest[step.body]);
        rest = &rest[step.consumed..];
        if step.done || rest.is_empty() {
            return Ok((body, step.done, rest));
        }
    }
}

#[test]
fn bodies() {
    let check = |framing, bytes: &str, body: &str, done, rest: &str| {
        let expected = Ok((body.as_bytes().to_vec(), done, rest.as_bytes()));
        assert_eq!(
            decode(framing, bytes.as_bytes()),
            expected,
            "{framing:?} {bytes:?}"
        );
    };
    check(Framing::None, "next", "", true, "next");
    check(Framing::None, "", "", true, "");
    check(Framing::Length(0), "next", "", true, "next");
    check(Framing::Length(2), "hinext", "hi", true, "next");
    check(Framing::Length(10), "0123456789", "0123456789", true, "");
    check(Framing::Length(3), "hi", "hi", false, "");
    check(Framing::UntilClose, "", "", false, "");
    check(Framing::UntilClose, "0123456789", "0123456789", false, "");
    check(Framing::Chunked, "0\r\n\r\nnext", "", true, "next");
    check(
        Framing::Chunked,
        "2\r\nhi\r\n3\r\nyou\r\n0\r\n\r\n",
        "hiyou",
        true,
        "",
    );
    check(
        Framing::Chunked,
        "a\r\n0123456789\r\n0\r\n\r\n",
        "0123456789",
        true,
        "",
    );
    check(
        Framing::Chunked,
        "1;a=\"b\"\r\nx\r\n0\r\nX: 345678\r\n\r",
        "x",
        false,
        "",
    );
}

#[test]
fn limits() {
    let check = |framing, bytes: &str, status| {
        assert_eq!(
            decode(framing, bytes.as_bytes()),
            Err(status),
            "{framing:?} {bytes:?}"
        );
    };
    check(Framing::Length(11), "", 413);
    check(Framing::UntilClose, "01234567890", 413);
    check(Framing::Chunked, "b\r\n", 413);
    check(Framing::Chunked, "5\r\n01234\r\n6\r\n", 413);
    check(Framing::Chunked, "1;a=345678\r\n", 400);
    check(Framing::Chunked, "1;a=4\r\nx\r\n1;a=8\r\nx\r\n1;\r\n", 400);
    check(Framing::Chunked, "1        \r\n", 400);
    check(Framing::Chunked, "1;a=\"\u{1}\"\r\n", 400);
    check(Framing::Chunked, "0\r\nX: 4567890\r\n\r\n", 431);
}

/// The limit of a body that ends with the connection counts all pieces together.
#[test]
fn until_close_counts() {
    let mut decoder = Decoder::new(Framing::UntilClose, LIMITS).unwrap();
    for _ in 0..5 {
        assert_eq!(
            decoder.decode(b"hi").unwrap(),
            Step {
                consumed: 2,
                body: 0..2,
                done: false
            }
        );
    }
    assert!(!decoder.is_done());
    assert_eq!(decoder.decode(b"x").unwrap_err().at(), 10);
}

/// A refusal gives its position in the body, even if the body arrived in pieces.
#[test]
fn places() {
    let mut decoder = Decoder::new(Framing::Chunked, LIMITS).unwrap();
    for piece in [&b"2\r\nh"[..], b"i\r\n"] {
        let consumed = decoder.decode(piece).unwrap().consumed;
        assert_eq!(consumed, piece.len());
    }
    assert_eq!(decoder.decode(b"1x").unwrap_err().at(), 8);
}
