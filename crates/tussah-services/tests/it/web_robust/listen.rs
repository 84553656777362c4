//! Where it listens, and what it says when it can't.

use std::io::{Read as _, Seek as _};
use std::net::{Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Command;
use std::time::Instant;

use rustix::process::Signal;

use super::client::{Client, request};
use super::process::{PATIENCE, Process, Site, pause, until};

/// Returns the output of a command that ends, and its exit status.
#[track_caller]
fn ended(mut command: Command) -> (i32, String) {
    let mut said = tempfile::tempfile().expect("there is room");
    let out = || said.try_clone().expect("there are descriptors");
    let mut child = command
        .stdout(out())
        .stderr(out())
        .spawn()
        .expect("the command is there");
    let mut status = None;
    let begun = Instant::now();
    while status.is_none() && begun.elapsed() < PATIENCE {
        pause(2);
        status = child.try_wait().expect("it is ours");
    }
    drop(child.kill());
    drop(child.wait());
    let mut text = String::new();
    said.rewind().expect("it is a file");
    said.read_to_string(&mut text).expect("it says text");
    let status = status.unwrap_or_else(|| panic!("it does not end: {text}"));
    (status.code().unwrap_or(-1), text)
}

#[test]
fn several_addresses() {
    let site = Site::new();
    let socket = site.path("web.sock");
    let has_v6 = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok();
    let v6 = if has_v6 { "--listen [::1]:0" } else { "" };
    let mut server = site.serve(&format!(
        "--listen 127.0.0.1:0 --listen 0 {v6} --listen unix:{{}}/web.sock"
    ));
    let addresses = server.addresses.clone();
    assert_eq!(
        addresses.len(),
        3 + usize::from(has_v6),
        "{}",
        server.said()
    );
    for address in addresses {
        assert_ne!(address.port(), 0);
        let mut client = Client::new(TcpStream::connect(address).expect("it listens there"));
        assert_eq!(
            client.ask(&request("/a.txt", "")).text(),
            "hello\n",
            "{address}"
        );
    }
    let mut client = Client::new(UnixStream::connect(&socket).expect("it listens there"));
    assert_eq!(client.ask(&request("/a.txt", "")).text(), "hello\n");
    server.signal(Signal::TERM);
    assert!(server.ended().success());
    assert!(!socket.exists());
}

#[test]
fn a_port_that_is_taken() {
    let first = Site::new().serve("");
    let address = first.address();
    let (status, said) = ended(Site::new().command(&format!("--listen {address}")));
    assert_eq!(status, 1);
    assert!(
        said.contains(&format!("port {} is in use by tussah", address.port())),
        "{said}"
    );
    assert_eq!(first.get("/a.txt").status, 200);
}

#[test]
fn a_socket_that_is_left_over() {
    let directory = tempfile::tempdir().expect("there is room");
    let socket = directory.path().join("web.sock");
    let there = format!("--listen unix:{}", socket.display());
    drop(UnixListener::bind(&socket).expect("the path is free"));
    // A child that another test is about to start has the listener a little longer.
    until("nobody listens", || UnixStream::connect(&socket).is_err());
    assert!(socket.exists());
    let start = || {
        let site = Site::new();
        let command = site.command(&there);
        Process::start(site, command)
    };
    let server = start();
    let connect = || Client::new(UnixStream::connect(&socket).expect("it listens there"));
    assert_eq!(connect().ask(&request("/a.txt", "")).status, 200);
    // One that is in use stays.
    let (status, said) = ended(Site::new().command(&there));
    assert_eq!(status, 1);
    assert!(said.contains("is in use by tussah"), "{said}");
    assert_eq!(connect().ask(&request("/a.txt", "")).status, 200);
    drop(server); // killed
    assert!(socket.exists());
    let _again = start();
    assert_eq!(connect().ask(&request("/a.txt", "")).status, 200);
    // What is no socket is nobody's to remove.
    let site = Site::new().file("file", "mine");
    let (status, said) = ended(site.command("--listen unix:{}/file"));
    assert_eq!(status, 1);
    assert!(said.contains("is not a socket"), "{said}");
    assert_eq!(
        std::fs::read_to_string(site.path("file")).expect("it is there"),
        "mine"
    );
}

#[test]
fn invalid_addresses_are_refused() {
    let check = |listen: &str, status, says: &str| {
        let (found, said) = ended(Site::new().command(&format!("--listen {listen}")));
        assert_eq!(found, status, "{listen}: {said}");
        assert!(said.contains(says), "{listen}: {said}");
    };
    check("192.0.2.1:80", 1, "no interface of this machine has it");
    check("127.0.0.1:99999", 2, "--listen");
    check("unix:/nonexistent/web.sock", 1, "/nonexistent/web.sock");
}

#[test]
fn a_configuration_is_checked() {
    let good = "listen = [\"127.0.0.1:0\"]";
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let taken: SocketAddr = taken.local_addr().expect("it is bound");
    let check = |config: &str, options: &str, status, says: &str| {
        let site = Site::new().file("site.toml", config);
        let (found, said) =
            ended(site.command(&format!("--config {{}}/site.toml --check-config {options}")));
        assert_eq!(found, status, "{config:?} {options}: {said}");
        assert!(said.contains(says), "{config:?} {options}: {said}");
    };
    check(good, "", 0, "127.0.0.1:0");
    // It takes no port.
    check(&format!("listen = [\"{taken}\"]"), "", 0, "listen");
    check("limits.head = \"many\"", "", 2, "limits.head");
    check("limits.heads = 1", "", 2, "limits.head");
    check("nothing", "", 2, "site.toml:1:");
    check(
        good,
        "--tls-cert none.pem --tls-key none.pem",
        2,
        "none.pem",
    );
    check(good, "--tls-cert none.pem", 2, "key");
    check(good, "--error-page 404=none.html", 2, "none.html");
    let (status, said) = ended(Site::new().command("--config /nonexistent.toml --check-config"));
    assert_eq!(status, 2, "{said}");
    assert!(said.contains("/nonexistent.toml"), "{said}");
}
