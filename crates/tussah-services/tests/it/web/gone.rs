//! Clients that go before they are answered.

use std::collections::HashMap;
use std::fs;
use std::io::Write as _;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use serde_json::Value;
use tussah::sync::Semaphore;
use tussah_services::web::config::{HalfClose, LogFile, LogFormat};
use tussah_services::web::{Reply, Request, Route, Web};

use super::client::request;
use super::server::{Server, Site};

/// Bound: how long a test waits for what has to come.
const PATIENCE: Duration = Duration::from_secs(20);

/// The progress of a handler, as the test sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Begun(String),
    Dropped,
    Answered,
    /// Work that the handler has spawned has ended.
    Spawned,
}

/// Handlers that say what they do, and wait until the test opens the gate, once for each of them.
struct Stage {
    server: Server,
    seen: mpsc::Receiver<Seen>,
    gate: Arc<Semaphore>,
}

/// Tells that a future was dropped before its end.
struct Guard(mpsc::Sender<Seen>, bool);

impl Drop for Guard {
    fn drop(&mut self) {
        let seen = if self.1 {
            Seen::Answered
        } else {
            Seen::Dropped
        };
        let _ = self.0.send(seen); // the test may have ended
    }
}

impl Stage {
    fn new(site: Site) -> Self {
        let (tell, seen) = mpsc::channel();
        let gate = Arc::new(Semaphore::new(0));
        let opens = Arc::clone(&gate);
        let server = site.start_with(|web| add(web, &tell, &opens));
        Self { server, seen, gate }
    }

    /// Sends a request, and waits until its handler has begun.
    fn begin(&self, method: &str, path: &str) -> TcpStream {
        let client = self.send(&request(method, path, ""));
        self.expect(Seen::Begun(path.to_owned()));
        client
    }

    fn send(&self, text: &str) -> TcpStream {
        let mut client = TcpStream::connect(self.server.address).expect("it listens");
        client.write_all(text.as_bytes()).expect("it takes it");
        client
    }

    #[track_caller]
    fn expect(&self, expected: Seen) {
        let seen = self.seen.recv_timeout(PATIENCE);
        assert_eq!(seen.as_ref(), Ok(&expected));
    }

    fn status(&self) -> Value {
        let page = self.server.get("/status?json", "");
        serde_json::from_slice(&page.body).expect("it is JSON")
    }

    /// Waits until the counters of the stage are so, and gives them.
    #[track_caller]
    fn until(&self, are_so: impl Fn(&HashMap<String, u64>) -> bool) -> HashMap<String, u64> {
        let begun = Instant::now();
        loop {
            let status = self.status();
            let stages = status["stages"].as_array().expect("stages");
            let waits = stages.iter().find(|stage| stage["name"] == "route /wait/*");
            let waits = waits.and_then(Value::as_object).expect("it is there");
            let numbers = waits
                .iter()
                .filter_map(|(name, value)| Some((name.clone(), value.as_u64()?)));
            let numbers = numbers.collect();
            if are_so(&numbers) {
                return numbers;
            }
            assert!(begun.elapsed() < PATIENCE, "{numbers:?}");
        }
    }

    /// Waits until at least N requests were cancelled, and returns how many were.
    #[track_caller]
    fn expect_cancelled(&self, expected: u64) {
        let begun = Instant::now();
        loop {
            let cancelled = self.status()["cancelled"].as_u64().expect("a number");
            if cancelled >= expected || begun.elapsed() > PATIENCE {
                return assert_eq!(cancelled, expected);
            }
        }
    }
}

fn add(web: Web, tell: &mpsc::Sender<Seen>, gate: &Arc<Semaphore>) -> Web {
    let (tell, gate) = (tell.clone(), Arc::clone(gate));
    let handler = move |request: Request| {
        let (tell, gate) = (tell.clone(), Arc::clone(&gate));
        async move {
            let _ = tell.send(Seen::Begun(request.path().into_owned()));
            let mut guard = Guard(tell.clone(), false);
            if request.path() == "/spawn" {
                let gate = Arc::clone(&gate);
                drop(tussah::spawn(async move {
                    gate.acquire().await.forget();
                    let _ = tell.send(Seen::Spawned);
                }));
                std::future::pending::<()>().await;
            }
            if request.path() == "/wait/yields" {
                // A stage has two of these for each worker in service, and queues the others.
                while gate.try_acquire().map(|permit| permit.forget()).is_none() {
                    tussah::yield_now().await;
                }
            } else {
                gate.acquire().await.forget();
            }
            guard.1 = true;
            Reply::text("made")
        }
    };
    web.route("/wait/*", handler.clone())
        .route("/spawn", handler.clone())
        .route_with("/search", Route::new(handler).cancellable())
}

