//! Bodies of requests that handlers read while they arrive.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use futures_lite::{AsyncReadExt as _, stream};
use serde_json::Value;
use tussah::sync::Semaphore;
use tussah_services::web::{Reply, Request, Route};

use super::client::{Client, chunked, request, sized};
use super::server::{Server, Site, assert_same, bytes};
use crate::fastcgi::php::wait_for;

/// How long a test waits for what has to come.
const PATIENCE: Duration = Duration::from_secs(20);

/// More than what the server keeps whole.
const LONG: usize = 300_000;

fn site() -> Site {
    let site = Site::new().file("a.txt", "first\n");
    site.with(|config| config.limits.body_bytes = 64 << 20)
}

/// Starts a server of which the route `/count` counts the bytes of a body, and names the error that
/// ends it.
fn start(site: Site) -> (Server, mpsc::Receiver<String>) {
    let (tell, told) = mpsc::channel();
    let count = move |request: Request| {
        let tell = tell.clone();
        async move {
            let text = counted(request).await;
            let _ = tell.send(text.clone());
            Reply::text(text)
        }
    };
    let server = site.start_with(|web| {
        web.route_with("/count", Route::new(count).streams())
            .route_with("/first", Route::new(first).streams())
            .route_with("/echo", Route::new(echo).streams())
            .route_with("/clone", Route::new(cloned).streams())
            .route_with("/none", Route::new(async |_| Reply::text("none")).streams())
    });
    (server, told)
}

async fn counted(mut request: Request) -> String {
    let mut whole = Vec::new();
    let (mut body, mut buffer) = (request.take_body(), vec![0; 64 << 10]);
    let end = loop {
        match body.read(&mut buffer).await {
            Ok(0) => break whole.len().to_string(),
            Ok(len) => whole.extend_from_slice(&buffer[..len]),
            Err(error) => break format!("{:?}", error.kind()),
        }
    };
    format!("{end} {}", whole == bytes(whole.len()))
}

async fn first(mut request: Request) -> Reply {
    let mut part = [0; 10];
    let read = request.take_body().read_exact(&mut part).await;
    read.expect("the client sends so much");
    Reply::text("enough")
}

async fn cloned(request: Request) -> Reply {
    let clone = counted(request.clone()).await;
    Reply::text(format!("{clone} {}", counted(request).await))
}

async fn echo(mut request: Request) -> Reply {
    let body = request.take_body();
    let chunks = stream::try_unfold(body, |mut body| async {
        let mut chunk = vec![0; 10_000];
        let len = body.read(&mut chunk).await?;
        chunk.truncate(len);
        Ok((len > 0).then_some((chunk, body)))
    });
    Reply::stream("application/octet-stream", chunks)
}

#[test]
fn a_clone_has_no_streamed_body() {
    let (server, _told) = start(site());
    let mut client = server.connect();
    client.send(sized("/clone", "", &bytes(LONG)));
    assert_eq!(client.answer().text(), format!("0 true {LONG} true"));
}

#[test]
fn long_bodies_arrive_whole_and_requests_follow_them() {
    let (server, _told) = start(site());
    let mut client = server.connect();
    for len in [0, 1, 65_536, 65_537, LONG, 10 * LONG] {
        let body = bytes(len);
        let chunks: Vec<_> = body.chunks(7777).collect();
        for text in [sized("/count", "", &body), chunked("/count", "", &chunks)] {
            client.send([&text, request("GET", "/a.txt", "").as_bytes()].concat());
            let answer = client.answer();
            assert_eq!(answer.text(), format!("{len} true"));
            assert!(!answer.ends(), "{}", answer.head);
            assert_eq!(client.answer().text(), "first\n", "{len}");
        }
    }
}

/// The response begins before the body has been read, so the connection ends with it.
#[test]
fn a_body_and_its_response_are_streamed_at_the_same_time() {
    let (server, _told) = start(site());
    let body = bytes(30 << 20);
    let mut client = server.connect();
    let mut sends = client.other_end();
    let text = sized("/echo", "", &body);
    let sender = thread::spawn(move || sends.write_all(&text));
    let answer = client.answer();
    assert!(answer.ends(), "{}", answer.head);
    assert_same(&answer.body, &body);
    sender
        .join()
        .expect("no panic")
        .expect("the server reads all");
}

