//! TLS: its own time limits, ends, and certificates.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rustix::process::Signal;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, HandshakeKind, RootCertStore, StreamOwned};
use serde_json::Value;

use super::client::{Client, request};
use super::process::{Process, Site, bytes, until};
use crate::fastcgi::php::Php;

/// Options that make a server use the certificate of [`site`].
pub const OPTIONS: &str = "--tls-cert {}/cert.pem --tls-key {}/key.pem";

type Secure = StreamOwned<ClientConnection, TcpStream>;

/// A site with a certificate of its own.
pub fn site() -> Site {
    let (cert, key) = certificate();
    Site::new().file("cert.pem", cert).file("key.pem", key)
}

pub fn certificate() -> (String, String) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]);
    let made = made.expect("a certificate can be made");
    (made.cert.pem(), made.signing_key.serialize_pem())
}

/// The configuration of a client that trusts the server's certificate.
fn trusting(server: &Process) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    let cert = CertificateDer::from_pem_file(server.site.path("cert.pem")).expect("it is there");
    roots.add(cert).expect("it is good");
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has them")
        .with_root_certificates(roots);
    let mut config = config.with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Arc::new(config)
}

fn connect_as(server: &Process, config: &Arc<ClientConfig>) -> Client<Secure> {
    let name = ServerName::try_from("localhost").expect("a name");
    let session =
        ClientConnection::new(Arc::clone(config), name).expect("the configuration is good");
    let stream = TcpStream::connect(server.address()).expect("the server listens");
    Client::new(StreamOwned::new(session, stream))
}

pub fn connect(server: &Process) -> Client<Secure> {
    connect_as(server, &trusting(server))
}

