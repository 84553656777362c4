//! Request heads.

use tussah_wire::http::head::{Field, Head, Limits, Scan, Version, parse};
use tussah_wire::http::{Framing, Method};

fn head(bytes: &[u8]) -> Head {
    let text = String::from_utf8_lossy(bytes);
    let parsed =
        parse(bytes, &Limits::default()).unwrap_or_else(|refusal| panic!("{text}: {refusal}"));
    parsed.unwrap_or_else(|| panic!("{text} is not complete"))
}

fn request(line: &str, fields: &str) -> (Head, Vec<u8>) {
    let bytes = format!("{line}\r\n{}\r\n\r\n", fields.replace("; ", "\r\n")).into_bytes();
    (head(&bytes), bytes)
}

#[test]
fn the_size_of_a_head_is_small() {
    assert!(size_of::<Head>() <= 88, "{}", size_of::<Head>());
    assert_eq!(size_of::<Scan>(), size_of::<usize>());
}

#[test]
fn request_lines() {
    let check =
        |line: &str, method, target: &str, path: &str, query: Option<&str>, host: &str, version| {
            let (head, bytes) = request(line, "Host: h");
            assert_eq!((head.method, head.version), (method, version), "{line}");
            assert_eq!(
                head.method_text(&bytes),
                line.split(' ').next().unwrap().as_bytes()
            );
            assert_eq!(head.target(&bytes), target.as_bytes(), "{line}");
            assert_eq!(head.path(&bytes), path.as_bytes(), "{line}");
            assert_eq!(head.query(&bytes), query.map(str::as_bytes), "{line}");
            assert_eq!(head.host(&bytes), Some(host.as_bytes()), "{line}");
            assert_eq!(head.len(), bytes.len());
        };
    use Version::{Http10, Http11};
    check("GET / HTTP/1.1", Method::Get, "/", "/", None, "h", Http11);
    check(
        "GET /a/b HTTP/1.0",
        Method::Get,
        "/a/b",
        "/a/b",
        None,
        "h",
        Http10,
    );
    check(
        "GET /a HTTP/1.9",
        Method::Get,
        "/a",
        "/a",
        None,
        "h",
        Http11,
    );
    check(
        "HEAD /a?b=c?d HTTP/1.1",
        Method::Head,
        "/a?b=c?d",
        "/a",
        Some("b=c?d"),
        "h",
        Http11,
    );
    check(
        "POST /a? HTTP/1.1",
        Method::Post,
        "/a?",
        "/a",
        Some(""),
        "h",
        Http11,
    );
    check(
        "PUT http://g/a?b HTTP/1.1",
        Method::Put,
        "http://g/a?b",
        "/a",
        Some("b"),
        "g",
        Http11,
    );
    check(
        "DELETE http://g:1 HTTP/1.1",
        Method::Delete,
        "http://g:1",
        "/",
        None,
        "g:1",
        Http11,
    );
    check(
        "PATCH https://g?a/b HTTP/1.1",
        Method::Patch,
        "https://g?a/b",
        "/",
        Some("a/b"),
        "g",
        Http11,
    );
    check(
        "TRACE / HTTP/1.1",
        Method::Trace,
        "/",
        "/",
        None,
        "h",
        Http11,
    );
    check(
        "OPTIONS * HTTP/1.1",
        Method::Options,
        "*",
        "*",
        None,
        "h",
        Http11,
    );
    check(
        "CONNECT g:443 HTTP/1.1",
        Method::Connect,
        "g:443",
        "",
        None,
        "g:443",
        Http11,
    );
    check(
        "GETS / HTTP/1.1",
        Method::Other,
        "/",
        "/",
        None,
        "h",
        Http11,
    );
}