/// A site that rejects nothing.
fn site() -> Site {
    Site::new()
        .file("a.txt", "first\n")
        .with(|config| config.target = PATIENCE)
}

fn site_that_serves() -> Site {
    site().with(|config| config.half_close = HalfClose::Serve)
}

fn reset(client: TcpStream) {
    rustix::net::sockopt::set_socket_linger(&client, Some(Duration::ZERO)).expect("TCP has it");
}

#[test]
fn a_request_is_dropped_when_its_client_closes() {
    let stage = Stage::new(site());
    for (n, method) in ["GET", "HEAD", "GET"].into_iter().enumerate() {
        let client = stage.begin(method, "/wait/a");
        drop(client);
        stage.expect(Seen::Dropped);
        stage.expect_cancelled(n as u64 + 1);
    }
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("in a destructor, on purpose");
    }
}

#[test]
fn a_dropped_request_whose_destructor_panics_harms_nobody() {
    let (tell, begun) = mpsc::channel();
    let server = site().start_with(|web| {
        web.route("/bomb", move |_| {
            let tell = tell.clone();
            async move {
                let _bomb = Bomb;
                let _ = tell.send(());
                std::future::pending().await
            }
        })
    });
    for _ in 0..10 {
        let mut client = TcpStream::connect(server.address).expect("it listens");
        let text = request("GET", "/bomb", "");
        client.write_all(text.as_bytes()).expect("it takes it");
        begun.recv_timeout(PATIENCE).expect("the handler begins");
        drop(client);
        assert_eq!(server.get("/a.txt", "").text(), "first\n");
    }
    let begin = Instant::now();
    loop {
        let page = server.get("/status?json", "");
        let status: Value = serde_json::from_slice(&page.body).expect("it is JSON");
        let stages = status["stages"].as_array().expect("stages");
        let bombs = stages.iter().find(|stage| stage["name"] == "route /bomb");
        let bombs = bombs.expect("it is there");
        if bombs["in_service"] == 0 && bombs["queued"] == 0 {
            break;
        }
        assert!(begin.elapsed() < PATIENCE, "{bombs}");
    }
}

#[test]
fn a_request_is_dropped_when_its_client_resets() {
    for site in [site(), site_that_serves()] {
        let stage = Stage::new(site);
        reset(stage.begin("GET", "/wait/a"));
        stage.expect(Seen::Dropped);
        stage.expect_cancelled(1);
    }
}

/// Bytes behind the request hide the end from a reading.
#[test]
fn a_pipelined_request_is_not_a_hang_up_and_none_begins_after_one() {
    let stage = Stage::new(site());
    let pipeline = request("GET", "/wait/a", "") + &request("GET", "/wait/b", "");
    let mut client = stage.server.connect();
    client.send(&pipeline);
    stage.expect(Seen::Begun("/wait/a".to_owned()));
    // More comes while the first one is answered.
    client.send(request("GET", "/wait/c", ""));
    for path in ["/wait/b", "/wait/c"] {
        stage.gate.add_permits(1);
        stage.expect(Seen::Answered);
        assert_eq!(client.answer().text(), "made");
        stage.expect(Seen::Begun(path.to_owned()));
    }
    drop(client);
    stage.expect(Seen::Dropped);
    for how in [drop, reset] {
        let mut client = stage.send(&pipeline);
        stage.expect(Seen::Begun("/wait/a".to_owned()));
        client.write_all(b"GET /wait/c").expect("it takes it");
        how(client);
        stage.expect(Seen::Dropped);
    }
    stage.expect_cancelled(3);
    let more = stage.seen.try_recv();
    assert_eq!(more, Err(mpsc::TryRecvError::Empty));
}

