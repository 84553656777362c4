//! The identity of clients behind proxies.

use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;

use rustix::process::Signal;

use super::client::{Client, request};
use super::process::Site;

/// Returns the path and the client of each request in the log.
#[track_caller]
fn check(options: &str, connect: &str, table: &[(&str, &str)]) {
    let mut server = Site::new().serve(&format!("--log-file {{}}/log {options}"));
    let port = server.addresses[server.addresses.len() - 1].port();
    let address: SocketAddr = format!("{connect}:{port}").parse().expect("an address");
    for (n, (line, _)) in table.iter().enumerate() {
        let mut client = Client::new(TcpStream::connect(address).expect("it listens there"));
        let lines = line.split('|').filter(|line| !line.is_empty());
        let lines: String = lines
            .map(|line| format!("X-Forwarded-For: {line}\r\n"))
            .collect();
        assert_eq!(client.ask(&request(&format!("/{n}"), &lines)).status, 404);
    }
    server.signal(Signal::TERM);
    assert!(server.ended().success());
    let log = std::fs::read_to_string(server.site.path("log")).expect("it is there");
    for (n, (line, expected)) in table.iter().enumerate() {
        let logged = log
            .lines()
            .find(|logged| logged.contains(&format!("GET /{n} ")));
        let client = logged.and_then(|logged| logged.split(' ').next());
        assert_eq!(client, Some(*expected), "{options} {line:?}: {log}");
    }
}

#[test]
fn forwarded_for_is_trusted_from_configured_proxies_only() {
    check(
        "",
        "127.0.0.1",
        &[("", "127.0.0.1"), ("192.0.2.1", "127.0.0.1")],
    );
    check(
        "--trusted-proxies 127.0.0.0/8,10.0.0.0/8,2001:db8::/32",
        "127.0.0.1",
        &[
            ("", "127.0.0.1"),
            ("192.0.2.1", "192.0.2.1"),
            // What is left of the last that nobody vouches for, anybody may have written.
            ("198.51.100.7, 192.0.2.1", "192.0.2.1"),
            ("198.51.100.7,192.0.2.1 , 10.1.2.3", "192.0.2.1"),
            ("198.51.100.7|192.0.2.1|10.1.2.3, 10.1.2.4", "192.0.2.1"),
            ("10.1.2.3", "10.1.2.3"),
            ("2001:db9::1, 2001:db8::7", "2001:db9::1"),
            ("::ffff:192.0.2.1, ::ffff:10.0.0.1", "192.0.2.1"),
            ("unknown, 10.1.2.3", "10.1.2.3"),
            ("192.0.2.1, nonsense", "127.0.0.1"),
            ("192.0.2.1,", "127.0.0.1"),
        ],
    );
}

#[test]
fn an_ipv4_mapped_address_equals_its_ipv4_address() {
    if std::net::TcpListener::bind("[::]:0").is_err() {
        return;
    }
    let options = "--listen [::]:0 --trusted-proxies 127.0.0.1";
    check(
        options,
        "127.0.0.1",
        &[("", "127.0.0.1"), ("192.0.2.1", "192.0.2.1")],
    );
    check(
        &format!("{options},::1"),
        "[::1]",
        &[("", "::1"), ("192.0.2.1", "192.0.2.1")],
    );
}

#[test]
fn the_status_page_is_restricted_by_client() {
    let server = Site::new().serve("--trusted-proxies 127.0.0.1");
    let ask = |line: &str| server.connect().ask(&request("/status", line)).status;
    assert_eq!(ask(""), 404);
    assert_eq!(ask("X-Forwarded-For: 192.0.2.1\r\n"), 404);
    assert_eq!(ask("X-Forwarded-For: 127.0.0.2\r\n"), 200);
    assert_eq!(ask("X-Forwarded-For: 127.0.0.1, 192.0.2.1\r\n"), 404);
    let all = Site::new().serve("--status-from 192.0.2.0/24");
    assert_eq!(all.get("/status").status, 404);
    if std::net::TcpListener::bind("[::]:0").is_ok() {
        let site = Site::new();
        let both = site.serve("--listen [::]:0");
        let port = both.addresses[both.addresses.len() - 1].port();
        for address in [format!("127.0.0.1:{port}"), format!("[::1]:{port}")] {
            let mut client = Client::new(TcpStream::connect(&address).expect("it listens there"));
            assert_eq!(client.ask(&request("/status", "")).status, 200, "{address}");
        }
    }
}

#[test]
fn the_status_page_is_restricted_by_client_on_a_unix_socket() {
    let (local, other) = (
        "X-Forwarded-For: 127.0.0.1\r\n",
        "X-Forwarded-For: 192.0.2.1\r\n",
    );
    let check = |options: &str, expected: [u16; 3]| {
        let server = Site::new().serve(&format!("--listen unix:{{}}/web.sock {options}"));
        let path = server.site.path("web.sock");
        let ask = |lines: &str| {
            let mut client = Client::new(UnixStream::connect(&path).expect("it listens there"));
            client.ask(&request("/status?json", lines)).status
        };
        assert_eq!(["", local, other].map(ask), expected, "{options}");
        assert_eq!(server.get("/status").status, 200);
    };
    check("", [404, 404, 404]);
    check("--trusted-proxies unix", [404, 200, 404]);
    let from = "--status-from 127.0.0.0/8,unix";
    check(from, [200, 404, 404]);
    check(&format!("{from} --trusted-proxies unix"), [200, 200, 404]);
}

#[test]
fn slow_and_large_answers_are_logged_with_their_clients() {
    let site = Site::new().file("site/large.bin", super::process::bytes(20_000_000));
    let mut server = site.serve("--log-file {}/log --limit-connections 1");
    let mut client = server.connect();
    // It has begun to ask for more: one that is idle would make room.
    let more = request("/large.bin", "") + "GET /a.txt HTTP/1.1\r\n";
    assert_eq!(client.ask(&more).status, 200);
    let mut other = server.connect();
    assert_eq!(other.answer().status, 503);
    drop((client, other));
    server.signal(Signal::TERM);
    assert!(server.ended().success());
    let log = std::fs::read_to_string(server.site.path("log")).expect("it is there");
    let mut lines = log.lines();
    assert!(
        lines.clone().count() >= 1 && lines.all(|line| line.starts_with("127.0.0.1 - ")),
        "{log}"
    );
    assert!(log.contains("\" 200 20000000 "), "{log}");
}
