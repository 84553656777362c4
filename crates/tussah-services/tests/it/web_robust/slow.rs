//! Clients that are slow, or say nothing.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread;

use rustix::net::sockopt::set_socket_recv_buffer_size;

use super::client::{Client, request};
use super::process::{Process, Site, bytes, pause};

/// Sends a beginning at once, and what follows byte by byte for ever; gives what is answered
/// meanwhile.
fn drip(server: &Process, beginning: &str, rest: &'static [u8]) -> Client<TcpStream> {
    let mut client = server.connect();
    client.send(beginning);
    let mut dripping = client.stream.try_clone().expect("there are descriptors");
    thread::spawn(move || {
        for byte in rest.iter().cycle() {
            if dripping.write_all(&[*byte]).is_err() {
                return;
            }
            pause(5);
        }
    });
    client
}

#[test]
fn a_head_that_drips() {
    let server = Site::new().serve("--timeout-head 300ms --timeout-linger 200ms");
    let sockets = server.sockets();
    let first = request("/a.txt", "");
    for beginning in ["", "GET /a.txt HTTP/1.1\r\nHost: a\r\nX: ", "\r\n", &first] {
        let mut client = drip(&server, beginning, b"x");
        if beginning == first {
            assert_eq!(client.answer().status, 200);
        }
        let answer = client.answer();
        assert_eq!((answer.status, answer.ends()), (408, true), "{beginning:?}");
        client.expect_end();
    }
    // Also without a drop more.
    let mut client = server.connect();
    let answer = client.ask("GET /a.txt HTT");
    assert_eq!((answer.status, answer.ends()), (408, true));
    client.expect_end();
    drop(client);
    server.expect_sockets(sockets);
}

#[test]
fn a_body_that_drips() {
    let server = Site::new().serve("--work --timeout-body 300ms --timeout-linger 200ms");
    let sockets = server.sockets();
    let check = |beginning: &str, rest| {
        let mut client = drip(&server, beginning, rest);
        let answer = client.answer();
        assert_eq!((answer.status, answer.ends()), (408, true), "{beginning:?}");
        client.expect_end();
    };
    let length = "Content-Length: 100000\r\n";
    check(&request("/a.txt", length), b"x");
    check(&request("/work", length), b"x");
    check(
        &request("/work", "Transfer-Encoding: chunked\r\n"),
        b"1\r\nx\r\n",
    );
    server.expect_sockets(sockets);
}

/// Longer than what the sockets of both sides take.
const LARGE: usize = 30_000_000;

#[test]
fn an_answer_that_nobody_takes() {
    let options = "--timeout-write 300ms --timeout-linger 200ms";
    for kept in ["1MB", "40MB"] {
        let site = Site::new().file("site/large.bin", bytes(LARGE));
        let server = site.serve(&format!("{options} --cache-file-size {kept}"));
        let sockets = server.sockets();
        let mut client = server.connect();
        client.send(request("/large.bin", ""));
        assert!(client.fill());
        server.expect_sockets(sockets);
        let cut = client.next().map(|answer| answer.head);
        assert!(cut.is_err(), "{cut:?}");
        assert_eq!(server.get("/a.txt").status, 200);
    }
}

#[test]
fn nothing_is_kept_for_an_abandoned_client() {
    let options = "--timeout-write 300ms --timeout-linger 200ms";
    for kept in ["1MB", "40MB"] {
        let site = Site::new().file("site/large.bin", bytes(LARGE));
        let server = site.serve(&format!("{options} --cache-file-size {kept}"));
        let sockets = server.sockets();
        let mut client = server.connect();
        client.send(request("/large.bin", ""));
        assert!(client.fill());
        server.expect_sockets(sockets);
        // The system would go on for minutes to send what it has for one who is gone.
        let mut piece = vec![0; 64 << 10];
        let end = loop {
            match client.stream.read(&mut piece) {
                Ok(0) => break None,
                Ok(_) => {}
                Err(error) => break Some(error.kind()),
            }
        };
        assert_eq!(end, Some(ErrorKind::ConnectionReset), "{kept}");
    }
}

#[test]
fn an_answer_that_is_taken_too_slowly() {
    let site = Site::new().file("site/large.bin", bytes(LARGE));
    let server = site.serve("--timeout-write 1s --timeout-rate 8MB --timeout-linger 200ms");
    let sockets = server.sockets();
    let mut client = server.connect();
    client.send(request("/large.bin", ""));
    let mut reading = client.stream.try_clone().expect("there are descriptors");
    // Always a little, so that the server is never kept from sending for long.
    let reading = thread::spawn(move || {
        let mut taken = 0;
        loop {
            match reading.read(&mut [0; 8192]) {
                Ok(0) => return taken,
                Ok(len) => taken += len,
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return taken,
                Err(error) => panic!("{error}"),
            }
            pause(5);
        }
    });
    server.expect_sockets(sockets);
    drop(client);
    let taken = reading.join().expect("it does not panic");
    assert!(taken < LARGE, "{taken}");
}

#[test]
fn an_answer_that_is_taken_slowly_but_steadily() {
    // From its file, and from memory. In a second it takes less than what the system waits for
    // until it says that there is room again.
    for kept in ["1KB", "40MB"] {
        let site = Site::new().file("site/large.bin", bytes(LARGE));
        let options = "--timeout-write 1s --timeout-rate 1KB --cache-file-size";
        let server = site.serve(&format!("{options} {kept}"));
        let mut client = server.connect();
        client.send(request("/large.bin", ""));
        let mut piece = vec![0; 20_000];
        for _ in 0..60 {
            let read = client.stream.read_exact(&mut piece);
            read.expect("it is not cut");
            pause(50);
        }
        let mut taken = 60 * piece.len();
        while taken < LARGE {
            let len = client.stream.read(&mut piece).expect("it is not reset");
            assert!(len > 0, "{kept}: cut after {taken} bytes");
            taken += len;
        }
    }
}

/// A client with a small buffer makes room in steps that are smaller than a packet on loopback. The
/// system's own limit for stalled connections (`TCP_USER_TIMEOUT`) would take it for one that
/// stalls.
#[test]
fn an_answer_that_is_taken_in_small_steps() {
    let site = Site::new().file("site/large.bin", bytes(LARGE));
    let server = site.serve("--timeout-write 1s --timeout-rate 1KB");
    let mut client = server.connect();
    let shrunk = set_socket_recv_buffer_size(&client.stream, 32 << 10);
    shrunk.expect("the size is allowed");
    client.send(request("/large.bin", ""));
    let mut piece = [0; 2000];
    for number in 0..200 {
        let read = client.stream.read_exact(&mut piece);
        read.unwrap_or_else(|error| panic!("cut in step {number}: {error}"));
        pause(20);
    }
}

#[test]
fn files_are_sent_in_large_pieces() {
    const LEN: usize = 900_000;
    let site = Site::new().file("site/large.bin", bytes(LEN));
    let server = site.serve("--cache-file-size 1KB");
    let sent = || {
        let before = server.writes();
        assert!(server.get("/large.bin").body == bytes(LEN), "other bytes");
        server.writes() - before
    };
    // How many there are besides depends on how fast the client makes room.
    let fewest = (0..10).map(|_| sent()).min().expect("it was asked for");
    assert!(fewest < 20, "{fewest} calls for {LEN} bytes");
}

#[test]
fn a_connection_without_requests() {
    let server = Site::new().serve("--timeout-idle 1s --timeout-linger 200ms");
    let mut silent = server.connect();
    silent.expect_end();
    let mut once = server.connect();
    assert_eq!(once.ask(&request("/a.txt", "")).status, 200);
    once.expect_end();
}
