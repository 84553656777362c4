//! Methods, and requests that are refused.

use tussah_services::web::Reply;

use super::client::request;
use super::server::{Server, Site};

fn server() -> Server {
    Site::new().file("a.txt", "first\n").start_with(|web| {
        let method = async |request: tussah_services::web::Request| {
            Reply::text(format!("{:?} {}", request.method(), request.method_name()))
        };
        let path = async |request: tussah_services::web::Request| {
            let segments: Vec<_> = request.segments().collect();
            let raw = String::from_utf8_lossy(request.raw_path()).into_owned();
            Reply::text(format!("{raw} {} {segments:?}", request.path()))
        };
        web.route("/method", method).route("/ids/*", path)
    })
}

#[test]
fn files_can_be_read_only() {
    let server = server();
    let table = [
        ("GET", 200, None),
        ("OPTIONS", 204, Some("GET, HEAD, OPTIONS")),
        ("POST", 405, Some("GET, HEAD, OPTIONS")),
        ("PUT", 405, Some("GET, HEAD, OPTIONS")),
        ("DELETE", 405, Some("GET, HEAD, OPTIONS")),
        ("PATCH", 405, Some("GET, HEAD, OPTIONS")),
        ("TRACE", 501, Some("GET, HEAD, OPTIONS")),
        ("BREW", 501, Some("GET, HEAD, OPTIONS")),
        ("get", 501, Some("GET, HEAD, OPTIONS")),
    ];
    let mut client = server.connect();
    for (method, status, allow) in table {
        let answer = client.ask(request(method, "/a.txt", ""));
        assert_eq!(answer.status, status, "{method}");
        assert_eq!(answer.field("Allow").as_deref(), allow, "{method}");
        assert!(!answer.ends(), "{method}: there is no reason to close");
    }
}

#[test]
fn asterisk_and_authority_targets_are_answered() {
    let server = server();
    let check = |request: &str, expected| {
        let answer = server.ask(request);
        assert_eq!(answer.status, expected, "{request}: {}", answer.head);
    };
    // All of the server (RFC 9110, section 9.3.7), and a tunnel, which it does not make (section
    // 9.3.6).
    check("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 204);
    check("CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n", 501);
    check("GET http://b/a.txt HTTP/1.1\r\nHost: a\r\n\r\n", 200);
    check("GET http://b HTTP/1.1\r\nHost: a\r\n\r\n", 404);
    check("GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400);
    check("GET a.txt HTTP/1.1\r\nHost: a\r\n\r\n", 400);
}

#[test]
fn routes_see_every_method() {
    let server = server();
    let table = [
        ("GET", "Get GET"),
        ("POST", "Post POST"),
        ("DELETE", "Delete DELETE"),
        ("OPTIONS", "Options OPTIONS"),
        ("BREW", "Other BREW"),
        ("Get", "Other Get"),
    ];
    for (method, expected) in table {
        assert_eq!(server.ask(request(method, "/method", "")).text(), expected);
    }
}

#[test]
fn routes_see_what_a_segment_holds() {
    let server = server();
    let table = [
        ("/ids/a", "/ids/a [\"ids\", \"a\"]"),
        ("/ids/a%2fb", "/ids/a%2Fb [\"ids\", \"a/b\"]"),
        ("/ids/a%252Fb", "/ids/a%2Fb [\"ids\", \"a%2Fb\"]"),
        ("/ids/%5C%0A", "/ids/%5C%0A [\"ids\", \"\\\\\\n\"]"),
        (
            "/ids/..%2F..%2Fetc",
            "/ids/..%2F..%2Fetc [\"ids\", \"../../etc\"]",
        ),
        ("/x/../ids//%2F/", "/ids/%2F/ [\"ids\", \"/\", \"\"]"),
    ];
    for (raw, expected) in table {
        let answer = server.get(raw, "");
        assert_eq!(answer.status, 200, "{raw}: {}", answer.head);
        assert_eq!(answer.text(), format!("{raw} {expected}"));
    }
    // Nothing but a route has such a path, and an encoded slash does not lead to one.
    for raw in [
        "/a.txt%2F",
        "/ids%2Fa",
        "/x%2F..%2Fids/a",
        "/..%2Fa.txt",
        "/ids/../../ids/%2F",
        "/ids/%2",
        "/idsx/%2F",
    ] {
        server.check_status(raw, 400);
    }
}

#[test]
fn trace_is_refused_for_every_route() {
    let server = server();
    let mut client = server.connect();
    let answer = client.ask(request("TRACE", "/method", "Cookie: secret\r\n"));
    assert_eq!((answer.status, answer.ends()), (501, false));
    assert_eq!(client.ask(request("GET", "/method", "")).status, 200);
}

#[test]
fn paths_are_made_normal_before_anything_else() {
    let server = server();
    let table = [
        ("/./a.txt", 200),
        ("//a.txt", 200),
        ("/b/../a.txt", 200),
        ("/%61.txt", 200),
        ("/a%2Etxt?x=/../..", 200),
        ("/x/../method", 200),
        ("/a.txt/", 404),
        ("/A.TXT", 404),
        ("/../a.txt", 400),
        ("/b/%2e%2e/%2E./a.txt", 400),
        ("/..%2fa.txt", 400),
        ("/a%5c..%5ca.txt", 400),
        ("/a.txt%00", 400),
        ("/a%0d%0aX:%20y", 400),
        ("/a%zz", 400),
        ("/%", 400),
    ];
    for (path, expected) in table {
        server.check_status(path, expected);
    }
}

#[test]
fn a_refused_request_closes_the_connection() {
    let server = server();
    let long = "x".repeat(20_000);
    let table = [
        (request("GET", &format!("/{long}"), ""), 414),
        (request("GET", "/", &format!("X: {long}\r\n")), 431),
        (request("GET", "/", &"X: y\r\n".repeat(101)), 431),
        (request("GET", "/", "Host: b\r\n"), 400),
        ("GET / HTTP/1.1\r\n\r\n".into(), 400),
        ("GET / HTTP/2.0\r\nHost: a\r\n\r\n".into(), 505),
        (request(&"M".repeat(40), "/", ""), 501),
        (
            request("POST", "/method", "Transfer-Encoding: gzip, chunked\r\n"),
            501,
        ),
        (
            request("POST", "/method", "Transfer-Encoding: gzip\r\n"),
            400,
        ),
        (
            request(
                "POST",
                "/method",
                "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
            ),
            400,
        ),
        (request("GET", "/..", ""), 400),
    ];
    for (text, expected) in table {
        let start = &text[..text.len().min(60)];
        let mut client = server.connect();
        client.send(
            [&text, &request("GET", "/a.txt", "")]
                .map(String::as_str)
                .concat(),
        );
        let answer = client.answer();
        assert_eq!((answer.status, answer.ends()), (expected, true), "{start}");
        client.expect_end();
    }
}

#[test]
fn configured_limits_hold() {
    let server = Site::new().file("a.txt", "first\n").with(|config| {
        config.limits.head_bytes = 200;
        config.limits.headers = 3;
    });
    let server = server.start();
    let get = |lines: &str| server.get("/a.txt", lines).status;
    assert_eq!(get("A: 1\r\nB: 2\r\n"), 200);
    assert_eq!(get("A: 1\r\nB: 2\r\nC: 3\r\n"), 431);
    let head = request("GET", "/a.txt", "X: \r\n").len();
    assert_eq!(get(&format!("X: {}\r\n", "y".repeat(200 - head))), 200);
    assert_eq!(get(&format!("X: {}\r\n", "y".repeat(201 - head))), 431);
}