#[test]
fn a_body_that_nobody_reads_ends_the_connection() {
    let (server, _told) = start(site());
    for path in ["/none", "/first"] {
        let mut client = server.connect();
        client.send(
            [
                &sized(path, "", &bytes(LONG)),
                "GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n".as_bytes(),
            ]
            .concat(),
        );
        let answer = client.answer();
        assert_eq!((answer.status, answer.ends()), (200, true), "{path}");
        client.expect_end();
    }
}

#[test]
fn a_client_is_asked_for_a_body_when_its_handler_reads() {
    let (server, _told) = start(site());
    let text = sized("/count", "Expect: 100-continue\r\n", &bytes(LONG));
    let (head, body) = text.split_at(text.len() - LONG);
    let mut client = server.connect();
    for _ in 0..2 {
        client.send(head);
        let asked = client.answer();
        assert_eq!((asked.status, asked.head.lines().count()), (100, 2));
        client.send(body);
        assert_eq!(client.answer().text(), format!("{LONG} true"));
        // A client that does not wait needs no 100.
        client.send(&text);
        assert_eq!(client.answer().text(), format!("{LONG} true"));
    }
    let text = sized("/none", "Expect: 100-continue\r\n", &bytes(LONG));
    client.send(&text[..text.len() - LONG]);
    let answer = client.answer();
    assert_eq!((answer.status, answer.ends()), (200, true));
    client.expect_end();
}

#[test]
fn the_handler_receives_the_reason_of_a_missing_rest() {
    let site = site().with(|config| config.limits.body_bytes = 1 << 20);
    let (server, told) = start(site);
    let expect = |expected: &str| {
        let text = told.recv_timeout(PATIENCE).expect("the handler ends");
        assert_eq!(text, expected);
    };
    let mut client = server.connect();
    let text = sized("/count", "", &bytes(LONG));
    client.send(&text[..text.len() - 1]);
    drop(client);
    expect("UnexpectedEof true");
    let mut client = server.connect();
    client.send(request("POST", "/count", "Transfer-Encoding: chunked\r\n") + "1\r\n\0no end");
    assert_eq!(client.answer().text(), "InvalidData true");
    client.expect_end();
    expect("InvalidData true");
    let mut client = server.connect();
    let _ = client.try_send(chunked("/count", "", &[&bytes(1 << 20), b"x"]));
    expect("FileTooLarge true");
    let mut client = server.connect();
    client.send(request(
        "POST",
        "/count",
        &format!("Content-Length: {}\r\n", (1 << 20) + 1),
    ));
    assert_eq!(client.answer().status, 413);
    assert!(told.try_recv().is_err(), "no handler has begun");
}

#[test]
fn a_client_that_sends_nothing_more_is_given_up() {
    let site = site().with(|config| config.timeouts.body = Duration::from_millis(50));
    let (server, _told) = start(site);
    let mut client = server.connect();
    let text = sized("/count", "", &bytes(LONG));
    client.send(&text[..text.len() - 1]);
    let answer = client.answer();
    assert_eq!((answer.text(), answer.ends()), ("TimedOut true", true));
}

/// Sends a head, and then the same bytes for ever, one by one.
fn drip(server: &Server, beginning: &str, rest: &'static str) -> Client {
    let mut client = server.connect();
    let head = request("POST", "/count", "Transfer-Encoding: chunked\r\n");
    client.send(head + beginning);
    let mut dripping = client.other_end();
    thread::spawn(move || {
        for byte in rest.bytes().cycle() {
            if dripping.write_all(&[byte]).is_err() {
                return;
            }
            thread::park_timeout(Duration::from_millis(5));
        }
    });
    client
}

