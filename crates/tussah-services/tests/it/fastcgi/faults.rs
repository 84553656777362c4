//! Application servers that fail.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use futures_lite::io::{Cursor, empty};
use tempfile::TempDir;
use tussah_services::fastcgi::{Address, Backend, Failure, Options, Params};

use super::client::{ask, block_on};
use super::php::Php;

/// An application server that handles each connection with a function. It ends with the process.
fn fake(options: Options, serve: fn(UnixStream)) -> (TempDir, Backend) {
    let directory = tempfile::tempdir().expect("there is room for a directory");
    let path = directory.path().join("sock");
    let listener = UnixListener::bind(&path).expect("a listener");
    thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.expect("a connection");
            thread::spawn(move || serve(stream));
        }
    });
    (directory, Backend::new(Address::Unix(path), options))
}

/// Reads the request's records up to the end of the empty body, and returns the request's number.
fn read_request(stream: &mut impl Read) -> Option<u16> {
    read_records(stream).map(|(id, _)| id)
}

/// Does the same, and also returns what is in the records.
pub(crate) fn read_records(stream: &mut impl Read) -> Option<(u16, Vec<u8>)> {
    let (mut header, mut content) = ([0; 8], Vec::new());
    while stream.read_exact(&mut header).is_ok() {
        let len = usize::from(u16::from_be_bytes([header[4], header[5]]));
        let mut rest = vec![0; len + usize::from(header[6])];
        stream.read_exact(&mut rest).expect("a whole record");
        content.extend(&rest[..len]);
        if header[1] == 5 && len == 0 {
            return Some((u16::from_be_bytes([header[2], header[3]]), content));
        }
    }
    None
}

/// Returns a record for request 1, the first one of each connection.
fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    record_for(1, kind, content)
}

pub(crate) fn record_for(id: u16, kind: u8, content: &[u8]) -> Vec<u8> {
    let [id_high, id_low] = id.to_be_bytes();
    let [high, low] = (content.len() as u16).to_be_bytes();
    [&[1, kind, id_high, id_low, high, low, 0, 0], content].concat()
}

/// Returns a whole response to this request.
pub(crate) fn whole(id: u16, output: &[u8]) -> Vec<u8> {
    [record_for(id, 6, output), record_for(id, 3, &[0; 8])].concat()
}

#[track_caller]
fn check(options: Options, serve: fn(UnixStream), status: u16, expected: &str) {
    let (_directory, backend) = fake(options, serve);
    block_on(async {
        for _ in 0..3 {
            let failure = ask(&backend, "/a.php", "GET", 0, empty()).await;
            let failure = failure.expect_err("the application fails");
            assert_eq!(failure.to_string(), expected);
            assert_eq!(failure.status().code(), status);
            assert_eq!(backend.limit().stats().in_use, 0);
        }
    });
}

/// Answers every request on a connection with the same output, and ends it.
fn answer(mut stream: impl Read + Write, output: &[u8]) {
    while let Some(id) = read_request(&mut stream) {
        stream
            .write_all(&whole(id, output))
            .expect("the client reads");
    }
}

fn send(mut stream: UnixStream, bytes: &[u8]) {
    read_request(&mut stream);
    stream.write_all(bytes).expect("the client reads");
}

#[test]
fn garbage() {
    check(
        Options::default(),
        |stream| send(stream, b"HTTP/1.1 200 OK\r\n\r\n"),
        502,
        "the response is not FastCGI: byte 0: expected version 1 of FastCGI, found 72",
    );
}

#[test]
fn an_early_end() {
    let expected = "the connection ended before the response";
    check(
        Options::default(),
        |stream| send(stream, b""),
        502,
        expected,
    );
    let part = |stream| send(stream, &record(6, b"Status: 200\n\nhal")[..20]);
    check(Options::default(), part, 502, expected);
}

#[test]
fn a_head_that_is_none() {
    let serve = |stream| answer(stream, b"no field\n\n");
    let (_directory, backend) = fake(Options::default(), serve);
    block_on(async {
        let failure = ask(&backend, "/a.php", "GET", 0, empty()).await;
        assert!(matches!(failure, Err(Failure::Head(_))), "{failure:?}");
    });
    check(
        Options::default(),
        |stream| answer(stream, b"A: b\n"),
        502,
        "the application ended the request without a complete head",
    );
}

