//! Bodies of responses that are made while they are sent.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use futures_lite::stream::{self, Stream, StreamExt as _};
use tussah_services::web::{Reply, ReplyBody, ReplyStream, Request, Status};

use super::client::request;
use super::server::{Server, Site, assert_same, bytes};

/// How long a test waits for what has to come.
const PATIENCE: Duration = Duration::from_secs(20);

const TEXT: &str = "one two three ";

/// A server of streams: the last segment of a path says which.
fn server() -> Server {
    let site = Site::new().file("a.txt", "first\n");
    site.start_with(|web| web.route("/stream/*", async |request: Request| answer(&request)))
}

fn words() -> impl Stream<Item = io::Result<Vec<u8>>> + Send + 'static {
    let words = TEXT.split_inclusive(' ');
    stream::iter(words).map(|word| Ok(word.into()))
}

fn answer(request: &Request) -> Reply {
    let of_len = |len| ReplyBody::Stream(ReplyStream::new(words()).with_len(len));
    let mut reply = Reply::stream("text/plain", words());
    let len = TEXT.len() as u64;
    match &*request.segments().last().unwrap_or_default() {
        "length" => reply.body = of_len(len),
        "short" => reply.body = of_len(len + 1),
        "long" => reply.body = of_len(len - 1),
        "none" => reply.status = Status::NO_CONTENT,
        "fails" => {
            let fails = stream::once(Err(io::Error::other("on purpose")));
            reply = Reply::stream("text/plain", words().chain(fails));
        }
        _ => {}
    }
    reply
}