#[test]
fn half_closed_clients_are_served_if_configured() {
    let stage = Stage::new(site_that_serves());
    let mut client = stage.server.connect();
    client.send(request("GET", "/wait/a", "").repeat(2));
    client.finish();
    for _ in 0..2 {
        stage.expect(Seen::Begun("/wait/a".to_owned()));
        stage.gate.add_permits(1);
        stage.expect(Seen::Answered);
        assert_eq!(client.answer().text(), "made");
    }
    client.expect_end();
    // By half, and then wholly.
    let client = stage.begin("GET", "/wait/b");
    client.shutdown(Shutdown::Write).expect("it is open");
    reset(client);
    stage.expect(Seen::Dropped);
    stage.expect_cancelled(1);
}

#[test]
fn unsafe_methods_are_not_cancelled_once_begun() {
    // With one worker, what the driver reports first is also handled first.
    let stage = Stage::new(site().workers(1));
    let text = request("POST", "/wait/a", "") + &request("POST", "/wait/never", "");
    let client = stage.send(&text);
    stage.expect(Seen::Begun("/wait/a".to_owned()));
    drop(client);
    // A second client leaves after it. Once the server has noticed the second one, it has also
    // noticed the first one.
    drop(stage.begin("GET", "/wait/b"));
    stage.expect(Seen::Dropped);
    stage.gate.add_permits(1);
    stage.expect(Seen::Answered);
    // Nor does the next one of the pipeline begin, whatever its method.
    stage.expect_cancelled(2);
    // Unless the route says that it may be dropped.
    drop(stage.begin("POST", "/search"));
    stage.expect(Seen::Dropped);
    assert_eq!(stage.seen.try_recv(), Err(mpsc::TryRecvError::Empty));
}

#[test]
fn threads_that_a_handler_spawned_go_on() {
    let stage = Stage::new(site());
    drop(stage.begin("GET", "/spawn"));
    stage.expect(Seen::Dropped);
    stage.gate.add_permits(1);
    stage.expect(Seen::Spawned);
}

#[test]
fn a_thousand_dead_clients_leave_nothing_behind() {
    let stage = Stage::new(site());
    let mut neighbour = stage.server.connect();
    let mut waits = stage.server.connect();
    waits.send(request("POST", "/wait/long", ""));
    stage.expect(Seen::Begun("/wait/long".to_owned()));
    for round in 1..=10 {
        let clients: Vec<_> = (0..100)
            .map(|_| stage.send(&request("GET", "/wait/a", "")))
            .collect();
        // Some are begun, others queued, and what does not fit into the target is rejected.
        stage.until(|dynamic| dynamic["arrived"] > round * 100);
        for (n, client) in clients.into_iter().enumerate() {
            match n % 2 {
                0 => drop(client),
                _ => reset(client),
            }
        }
        stage.until(|dynamic| dynamic["in_service"] == 1 && dynamic["queued"] == 0);
        assert_eq!(neighbour.get("/a.txt", "").text(), "first\n");
    }
    let seen: Vec<_> = stage.seen.try_iter().collect();
    let begun = seen.iter().filter(|seen| matches!(seen, Seen::Begun(_)));
    let dropped = seen.iter().filter(|seen| **seen == Seen::Dropped);
    assert_eq!(
        (begun.count(), dropped.count()),
        (seen.len() / 2, seen.len() / 2)
    );
    stage.gate.add_permits(1);
    assert_eq!(waits.answer().text(), "made");
}

/// The room of a request that is queued is free at once, while handlers still have the first ones.
#[test]
fn a_queued_request_is_cancelled_whatever_its_method() {
    const CLIENTS: u64 = 400;
    let stage = Stage::new(site());
    let post = request("POST", "/wait/yields", "");
    let clients: Vec<_> = (0..CLIENTS).map(|_| stage.send(&post)).collect();
    let before = stage.until(|dynamic| dynamic["arrived"] == CLIENTS);
    assert!(before["queued"] > 0, "nothing is queued");
    drop(clients);
    let after = stage.until(|dynamic| dynamic["queued"] == 0);
    assert!(after["in_service"] > 0, "what has begun goes on");
    assert!(
        after["cancelled"] > 0 && after["finished"] == 0,
        "{after:?}"
    );
    assert_eq!(after["cancelled"] + after["in_service"], CLIENTS);
    stage.expect_cancelled(after["cancelled"]);
    stage.until(|dynamic| {
        stage.gate.add_permits(1);
        dynamic["in_service"] == 0
    });
    let seen: Vec<_> = stage.seen.try_iter().collect();
    assert!(!seen.contains(&Seen::Dropped), "what has begun goes on");
    let begun = seen.iter().filter(|seen| matches!(seen, Seen::Begun(_)));
    assert_eq!(begun.count() as u64, after["in_service"], "no other began");
}