#[test]
fn a_head_that_does_not_end() {
    let serve = |mut stream: UnixStream| {
        read_request(&mut stream);
        let field = record(6, &[b"A: ", &[b'b'; 1000][..], b"\n"].concat());
        while stream.write_all(&field).is_ok() {}
    };
    let (_directory, backend) = fake(Options::default(), serve);
    block_on(async {
        let failure = ask(&backend, "/a.php", "GET", 0, empty()).await;
        assert!(matches!(failure, Err(Failure::Head(_))), "{failure:?}");
    });
}

/// Both ends of lines, with a record for each byte.
#[test]
fn a_head_in_small_records() {
    let serve = |mut stream: UnixStream| {
        while let Some(id) = read_request(&mut stream) {
            let line = if id % 2 == 0 { "\n" } else { "\r\n" };
            let text = ["A: b", "C: d", "", "here"].join(line);
            let mut bytes = Vec::new();
            for byte in text.as_bytes() {
                bytes.extend(record_for(id, 6, &[*byte]));
            }
            bytes.extend(record_for(id, 3, &[0; 8]));
            stream.write_all(&bytes).expect("the client reads");
        }
    };
    let (_directory, backend) = fake(Options::default(), serve);
    block_on(async {
        for _ in 0..2 {
            let text = ask(&backend, "/a.php", "GET", 0, empty()).await;
            assert_eq!(text.expect("a response"), b"here");
        }
    });
}

#[test]
fn a_body_of_another_length() {
    let check_with = |serve, found| {
        let expected = format!("expected a body of 4 bytes (Content-Length), found {found}");
        check(Options::default(), serve, 502, &expected);
    };
    check_with(|stream| answer(stream, b"Content-Length: 4\n\nabc"), 3);
    check_with(
        |stream| send(stream, &record(6, b"Content-Length: 4\n\nabcde")),
        5,
    );
}

#[test]
fn silence() {
    let silence = Duration::from_millis(50);
    let options = Options {
        silence,
        ..Options::default()
    };
    check(
        options,
        |mut stream| {
            read_request(&mut stream);
            // The client closes the connection when it gives up.
            let _ = stream.read(&mut [0]);
        },
        504,
        "the application neither read nor sent a byte for 50ms",
    );
}

#[test]
fn a_rejected_request() {
    check(
        Options::default(),
        |stream| send(stream, &record(3, &[0, 0, 0, 0, 2, 0, 0, 0])),
        503,
        "the application rejected the request: Overloaded",
    );
}

#[test]
fn a_full_queue() {
    let options = Options {
        connections: 1,
        waiting: 1,
        queue: Duration::from_millis(50),
        ..Options::default()
    };
    let (_directory, backend) = fake(options, |mut stream| {
        read_request(&mut stream);
        stream
            .write_all(&record(6, b"A: b\n\n"))
            .expect("the client reads");
        let _ = stream.read(&mut [0]); // until the client closes it
    });
    block_on(async {
        let variables = [("REQUEST_METHOD", "GET")];
        let first = backend
            .request(Params::from_iter(variables), empty())
            .await
            .expect("a head");
        let two = futures_lite::future::zip(
            backend.request(Params::from_iter(variables), empty()),
            backend.request(Params::from_iter(variables), empty()),
        );
        let (second, third) = two.await;
        assert!(matches!(second.err(), Some(Failure::Queue(_))));
        assert!(matches!(third.err(), Some(Failure::Busy(1))));
        drop(first);
        let next = backend.request(Params::from_iter(variables), empty()).await;
        assert!(next.is_ok());
    });
}