/// Everything that comes until the end of the connection, and how it ends.
fn all(server: &Server, text: &str) -> (String, io::Result<usize>) {
    let mut stream = TcpStream::connect(server.address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("not zero");
    stream.write_all(text.as_bytes()).expect("it reads");
    let mut bytes = Vec::new();
    let ended = stream.read_to_end(&mut bytes);
    (String::from_utf8(bytes).expect("it is text"), ended)
}

#[test]
fn the_client_finds_the_end() {
    let mut client = server().connect_kept();
    let chunked = client.get("/stream/words", "");
    assert_eq!(chunked.text(), TEXT);
    assert_eq!(chunked.expect_field("Transfer-Encoding"), "chunked");
    let of_len = client.get("/stream/length", "");
    assert_eq!(of_len.text(), TEXT);
    assert_eq!(of_len.expect_field("Content-Length"), "14");
    for (path, len) in [("/stream/words", None), ("/stream/length", Some("14"))] {
        let head = client.ask(request("HEAD", path, ""));
        assert_eq!(head.field("Content-Length").as_deref(), len);
        assert_eq!(head.field("Transfer-Encoding"), None);
    }
    let none = client.get("/stream/none", "");
    assert_eq!((none.status, none.field("Transfer-Encoding")), (204, None));
    // A pipeline waits for the end of the stream.
    client.send(request("GET", "/stream/words", "").repeat(2));
    assert_eq!(client.answer().text(), TEXT);
    assert_eq!(client.answer().text(), TEXT);
    assert_eq!(client.get("/a.txt", "").text(), "first\n");
}

#[test]
fn a_client_of_http_1_0_gets_a_body_that_ends_with_the_connection() {
    let server = server();
    let (text, ended) = all(
        &server,
        "GET /stream/words HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    );
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    assert!(
        head.contains("Connection: close") && !head.contains("chunked"),
        "{head}"
    );
    assert_eq!(body, TEXT);
    ended.expect("it ends in order");
    let (_, ended) = all(&server, "GET /stream/fails HTTP/1.0\r\n\r\n");
    ended.expect_err("only a reset shows that the body is incomplete");
}

#[test]
fn a_body_that_fails_is_not_ended() {
    let server = server();
    for (path, expected) in [
        ("/stream/fails", "6\r\nthree \r\n"),
        ("/stream/short", TEXT),
        ("/stream/long", "\r\n\r\none two "),
    ] {
        let (text, _) = all(&server, &request("GET", path, ""));
        assert!(text.starts_with("HTTP/1.1 200 "), "{path}: {text}");
        assert!(text.ends_with(expected), "{path}: {text}");
    }
}

#[test]
fn a_slow_client_slows_the_stream() {
    const PIECE: usize = 64 * 1024;
    const PIECES: usize = 4096;
    let made = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&made);
    let server = Site::new().file("a.txt", "first\n").start_with(|web| {
        let long = move |_| {
            let counts = Arc::clone(&counts);
            let make = move |_| {
                counts.fetch_add(1, Ordering::Relaxed);
                Ok(bytes(PIECE))
            };
            let pieces = stream::iter(0..PIECES).map(make);
            async { Reply::stream("text/plain", pieces) }
        };
        web.route("/long", long)
    });
    let mut slow = server.connect();
    slow.send(request("GET", "/long", ""));
    // The stream stops once all buffers are full.
    let mut neighbour = server.connect();
    let (mut before, mut same) = (0, 0);
    while same < 200 || before == 0 {
        assert_eq!(neighbour.get("/a.txt", "").text(), "first\n");
        let now = made.load(Ordering::Relaxed);
        same = if now == before { same + 1 } else { 0 };
        before = now;
    }
    assert!(before < PIECES / 4, "{before} pieces wait for the client");
    assert_same(&slow.answer().body, &bytes(PIECE).repeat(PIECES));
}

/// Tells when it is dropped.
struct Tells(mpsc::Sender<()>);

impl Drop for Tells {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[test]
fn a_client_that_leaves_ends_the_stream() {
    let (tell, dropped) = mpsc::channel();
    let server = Site::new().start_with(|web| {
        let endless = move |_| {
            let tells = Tells(tell.clone());
            let pending = stream::pending().map(move |chunk| {
                let _ = &tells;
                chunk
            });
            async {
                Reply::stream(
                    "text/plain",
                    stream::once(Ok(b"first".into())).chain(pending),
                )
            }
        };
        web.route("/endless", endless)
    });
    for method in ["GET", "POST", "HEAD"] {
        let mut client = server.connect();
        // More of a pipeline does not hide the end.
        client.send(request(method, "/endless", "") + "GET /");
        client.fill_to(100);
        // The first chunk ends a response to HEAD.
        assert!(method == "HEAD" || dropped.try_recv().is_err());
        drop(client);
        dropped.recv_timeout(PATIENCE).expect(method);
    }
}

#[test]
fn a_client_that_reads_nothing_ends_the_stream() {
    let (tell, dropped) = mpsc::channel();
    let site = Site::new().with(|config| {
        config.timeouts.write = Duration::from_millis(300);
        config.timeouts.head = Duration::from_millis(300);
    });
    let server = site.start_with(|web| {
        let endless = move |_| {
            let tells = Tells(tell.clone());
            let chunks = stream::repeat_with(move || {
                let _ = &tells;
                Ok(bytes(16 * 1024))
            });
            async { Reply::stream("text/plain", chunks) }
        };
        web.route("/endless", endless)
    });
    let mut stalled = server.connect();
    stalled.send(request("GET", "/endless", ""));
    // The same time passes for each of these clients, one after the other.
    for _ in 0..5 {
        assert_eq!(server.connect().ask("GET / HTT").status, 408);
    }
    dropped.try_recv().expect("the stream has ended");
}

#[test]
fn endless_empty_chunks_hold_up_nobody() {
    let (tell, dropped) = mpsc::channel();
    let server = Site::new().file("a.txt", "first\n").start_with(|web| {
        let empty = move |_| {
            let tells = Tells(tell.clone());
            let chunks = stream::repeat_with(move || {
                let _ = &tells;
                Ok(Vec::new())
            });
            async { Reply::stream("text/plain", chunks) }
        };
        web.route("/empty", empty)
    });
    let mut clients = [server.connect(), server.connect(), server.connect()];
    for client in &mut clients {
        client.send(request("GET", "/empty", ""));
    }
    for _ in 0..100 {
        assert_eq!(server.connect().get("/a.txt", "").text(), "first\n");
    }
    for client in clients {
        drop(client);
        dropped.recv_timeout(PATIENCE).expect("the stream ends");
    }
}
