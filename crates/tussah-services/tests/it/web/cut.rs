//! Requests that are cut after the drain time: each has one line in the log.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use futures_lite::AsyncReadExt as _;
use futures_lite::stream::{self, StreamExt as _};
use serde_json::Value;
use tussah::Runtime;
use tussah::time::timeout;
use tussah_services::web::config::{Config, FastCgi, HalfClose, ListenAddress, LogFile, LogFormat};
use tussah_services::web::{Reply, Request, Route, Status, Web};

use super::client::{Client, request};
use super::server::{Site, bytes, evict, with_one_reader};
use crate::fastcgi::php::{Php, wait_for};

/// Bound: how long a test waits for what has to come.
const PATIENCE: Duration = Duration::from_secs(20);

/// More than what the system buffers for a client that does not read.
const LONG: usize = 16 << 20;

/// More than the head of a response.
const PART: usize = 1000;

/// Cuts at once, and logs the requests.
fn site() -> Site {
    let site = Site::new()
        .file("a.txt", "first\n")
        .file("long", bytes(LONG));
    let log = site.path("access.log");
    site.with(|config| {
        config.drain = Duration::ZERO;
        config.target = PATIENCE;
        config.log.file = Some(LogFile::Path(log));
        config.log.format = LogFormat::Common;
        config.limits.body_bytes = 64 << 20;
    })
}

/// Returns the lines of a log without their clients and times, in order.
fn lines(log: &Path) -> Vec<String> {
    let text = fs::read_to_string(log).expect("it was written");
    let lines = text.lines().map(|line| {
        let (_, line) = line.split_once("] ").expect("a time");
        line.to_owned()
    });
    let mut lines: Vec<_> = lines.collect();
    lines.sort();
    lines
}

/// Adds routes that tell of each request, and never answer it in full.
fn add(web: Web, tell: &mpsc::Sender<String>) -> Web {
    let tell = tell.clone();
    let handler = move |mut request: Request| {
        let told = tell.send(request.path().into_owned());
        async move {
            told.expect("the test waits");
            match &*request.path() {
                "/stream/body" => {
                    let mut body = request.take_body();
                    let mut all = Vec::new();
                    match body.read_to_end(&mut all).await {
                        Ok(_) => Reply::text("all"),
                        Err(_) => Reply::status(Status::BAD_REQUEST),
                    }
                }
                "/stream/part" => {
                    let part = stream::once(Ok(bytes(PART)));
                    Reply::stream("text/plain", part.chain(stream::pending()))
                }
                "/wait/yields" => loop {
                    tussah::yield_now().await;
                },
                _ => std::future::pending().await,
            }
        }
    };
    web.route("/wait/*", handler.clone())
        .route_with("/stream/*", Route::new(handler).streams())
}

/// Begins requests, each of which is elsewhere when the server ends. Returns their clients.
fn begin(connect: impl Fn() -> Client, told: &mpsc::Receiver<String>) -> Vec<Client> {
    let begun = |path: &str, text: &str| {
        let mut client = connect();
        client.send(text);
        assert_eq!(told.recv_timeout(PATIENCE).as_deref(), Ok(path));
        client
    };
    let mut idle = connect();
    assert_eq!(idle.get("/a.txt", "").status, 200);
    let mut half = connect();
    half.send("GET /half HTT");
    let pipeline = request("GET", "/wait/get", "") + &request("GET", "/wait/never", "");
    let mut arrives = connect();
    let lines = "Content-Length: 9\r\nExpect: 100-continue\r\n";
    arrives.send(request("POST", "/wait/arrives", lines));
    assert_eq!(arrives.answer_without_body().status, 100);
    arrives.send("four");
    let chunked = "Transfer-Encoding: chunked\r\n";
    let mut part = begun("/stream/part", &request("GET", "/stream/part", ""));
    part.fill_to(PART);
    let mut reads = connect();
    reads.send(request("GET", "/long", ""));
    reads.fill_to(1);
    vec![
        idle,
        half,
        begun("/wait/get", &pipeline),
        begun("/wait/post", &request("POST", "/wait/post", "")),
        arrives,
        begun(
            "/stream/body",
            &(request("POST", "/stream/body", chunked) + "3\r\nabc\r\n"),
        ),
        begun(
            "/stream/ignores",
            &(request("POST", "/stream/ignores", chunked) + "3\r\nabc\r\n"),
        ),
        part,
        reads,
    ]
}

