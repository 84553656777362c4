//! Tests of responses in one piece, in every pair of pieces, and byte by byte.

use proptest::prelude::*;

use super::*;

/// The status and the body.
type Response<T> = (u16, T);

/// Reads a stream of responses. Returns the status and body of each response, and the state in
/// which the stream ended.
fn read(pieces: &[&[u8]], method: Method) -> Result<(Vec<(u16, String)>, Ended), ()> {
    let mut parser = Parser::new();
    let mut found = Vec::new();
    let mut body = String::new();
    let mut status = 0;
    for mut input in pieces.iter().copied() {
        loop {
            match parser.step(&mut input, method).map_err(|_| ())? {
                Step::Starved => break,
                Step::Head(head) => status = head.status,
                Step::Body(bytes) => body += std::str::from_utf8(bytes).expect("the tests' text"),
                Step::End => found.push((status, std::mem::take(&mut body))),
            }
        }
        assert!(input.is_empty(), "all is taken");
    }
    let ended = parser.ended();
    if ended == Ended::Whole {
        found.push((status, body));
    }
    Ok((found, ended))
}

fn check(text: &str, method: Method, expected: Result<(&[Response<&str>], Ended), ()>) {
    let expected = expected.map(|(found, ended)| {
        let found = found.iter();
        let found = found.map(|&(status, body)| (status, body.to_owned()));
        (found.collect::<Vec<_>>(), ended)
    });
    let bytes = text.as_bytes();
    for at in 0..=bytes.len() {
        let (first, second) = bytes.split_at(at);
        assert_eq!(
            read(&[first, second], method),
            expected,
            "{text:?} in pieces of {at} and the rest"
        );
    }
    let each: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(read(&each, method), expected, "{text:?} byte by byte");
}

#[test]
fn responses() {
    use Ended::{Between, Whole, Within};
    let ok = |text: &str, expected: &[(u16, &str)], ended| {
        check(text, Method::Get, Ok((expected, ended)))
    };
    let bad = |text: &str| check(text, Method::Get, Err(()));
    ok("", &[], Between);
    ok(
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
        &[(200, "abc")],
        Between,
    );
    ok(
        "HTTP/1.1 200 OK\r\ncontent-length:3\r\n\r\nabcHTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n",
        &[(200, "abc"), (404, "")],
        Between,
    );
    ok(
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
        &[],
        Within,
    );
    ok("HTTP/1.1 200 OK\r\nContent-", &[], Within);
    ok(
        "HTTP/1.1 200 OK\r\n\r\nto the end",
        &[(200, "to the end")],
        Whole,
    );
    ok(
        "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
        &[(304, "")],
        Between,
    );
    ok("HTTP/1.1 204 No Content\r\n\r\n", &[(204, "")], Between);
    ok(
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",
        &[(200, "a")],
        Between,
    );
    ok(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n",
        &[(200, "abc0123456789")],
        Between,
    );
    ok(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\nA: b\r\nC: d\r\n\r\n",
        &[(200, "")],
        Between,
    );
    bad("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 7\r\n\r\n");
    ok(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab",
        &[],
        Within,
    );
    bad("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n");
    bad("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n\r\n");
    bad("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n");
    bad("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n");
    bad("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab");
    bad("SSH-2.0-OpenSSH_9.6\r\n");
    check(
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        Method::Head,
        Ok((&[(200, ""), (200, "")], Between)),
    );
}

#[test]
fn heads() {
    let check = |fields: &str, closes: bool, retry_after_s: Option<u64>| {
        let text = format!("{fields}\r\n\r\n");
        let head = Parser::new().step(&mut text.as_bytes(), Method::Get);
        let Ok(Step::Head(head)) = head else {
            panic!("{text}: {head:?}");
        };
        assert_eq!(head.closes, closes, "{text}");
        let retry_after = retry_after_s.map(Duration::from_secs);
        assert_eq!(head.retry_after, retry_after, "{text}");
    };
    let length = "\r\nContent-Length: 0";
    check(&format!("HTTP/1.1 200 OK{length}"), false, None);
    check("HTTP/1.1 200 OK", true, None);
    check(&format!("HTTP/1.0 200 OK{length}"), true, None);
    check(
        &format!("HTTP/1.0 200 OK{length}\r\nConnection: Keep-Alive"),
        false,
        None,
    );
    check(
        &format!("HTTP/1.1 200 OK{length}\r\nConnection: x, close"),
        true,
        None,
    );
    check(
        &format!("HTTP/1.1 503 No{length}\r\nRetry-After: 7"),
        false,
        Some(7),
    );
    check(
        &format!("HTTP/1.1 503 No{length}\r\nRetry-After: soon"),
        false,
        None,
    );
}

#[test]
fn an_endless_head_is_bad() {
    let mut parser = Parser::new();
    let line = b"X-Filler: 0123456789012345678901234567890123456789\r\n";
    let mut input = &b"HTTP/1.1 200 OK\r\n"[..];
    for _ in 0..100_000 {
        match parser.step(&mut input, Method::Get) {
            Ok(Step::Starved) => input = line,
            other => return assert!(other.is_err(), "{other:?}"),
        }
    }
    panic!("it was read on and on");
}

proptest! {
    #[test]
    fn nothing_panics(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..10)) {
        let mut parser = Parser::new();
        let mut all = vec![&b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"[..]];
        all.extend(pieces.iter().map(Vec::as_slice));
        for mut input in all {
            while let Ok(step) = parser.step(&mut input, Method::Get) {
                if step == Step::Starved {
                    break;
                }
            }
        }
        parser.ended();
    }
}
