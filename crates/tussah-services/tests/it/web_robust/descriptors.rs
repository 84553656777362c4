//! Many connections, and no more descriptors.

use std::collections::BTreeSet;
use std::net::TcpStream;
use std::time::Instant;

use rustix::process::{Resource, getrlimit, setrlimit};

use super::client::{Client, request};
use super::process::{Site, bytes, until};

#[test]
fn connections_over_the_limit_get_503() {
    let server = Site::new().serve("--limit-connections 3 --timeout-linger 10s");
    let sockets = server.sockets();
    let mut clients: Vec<_> = (0..3).map(|_| server.connect()).collect();
    for client in &mut clients {
        // It has begun to ask for more: one that is idle would make room.
        let more = request("/a.txt", "") + "GET /a.txt HTTP/1.1\r\n";
        assert_eq!(client.ask(&more).status, 200);
    }
    for _ in 0..20 {
        // Whether it asks for something or not.
        let mut one = server.connect();
        let answer = one.answer();
        assert_eq!((answer.status, answer.ends()), (503, true));
        let after = answer
            .field("Retry-After")
            .expect("it says when there may be room");
        after.parse::<u32>().expect("a number of seconds");
        one.expect_end();
        assert_eq!(server.get("/a.txt").status, 503);
    }
    for client in &mut clients {
        assert_eq!(client.ask("Host: a\r\n\r\nGET ").status, 200);
    }
    clients.pop();
    until("there is room again", || server.get("/a.txt").status == 200);
    drop(clients);
    server.expect_sockets(sockets);
}

#[test]
fn rejected_connections_are_bounded_too() {
    let server = Site::new()
        .serve("--limit-connections 1 --timeout-linger 60s --timeout-head 1h --drain 1s");
    let sockets = server.sockets();
    let mut first = server.connect();
    let more = request("/a.txt", "") + "GET /a.txt HTTP/1.1\r\n";
    assert_eq!(first.ask(&more).status, 200);
    // They take their answer and stay. Those that are too many are closed without one.
    let mut others: Vec<_> = (0..1500).map(|_| server.connect()).collect();
    let told = others
        .iter_mut()
        .filter_map(|other| other.next().ok())
        .count();
    assert!((500..1500).contains(&told), "{told} were told");
    assert_eq!(first.ask("Host: a\r\n\r\n").status, 200);
    drop(others);
    server.expect_sockets(sockets + 1);
}

/// Bound, in connections: idle ones, if there are enough descriptors.
const IDLE: u64 = 10_000;

#[test]
fn ten_thousand_idle_connections() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).expect("it may be raised so far");
    let count = limit.maximum.map_or(IDLE, |max| IDLE.min(max - 500));
    let server = Site::new().serve("--workers 1");
    assert_eq!(server.get("/a.txt").status, 200);
    let (sockets, before) = (server.sockets(), server.memory_bytes());
    let mut clients: Vec<_> = (0..count).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.send(request("/a.txt", ""));
    }
    for client in &mut clients {
        assert_eq!(client.answer().text(), "hello\n");
    }
    let each = server.memory_bytes().saturating_sub(before) / count;
    println!("{count} idle connections: {each} bytes of memory each");
    assert!(each < 8192, "{each} bytes");
    // All of them are there.
    for client in clients.iter_mut().step_by(97) {
        assert_eq!(client.ask(&request("/a.txt", "")).text(), "hello\n");
    }
    drop(clients);
    server.expect_sockets(sockets);
}

#[test]
fn no_more_descriptors_for_connections() {
    let server = Site::new().serve("--workers 1");
    // Pages that are known are given, though their files can't be looked at.
    assert_eq!(server.get("/a.txt").status, 200);
    let max = 60;
    server.limit_descriptors(max as u64);
    let mut clients: Vec<Client<TcpStream>> = (0..100).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.send(request("/a.txt", ""));
    }
    until("they are used up", || server.descriptors() >= max);
    assert_eq!(clients[0].answer().text(), "hello\n");
    // It waits for descriptors and does not spin: it would use all of the time of a CPU.
    let before = server.cpu_ticks();
    let begun = Instant::now();
    until("a second passes", || begun.elapsed().as_secs() >= 1);
    let used = server.cpu_ticks() - before;
    assert!(used < 50, "{used} ticks of a CPU");
    // For longer than a page is given without a look at its file.
    let mut dates = BTreeSet::new();
    until("three seconds pass", || {
        let answer = clients[0].ask(&request("/a.txt", ""));
        assert_eq!(answer.text(), "hello\n", "{}", answer.head);
        dates.insert(answer.field("Date").map(str::to_owned));
        dates.len() > 3
    });
    // Each that goes makes room for another.
    for mut client in clients.drain(1..) {
        assert_eq!(client.answer().text(), "hello\n");
    }
    assert_eq!(server.get("/a.txt").text(), "hello\n");
}

#[test]
fn files_that_are_kept_open_leave_descriptors() {
    let mut site = Site::new();
    for n in 0..200 {
        site = site.file(&format!("site/{n}.bin"), bytes(2000));
    }
    // All files are too long to be kept in memory, and all of them could be kept open.
    let server = site.serve("--workers 1 --cache-file-size 1KB --cache-size 50MB");
    server.limit_descriptors(150);
    for round in 0..2 {
        for n in 0..200 {
            let answer = server.get(&format!("/{n}.bin"));
            assert_eq!(
                (answer.status, answer.body.len()),
                (200, 2000),
                "{n} in round {round}"
            );
        }
    }
}

/// The system would end a process that does not handle the signal.
#[test]
fn a_log_at_the_limit_for_files() {
    let server = Site::new().serve("--log-file {}/log");
    server.limit_files(1000);
    until("a log at its limit", || {
        assert_eq!(server.get("/a.txt").status, 200);
        server.said().contains("File too large")
    });
    assert_eq!(server.get("/a.txt").status, 200);
}