/// Compares the lines of the requests of [`begin`].
#[track_caller]
fn check(mut lines: Vec<String>) {
    let long = "\"GET /long HTTP/1.1\" 200 ";
    let at = lines.iter().position(|line| line.starts_with(long));
    let len = at.map(|at| lines.remove(at)[long.len()..].parse());
    assert!(matches!(len, Some(Ok(0..LONG))), "{len:?} {lines:?}");
    let expected = [
        "\"GET /a.txt HTTP/1.1\" 200 6",
        "\"GET /stream/part HTTP/1.1\" 200 1007",
        "\"GET /wait/get HTTP/1.1\" 444 -",
        "\"POST /stream/body HTTP/1.1\" 444 -",
        "\"POST /stream/ignores HTTP/1.1\" 444 -",
        "\"POST /wait/arrives HTTP/1.1\" 444 -",
        "\"POST /wait/post HTTP/1.1\" 444 -",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn each_request_that_is_cut_has_a_line() {
    for half_close in [HalfClose::Cancel, HalfClose::Serve] {
        let (tell, told) = mpsc::channel();
        let site = site().with(|config| config.half_close = half_close);
        let mut server = site.start_with(|web| add(web, &tell));
        let clients = begin(|| server.connect(), &told);
        server.stop();
        check(lines(&server.site.path("access.log")));
        drop(clients);
    }
}

#[test]
fn each_request_over_a_unix_socket_that_is_cut_has_a_line() {
    let (tell, told) = mpsc::channel();
    let site = site();
    let socket = site.path("socket");
    let site = site.with(|config| config.listen.push(ListenAddress::Unix(socket.clone())));
    let mut server = site.start_with(|web| add(web, &tell));
    let clients = begin(|| Client::connect_unix(&socket), &told);
    server.stop();
    check(lines(&server.site.path("access.log")));
    drop(clients);
}

/// A stage has a few of these in service, and queues the others.
#[test]
fn each_queued_request_that_is_cut_has_a_line() {
    const CLIENTS: usize = 100;
    let (tell, _told) = mpsc::channel();
    let mut server = site().start_with(|web| add(web, &tell));
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| server.connect()).collect();
    for (n, client) in clients.iter_mut().enumerate() {
        let method = ["GET", "POST"][n % 2];
        client.send(request(method, "/wait/yields", ""));
    }
    wait_for("all requests", || {
        let page = server.get("/status?json", "");
        let page: Value = serde_json::from_slice(&page.body).expect("it is JSON");
        let mut stages = page["stages"].as_array().expect("stages").iter();
        let stage = stages.find(|stage| stage["name"] == "route /wait/*");
        let has_all = stage.expect("it is there")["arrived"] == CLIENTS;
        has_all.then_some(())
    });
    server.stop();
    let lines = lines(&server.site.path("access.log"));
    for method in ["GET", "POST"] {
        let expected = format!("\"{method} /wait/yields HTTP/1.1\" 444 -");
        let found = lines.iter().filter(|line| **line == expected).count();
        assert_eq!(found, CLIENTS / 2, "{lines:?}");
    }
}

#[test]
fn each_request_for_a_script_that_is_cut_has_a_line() {
    for buffering in [true, false] {
        let php = Php::start();
        let site = site()
            .file(
                "wait.php",
                "<?php touch($_GET['file']); while (true) usleep(1000);",
            )
            .file(
                "part.php",
                "<?php echo str_repeat('x', 10000); flush(); while (true) usleep(1000);",
            )
            .file("body.php", "<?php readfile('php://input');")
            .with(|config| {
                config.fastcgi = vec![FastCgi {
                    buffering,
                    ..FastCgi::new(php.address())
                }];
            });
        let mut server = site.start();
        let mut clients = Vec::new();
        for method in ["GET", "POST"] {
            let file = php.directory.path().join(format!("{method}-{buffering}"));
            let mut client = server.connect();
            let path = format!("/wait.php?file={}", file.display());
            client.send(request(method, &path, ""));
            wait_for("the script", || file.exists().then_some(()));
            clients.push(client);
        }
        let mut part = server.connect();
        part.send(request("GET", "/part.php", ""));
        part.fill_to(10_000);
        clients.push(part);
        let mut body = server.connect();
        let lines = "Content-Length: 300000\r\nExpect: 100-continue\r\n";
        body.send(request("PUT", "/body.php", lines));
        assert_eq!(body.answer_without_body().status, 100);
        clients.push(body);
        server.stop();
        let lines = self::lines(&server.site.path("access.log"));
        let [part, get, post, put] = &lines[..] else {
            panic!("{lines:?}");
        };
        assert!(part.starts_with("\"GET /part.php HTTP/1.1\" 200 10"));
        assert!(get.starts_with("\"GET /wait.php?file="), "{lines:?}");
        assert!(post.starts_with("\"POST /wait.php?file="), "{lines:?}");
        assert_eq!(put, "\"PUT /body.php HTTP/1.1\" 444 -");
        for line in [get, post] {
            assert!(line.ends_with(" HTTP/1.1\" 444 -"), "{lines:?}");
        }
        drop(clients);
    }
}

/// Starts a server that loads the next configuration when it has begun requests, and calls `then`
/// with its address. Returns the lines in the log of the first configuration.
fn reloaded(
    config: Config,
    next: Config,
    then: impl FnOnce(SocketAddr) + Send + 'static,
) -> Vec<String> {
    let Some(LogFile::Path(log)) = config.log.file.clone() else {
        panic!("it has a log");
    };
    let (tell, told) = mpsc::channel();
    let web = add(Web::new(config.clone()), &tell);
    let runtime = Runtime::builder().workers(2).build().expect("a runtime");
    runtime.block_on(async {
        let mut running = web.start().await.expect("it starts");
        let Some(ListenAddress::Tcp(address)) = running.addresses().next().cloned() else {
            panic!("it listens on TCP");
        };
        let begun = tussah::spawn_blocking(move || begin(|| Client::connect(address), &told));
        let clients = begun.await.expect("no panic");
        running.reload(next).await.expect("a reload");
        let checked = tussah::spawn_blocking(move || then(address));
        checked.await.expect("no panic");
        running.stop().await;
        drop(clients);
        // Handlers may still be at work.
        lines(&log)
    })
}

#[test]
fn the_counters_agree_with_the_log() {
    let site = site();
    let config = || site.config.clone();
    let mut lines = reloaded(config(), config(), move |address| {
        let status = || -> Value {
            let page = Client::connect(address).get("/status?json", "");
            serde_json::from_slice(&page.body).expect("it is JSON")
        };
        let of = |page: &Value, name: &str, counter: &str| {
            let mut sources = page["sources"].as_array().expect("sources").iter();
            let source = sources.find(|source| source["name"] == name);
            let source = source.expect("it is there");
            source.pointer(counter).and_then(Value::as_u64)
        };
        wait_for("the cut", || {
            let page = status();
            let is_cut = of(&page, "/wait/*", "/rejected/cut") == Some(3)
                && of(&page, "/stream/*", "/rejected/cut") == Some(2)
                && of(&page, "/stream/*", "/responses/2xx") == Some(1)
                && of(&page, "files", "/responses/2xx") == Some(2);
            is_cut.then_some(())
        });
        let page = status();
        assert_eq!(page["cancelled"], 0);
        for name in ["/wait/*", "/stream/*", "files"] {
            assert_eq!(of(&page, name, "/rejected/client_gone"), Some(0));
            assert_eq!(of(&page, name, "/responses/4xx"), Some(0));
            assert_eq!(of(&page, name, "/responses/5xx"), Some(0));
        }
    });
    lines.retain(|line| !line.contains("/status"));
    check(lines);
}

#[test]
fn a_log_that_a_reload_replaces_has_the_requests_that_are_cut() {
    let site = site();
    let mut next = site.config.clone();
    next.log.file = Some(LogFile::Path(site.path("next.log")));
    check(reloaded(site.config.clone(), next, |_| {}));
}

/// A job occupies the only OS thread that reads files, as a disk that hangs does.
#[test]
fn a_disk_that_hangs_keeps_nothing_out_of_the_log() {
    let (tell, told) = mpsc::channel();
    let (release, held) = mpsc::channel::<()>();
    let held = Arc::new(Mutex::new(held));
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
    let site = site();
    let builder = with_one_reader(Runtime::builder().workers(2));
    let runtime = builder.build().expect("a runtime");
    let web = Web::new(site.config.clone()).route("/hold", hold);
    let running = runtime.block_on(web.start()).expect("it starts");
    let Some(ListenAddress::Tcp(address)) = running.addresses().next().cloned() else {
        panic!("it listens on TCP");
    };
    let mut reads = Client::connect(address);
    // From now on, the server has the file open.
    assert_eq!(reads.ask(request("HEAD", "/long", "")).status, 200);
    let mut holds = Client::connect(address);
    holds.send(request("GET", "/hold", ""));
    told.recv().expect("the job begins");
    let is_on_disk = evict(&site.path("long"));
    reads.send(request("GET", "/long", ""));
    reads.fill_to(1);
    let stopped = runtime.block_on(timeout(PATIENCE, running.stop()));
    release.send(()).expect("the job waits");
    assert!(stopped.is_ok(), "the server waits for the disk");
    let lines = lines(&site.path("access.log"));
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert_eq!(lines[0], "\"GET /hold HTTP/1.1\" 444 -");
    assert!(
        lines[1].starts_with("\"GET /long HTTP/1.1\" 200 "),
        "{lines:?}"
    );
    assert!(
        !is_on_disk || !lines[1].ends_with(&LONG.to_string()),
        "{lines:?}"
    );
}
