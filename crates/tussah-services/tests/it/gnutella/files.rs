//! Shared files and pages over HTTP.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use tussah_wire::gnutella::{Kind, Payload, Query};

use super::servent::{Net, get};

#[test]
fn shared_files_are_served_by_number_and_name() {
    let directory = tempfile::tempdir().expect("there is room");
    fs::write(directory.path().join("a b.txt"), "0123456789").expect("there is room");
    fs::write(directory.path().join(".hidden"), "secret").expect("there is room");
    let net = Net::of(|options| options.share = Some(directory.path().into()));
    let http = net.routers[0].http();
    let check = |path: &str, lines: &str, status: u16, body: &[u8]| {
        let (found, bytes) = get(http, path, lines);
        assert_eq!(found, status, "{path}");
        assert!(body.is_empty() || bytes == body, "{path}: {bytes:?}");
    };
    check("/get/0/a%20b.txt", "", 200, b"0123456789");
    check("/get/0/a%20b.txt", "Range: bytes=2-4\r\n", 206, b"234");
    check("/get/0/a%20b.txt", "Range: bytes=8-\r\n", 206, b"89");
    check("/get/0/a%20b.txt", "Range: bytes=10-\r\n", 416, b"");
    for path in [
        "/get/1/a%20b.txt",
        "/get/0/a",
        "/get/0/.hidden",
        "/get/0/..%2Fa%20b.txt",
        "/get/x/a%20b.txt",
        "/get/0",
        "/",
    ] {
        check(path, "", 404, b"");
    }
    fs::remove_file(directory.path().join("a b.txt")).expect("it exists");
    check("/get/0/a%20b.txt", "", 404, b"");
}

#[test]
fn a_shutdown_lets_clients_finish_their_files() {
    let directory = tempfile::tempdir().expect("there is room");
    // It does not fit into the buffers of the connection.
    let len = 64 << 20;
    let file = fs::File::create(directory.path().join("large")).expect("there is room");
    file.set_len(len).expect("it may be sparse");
    let (mut net, clock) = Net::with_clock();
    net.add(|options| options.share = Some(directory.path().into()));
    let router = &net.routers[0];
    let mut client = TcpStream::connect(router.http()).expect("it listens");
    let request = b"GET /get/0/large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    client.write_all(request).expect("it is read");
    client.read_exact(&mut [0; 9]).expect("a status");
    thread::scope(|scope| {
        scope.spawn(|| net.stop(0));
        while TcpStream::connect(router.http()).is_ok() {
            thread::yield_now();
        }
        // The shutdown may take five seconds.
        clock.advance(Duration::from_secs(4));
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).expect("the rest");
        assert!(rest.len() as u64 > len, "{} of {len} bytes", rest.len());
    });
}

#[test]
fn a_shutdown_answers_searches_at_once() {
    let (mut net, _clock) = Net::with_clock();
    net.add(|_| {});
    let mut peer = net.servent();
    let http = net.routers[0].http();
    thread::scope(|scope| {
        let search = scope.spawn(|| get(http, "/search?q=silk&wait=60", ""));
        let query = peer.next().expect("a query");
        assert_eq!(query.header.kind, Kind::Query);
        // Some servents drop queries that begin with two zeros.
        assert_eq!(query.payload, b"\x80\0silk\0");
        net.stop(0);
        assert_eq!(search.join().expect("an answer").0, 200);
    });
}

#[test]
fn an_answer_has_at_most_sixty_four_files() {
    let directory = tempfile::tempdir().expect("there is room");
    for number in 0..70 {
        let path = directory.path().join(format!("silk {number}.txt"));
        fs::write(path, "").expect("there is room");
    }
    let net = Net::of(|options| options.share = Some(directory.path().into()));
    let mut peer = net.servent();
    let query = Query {
        min_speed: 0,
        criteria: b"silk",
        extension: b"",
    };
    peer.send(1, 7, &Payload::Query(query));
    let hits = peer.next().expect("hits");
    let Ok(Payload::QueryHits(hits)) = Payload::parse(hits.header.kind, &hits.payload) else {
        panic!("expected hits, not {hits:?}");
    };
    assert_eq!(hits.results.into_iter().count(), 64);
}

#[test]
fn pages_of_the_operator() {
    let net = Net::of(|_| {});
    let http = net.routers[0].http();
    let _peer = net.servent();
    let (status, page) = get(http, "/status", "Accept: text/html\r\n");
    let page = String::from_utf8(page).expect("text");
    assert_eq!(status, 200);
    for part in ["<svg", "router", "127.0.0.1:", "<td>test<td>the peer"] {
        assert!(page.contains(part), "{part} in {page}");
    }
    assert_eq!(get(http, "/status?format=prometheus", "").0, 400);
    assert_eq!(get(http, "/search", "").0, 400);
    assert_eq!(get(http, "/search?q=a&hits=0", "").0, 400);
    let status = net.status(0);
    let stages = status["stages"].as_array().expect("a list");
    assert!(stages.iter().any(|stage| stage["name"] == "router"));
}

#[test]
fn the_status_shows_how_many_searches_are_at_work() {
    let (mut net, _clock) = Net::with_clock();
    net.add(|options| options.bottleneck = Some(Duration::from_secs(3600)));
    let mut peer = net.servent();
    let search = |name: &str| {
        let status = net.status(0);
        let stages = status["stages"].as_array().expect("a list");
        let search = stages.iter().find(|stage| stage["name"] == "search");
        let search = search.expect("the graph has it");
        search[name].as_u64().expect("a number")
    };
    for number in 1..=3 {
        let query = Query {
            min_speed: 0,
            criteria: b"silk",
            extension: b"",
        };
        peer.send(number, 7, &Payload::Query(query));
        while search("servlets_busy") != u64::from(number) {
            thread::yield_now();
        }
    }
    assert!(search("servlets_allowed") >= 3);
}
