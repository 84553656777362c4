//! Clients that vanish, and those that only listen on.

use super::client::request;
use super::process::{Site, bytes, until};

const LARGE: usize = 30_000_000;

#[test]
fn clients_that_vanish_anywhere() {
    let site = Site::new().file("site/large.bin", bytes(LARGE));
    let server = site.serve("--work --target 10s");
    let (sockets, descriptors) = (server.sockets(), server.descriptors());
    let body = "POST /work HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc".to_owned();
    let sent = [
        String::new(),
        "GET /a.t".to_owned(),
        request("/a.txt", ""),
        request("/a.txt", "").repeat(100),
        request("/large.bin", ""),
        request("/large.bin", "").repeat(3),
        request("/work?wait=100ms", ""),
        request("/work?wait=100ms", "").repeat(3),
        request("/work?compute=20ms", ""),
        body,
    ];
    for round in 0..200 {
        for (n, sent) in sent.iter().enumerate() {
            let mut client = server.connect();
            client.send(sent);
            // At once, or with a part of the answer on its way.
            if round % 2 == 1 && (2..6).contains(&n) {
                assert!(client.fill());
            }
            if round % 4 < 2 {
                client.vanish();
            }
        }
    }
    server.expect_sockets(sockets);
    until("no file is open, but perhaps the large one", || {
        server.descriptors() <= descriptors + 1
    });
    assert!(server.get("/large.bin").body == bytes(LARGE), "other bytes");
}

#[test]
fn clients_that_only_listen_on() {
    let site = Site::new().file("site/large.bin", bytes(LARGE));
    let server = site.serve("--work --target 10s --half-close serve");
    let sockets = server.sockets();
    for path in [
        "/a.txt",
        "/large.bin",
        "/work?wait=50ms",
        "/work?compute=20ms",
        "/none",
    ] {
        let mut client = server.connect();
        client.send(request(path, "").repeat(2));
        client.finish();
        let (first, second) = (client.answer(), client.answer());
        assert_eq!(
            (first.status, first.body.len()),
            (second.status, second.body.len()),
            "{path}"
        );
        client.expect_end();
    }
    server.expect_sockets(sockets);
}