#[test]
fn php_is_killed_and_restarted() {
    let mut php = Php::start();
    let quick = php.script("quick.php", "echo 'here';");
    let hang = php.script(
        "hang.php",
        "touch(__DIR__ . '/hangs'); while (true) usleep(1000);",
    );
    block_on(async {
        let backend = php.backend();
        ask(&backend, &quick, "GET", 0, empty())
            .await
            .expect("a response");
        let hanging = tussah::spawn({
            let backend = backend.clone();
            async move { ask(&backend, &hang, "GET", 0, empty()).await }
        });
        let marker = php.directory.path().join("hangs");
        while !marker.exists() {
            tussah::yield_now().await;
        }
        php.kill();
        let failure = hanging.await.expect("no panic").expect_err("it was killed");
        assert_eq!(failure.status().code(), 502, "{failure}");
        // Its socket may still take a connection while the last process ends.
        let refused = ask(&backend, &quick, "GET", 0, empty()).await;
        let failure = refused.expect_err("it was killed");
        assert_eq!(failure.status().code(), 502, "{failure}");
        php.restart();
        let text = ask(&backend, &quick, "GET", 0, empty()).await;
        assert_eq!(text.expect("a response"), b"here");
        assert_eq!(backend.limit().stats().in_use, 0);
    });
}

/// The kept connection has ended, so the request is sent on a new one.
#[test]
fn a_kept_connection_that_has_ended_is_not_used() {
    let mut php = Php::start();
    let quick = php.script("quick.php", "echo 'here';");
    block_on(async {
        let backend = php.backend();
        ask(&backend, &quick, "GET", 0, empty())
            .await
            .expect("a response");
        assert_eq!(backend.idle(), 1);
        php.kill();
        php.restart();
        let text = ask(&backend, &quick, "GET", 0, empty()).await;
        assert_eq!(text.expect("a response"), b"here");
    });
}

#[test]
fn an_application_on_a_tcp_port() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        for stream in listener.incoming() {
            answer(stream.expect("a connection"), b"A: b\n\nhere");
        }
    });
    let backend = Backend::new(Address::Tcp(address), Options::default());
    block_on(async {
        for _ in 0..3 {
            let text = ask(&backend, "/a.php", "GET", 0, empty()).await;
            assert_eq!(text.expect("a response"), b"here");
            assert_eq!(backend.idle(), 1);
        }
    });
}

/// The connection breaks between the check of the kept connection and the first byte. A socket that
/// only refuses to read looks open until then.
#[test]
fn a_request_of_which_nothing_was_sent_is_sent_again() {
    static CONNECTIONS: AtomicUsize = AtomicUsize::new(0);
    let (_directory, backend) = fake(Options::default(), |mut stream| {
        CONNECTIONS.fetch_add(1, Ordering::Relaxed);
        let id = read_request(&mut stream).expect("a request");
        stream.shutdown(Shutdown::Read).expect("it is open");
        stream
            .write_all(&whole(id, b"A: b\n\nhere"))
            .expect("the client reads");
        loop {
            thread::park(); // the connection stays open
        }
    });
    block_on(async {
        for n in 1..=3 {
            let text = ask(&backend, "/a.php", "GET", 0, empty()).await;
            assert_eq!(text.expect("a response"), b"here");
            assert_eq!(CONNECTIONS.load(Ordering::Relaxed), n);
        }
    });
}

/// The application may have done a part of its work, so the request is not sent again.
#[test]
fn a_request_of_which_a_part_was_sent_is_not_sent_again() {
    static CONNECTIONS: AtomicUsize = AtomicUsize::new(0);
    let (_directory, backend) = fake(Options::default(), |mut stream| {
        if CONNECTIONS.fetch_add(1, Ordering::Relaxed) > 0 {
            return;
        }
        // The first request succeeds, so that its connection is kept.
        read_request(&mut stream);
        stream
            .write_all(&whole(1, b"A: b\n\nhere"))
            .expect("the client reads");
        stream.read_exact(&mut [0; 8]).expect("a second request");
    });
    block_on(async {
        let text = ask(&backend, "/a.php", "GET", 0, empty()).await;
        assert_eq!(text.expect("a response"), b"here");
        let body = Cursor::new(vec![0; 8 << 20]);
        let failure = ask(&backend, "/a.php", "PUT", 8 << 20, body).await;
        assert!(matches!(failure, Err(Failure::Broken(_))), "{failure:?}");
        assert_eq!(CONNECTIONS.load(Ordering::Relaxed), 1);
        assert_eq!(backend.limit().stats().in_use, 0);
    });
}