/// How long they took says nothing of how long an answer takes.
#[test]
fn cancelled_requests_do_not_count_in_estimates() {
    let stage = Stage::new(site());
    for n in 1..=5 {
        drop(stage.begin("GET", "/wait/a"));
        stage.expect(Seen::Dropped);
        let counted = stage.until(|dynamic| dynamic["in_service"] == 0);
        assert_eq!((counted["cancelled"], counted["finished"]), (n, 0));
    }
    let status = stage.status();
    let sources = status["sources"].as_array().expect("sources");
    let waits = sources.iter().find(|source| source["name"] == "/wait/*");
    let waits = waits.expect("it is there");
    assert_eq!(waits["response_s"], Value::Null, "{waits}");
    assert_eq!(waits["rejected"]["client_gone"], 5);
}

/// A value that panics as it is dropped.
struct Panics;

impl Drop for Panics {
    fn drop(&mut self) {
        panic!("on purpose");
    }
}

#[test]
fn a_future_that_panics_in_its_drop_does_not_affect_others() {
    let (tell, begun) = mpsc::channel();
    let server = site().start_with(|web| {
        let pends = move |_| {
            let tell = tell.clone();
            async move {
                let _panics = Panics;
                let _ = tell.send(());
                std::future::pending().await
            }
        };
        web.route("/pend", pends)
            .route("/made", async |_| Reply::text("made"))
    });
    for _ in 0..20 {
        let mut client = server.connect();
        client.send(request("GET", "/pend", ""));
        begun.recv_timeout(PATIENCE).expect("it begins");
        drop(client);
        assert_eq!(server.get("/made", "").text(), "made");
    }
}

#[test]
fn the_log_says_499() {
    let site = site();
    let log = site.path("access.log");
    let mut stage = Stage::new(site.with(|config| {
        config.log.file = Some(LogFile::Path(log.clone()));
        config.log.format = LogFormat::Common;
    }));
    drop(stage.begin("GET", "/wait/a"));
    stage.expect(Seen::Dropped);
    stage.expect_cancelled(1);
    let mut client = stage.server.connect();
    client.send(request("GET", "/wait/b", ""));
    stage.gate.add_permits(1);
    assert_eq!(client.answer().status, 200);
    stage.server.stop();
    let text = fs::read_to_string(&log).expect("it was written");
    let lines: Vec<_> = text
        .lines()
        .filter(|line| line.contains("/wait/"))
        .collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines[0].starts_with("127.0.0.1 - - ["), "{text}");
    assert!(
        lines[0].ends_with("\"GET /wait/a HTTP/1.1\" 499 -"),
        "{text}"
    );
    assert!(
        lines[1].ends_with("\"GET /wait/b HTTP/1.1\" 200 4"),
        "{text}"
    );
}

/// The server reads the rest of a body even with `half_close = serve`.
#[test]
fn the_log_says_499_if_the_client_leaves_before_its_body_is_there() {
    for site in [site(), site_that_serves()] {
        let log = site.path("access.log");
        let mut stage = Stage::new(site.with(|config| {
            config.log.file = Some(LogFile::Path(log.clone()));
            config.log.format = LogFormat::Common;
        }));
        drop(stage.send(&request("POST", "/wait/a", "Content-Length: 9\r\n")));
        stage.expect_cancelled(1);
        let chunked = request("POST", "/wait/b", "Transfer-Encoding: chunked\r\n");
        reset(stage.send(&(chunked + "5\r\nhel")));
        stage.expect_cancelled(2);
        stage.server.stop();
        let text = fs::read_to_string(&log).expect("it was written");
        for line in ["/wait/a HTTP/1.1\" 499 -", "/wait/b HTTP/1.1\" 499 -"] {
            assert_eq!(text.matches(line).count(), 1, "{text}");
        }
    }
}
