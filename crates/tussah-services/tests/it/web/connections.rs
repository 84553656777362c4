//! Connections: how long they last, and that answers come in the order of the requests.

use std::net::SocketAddr;
use std::sync::{Arc, LazyLock, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::Value;
use tussah::ManualClock;
use tussah::sync::oneshot;
use tussah_services::web::config::{HalfClose, ListenAddress};
use tussah_services::web::{Reply, Request, Status};

use super::client::{Client, request};
use super::server::{Server, Site, assert_same, bytes, evict};
use crate::fastcgi::php::wait_for;

/// Longer than what the sockets of both sides take without a reader.
const LARGE: usize = 12_000_000;

fn site() -> Site {
    Site::new()
        .file("a.txt", "first\n")
        .file("b.txt", "second\n")
        .file("medium.bin", bytes(700_000))
        .file("large.bin", bytes(LARGE))
}

async fn echo(request: Request) -> Reply {
    // Others have their turn first, so that answers could overtake one another.
    tussah::yield_now().await;
    Reply::new("application/octet-stream", request.body())
}

fn server() -> Server {
    site().start_with(|web| web.route("/echo", echo))
}

#[test]
fn a_connection_is_kept_open_as_the_versions_ask() {
    let server = site().start();
    let table = [
        ("1.1", "", None, true),
        ("1.1", "Connection: keep-alive\r\n", None, true),
        ("1.1", "Connection: close\r\n", Some("close"), false),
        (
            "1.1",
            "Connection: Keep-Alive, CLOSE\r\n",
            Some("close"),
            false,
        ),
        ("1.0", "", Some("close"), false),
        (
            "1.0",
            "Connection: keep-alive\r\n",
            Some("keep-alive"),
            true,
        ),
        (
            "1.0",
            "Connection: keep-alive, close\r\n",
            Some("close"),
            false,
        ),
        ("1.2", "", None, true),
    ];
    for (version, lines, expected, goes_on) in table {
        for (path, status) in [("/a.txt", 200), ("/none", 404), ("/large.bin", 200)] {
            let mut client = server.connect();
            let text = format!("GET {path} HTTP/{version}\r\nHost: a\r\n{lines}\r\n");
            let answer = client.ask(&text);
            assert_eq!(answer.status, status, "{text}");
            assert_eq!(answer.field("Connection").as_deref(), expected, "{text}");
            if goes_on {
                assert_eq!(client.get("/b.txt", "").text(), "second\n", "{text}");
            } else {
                client.expect_end();
            }
        }
    }
}

#[test]
fn version_1_0_needs_no_host() {
    let answer = site().start().ask("GET /a.txt HTTP/1.0\r\n\r\n");
    assert_eq!((answer.status, answer.text()), (200, "first\n"));
}

#[test]
fn answers_come_in_the_order_of_requests() {
    let place = site();
    let socket = place.path("socket");
    let unix = ListenAddress::Unix(socket.clone());
    let place = place.with(|config| config.listen.push(unix));
    let server = place.start_with(|web| web.route("/echo", echo));
    in_order(&mut server.connect());
    in_order(&mut Client::connect_unix(&socket));
}

fn in_order(client: &mut Client) {
    let requests = [
        request("GET", "/a.txt", ""),
        request("GET", "/large.bin", ""),
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello".to_owned(),
        request("HEAD", "/medium.bin", ""),
        request("GET", "/none", ""),
        "PUT /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
            .to_owned(),
        request("GET", "/medium.bin", "Range: bytes=-3\r\n"),
        request("GET", "/b.txt", ""),
    ];
    client.send(requests.concat());
    assert_eq!(client.answer().text(), "first\n");
    assert_same(&client.answer().body, &bytes(LARGE));
    assert_eq!(client.answer().text(), "hello");
    assert_eq!(client.answer_without_body().status, 200);
    assert_eq!(client.answer().status, 404);
    assert_eq!(client.answer().text(), "abc");
    assert_eq!(client.answer().body, bytes(700_000)[699_997..]);
    assert_eq!(client.answer().text(), "second\n");
}

#[test]
fn many_requests_at_once_are_all_answered() {
    let mut client = server().connect_kept();
    client.send(request("GET", "/a.txt", "").repeat(2000));
    for _ in 0..2000 {
        assert_eq!(client.answer().text(), "first\n");
    }
}

#[test]
fn a_client_that_closes_its_sending_half_is_still_answered() {
    let site = site().with(|config| config.half_close = HalfClose::Serve);
    let server = site.start_with(|web| web.route("/echo", echo));
    for path in ["/a.txt", "/large.bin", "/echo"] {
        let mut client = server.connect();
        client.send(request("GET", path, "").repeat(2));
        client.finish();
        let (first, second) = (client.answer(), client.answer());
        assert_eq!(first.told(), second.told());
        assert_same(&first.body, &second.body);
        client.expect_end();
    }
}

#[test]
fn half_a_request_is_not_answered() {
    let server = site().start();
    for half in [
        "",
        "\r\n",
        "GET /a.txt",
        "GET /a.txt HTTP/1.1\r\nHost: a\r\n\r",
    ] {
        let mut client = server.connect();
        client.send(half);
        client.finish();
        client.expect_end();
    }
}

#[test]
fn a_slow_reader_gets_all_of_a_page() {
    // Kept in memory, and longer than the sockets take.
    let server = site()
        .with(|config| config.cache.file_bytes = 2 * LARGE as u64)
        .start();
    let mut slow = server.connect();
    slow.send(request("GET", "/large.bin", "").repeat(2));
    slow.fill_to(1);
    // The answer is stuck; others don't wait for it.
    for _ in 0..100 {
        assert_eq!(server.get("/a.txt", "").text(), "first\n");
    }
    for _ in 0..2 {
        assert_same(&slow.answer().body, &bytes(LARGE));
    }
}

#[test]
fn a_connection_carries_as_many_requests_as_it_may() {
    let server = site()
        .with(|config| config.limits.requests = Some(3))
        .start();
    let check = |requests: &[String]| {
        let mut client = server.connect();
        for request in requests {
            client.send(request);
        }
        for n in 1..=3 {
            assert_eq!(client.answer().ends(), n == 3, "answer {n}");
        }
        client.expect_end();
    };
    let one = request("GET", "/a.txt", "");
    check(&[one.repeat(5)]);
    check(&[request("GET", "/large.bin", "").repeat(5)]);
    let mut client = server.connect();
    let counted: Vec<_> = (0..3).map(|_| client.ask(&one).ends()).collect();
    assert_eq!(counted, [false, false, true]);
    client.expect_end();
    // Pieces of one request are one.
    let mut client = server.connect();
    for piece in one.as_bytes().chunks(1) {
        client.send(piece);
    }
    assert!(!client.answer().ends());
}

/// With a time limit of 10 s between requests, and a page that is made when the test says so.
fn with_idle_limit() -> (Server, ManualClock, mpsc::Receiver<oneshot::Sender<()>>) {
    let (tell, begun) = mpsc::channel();
    let site = site().with(|config| config.timeouts.idle = Duration::from_secs(10));
    let (server, hand) = site.start_by_hand_with(|web| {
        web.route("/later", move |_| {
            let (go, told) = oneshot::async_channel();
            tell.send(go).expect("the test waits for it");
            async {
                let _ = told.await; // or the test has failed
                Reply::text("at last\n")
            }
        })
    });
    (server, hand, begun)
}

#[test]
fn sending_a_slow_page_does_not_count_as_idle_time() {
    let (server, hand, begun) = with_idle_limit();
    let mut client = server.connect();
    client.send(request("GET", "/later", ""));
    let go = begun.recv().expect("it begins");
    // When the limit is reached for the first time, it has just been answered.
    server.pass(&hand, 9);
    go.send(()).expect("it waits");
    assert_eq!(client.answer().text(), "at last\n");
    server.pass(&hand, 6);
    assert_eq!(client.get("/a.txt", "").text(), "first\n");
    server.pass(&hand, 13);
    client.expect_end();
}

/// Another job occupies the only OS thread that reads files, for longer than a client may stall.
#[test]
fn waiting_for_a_slow_disk_does_not_count_as_stalling() {
    const LEN: usize = 16 << 20;
    let site = Site::new().file("long", bytes(LEN)).one_reader();
    let (file, socket) = (site.path("long"), site.path("socket"));
    let site = site.with(|config| {
        config.listen.push(ListenAddress::Unix(socket.clone()));
        config.timeouts.write = Duration::from_millis(100);
        config.timeouts.rate = Some(1_000_000);
    });
    let (tell, told) = mpsc::channel();
    let (release, held) = mpsc::channel::<()>();
    let held = Arc::new(Mutex::new(held));
    let server = site.start_with(|web| {
        let hold = move |_| {
            let (tell, held) = (tell.clone(), Arc::clone(&held));
            async move {
                let holds = tussah::spawn_blocking(move || {
                    tell.send(()).expect("the test waits");
                    held.lock().expect("no panic").recv()
                });
                let _ = holds.await;
                Reply::text("held")
            }
        };
        web.route("/hold", hold).route("/stalls", async |_| {
            Reply::new("text/plain", vec![b'x'; LEN])
        })
    });
    let open = || {
        let page = server.get("/status?json", "");
        let page: Value = serde_json::from_slice(&page.body).expect("it is JSON");
        page["connections"]["open"].as_u64().expect("a number")
    };
    for mut reads in [server.connect(), Client::connect_unix(&socket)] {
        // From now on, the server has the file open.
        assert_eq!(reads.ask(request("HEAD", "/long", "")).status, 200);
        let mut holds = server.connect();
        holds.send(request("GET", "/hold", ""));
        told.recv().expect("the job begins");
        if !evict(&file) {
            eprintln!(
                "not tested: the file system of {} is in memory",
                file.display()
            );
            return release.send(()).expect("the job waits");
        }
        reads.send(request("GET", "/long", ""));
        reads.fill_to(1);
        let reading = thread::spawn(move || reads.answer().body);
        for _ in 0..3 {
            let before = open();
            let mut stalls = server.connect();
            stalls.send(request("GET", "/stalls", ""));
            stalls.fill_to(1);
            wait_for("the cut", || (open() <= before).then_some(()));
        }
        release.send(()).expect("the job waits");
        let body = reading.join().expect("the client is not cut");
        assert_same(&body, &bytes(LEN));
        assert_eq!(holds.answer().text(), "held");
    }
}

#[test]
fn waiting_for_a_slow_route_does_not_count_as_idle_time() {
    let (server, hand, _begun) = with_idle_limit();
    let mut client = server.connect();
    client.send(request("GET", "/large.bin", ""));
    server.pass(&hand, 13);
    assert_same(&client.answer().body, &bytes(LARGE));
    server.pass(&hand, 6);
    assert_eq!(client.get("/a.txt", "").text(), "first\n");
    server.pass(&hand, 13);
    client.expect_end();
}

#[test]
fn a_route_that_panics_harms_no_other_request() {
    let server = site().start_with(|web| {
        let at_once = |_| -> std::future::Ready<Reply> { panic!("at once, on purpose") };
        let later = async |_| -> Reply {
            tussah::yield_now().await;
            panic!("later, on purpose")
        };
        web.route("/at-once", at_once).route("/later", later)
    });
    let mut client = server.connect();
    for _ in 0..3 {
        for path in ["/at-once", "/later"] {
            let answer = client.get(path, "");
            assert_eq!(answer.status, Status::INTERNAL_SERVER_ERROR.code());
            assert!(!answer.ends());
        }
        assert_eq!(client.get("/a.txt", "").text(), "first\n");
    }
}

/// Requests of all kinds, with what they are answered.
static PIPELINE: LazyLock<(Server, Vec<u8>)> = LazyLock::new(|| {
    let requests = [
        "\r\nGET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\n\r\nGET / HTTP\r\n",
        "HEAD /b.txt HTTP/1.1\r\nHost: a\r\nUser-Agent: x\r\n\r\n",
        "PUT /echo?x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;x=\"y\"\r\nhello\r\n1\r\n!\r\n0\r\nX: y\r\n\r\n",
        "GET /none HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
        "GET /a.txt HTTP/1.0\r\nConnection: keep-alive\r\nRange: bytes=1-2\r\n\r\n",
        "POST /a.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
        "GET /b.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    ];
    (server(), requests.concat().into_bytes())
});

/// All that comes back, when the requests are sent in pieces that end at these places.
fn pieces(address: SocketAddr, bytes: &[u8], mut ends: Vec<usize>) -> Vec<(u16, String, Vec<u8>)> {
    ends.sort_unstable();
    let mut client = Client::connect(address);
    let mut from = 0;
    for end in ends.into_iter().chain([bytes.len()]) {
        client.send(&bytes[from..end]);
        from = end;
    }
    let is_head = |place| place == 2;
    let answers = (0..).map_while(|place| client.next(!is_head(place)));
    answers
        .map(|answer| (answer.status, answer.told(), answer.body))
        .collect()
}

#[test]
fn requests_may_be_cut_anywhere() {
    let (server, bytes) = &*PIPELINE;
    let whole = pieces(server.address, bytes, Vec::new());
    let statuses: Vec<_> = whole.iter().map(|(status, ..)| *status).collect();
    assert_eq!(statuses, [200, 200, 200, 200, 404, 206, 405, 200]);
    for end in 0..bytes.len() {
        assert_eq!(
            pieces(server.address, bytes, vec![end]),
            whole,
            "cut at {end}"
        );
    }
    let everywhere = (0..bytes.len()).collect();
    assert_eq!(pieces(server.address, bytes, everywhere), whole);
}

proptest! {
    #[test]
    fn requests_may_be_cut_in_several_places(ends in prop::collection::vec(0..PIPELINE.1.len(), 0..8)) {
        let (server, bytes) = &*PIPELINE;
        let whole = pieces(server.address, bytes, Vec::new());
        prop_assert_eq!(pieces(server.address, bytes, ends), whole);
    }
}