#[test]
fn connections() {
    let check = |line: &str, fields: &str, keep_alive| {
        assert_eq!(
            request(line, &format!("Host: a; {fields}")).0.keep_alive,
            keep_alive,
            "{line} {fields}"
        );
    };
    check("GET / HTTP/1.1", "X: y", true);
    check("GET / HTTP/1.1", "Connection: close", false);
    check("GET / HTTP/1.1", "connection: CLOSE", false);
    check("GET / HTTP/1.1", "Connection: keep-alive", true);
    check("GET / HTTP/1.1", "Connection: keep-alive, close", false);
    check(
        "GET / HTTP/1.1",
        "Connection: close; Connection: keep-alive",
        false,
    );
    check("GET / HTTP/1.1", "Connection: x-close", true);
    check("GET / HTTP/1.1", "Connection: closed,clos e", true);
    check("GET / HTTP/1.1", "X-Connection: close", true);
    check("GET / HTTP/1.0", "X: y", false);
    check("GET / HTTP/1.0", "Connection: Keep-Alive", true);
    check("GET / HTTP/1.0", "Connection: x, Keep-Alive ,y", true);
    check(
        "GET / HTTP/1.0",
        "Connection: keep-alive; Connection: close",
        false,
    );
}

#[test]
fn bodies() {
    let check = |line: &str, fields: &str, framing, expect_continue| {
        let (head, _) = request(line, &format!("Host: a; {fields}"));
        assert_eq!(
            (head.framing, head.expect_continue),
            (framing, expect_continue),
            "{line} {fields}"
        );
    };
    check("POST / HTTP/1.1", "X: y", Framing::None, false);
    check(
        "POST / HTTP/1.1",
        "Content-Length: 0",
        Framing::Length(0),
        false,
    );
    check(
        "POST / HTTP/1.1",
        "content-LENGTH: 18446744073709551615",
        Framing::Length(u64::MAX),
        false,
    );
    check(
        "POST / HTTP/1.1",
        "Transfer-Encoding: chunked",
        Framing::Chunked,
        false,
    );
    check(
        "POST / HTTP/1.1",
        "Content-Length: 1; Expect: 100-Continue",
        Framing::Length(1),
        true,
    );
    check(
        "POST / HTTP/1.1",
        "Expect: 100-continue; Transfer-Encoding: chunked",
        Framing::Chunked,
        true,
    );
    check(
        "POST / HTTP/1.1",
        "Content-Length: 1; Expect: 100",
        Framing::Length(1),
        false,
    );
    check(
        "POST / HTTP/1.1",
        "Expect: 100-continue",
        Framing::None,
        false,
    );
    check(
        "POST / HTTP/1.0",
        "Content-Length: 1; Expect: 100-continue",
        Framing::Length(1),
        false,
    );
}

/// Each known field is found in any letter case, and no name that differs by one letter.
#[test]
fn known_fields() {
    use Field::*;
    let all = [
        Host,
        Range,
        IfRange,
        IfMatch,
        IfNoneMatch,
        IfModifiedSince,
        IfUnmodifiedSince,
        AcceptEncoding,
        UserAgent,
        Referer,
        Forwarded,
        ForwardedFor,
    ];
    let conditions = [
        Range,
        IfRange,
        IfMatch,
        IfNoneMatch,
        IfModifiedSince,
        IfUnmodifiedSince,
    ];
    for field in all {
        let host = if field == Host { "" } else { "Host: v; " };
        let names = [
            field.name().to_owned(),
            field.name().to_uppercase(),
            field.name().to_lowercase(),
        ];
        for name in names {
            let (head, bytes) = request("GET / HTTP/1.1", &format!("{host}{name}: v"));
            for other in all {
                let expected = (other == field || other == Host).then_some(&b"v"[..]);
                assert_eq!(head.field(other, &bytes), expected, "{name} {other:?}");
            }
            assert_eq!(head.conditional, conditions.contains(&field), "{name}");
        }
        for place in 0..field.name().len() {
            let mut name = field.name().to_owned();
            name.replace_range(place..=place, "_");
            let (head, bytes) = request("GET / HTTP/1.0", &format!("{name}: v"));
            assert!(
                all.iter().all(|&field| head.field(field, &bytes).is_none()),
                "{name}"
            );
        }
    }
}

