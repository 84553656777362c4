//! The places for connections, which belong to the process.

use std::net::TcpStream;
use std::time::Instant;

use rustix::process::{Signal, WaitOptions, waitpid};
use serde_json::Value;

use super::client::{Client, Socket, request};
use super::process::{Process, Site, until};
use super::reload::{LOADED, reload};
use super::secure;

/// A request, and the beginning of another: since both come at once, the connection is not idle in
/// between.
fn request_and_more() -> String {
    request("/a.txt", "") + "GET /a.txt HTTP/1.1\r\n"
}

/// A client that has been answered, and has begun to ask for more.
fn busy(server: &Process) -> Client<TcpStream> {
    let mut client = server.connect();
    assert_eq!(client.ask(&request_and_more()).status, 200);
    client
}

/// The same as soon as there is room.
fn busy_soon(server: &Process) -> Client<TcpStream> {
    soon(server, &request_and_more())
}

/// A client that has been answered, as soon as there is room: the connection before may be answered
/// already and not be idle yet, or have ended and still have its place.
fn soon(server: &Process, asked: &str) -> Client<TcpStream> {
    let mut client = None;
    until("there is room", || {
        let mut one = server.connect();
        let is_in = one.ask(asked).status == 200;
        client = is_in.then_some(one);
        client.is_some()
    });
    client.expect("there was room")
}

/// A client that has been answered.
fn idle(server: &Process) -> Client<TcpStream> {
    let mut client = server.connect();
    assert_eq!(client.ask(&request("/a.txt", "")).status, 200);
    client
}

fn status(server: &Process) -> Value {
    json(&server.get("/status?json").body)
}

fn json(body: &[u8]) -> Value {
    serde_json::from_slice(body).expect("it is JSON")
}

/// How often a stage was called.
fn called(status: &Value, stage: &str) -> u64 {
    let stages = status["stages"].as_array().expect("stages");
    let mut of = stages.iter().filter(|other| other["name"] == stage);
    let called = of.next().and_then(|stage| stage["called"].as_u64());
    assert!(of.next().is_none(), "{stage} is there twice: {status}");
    called.unwrap_or_else(|| panic!("{stage} in {status}"))
}

#[test]
fn an_idle_connection_is_evicted_for_a_new_one() {
    let server = Site::new().serve("--limit-connections 50 --timeout-idle 1h");
    let mut clients: Vec<_> = (0..50).map(|_| idle(&server)).collect();
    // Until the server's clock, of whole seconds, has gone on.
    let begun = Instant::now();
    until("two seconds pass", || begun.elapsed().as_millis() > 2100);
    // All who come are served, and as many go as come: of those that have waited longer.
    let mut others: Vec<_> = (0..30).map(|_| idle(&server)).collect();
    for other in &mut others {
        assert_eq!(other.ask(&request("/a.txt", "")).status, 200);
    }
    let mut closed = 0;
    for client in &mut clients {
        client.send(request("/a.txt", ""));
        closed += usize::from(client.next().is_err());
    }
    assert_eq!(closed, 30);
}

/// Has requests come on all connections while the server sleeps, and as many clients who want their
/// places.
#[track_caller]
fn expect_answers_when_room_is_made<S: Socket>(
    server: &Process,
    connect: impl Fn(&Process) -> Client<S>,
) {
    let idle = || {
        let mut client = connect(server);
        assert_eq!(client.ask(&request("/a.txt", "")).status, 200);
        client
    };
    let mut clients: Vec<_> = (0..40).map(|_| idle()).collect();
    server.signal(Signal::STOP);
    // Until then it might still make room, before the requests come.
    let stopped = waitpid(Some(server.pid()), WaitOptions::UNTRACED).expect("it is ours");
    assert!(stopped.is_some_and(|(_, status)| status.stopped()));
    let mut others = Vec::new();
    for client in &mut clients {
        others.push(server.connect());
        client.send(request("/a.txt", ""));
    }
    server.signal(Signal::CONT);
    for (number, client) in clients.iter_mut().enumerate() {
        let status = client.next().map(|answer| answer.status);
        assert_eq!(status, Ok(200), "client {number}");
    }
}

#[test]
fn a_received_request_is_answered_before_an_eviction() {
    for _ in 0..5 {
        let server = Site::new().serve("--limit-connections 40 --timeout-idle 1h");
        expect_answers_when_room_is_made(&server, Process::connect);
    }
    let options = "--limit-connections 40 --timeout-idle 1h --timeout-head 1h \
        --tls-cert {}/cert.pem --tls-key {}/key.pem";
    for _ in 0..5 {
        let server = secure::site().serve(options);
        expect_answers_when_room_is_made(&server, secure::connect);
    }
}