/// php-fpm with `pm.max_requests` closes a connection shortly after a response. A request that the
/// client may repeat is then sent on a new connection.
#[test]
fn a_get_of_which_nothing_was_answered_is_sent_again() {
    static CONNECTIONS: AtomicUsize = AtomicUsize::new(0);
    let (_directory, backend) = fake(Options::default(), |mut stream| {
        CONNECTIONS.fetch_add(1, Ordering::Relaxed);
        let id = read_request(&mut stream).expect("a request");
        stream
            .write_all(&whole(id, b"A: b\n\nhere"))
            .expect("the client reads");
        read_request(&mut stream);
    });
    block_on(async {
        for (method, connections) in [("GET", 1), ("GET", 2), ("HEAD", 3)] {
            let text = ask(&backend, "/a.php", method, 0, empty()).await;
            assert_eq!(text.expect("a response"), b"here");
            assert_eq!(CONNECTIONS.load(Ordering::Relaxed), connections);
        }
        let failure = ask(&backend, "/a.php", "PUT", 0, empty()).await;
        assert!(matches!(failure, Err(Failure::Closed)), "{failure:?}");
        assert_eq!(CONNECTIONS.load(Ordering::Relaxed), 3);
    });
}

/// An application that writes only messages is not silent. Each time, the messages exceed the room
/// of the socket, so the client has read some of them since the time before.
#[test]
fn messages_end_a_silence() {
    static WRITTEN: AtomicUsize = AtomicUsize::new(0);
    static PASSED: AtomicUsize = AtomicUsize::new(0);
    let silence = Duration::from_secs(1);
    let options = Options {
        silence,
        ..Options::default()
    };
    let (_directory, backend) = fake(options, |mut stream| {
        read_request(&mut stream);
        let messages = record(7, &[b'm'; 60_000]);
        for n in 1..=3 {
            for _ in 0..40 {
                stream.write_all(&messages).expect("the client reads");
            }
            WRITTEN.store(n, Ordering::Release); // read by the test
            while PASSED.load(Ordering::Acquire) < n {
                thread::yield_now();
            }
        }
        stream
            .write_all(&whole(1, b"A: b\n\nhere"))
            .expect("the client reads");
    });
    let clock = tussah::Clock::manual();
    let runtime = tussah::Runtime::builder().workers(1).clock(clock.clock());
    runtime.build().expect("a runtime").block_on(async {
        let asking =
            tussah::spawn(async move { ask(&backend, "/a.php", "POST", 0, empty()).await });
        for n in 1..=3 {
            while WRITTEN.load(Ordering::Acquire) < n && !asking.is_finished() {
                tussah::yield_now().await;
            }
            clock.advance(silence * 3 / 5);
            PASSED.store(n, Ordering::Release);
        }
        let text = asking.await.expect("no panic");
        assert_eq!(text.expect("a response"), b"here");
    });
}

/// The record arrives after the connection was found to be quiet and given to the next request.
#[test]
fn output_after_the_end_is_no_part_of_the_next_response() {
    let (_directory, backend) = fake(Options::default(), |mut stream| {
        let first = read_request(&mut stream).expect("a request");
        stream
            .write_all(&whole(first, b"A: b\n\nhere"))
            .expect("the client reads");
        let second = read_request(&mut stream).expect("another request");
        let late = record_for(first, 6, b"A: b\n\nlate");
        let bytes = [late, whole(second, b"A: b\n\nhere")].concat();
        stream.write_all(&bytes).expect("the client reads");
    });
    block_on(async {
        let text = ask(&backend, "/a.php", "GET", 0, empty()).await;
        assert_eq!(text.expect("a response"), b"here");
        let failure = ask(&backend, "/a.php", "GET", 0, empty()).await;
        let failure = failure.expect_err("the record is for another request");
        assert!(matches!(failure, Failure::Records(_)), "{failure:?}");
        assert_eq!((failure.status().code(), backend.idle()), (502, 0));
    });
}
