//! SIGHUP: another configuration for new connections, and logs that are opened again.

use std::fs;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use rustix::process::Signal;

use super::client::{Client, request};
use super::process::{Process, Site, bytes, until};

fn site(config: &str) -> Site {
    Site::new().file("site.toml", config)
}

/// Writes another configuration and has it loaded.
#[track_caller]
pub fn reload(server: &mut Process, config: &str, says: &str) {
    let before = server.said().len();
    fs::write(server.site.path("site.toml"), config).expect("there is room");
    server.signal(Signal::HUP);
    until(&format!("it says {says:?}"), || {
        server.said()[before..].contains(says)
    });
}

pub const LOADED: &str = "certificates reloaded";

/// Returns the `Server` field that a new connection gets.
fn name(server: &Process) -> String {
    server
        .get("/a.txt")
        .field("Server")
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn new_connections_have_the_new_configuration() {
    let mut server = site("server-header = \"one\"\nstatus.work = true\ntarget = \"20s\"")
        .serve("--config {}/site.toml");
    assert_eq!(name(&server), "one");
    let mut idle = server.connect();
    assert_eq!(
        idle.ask(&request("/a.txt", "")).field("Server"),
        Some("one")
    );
    let mut busy = server.connect();
    busy.send(request("/work?wait=4000ms", ""));
    let mut half = server.connect();
    half.send("GET /a.txt HTTP/1.1\r\n");
    assert_eq!(name(&server), "one");
    reload(&mut server, "server-header = \"two\"", LOADED);
    assert_eq!(name(&server), "two");
    idle.expect_end();
    let answer = busy.answer();
    assert_eq!(
        (answer.status, answer.field("Server"), answer.ends()),
        (200, Some("one"), true)
    );
    busy.expect_end();
    half.send("Host: a\r\n\r\n");
    let answer = half.answer();
    assert_eq!(
        (answer.status, answer.field("Server"), answer.ends()),
        (200, Some("one"), true)
    );
    half.expect_end();
    assert_eq!(server.get("/work").status, 404);
}

#[test]
fn an_invalid_configuration_changes_nothing() {
    let mut server = site("server-header = \"one\"").serve("--config {}/site.toml");
    let mut kept = server.connect();
    assert_eq!(kept.ask(&request("/a.txt", "")).status, 200);
    let stays = "the old configuration stays in effect";
    for (config, why) in [
        (
            "server-header = \"two\"\nlimits.head = \"many\"",
            "limits.head",
        ),
        ("server-header = \"two\"\nfoo = 1", "foo"),
        ("server-header = ", "site.toml:1:"),
        (
            "server-header = \"two\"\ntls.cert = \"none.pem\"\ntls.key = \"none.pem\"",
            "none.pem",
        ),
        ("server-header = \"two\"\nlog.file = \"none/log\"", "log"),
        (
            "server-header = \"two\"\nerrors = { 404 = \"none.html\" }",
            "none.html",
        ),
    ] {
        let before = server.said().len();
        reload(&mut server, config, stays);
        until(
            &format!(
                "{config:?} is blamed for {why:?}: {}",
                &server.said()[before..]
            ),
            || server.said()[before..].contains(why),
        );
        assert_eq!(name(&server), "one", "{config}");
        assert_eq!(
            kept.ask(&request("/a.txt", "")).field("Server"),
            Some("one")
        );
    }
    let gone = server.site.path("site.toml");
    fs::remove_file(gone).expect("it is there");
    // Messages about other missing files came before.
    let before = server.said().len();
    server.signal(Signal::HUP);
    until("a file that is gone is missed", || {
        server.said()[before..].contains("No such file")
    });
    assert_eq!(name(&server), "one");
    reload(&mut server, "server-header = \"two\"", LOADED);
    assert_eq!(name(&server), "two");
    kept.expect_end();
}

#[test]
fn listeners_come_and_go() {
    let site = Site::new();
    let socket = site.path("web.sock");
    let path = site.path("site.toml");
    let both = format!("listen = [\"127.0.0.1:0\", \"unix:{}\"]", socket.display());
    fs::write(&path, "listen = [\"127.0.0.1:0\"]").expect("there is room");
    let mut command = site.command("--config {}/site.toml");
    command.current_dir(site.path("."));
    let mut server = Process::start(site, command);
    let address = server.address();
    reload(&mut server, &both, LOADED);
    let mut unix = Client::new(UnixStream::connect(&socket).expect("it listens there"));
    assert_eq!(unix.ask(&request("/a.txt", "")).status, 200);
    // The port is the same.
    let mut tcp = Client::new(TcpStream::connect(address).expect("it listens there"));
    assert_eq!(tcp.ask(&request("/a.txt", "")).status, 200);
    // One that can't be had.
    let other = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let of_other = other.local_addr().expect("it is bound");
    let taken = format!("listen = [\"127.0.0.1:0\", \"{of_other}\"]");
    reload(&mut server, &taken, "is in use by");
    assert_eq!(unix.ask(&request("/a.txt", "")).status, 200);
    drop(other);
    // A child that another test is about to start has the listener a little longer.
    until("nobody listens", || TcpStream::connect(of_other).is_err());
    reload(&mut server, &taken, LOADED);
    reload(
        &mut server,
        &format!("listen = [\"unix:{}\"]", socket.display()),
        LOADED,
    );
    until("the port is free", || TcpStream::connect(address).is_err());
    let mut unix = Client::new(UnixStream::connect(&socket).expect("it listens there"));
    assert_eq!(unix.ask(&request("/a.txt", "")).status, 200);
    reload(&mut server, "listen = [\"127.0.0.1:0\"]", LOADED);
    until("the socket is gone", || !socket.exists());
}

#[test]
fn the_log_is_opened_again() {
    let mut server = Site::new().serve("--log-file {}/log");
    let log = server.site.path("log");
    let moved = server.site.path("log.1");
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    assert_eq!(server.get("/a.txt?1").status, 200);
    until("it is written", || read(&log).contains("/a.txt?1"));
    for n in 2..5 {
        fs::rename(&log, &moved).expect("it is there");
        let before = server.said().matches(LOADED).count();
        server.signal(Signal::HUP);
        until("it says so", || {
            server.said().matches(LOADED).count() > before
        });
        assert_eq!(server.get(&format!("/a.txt?{n}")).status, 200);
        until("it is written", || {
            read(&log).contains(&format!("/a.txt?{n}"))
        });
        assert!(!read(&moved).contains(&format!("/a.txt?{n}")));
    }
    server.signal(Signal::TERM);
    assert!(server.ended().success());
}

#[test]
fn old_configurations_leave_nothing_behind() {
    let large: Vec<u8> = bytes(900_000);
    let mut site = site("workers = 1");
    for n in 0..10 {
        site = site.file(&format!("site/{n}.bin"), &large);
    }
    let mut server = site.serve("--config {}/site.toml --drain 10s");
    let fill = |server: &Process| {
        (0..10).for_each(|n| assert_eq!(server.get(&format!("/{n}.bin")).status, 200))
    };
    let mut measured = Vec::new();
    for _ in 0..12 {
        fill(&server);
        reload(&mut server, "workers = 1", LOADED);
        measured.push((server.memory_bytes(), server.descriptors()));
    }
    // The cache of each takes 9 MB; the last one is still ending perhaps.
    until(&format!("nothing grows: {measured:?}"), || {
        server.memory_bytes() < measured[1].0 + 20_000_000
    });
    until(&format!("nothing grows: {measured:?}"), || {
        server.descriptors() <= measured[0].1 + 1
    });
}

#[test]
fn old_connections_end_after_their_drain_time() {
    let site = site("drain = \"300ms\"").file("site/large.bin", bytes(30_000_000));
    let mut server = site.serve("--config {}/site.toml --timeout-write 60s --timeout-rate off --timeout-body 60s --timeout-head 60s --work --target 20s");
    let sockets = server.sockets();
    let mut reading = server.connect();
    reading.send(request("/large.bin", ""));
    assert!(reading.fill());
    let mut body = server.connect();
    body.send(request("/work", "Content-Length: 10\r\n"));
    let mut head = server.connect();
    head.send("GET /");
    let mut page = server.connect();
    page.send(request("/work?wait=9000ms", ""));
    assert_eq!(server.get("/a.txt").status, 200);
    reload(&mut server, "drain = \"300ms\"", LOADED);
    server.expect_sockets(sockets);
    for client in [&mut reading, &mut body, &mut head, &mut page] {
        assert!(client.next().is_err());
    }
    assert_eq!(server.get("/a.txt").status, 200);
}

#[test]
fn shutdown_waits_for_old_connections() {
    let large = bytes(30_000_000);
    let site = site("").file("site/large.bin", &large);
    let mut server =
        site.serve("--config {}/site.toml --log-file {}/log --drain 60s --work --target 20s");
    let mut reading = server.connect();
    reading.send(request("/large.bin", ""));
    assert!(reading.fill());
    let mut page = server.connect();
    page.send(request("/work?wait=1000ms", ""));
    assert_eq!(server.get("/a.txt").status, 200);
    reload(&mut server, "", LOADED);
    server.signal(Signal::TERM);
    assert_eq!(page.answer().status, 200);
    assert!(reading.answer().body == large, "other bytes");
    drop((page, reading));
    assert_eq!(server.ended().code(), Some(0));
    server.says("all requests in flight were finished");
    let log = fs::read_to_string(server.site.path("log")).expect("it is there");
    for path in ["/large.bin", "/work"] {
        assert!(log.contains(path), "{path} is not in {log:?}");
    }
}