/// Sizes of chunks, their extensions, and trailers are no part of a body. They arrive faster than
/// the lowest rate.
#[test]
fn a_client_that_sends_little_but_framing_is_given_up() {
    let site = site().with(|config| {
        config.timeouts.body = Duration::from_millis(200);
        config.timeouts.rate = Some(20);
        config.timeouts.linger = Duration::from_millis(50);
    });
    let (server, _told) = start(site);
    let table = [
        ("", "1;extension=yyyyyyyyyyyyyy\r\nx\r\n"),
        ("1;extension=", "y"),
        ("1\r\nx\r\n0\r\nTrailer: ", "y"),
    ];
    for (beginning, rest) in table {
        let answer = drip(&server, beginning, rest).answer();
        let (end, _) = answer.text().split_once(' ').expect("a count");
        assert_eq!((end, answer.ends()), ("TimedOut", true), "{beginning:?}");
    }
}

#[test]
fn a_body_in_small_chunks_that_arrive_steadily_is_read() {
    let site = site().with(|config| {
        config.timeouts.body = Duration::from_secs(1);
        config.timeouts.rate = Some(4);
    });
    let (server, _told) = start(site);
    let mut client = server.connect();
    client.send(request("POST", "/count", "Transfer-Encoding: chunked\r\n"));
    for byte in bytes(30) {
        client.send([b"1\r\n", &[byte][..], b"\r\n"].concat());
        thread::park_timeout(Duration::from_millis(50));
    }
    client.send("0\r\n\r\n");
    assert_eq!(client.answer().text(), "30 true");
}

#[test]
fn a_slow_handler_slows_the_client() {
    const LEN: usize = 64 << 20;
    static GATES: [Semaphore; 2] = [const { Semaphore::new(0) }; 2];
    let server = site().start_with(|web| {
        let slow = async |request: Request| {
            GATES[0].acquire().await;
            Reply::text(counted(request).await)
        };
        let reads_one = async |mut request: Request| {
            let mut body = request.take_body();
            body.read_exact(&mut [0]).await.expect("a byte");
            GATES[1].acquire().await;
            let mut buffer = vec![0; 64 << 10];
            while let Ok(1..) = body.read(&mut buffer).await {}
            Reply::text("read")
        };
        web.route_with("/slow", Route::new(slow).streams())
            .route_with("/one", Route::new(reads_one).streams())
    });
    for (path, gate) in ["/slow", "/one"].into_iter().zip(&GATES) {
        let mut stream = TcpStream::connect(server.address).expect("it listens");
        let text = sized(path, "", &bytes(LEN));
        stream.set_nonblocking(true).expect("a socket can");
        let mut neighbour = server.connect();
        let (mut sent, mut blocked) = (0, 0);
        // The client sends until all buffers stay full.
        while blocked < 200 && sent < LEN {
            match stream.write(&text[sent..]) {
                Ok(len) => (sent, blocked) = (sent + len, 0),
                Err(error) => {
                    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                    assert_eq!(neighbour.get("/a.txt", "").text(), "first\n");
                    blocked += 1;
                }
            }
        }
        assert!(sent < LEN / 2, "the server has taken {sent} bytes");
        stream.set_nonblocking(false).expect("a socket can");
        gate.add_permits(1);
        stream.write_all(&text[sent..]).expect("the server reads");
        stream.set_read_timeout(Some(PATIENCE)).expect("not zero");
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).expect("an answer");
        assert_eq!(&answer, b"HTTP/1.1 200");
    }
}

#[test]
fn the_time_of_an_upload_is_not_a_response_time() {
    let (server, _told) = start(site());
    let of_count = |name: &str| {
        let page = server.get("/status?format=json", "");
        let page: Value = serde_json::from_slice(&page.body).expect("it is JSON");
        let sources = page["sources"].as_array().expect("sources").clone();
        let found = sources
            .into_iter()
            .find(|source| source["name"] == "/count");
        found.expect("the route is there")[name].clone()
    };
    server.ask(sized("/count", "", &bytes(LONG)));
    assert_eq!(of_count("response_s"), Value::Null);
    server.ask(sized("/count", "", &bytes(1)));
    // It is counted after it was sent.
    wait_for("the response time", || {
        (of_count("response_s") != Value::Null).then_some(())
    });
}
