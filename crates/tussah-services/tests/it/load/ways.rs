//! Ways to reach the server: address families, names, sources, Unix sockets.

use std::io::ErrorKind;
use std::net::TcpListener;

use super::server::{Action, Server, ok};
use super::{ended, summary};

fn answer() -> Action {
    Action::Send(ok(b"x"))
}

#[test]
fn by_ipv6() {
    if let Err(error) = TcpListener::bind("[::1]:0") {
        assert_eq!(error.kind(), ErrorKind::AddrNotAvailable, "it has no IPv6");
        return;
    }
    let server = Server::at("::1", |_| answer());
    let summary = summary(&format!("http://[::1]:{}/ -c 2 -n 10", server.port));
    assert_eq!(summary.requests.served, 10);
    let (head, _) = server.see(|seen| seen.last.take()).expect("a request");
    assert!(
        head.contains(&format!("\r\nHost: [::1]:{}\r\n", server.port)),
        "{head}"
    );
}

#[test]
fn by_name() {
    let server = Server::start(|_| answer());
    let summary = summary(&format!("localhost:{} -c 2 -n 10", server.port));
    assert_eq!(summary.requests.served, 10);
    let (status, text) = ended("http://no-such-host.invalid/ -n 1");
    assert_eq!(status, 1);
    assert!(text.contains("no-such-host.invalid"), "{text}");
}

#[test]
fn from_several_addresses() {
    let server = Server::start(|_| answer());
    let options = "--source 127.0.0.2,127.0.0.3 -c 4 -n 40";
    let summary = summary(&format!("{} {options}", server.url()));
    assert_eq!(summary.requests.served, 40);
    let peers: Vec<String> =
        server.see(|seen| seen.peers.iter().map(ToString::to_string).collect());
    assert_eq!(peers, ["127.0.0.2", "127.0.0.3"]);
    let (status, text) = ended(&format!("{} --source ::1 -n 1", server.url()));
    assert_eq!(status, 1);
    assert!(text.contains("other address family"), "{text}");
}

#[test]
fn by_a_unix_socket() {
    let root = tempfile::tempdir().expect("a directory");
    let path = root.path().join("socket");
    let server = Server::unix(&path, |_| answer());
    let options = format!(
        "--unix {} -c 2 -n 10 --requests-per-connection 2",
        path.display()
    );
    let summary = summary(&format!("http://name.example/ {options}"));
    assert_eq!((summary.requests.served, summary.requests.failed), (10, 0));
    let (head, _) = server.see(|seen| seen.last.take()).expect("a request");
    assert!(head.contains("\r\nHost: name.example\r\n"), "{head}");
}
