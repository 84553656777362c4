//! Bodies of requests.

use tussah_services::web::{Reply, Request};

use super::client::{chunked, request, sized};
use super::server::{Server, Site, bytes};

fn server() -> Server {
    let site = Site::new().file("a.txt", "first\n");
    let site = site.with(|config| config.limits.body_bytes = 100_000);
    site.start_with(|web| {
        let echo = async |request: Request| Reply::new("application/octet-stream", request.body());
        web.route("/echo", echo)
    })
}

#[test]
fn routes_get_bodies_whole() {
    let mut client = server().connect_kept();
    for len in [0, 1, 4000, 4096, 5000, 100_000] {
        let body = bytes(len);
        assert_eq!(client.ask(sized("/echo", "", &body)).body, body, "{len}");
        let chunks: Vec<_> = body.chunks(777).collect();
        assert_eq!(
            client.ask(chunked("/echo", "", &chunks)).body,
            body,
            "{len}"
        );
    }
}

#[test]
fn a_body_that_looks_like_a_request_is_not_one() {
    let mut client = server().connect_kept();
    let hidden = request("GET", "/a.txt", "");
    let hidden = hidden.as_bytes();
    for path in ["/echo", "/status"] {
        for text in [sized(path, "", hidden), chunked(path, "", &[hidden])] {
            client.send(text);
            let first = client.answer();
            assert_ne!(first.text(), "first\n", "{path}");
            if path == "/echo" {
                assert_eq!(first.body, hidden);
            }
            if first.ends() {
                client.expect_end();
                client.again();
            } else {
                assert_eq!(client.get("/none", "").status, 404, "{path}");
            }
        }
    }
}

#[test]
fn a_body_with_get_is_read_and_dropped() {
    let mut client = server().connect_kept();
    let body = bytes(50_000);
    for path in ["/a.txt", "/none", "/status"] {
        let expected = client.get(path, "").status;
        let text = sized(path, "", &body);
        let text = [b"GET", &text[4..]].concat();
        assert_eq!(client.ask(text).status, expected, "{path}");
    }
    assert_eq!(client.get("/a.txt", "").text(), "first\n");
}

#[test]
fn an_unread_body_closes_the_connection() {
    let server = server();
    for text in [
        sized("/a.txt", "", &bytes(1_000_000)),
        chunked("/a.txt", "", &[&bytes(1_000_000)]),
        sized("/a.txt", "", b"GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n"),
    ] {
        let mut client = server.connect();
        // The server reads on for a while, so that the answer is not lost.
        client.send(text);
        let answer = client.answer();
        assert_eq!((answer.status, answer.ends()), (405, true));
        client.expect_end();
    }
    // Nothing is coming, so the connection can be used further.
    let mut client = server.connect();
    let answer = client.ask(sized("/a.txt", "", b""));
    assert_eq!((answer.status, answer.ends()), (405, false));
    assert_eq!(client.get("/a.txt", "").status, 200);
}

#[test]
fn a_client_that_expects_100_continue_gets_it() {
    let expect = "Expect: 100-Continue\r\n";
    let mut client = server().connect_kept();
    for _ in 0..2 {
        for text in [
            sized("/echo", expect, b"hello"),
            chunked("/echo", expect, &[b"hello"]),
        ] {
            let head = text
                .windows(4)
                .position(|four| four == b"\r\n\r\n")
                .expect("a head")
                + 4;
            client.send(&text[..head]);
            let told = client.answer();
            assert_eq!((told.status, told.head.lines().count()), (100, 2));
            client.send(&text[head..]);
            assert_eq!(client.answer().text(), "hello");
            // A client that does not wait needs no 100.
            client.send(&text);
            assert_eq!(client.answer().text(), "hello");
        }
    }
    // There is nothing to wait for; and a client of HTTP/1.0 would not understand.
    assert_eq!(client.ask(sized("/echo", expect, b"")).status, 200);
    assert_eq!(client.get("/echo", expect).status, 200);
    client.send("POST /echo HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    client.send("ok");
    assert_eq!(client.answer().text(), "ok");
}

#[test]
fn a_client_that_expects_100_continue_is_refused_before_its_body() {
    let server = server();
    let table = [
        ("POST", "/echo", "Content-Length: 100001\r\n", 413),
        ("PUT", "/a.txt", "Content-Length: 5\r\n", 405),
        ("PUT", "/a.txt", "Transfer-Encoding: chunked\r\n", 405),
        ("BREW", "/a.txt", "Content-Length: 5\r\n", 501),
    ];
    for (method, path, lines, status) in table {
        let mut client = server.connect();
        let answer = client.ask(request(
            method,
            path,
            &format!("Expect: 100-continue\r\n{lines}"),
        ));
        assert_eq!(
            (answer.status, answer.ends()),
            (status, true),
            "{method} {lines}"
        );
        client.expect_end();
    }
}

#[test]
fn bodies_over_the_limit_are_refused() {
    let server = server();
    let body = bytes(100_001);
    let halves: Vec<_> = body.chunks(60_000).collect();
    for text in [sized("/echo", "", &body), chunked("/echo", "", &halves)] {
        let mut client = server.connect();
        client.send([text, request("GET", "/a.txt", "").into_bytes()].concat());
        let answer = client.answer();
        assert_eq!((answer.status, answer.ends()), (413, true));
        client.expect_end();
    }
}

#[test]
fn malformed_chunks_are_refused() {
    let server = server();
    for body in [
        "x\r\n",
        "2\r\nabc\r\n0\r\n\r\n",
        "2\nab\r\n0\r\n\r\n",
        "0\r\nX Y: z\r\n\r\n",
        "fffffffffffffffff\r\n",
    ] {
        let head = request("POST", "/echo", "Transfer-Encoding: chunked\r\n");
        let mut client = server.connect();
        client.send([&head, body, &request("GET", "/a.txt", "")].concat());
        let answer = client.answer();
        assert_eq!((answer.status, answer.ends()), (400, true), "{body}");
        client.expect_end();
    }
}