#[test]
fn an_idle_connection_is_found_after_there_were_many() {
    const MANY: &str = "limits.connections = 700";
    let site = Site::new().file("site.toml", MANY);
    let mut server = site.serve("--config {}/site.toml --timeout-idle 1h --timeout-linger 1ms");
    let many: Vec<_> = (0..700).map(|_| idle(&server)).collect();
    reload(&mut server, "limits.connections = 5", LOADED);
    drop(many);
    until("they have ended", || {
        let answer = server.get("/status?json");
        // Until enough of them have, there is no room for this one either.
        answer.status == 200 && json(&answer.body)["connections"]["open"] == 1
    });
    // Of these the last one at most is not idle yet.
    let clients: Vec<_> = (0..100).map(|_| idle(&server)).collect();
    drop(clients);
}

#[test]
fn busy_connections_are_not_evicted_for_new_ones() {
    let server = Site::new()
        .serve("--limit-connections 4 --timeout-idle 1h --timeout-head 1h --work --target 1h");
    let mut page = server.connect();
    page.send(request("/work?wait=1000ms", ""));
    let mut body = server.connect();
    body.send("POST /work HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab");
    let (mut head, mut again) = (server.connect(), busy(&server));
    head.send("GET /a.t");
    until("all are in", || {
        let mut one = server.connect();
        one.send(request("/a.txt", ""));
        one.answer().status == 503
    });
    assert_eq!(page.answer().status, 200);
    body.send("cd");
    assert_eq!(body.answer().status, 200);
    assert_eq!(head.ask("xt HTTP/1.1\r\nHost: a\r\n\r\n").status, 200);
    assert_eq!(again.ask("Host: a\r\n\r\n").status, 200);
    // Now there is one that can go.
    assert_eq!(server.get("/a.txt").status, 200);
}

#[test]
fn a_silent_new_connection_is_evicted_after_a_while() {
    let server = Site::new().serve("--limit-connections 3 --timeout-idle 1h");
    let mut silent: Vec<_> = (0..3).map(|_| server.connect()).collect();
    until("they make room", || server.get("/a.txt").status == 200);
    let ended = silent.iter_mut().any(|client| {
        client.send(request("/a.txt", ""));
        client.next().is_err()
    });
    assert!(ended, "one of them has made room");
}

#[test]
fn the_limit_holds_for_all_configurations_together() {
    const FIVE: &str = "limits.connections = 5";
    let site = Site::new().file("site.toml", FIVE);
    let mut server = site.serve("--config {}/site.toml --timeout-head 1h --drain 1h");
    let mut old: Vec<_> = (0..4).map(|_| busy(&server)).collect();
    for round in 0..3 {
        reload(&mut server, FIVE, LOADED);
        assert_eq!(status(&server)["connections"]["open"], 5, "round {round}");
        let last = busy_soon(&server);
        for _ in 0..10 {
            assert_eq!(server.get("/a.txt").status, 503, "round {round}");
        }
        drop(last);
        until("it has gone", || server.get("/a.txt").status == 200);
    }
    for client in &mut old {
        assert_eq!(client.ask("Host: a\r\n\r\n").status, 200);
        client.expect_end();
    }
    // Fewer from now on: two of those that are idle stay at most.
    let idle = |_| soon(&server, &request("/a.txt", ""));
    let _idle: Vec<_> = (0..4).map(idle).collect();
    reload(&mut server, "limits.connections = 2", LOADED);
    let _two = [busy_soon(&server), busy_soon(&server)];
    for _ in 0..10 {
        assert_eq!(server.get("/a.txt").status, 503);
    }
}

#[test]
fn counts_survive_a_reload() {
    let site = Site::new().file("site.toml", "");
    let mut server = site.serve("--config {}/site.toml --timeout-head 1h");
    let (mut kept, mut expected) = (busy(&server), 1);
    for round in 0..3 {
        for _ in 0..7 {
            assert_eq!(server.get("/a.txt").status, 200);
        }
        reload(&mut server, "", LOADED);
        let found = called(&status(&server), "receive");
        expected += 8;
        assert_eq!(found, expected, "round {round}");
    }
    // With an old configuration, whose network ends after it.
    assert_eq!(kept.ask("Host: a\r\n\r\n").status, 200);
    kept.expect_end();
    expected += 1;
    for _ in 0..50 {
        expected += 1;
        assert_eq!(called(&status(&server), "receive"), expected);
    }
}