#[test]
fn requests_over_tls() {
    let large = bytes(5_000_000);
    let server = site()
        .file("site/large.bin", &large)
        .serve(&format!("{OPTIONS} --work"));
    let sockets = server.sockets();
    let mut client = connect(&server);
    assert_eq!(client.ask(&request("/a.txt", "")).text(), "hello\n");
    assert_eq!(client.stream.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
    assert!(
        client.ask(&request("/large.bin", "")).body == large,
        "other bytes"
    );
    let paths = ["/a.txt", "/large.bin", "/work?wait=5ms", "/none", "/a.txt"];
    client.send(paths.map(|path| request(path, "")).concat());
    let statuses = paths.map(|_| client.answer().status);
    assert_eq!(statuses, [200, 200, 200, 404, 200]);
    let answer = client
        .ask("POST /work HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
    assert_eq!(answer.status, 100);
    assert_eq!(client.ask("abc").status, 200);
    assert!(
        client
            .ask(&request("/a.txt", "Connection: close\r\n"))
            .ends()
    );
    // `close_notify`: without it, this is an error.
    assert_eq!(client.stream.read(&mut [0]).expect("a clean end"), 0);
    drop(client);
    server.expect_sockets(sockets);
}

/// A long body in each direction; that of the request has a known or an unknown length.
#[test]
fn bodies_of_scripts_over_tls() {
    let php = Php::start();
    let echo = "<?php
$body = file_get_contents('php://input');
header('Content-Length: ' . strlen($body));
echo $body;";
    let body = bytes(8 << 20);
    let flags = format!("{OPTIONS} --php {} --limit-body 16MiB", php.address());
    let server = site().file("site/echo.php", echo).serve(&flags);
    let mut client = connect(&server);
    let known = [
        format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes(),
        &body,
    ]
    .concat();
    let chunk = [format!("{:x}\r\n", body.len()).as_bytes(), &body].concat();
    let chunked = [
        &b"Transfer-Encoding: chunked\r\n\r\n"[..],
        &chunk,
        b"\r\n0\r\n\r\n",
    ]
    .concat();
    for upload in [&known, &chunked] {
        let head = b"PUT /echo.php HTTP/1.1\r\nHost: a\r\n";
        client.send([&head[..], upload].concat());
        let answer = client.answer();
        assert_eq!(answer.status, 200, "{}", answer.head);
        assert!(answer.body == body, "other bytes");
    }
}

#[test]
fn sessions_are_resumed() {
    let server = site().serve(OPTIONS);
    let config = trusting(&server);
    let mut kinds = Vec::new();
    for _ in 0..3 {
        let mut client = connect_as(&server, &config);
        assert_eq!(client.ask(&request("/a.txt", "")).status, 200);
        kinds.push(client.stream.conn.handshake_kind());
    }
    assert_eq!(kinds[0], Some(HandshakeKind::Full));
    assert_eq!(kinds[2], Some(HandshakeKind::Resumed));
}

#[test]
fn invalid_handshakes_are_refused() {
    let server = site().serve(&format!("{OPTIONS} --timeout-head 300ms"));
    let sockets = server.sockets();
    // Nothing at all, plain HTTP, half a hello, and who goes.
    server.connect().expect_end();
    let mut plain = server.connect();
    plain.send(request("/a.txt", ""));
    while plain.fill() {}
    server.connect().send([22, 3, 1, 2, 0, 1]);
    for sent in ["", "\x16\x03\x01", "GET /"] {
        let mut client = server.connect();
        client.send(sent);
        client.vanish();
    }
    server.expect_sockets(sockets);
    // On a busy machine, a handshake may take longer than there is time for.
    until("others are served", || {
        let mut client = connect(&server);
        let sent = client.stream.write_all(request("/a.txt", "").as_bytes());
        sent.is_ok() && client.next().is_ok_and(|answer| answer.status == 200)
    });
}

#[test]
fn idle_connections_end_cleanly() {
    let server = site().serve(&format!("{OPTIONS} --timeout-idle 300ms"));
    let mut client = connect(&server);
    assert_eq!(client.ask(&request("/a.txt", "")).status, 200);
    assert_eq!(client.stream.read(&mut [0]).expect("a clean end"), 0);
}

#[test]
fn a_peer_that_reads_nothing_loses_its_connection() {
    let server = site()
        .file("site/large.bin", bytes(30_000_000))
        .serve(&format!(
            "{OPTIONS} --timeout-write 300ms --timeout-linger 300ms"
        ));
    let sockets = server.sockets();
    let mut client = connect(&server);
    client.send(request("/large.bin", "Connection: close\r\n"));
    assert!(client.fill());
    server.expect_sockets(sockets);
}

/// A handshake that does not end holds up nothing.
#[test]
fn requests_that_are_cut_are_in_the_log() {
    let large = bytes(30_000_000);
    let site = site().file("site/large.bin", large);
    let mut server = site.serve(&format!(
        "{OPTIONS} --work --target 20s --drain 0s --log-file {{}}/access.log"
    ));
    let _shakes = server.connect();
    let mut idle = connect(&server);
    assert_eq!(idle.ask(&request("/a.txt", "")).status, 200);
    let mut page = connect(&server);
    page.send(request("/work?wait=10000ms", ""));
    let mut post = connect(&server);
    let wait = "POST /work?wait=10000ms HTTP/1.1\r\nHost: a\r\n";
    post.send(format!("{wait}Content-Length: 0\r\n\r\n"));
    until("both wait", || {
        let page = connect(&server).ask(&request("/status?json", ""));
        let page: Value = serde_json::from_str(page.text()).expect("it is JSON");
        page["sources"][0]["in_service"] == 2
    });
    let mut arrives = connect(&server);
    let lines = "Content-Length: 9\r\nExpect: 100-continue\r\n\r\n";
    assert_eq!(arrives.ask(&format!("{wait}{lines}")).status, 100);
    let mut reading = connect(&server);
    reading.send(request("/large.bin", ""));
    assert!(reading.fill());
    server.signal(Signal::TERM);
    assert_eq!(server.ended().code(), Some(0));
    assert!(!server.said().contains("missing"), "{}", server.said());
    let log = fs::read_to_string(server.site.path("access.log")).expect("it was written");
    let mut lines: Vec<_> = log
        .lines()
        .filter(|line| !line.contains("/status"))
        .collect();
    lines.sort_by_key(|line| line.split_once('"').map(|(_, line)| line));
    let [first, large, page, posts @ ..] = &lines[..] else {
        panic!("{log}");
    };
    assert!(first.contains("GET /a.txt HTTP/1.1\" 200 6 "), "{log}");
    assert!(large.contains("GET /large.bin HTTP/1.1\" 200 "), "{log}");
    assert!(!large.contains(" 30000000 "), "{log}");
    assert!(
        page.contains("GET /work?wait=10000ms HTTP/1.1\" 444 - "),
        "{log}"
    );
    assert_eq!(posts.len(), 2, "{log}");
    for post in posts {
        assert!(
            post.contains("POST /work?wait=10000ms HTTP/1.1\" 444 - "),
            "{log}"
        );
    }
}

#[test]
fn half_closed_clients_are_answered() {
    let server = site()
        .file("site/large.bin", bytes(5_000_000))
        .serve(&format!("{OPTIONS} --work --half-close serve"));
    for path in ["/a.txt", "/large.bin", "/work?wait=50ms"] {
        let mut client = connect(&server);
        client.send(request(path, ""));
        client.stream.conn.send_close_notify();
        client.stream.flush().expect("the server takes it");
        client
            .stream
            .sock
            .shutdown(std::net::Shutdown::Write)
            .expect("it is open");
        assert_eq!(client.answer().status, 200, "{path}");
        client.expect_end();
    }
}

#[test]
fn certificates_are_read_again() {
    let mut server = site().serve(OPTIONS);
    let mut old = connect(&server);
    assert_eq!(old.ask(&request("/a.txt", "")).status, 200);
    let before = trusting(&server);
    let (cert, key) = certificate();
    std::fs::write(server.site.path("cert.pem"), cert).expect("there is room");
    // They don't fit together: the old ones stay.
    server.signal(Signal::HUP);
    server.says("the old configuration stays in effect");
    assert_eq!(
        connect_as(&server, &before)
            .ask(&request("/a.txt", ""))
            .status,
        200
    );
    assert_eq!(old.ask(&request("/a.txt", "")).status, 200);
    std::fs::write(server.site.path("key.pem"), key).expect("there is room");
    server.signal(Signal::HUP);
    server.says("certificates reloaded");
    until("the other is used", || {
        let mut client = connect(&server);
        let sent = client.stream.write_all(request("/a.txt", "").as_bytes());
        sent.is_ok() && client.next().is_ok()
    });
    old.expect_end();
}

#[test]
fn a_request_is_cancelled_when_its_client_hangs_up_by_tls_or_beneath_it() {
    let server = site().serve(&format!("{OPTIONS} --work --target 20s"));
    let mut watcher = connect(&server);
    let mut count = |name: &str| {
        let page = watcher.ask(&request("/status?json", ""));
        let page: serde_json::Value = serde_json::from_slice(&page.body).expect("it is JSON");
        let stages = page["stages"].as_array().expect("stages").clone();
        let dynamic = stages
            .into_iter()
            .find(|stage| stage["name"] == "route /work");
        let dynamic = dynamic.expect("it is there");
        let number = page.get(name).unwrap_or(&dynamic[name]);
        number.as_u64().expect("a number")
    };
    let notify = |client: &mut Client<Secure>| {
        client.stream.conn.send_close_notify();
        client.stream.flush().expect("the server takes it");
    };
    let hang_ups: [&dyn Fn(Client<Secure>) -> Option<Client<Secure>>; 4] = [
        // The TCP connection alone.
        &|client| {
            drop(client);
            None
        },
        &|client| {
            rustix::net::sockopt::set_socket_linger(
                &client.stream.sock,
                Some(std::time::Duration::ZERO),
            )
            .expect("TCP has it");
            None
        },
        // TLS alone.
        &|mut client| {
            notify(&mut client);
            Some(client)
        },
        // Behind more requests.
        &|mut client| {
            client.send(request("/a.txt", "").repeat(50));
            notify(&mut client);
            Some(client)
        },
    ];
    for (n, hang_up) in hang_ups.iter().enumerate() {
        let mut client = connect(&server);
        client.send(request("/work?wait=10000ms", ""));
        until("it has begun", || count("in_service") == 1);
        let client = hang_up(client);
        until("it is cancelled", || count("cancelled") == n as u64 + 1);
        until("nothing is left", || count("in_service") == 0);
        if let Some(mut client) = client {
            client.expect_end();
        }
    }
}