#[test]
fn fields_on_several_lines() {
    let (head, bytes) = request(
        "GET / HTTP/1.1",
        "Host: a; Range: b; Referer: c; range: d; Range: e",
    );
    assert_eq!(head.field(Field::Range, &bytes), Some(&b"b"[..]));
    assert_eq!(head.field_single(Field::Range, &bytes), None);
    assert_eq!(
        head.field_lines(Field::Range, &bytes).collect::<Vec<_>>(),
        [b"b", b"d", b"e"]
    );
    assert_eq!(head.field_single(Field::Referer, &bytes), Some(&b"c"[..]));
    assert_eq!(
        head.field_lines(Field::Referer, &bytes).collect::<Vec<_>>(),
        [b"c"]
    );
    assert_eq!(head.field_lines(Field::IfMatch, &bytes).count(), 0);
    assert!(head.is_repeated(Field::Range) && !head.is_repeated(Field::Referer));
    assert_eq!(head.fields(&bytes).count(), 5);
}

#[test]
fn limits() {
    let bytes = b"GET /abc HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n";
    let exact = Limits {
        head_bytes_max: bytes.len(),
        fields_max: 2,
        target_bytes_max: 4,
    };
    assert!(parse(bytes, &exact).unwrap().is_some());
    let check = |limits: Limits, status| {
        let refusal = parse(bytes, &limits).unwrap_err();
        assert_eq!(refusal.status().code(), status, "{limits:?}");
    };
    check(
        Limits {
            head_bytes_max: bytes.len() - 1,
            ..exact
        },
        431,
    );
    check(
        Limits {
            fields_max: 1,
            ..exact
        },
        431,
    );
    check(
        Limits {
            target_bytes_max: 3,
            ..exact
        },
        414,
    );
    check(
        Limits {
            head_bytes_max: 0,
            ..exact
        },
        431,
    );
    let endless = Limits {
        head_bytes_max: usize::MAX,
        ..exact
    };
    let long = [&b"GET / HTTP/1.1\r\nX: "[..], &[b'y'; 70_000]].concat();
    assert_eq!(parse(&long, &endless).unwrap_err().status().code(), 431);
}

/// A slowly arriving head is refused early only for bytes that are never valid, and for those at
/// once.
#[test]
fn an_incomplete_head_that_cannot_become_valid_is_refused_at_once() {
    let limits = Limits::default();
    for wrong in [&b"\n"[..], b"\0", b"\rx"] {
        let mut scan = Scan::new();
        let mut bytes = Vec::new();
        for byte in b"GET / HTTP/1.1\r\nHost: a\r\nX: y" {
            bytes.push(*byte);
            assert_eq!(scan.parse(&bytes, &limits), Ok(None));
        }
        for &byte in &wrong[..wrong.len() - 1] {
            bytes.push(byte);
            assert_eq!(scan.parse(&bytes, &limits), Ok(None), "{wrong:?}");
        }
        bytes.push(wrong[wrong.len() - 1]);
        assert!(scan.parse(&bytes, &limits).is_err(), "{wrong:?}");
        assert_eq!(scan, Scan::new());
    }
}

/// A CR may end the first piece, so that its LF starts the second.
#[test]
fn a_line_end_may_be_cut() {
    let limits = Limits::default();
    let mut scan = Scan::new();
    assert_eq!(scan.parse(b"GET / HTTP/1.1\r\nX: y\r", &limits), Ok(None));
    let mut other = scan;
    assert!(other.parse(b"GET / HTTP/1.1\r\nX: y\rx", &limits).is_err());
    assert_eq!(scan.parse(b"GET / HTTP/1.1\r\nX: y\r\n", &limits), Ok(None));
}
