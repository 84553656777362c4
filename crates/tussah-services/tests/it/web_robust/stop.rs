//! How it stops: what is in flight is finished.

use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::ExitStatusExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use rustix::process::Signal;

use super::client::{Client, End, request};
use super::process::{Site, bytes, until};

const LARGE: usize = 3_000_000;

/// The responses that clients have seen.
#[derive(Default)]
struct Seen {
    answers: AtomicUsize,
    /// Connections that ended before the answer to a request that was sent: to the first of a
    /// connection, and to a later one.
    unanswered: [AtomicUsize; 2],
    over: AtomicBool,
}

/// Sends batches of N mixed requests until the server has stopped. No answer is ever cut.
fn ask(address: SocketAddr, number: usize, at_once: usize, seen: &Seen) {
    let paths = [
        "/a.txt",
        "/large.bin",
        "/work?compute=1ms&wait=3ms",
        "/none",
        "/a.txt",
    ];
    let lens = [6, LARGE, 8192, 14, 6];
    let mut turn = number;
    while let Ok(stream) = TcpStream::connect(address) {
        let mut client = Client::new(stream);
        let mut answers = 0;
        loop {
            let first = turn;
            let requests: String = (0..at_once)
                .map(|n| request(paths[(first + n) % 5], ""))
                .collect();
            if std::io::Write::write_all(&mut client.stream, requests.as_bytes()).is_err() {
                break;
            }
            let mut ended = false;
            for _ in 0..at_once {
                match client.next() {
                    Ok(answer) => {
                        assert!(!ended, "an answer after the last one: {}", answer.head);
                        if answer.status == 200 || answer.status == 404 {
                            assert_eq!(answer.body.len(), lens[turn % 5], "{}", answer.head);
                        }
                        ended = answer.ends();
                        turn += 1;
                        answers += 1;
                        seen.answers.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(End::Between) => {
                        if !ended {
                            seen.unanswered[usize::from(answers > 0)]
                                .fetch_add(1, Ordering::Relaxed);
                        }
                        ended = true;
                        break;
                    }
                    Err(end) => panic!("an answer is cut {}", end.brief()),
                }
            }
            if ended {
                break;
            }
        }
        if seen.over.load(Ordering::Relaxed) {
            return;
        }
    }
}

fn under_load(signal: Signal, at_once: usize) {
    let site = Site::new().file("site/large.bin", bytes(LARGE));
    let mut server = site.serve("--work --target 20s --drain 60s --timeout-linger 30s");
    let seen = Arc::new(Seen::default());
    let address = server.address();
    let clients: Vec<_> = (0..12)
        .map(|number| {
            let seen = Arc::clone(&seen);
            thread::spawn(move || ask(address, number, at_once, &seen))
        })
        .collect();
    until("there is load", || {
        seen.answers.load(Ordering::Relaxed) > 100
    });
    server.signal(signal);
    seen.over.store(true, Ordering::Relaxed);
    let status = server.ended();
    assert_eq!(status.code(), Some(0), "{}", server.said());
    assert!(
        server
            .said()
            .contains("all requests in flight were finished"),
        "{}",
        server.said()
    );
    for client in clients {
        client.join().expect("no answer is cut");
    }
    let unanswered = seen
        .unanswered
        .each_ref()
        .map(|count| count.load(Ordering::Relaxed));
    assert_eq!(
        unanswered,
        [0, 0],
        "requests that were sent before the connection was closed"
    );
}

#[test]
fn a_signal_under_load_cuts_nothing() {
    for _ in 0..3 {
        under_load(Signal::TERM, 1);
    }
    under_load(Signal::INT, 1);
}

#[test]
fn a_signal_under_load_of_pipelines_cuts_nothing() {
    for _ in 0..3 {
        under_load(Signal::TERM, 7);
    }
}

#[test]
fn shutdown_waits_for_requests_in_flight() {
    let site = Site::new().file("site/large.bin", bytes(10 * LARGE));
    let mut server = site.serve("--work --target 20s --drain 60s --timeout-linger 500ms");
    let mut idle = server.connect();
    assert_eq!(idle.ask(&request("/a.txt", "")).status, 200);
    let mut page = server.connect();
    page.send(request("/work?wait=4000ms", ""));
    let mut half = server.connect();
    half.send("GET /a.txt HTT");
    let mut reading = server.connect();
    reading.send(request("/large.bin", ""));
    assert!(reading.fill());
    // All of them have got so far if another has been through.
    assert_eq!(server.get("/a.txt").status, 200);
    server.signal(Signal::TERM);
    idle.expect_end();
    assert!(
        TcpStream::connect(server.address()).is_err(),
        "nothing more is accepted"
    );
    half.send("P/1.1\r\nHost: a\r\n\r\n");
    let answer = half.answer();
    assert_eq!((answer.status, answer.ends()), (200, true));
    let answer = page.answer();
    assert_eq!((answer.status, answer.ends()), (200, true));
    assert!(reading.answer().body == bytes(10 * LARGE), "other bytes");
    for client in [&mut half, &mut page, &mut reading] {
        client.expect_end();
    }
    assert_eq!(server.ended().code(), Some(0));
}

#[test]
fn shutdown_stops_waiting_after_its_timeout() {
    let site = Site::new().file("site/large.bin", bytes(10 * LARGE));
    let mut server = site.serve("--work --target 20s --drain 300ms --timeout-write 60s");
    let mut page = server.connect();
    page.send(request("/work?wait=10000ms", ""));
    let mut reading = server.connect();
    reading.send(request("/large.bin", ""));
    assert!(reading.fill());
    server.signal(Signal::TERM);
    server.says("connections cut after the drain time: 2");
    assert_eq!(server.ended().code(), Some(0));
}

#[test]
fn a_second_signal_stops_at_once() {
    for (first, second) in [
        (Signal::TERM, Signal::TERM),
        (Signal::INT, Signal::TERM),
        (Signal::TERM, Signal::INT),
    ] {
        let mut server = Site::new().serve("--work --target 20s --drain 60s");
        let mut page = server.connect();
        page.send(request("/work?wait=10000ms", ""));
        assert_eq!(server.get("/a.txt").status, 200);
        server.signal(first);
        server.says("shutting down");
        // This one does not count.
        server.signal(Signal::HUP);
        server.signal(second);
        server.says("stopped now");
        let status = server.ended();
        assert_eq!((status.code(), status.signal()), (Some(0), None));
    }
}
