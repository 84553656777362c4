//! The modules for HTTP in graphs, and the small web server that is made of them.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, LazyLock, Mutex};

use tussah::Runtime;
use tussah::flow::{Out, Params, Running, module};
use tussah_services::modules::{self, Body, BodySender, Request, Response};
use tussah_services::web::Status;

/// The senders by which the modules of a graph report to their test, by the test's name.
static TOLD: LazyLock<Mutex<HashMap<String, Sender<String>>>> = LazyLock::new(Mutex::default);

fn tell(test: &str, text: impl ToString) {
    let told = TOLD.lock().expect("no holder panics");
    told[test].send(text.to_string()).expect("the test listens");
}

/// Tells the test the address.
struct Told {
    test: String,
}

#[module]
impl Told {
    fn init(test: String) -> Self {
        Self { test }
    }

    fn run(&self, address: SocketAddr) {
        tell(&self.test, address);
    }
}

/// This file.
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/modules.rs");

/// Tells the test when a connection no longer needs a body.
struct TellsOver(String);

impl Drop for TellsOver {
    fn drop(&mut self) {
        tell(&self.0, "over");
    }
}

/// Answers as the path says, and tells the test how many requests each connection had.
struct Script {
    test: String,
}

#[module]
impl Script {
    fn init(test: String) -> Self {
        Self { test }
    }

    fn run(&self, request: Request, count: &mut u32, out: &impl Out<Response>) {
        *count += 1;
        match &*request.path() {
            "/drop" => drop(request),
            "/panic" => panic!("as asked"),
            "/twice" => {
                out.send(request.clone().respond("one"));
                out.send(request.respond("one"));
            }
            "/early" => out.send(request.status(Status::CONTINUE)),
            "/file" => {
                let file = File::open(FILE);
                let body = Body::file(file.expect("this file")).expect("a regular file");
                out.send(request.respond(body).with_type("text/rust"));
            }
            path @ ("/parts" | "/cut") => {
                let is_whole = path == "/parts";
                let file = Arc::new(File::open(FILE).expect("this file"));
                let (sender, body) = BodySender::new(20, TellsOver(self.test.clone()));
                out.send(request.respond(body));
                sender.send(&file, 0..10);
                if is_whole {
                    sender.send(&file, 10..20);
                }
            }
            "/fields" => {
                let response = request
                    .respond("")
                    .with("X-A", "b")
                    .with("X-B", "c\r\nX-C: d");
                out.send(response.with("Content-Length", "9").with_type("a/b"));
            }
            "/gone" => {
                tell(&self.test, "waits");
                while !request.is_over() {
                    std::thread::yield_now();
                }
                out.send(request.respond("nobody reads this"));
            }
            path => {
                let query: Vec<_> = request.query().map(|(name, _)| name.into_owned()).collect();
                let body = request.body().escape_ascii().to_string();
                let text = format!(
                    "{} {path} {query:?} {} {body}",
                    request.method_name(),
                    request.host()
                );
                out.send(request.respond(text));
            }
        }
    }

    fn end(&self, count: u32) {
        tell(&self.test, format!("end after {count}"));
    }
}

/// Changes the responses to bad requests.
#[derive(Default)]
struct Bad;

#[module]
impl Bad {
    fn run(&self, response: Response, out: &impl Out<Response>) {
        let text = format!("bad: {}", response.status());
        out.send(response.with("X-Text", text));
    }
}

/// A graph that runs.
struct Graph {
    runtime: Runtime,
    running: Running,
    address: SocketAddr,
    told: Receiver<String>,
}

impl Graph {
    /// Starts a graph with these additional statements.
    fn start(test: &str, limits: &str, more: &str) -> Self {
        let (sender, told) = channel();
        let mut all = TOLD.lock().expect("no holder panics");
        all.insert(test.to_owned(), sender);
        drop(all);
        let text = format!(
            "use HttpListen, HttpReply, Script, Told, Bad, Logger, Throttle
            graph Test() {{
              requests = HttpListen(\"127.0.0.1:0\", {limits})
              script = Script(\"{test}\")
              reply = HttpReply()
              told = Told(\"{test}\")
              requests.listening -> told
              script -> reply
              {more}
            }}"
        );
        let runtime = Runtime::builder().workers(2).build().expect("a runtime");
        let modules = modules::standard()
            .with::<Told>("Told")
            .with::<Bad>("Bad")
            .with::<Script>("Script");
        let running = runtime.block_on(async {
            let graph = modules.graph("test.weave", &text, &Params::new());
            graph.expect("the graph is right").start()
        });
        let address = told.recv().expect("the graph runs");
        Self {
            running: running.expect("the graph starts"),
            runtime,
            address: address.parse().expect("it is an address"),
            told,
        }
    }

    fn simple(test: &str) -> Self {
        Self::start(test, "", "requests -> script")
    }

    fn connect(&self) -> Client {
        Client::connect(self.address)
    }

    /// Returns the status and the body of the answer to a GET over a connection of its own.
    fn get(&self, path: &str) -> (u16, String) {
        let mut client = self.connect();
        client.ask(&format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let answer = client.answer();
        (answer.status, answer.body)
    }

    fn stop(self) {
        self.runtime.block_on(self.running.stop());
    }
}

struct Client(BufReader<TcpStream>);

struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Client {
    fn connect(address: SocketAddr) -> Self {
        Self(BufReader::new(
            TcpStream::connect(address).expect("it listens"),
        ))
    }

    fn ask(&mut self, bytes: &str) {
        let stream = self.0.get_mut();
        stream.write_all(bytes.as_bytes()).expect("it is read");
    }

    #[track_caller]
    fn answer(&mut self) -> Answer {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let len = self.0.read_line(&mut head).expect("an answer");
            assert!(len > 0, "the connection ended: {head:?}");
        }
        let len = head
            .lines()
            .find_map(|line| line.strip_prefix("Content-Length: "));
        let mut body = vec![0; len.map_or(0, |len| len.parse().expect("a number"))];
        self.0.read_exact(&mut body).expect("the body");
        Answer {
            status: head[9..12].parse().expect("a status"),
            head,
            body: String::from_utf8(body).expect("text"),
        }
    }

    /// Checks that the server closes the connection without a further answer.
    #[track_caller]
    fn ends(&mut self) {
        let mut rest = String::new();
        self.0.read_to_string(&mut rest).expect("it ends well");
        assert_eq!(rest, "");
    }
}

#[test]
fn a_listener_opens_no_directory() {
    let graph = Graph::simple("directory");
    assert_eq!(graph.get("/a").0, 200);
    let descriptors = std::fs::read_dir("/proc/self/fd").expect("Linux");
    let files = descriptors.flatten();
    let mut files = files.filter_map(|file| std::fs::read_link(file.path()).ok());
    // The default site of a server is the working directory.
    let here = std::env::current_dir().expect("a directory");
    assert_eq!(files.find(|file| *file == here), None);
    graph.stop();
}

#[test]
fn a_body_of_parts_is_whole_or_ends_the_connection() {
    let graph = Graph::simple("parts");
    let text = std::fs::read_to_string(FILE).expect("this file");
    let mut client = graph.connect();
    for _ in 0..2 {
        client.ask("GET /parts HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(client.answer().body, text[..20]);
        assert_eq!(graph.told.recv().as_deref(), Ok("over"));
    }
    client.ask("GET /cut HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut rest = String::new();
    client.0.read_to_string(&mut rest).expect("text");
    assert!(rest.contains("Content-Length: 20\r\n"), "{rest}");
    assert!(
        rest.ends_with(&format!("\r\n\r\n{}", &text[..10])),
        "{rest}"
    );
    assert_eq!(graph.told.recv().as_deref(), Ok("over"));
    graph.stop();
}

#[test]
fn each_request_gets_one_answer() {
    let graph = Graph::simple("one answer");
    let mut client = graph.connect();
    let mut check = |path: &str, status: u16, body: &str| {
        client.ask(&format!("GET {path} HTTP/1.1\r\nHost: a:1\r\n\r\n"));
        let answer = client.answer();
        assert_eq!((answer.status, &*answer.body), (status, body), "{path}");
        answer.head
    };
    check("/x%20y?q=1&r", 200, "GET /x y [\"q\", \"r\"] a:1 ");
    let head = check("/drop", 503, "503 Service Unavailable\n");
    assert!(head.contains("\r\nRetry-After: 1\r\n"), "{head}");
    check("/panic", 500, "500 Internal Server Error\n");
    check("/twice", 200, "one");
    check("/early", 500, "500 Internal Server Error\n");
    let head = check("/file", 200, include_str!("modules.rs"));
    assert!(head.contains("\r\nContent-Type: text/rust\r\n"), "{head}");
    let head = check("/fields", 200, "");
    assert!(
        head.contains("X-A: b\r\n") && !head.contains("X-C"),
        "{head}"
    );
    assert_eq!(head.matches("Content-Length").count(), 1, "{head}");
    client.ask("HEAD /file HTTP/1.1\r\nHost: a\r\n\r\nPOST / HTTP/1.1\r\nHost: a\r\n");
    let head = client.0.fill_buf().expect("an answer").len();
    client.0.consume(head);
    client.ask("Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    assert_eq!(client.answer().status, 100);
    client.ask("a\n");
    assert_eq!(client.answer().body, "POST / [] a a\\n");
    graph.stop();
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let graph = Graph::simple("pipelining");
    let mut client = graph.connect();
    let asked: String = (0..50)
        .map(|n| format!("GET /{n} HTTP/1.1\r\nHost: a\r\n\r\n"))
        .collect();
    client.ask(&asked);
    client.ask("GET /drop HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    for n in 0..50 {
        assert_eq!(client.answer().body, format!("GET /{n} [] a "));
    }
    assert_eq!(client.answer().status, 503);
    client.ends();
    // A connection is a flow, which has ended with it.
    assert_eq!(graph.told.recv().expect("it ends"), "end after 51");
    graph.stop();
}

#[test]
fn bad_requests_go_to_their_port() {
    let limits = "head: 1 KiB, body: 10 B";
    let alone = Graph::start("bad, alone", limits, "requests -> script");
    let edge = "requests -> script bad = Bad() requests.bad -> bad -> reply";
    let edge = Graph::start("bad, with an edge", limits, edge);
    let check = |request: &str, status: u16| {
        for graph in [&alone, &edge] {
            let mut client = graph.connect();
            client.ask(request);
            let answer = client.answer();
            assert_eq!(answer.status, status, "{request:?}: {}", answer.body);
            let text = format!("\r\nX-Text: bad: {status} ");
            let has_text = answer.head.contains(&text);
            let is_edge = graph.address == edge.address;
            assert_eq!(has_text, is_edge, "{}", answer.head);
            client.ends();
        }
    };
    check("GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400);
    check("GET /../a HTTP/1.1\r\nHost: a\r\n\r\n", 400);
    check(
        &format!(
            "GET / HTTP/1.1\r\nHost: a\r\nA: {}\r\n\r\n",
            "b".repeat(1024)
        ),
        431,
    );
    check("CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n", 501);
    check(
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n",
        413,
    );
    let chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    check(&format!("{chunked}b\r\n12345678901\r\n"), 413);
    check(&format!("{chunked}x"), 400);
    // Requests within the bounds are not bad.
    let mut client = alone.connect();
    client.ask(&format!("{chunked}a\r\n1234567890\r\n0\r\n\r\n"));
    assert_eq!(client.answer().body, "POST / [] a 1234567890");
    alone.stop();
    edge.stop();
    let edge = "requests -> script bad = Bad() requests.bad -> bad -> reply";
    let edge = Graph::start("bad, too late", "patience: 100 ms", edge);
    let mut client = edge.connect();
    client.ask(&format!("{chunked}a\r\n"));
    let answer = client.answer();
    assert_eq!(answer.status, 408);
    assert!(answer.head.contains("X-Text: bad: 408"), "{}", answer.head);
    client.ends();
    edge.stop();
}

#[test]
fn a_client_that_leaves_ends_its_flow() {
    let graph = Graph::simple("leaving");
    let mut client = graph.connect();
    client.ask("GET /gone HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(graph.told.recv().expect("it runs"), "waits");
    let socket = socket2(&client);
    drop(client);
    drop(socket);
    assert_eq!(graph.told.recv().expect("it ends"), "end after 1");
    // A client that only ends its side gets its answer.
    let mut client = graph.connect();
    client.ask("GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
    client
        .0
        .get_ref()
        .shutdown(Shutdown::Write)
        .expect("it is connected");
    assert_eq!(client.answer().body, "GET /a [] a ");
    client.ends();
    graph.stop();
}

/// Makes the end of a connection a reset.
fn socket2(client: &Client) -> rustix::fd::OwnedFd {
    use rustix::net::sockopt::set_socket_linger;
    let socket = rustix::io::dup(client.0.get_ref()).expect("a descriptor");
    set_socket_linger(&socket, Some(std::time::Duration::ZERO)).expect("a socket");
    socket
}

#[test]
fn requests_that_an_instance_drops_get_the_reason_from_busy() {
    let edges = "requests -> script script.dropped -> reply.busy";
    let graph = Graph::start("dropped", "", edges);
    assert_eq!(graph.get("/panic").0, 500);
    assert_eq!(graph.get("/drop").0, 503);
    graph.stop();
}

#[test]
fn more_connections_than_the_bound_get_503() {
    let graph = Graph::start("connections", "connections: 1", "requests -> script");
    let mut first = graph.connect();
    first.ask("GET /gone HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(graph.told.recv().expect("it runs"), "waits");
    let mut second = graph.connect();
    let answer = second.answer();
    assert_eq!(answer.status, 503);
    second.ends();
    drop(socket2(&first));
    drop(first);
    assert_eq!(graph.told.recv().expect("it ends"), "end after 1");
    graph.stop();
}

#[test]
fn a_graph_that_cannot_listen_does_not_start() {
    let graph = Graph::simple("taken");
    let check = |arguments: &str, expected: &str| {
        let text = format!(
            "use HttpListen, HttpReply, Logger graph Test() {{
              requests = HttpListen({arguments}) log = Logger() requests -> log
            }}"
        );
        let error = graph.runtime.block_on(async {
            let made = modules::standard().graph("test.weave", &text, &Params::new());
            match made {
                Ok(graph) => graph.start().expect_err("it fails").to_string(),
                Err(error) => error.to_string(),
            }
        });
        assert!(error.contains(expected), "{error}");
    };
    let taken = format!(
        "cannot bind {0}: port {1} is in use",
        graph.address,
        graph.address.port()
    );
    check(&format!("\"{}\"", graph.address), &taken);
    check(
        "\"127.0.0.1:0\", 0",
        "`connections` is 0: expected 1 to 1000000",
    );
    check(
        "\"127.0.0.1:0\", head: 64 KiB",
        "`head` is 65536 bytes: expected 1 to 65535",
    );
    check(
        "\"127.0.0.1:0\", idle: 0 s",
        "`idle` of `HttpListen` is 0 s: expected at least 1 ns",
    );
    graph.stop();
}

/// The small web server, run as its users run it.
struct SmallWeb {
    process: Child,
    address: SocketAddr,
}

fn small_web_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/small_web")
}

impl SmallWeb {
    fn start(root: &Path, options: &[&str]) -> Self {
        let mut command = Command::new(program());
        command
            .arg("run")
            .arg(small_web_folder().join("small_web.weave"));
        command
            .args(["--listen", "127.0.0.1:0"])
            .arg("--root")
            .arg(root);
        let command = command.args(options).stdout(Stdio::piped());
        let mut process = command.spawn().expect("it starts");
        let mut line = String::new();
        let stdout = process.stdout.take().expect("it is piped");
        BufReader::new(stdout).read_line(&mut line).expect("text");
        let address = line
            .trim()
            .strip_prefix("listening at ")
            .expect("it listens");
        Self {
            address: address.parse().expect("an address"),
            process,
        }
    }

    /// Stops the server, which has to end well.
    fn stop(mut self) {
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
        assert!(self.process.wait().expect("it is a child").success());
    }
}

impl Drop for SmallWeb {
    fn drop(&mut self) {
        // Fails after `stop`; otherwise, the test has failed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The program of the example. `cargo test` builds it beside the tests; `cargo test --test it` does
/// not, then this does.
fn program() -> PathBuf {
    let test = std::env::current_exe().expect("the test knows its own path");
    let profile = test
        .ancestors()
        .nth(2)
        .expect("it is in target/PROFILE/deps");
    let program = profile.join("examples/small_web");
    if !program.exists() {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args([
            "build",
            "--package",
            "tussah-services",
            "--example",
            "small_web",
        ]);
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        let target = profile.parent().expect("it is in the target directory");
        let built = cargo
            .arg("--target-dir")
            .arg(target)
            .status()
            .expect("cargo starts");
        assert!(built.success(), "the example was not built");
    }
    program
}

#[test]
fn the_small_web_server_serves_files() {
    let root = tempfile::tempdir().expect("a directory");
    let large: Vec<u8> = (0..3_000_000)
        .map(|n: u32| n.wrapping_mul(37) as u8)
        .collect();
    let files: [(&str, &[u8]); 3] = [("a.txt", b"a\n"), ("index.html", b"<p>"), ("large", &large)];
    for (name, bytes) in files {
        std::fs::write(root.path().join(name), bytes).expect("a file");
    }
    let web = SmallWeb::start(root.path(), &[]);
    let mut client = Client::connect(web.address);
    for (path, status, kind, body) in [
        ("/a.txt", 200, "text/plain; charset=utf-8", "a\n"),
        ("/a.txt", 200, "text/plain; charset=utf-8", "a\n"),
        ("/", 200, "text/html; charset=utf-8", "<p>"),
        ("/none", 404, "text/plain; charset=utf-8", "404 Not Found\n"),
    ] {
        client.ask(&format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let answer = client.answer();
        assert_eq!((answer.status, &*answer.body), (status, body), "{path}");
        assert!(answer.head.contains(kind), "{}", answer.head);
    }
    client.ask("DELETE /a.txt HTTP/1.1\r\nHost: a\r\n\r\nGET bad HTTP/1.1\r\n\r\n");
    assert_eq!((client.answer().status, client.answer().status), (405, 400));
    client.ends();

    let url = |path| format!("http://{}{path}", web.address);
    let curl = Command::new("curl")
        .args(["-s", "-o", "-"])
        .arg(url("/large"))
        .output();
    match curl {
        Ok(output) => assert!(
            output.stdout == large,
            "curl got {} bytes",
            output.stdout.len()
        ),
        Err(error) => eprintln!("curl is not installed: {error}"),
    }
    let mut load = Command::new(env!("CARGO_BIN_EXE_tussah"));
    load.args(["load", "--connections", "20", "--requests", "2000"]);
    load.args(["--expect", "errors<=0%"]);
    let output = load.arg(url("/a.txt")).output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{text} {}",
        String::from_utf8_lossy(&output.stderr)
    );
    web.stop();
}

#[test]
fn the_small_web_server_refuses_what_it_cannot_read_in_time() {
    let root = tempfile::tempdir().expect("a directory");
    std::fs::write(root.path().join("page"), vec![0; 1 << 20]).expect("a file");
    let web = SmallWeb::start(root.path(), &["--slow", "1 ms", "--cache", "1 B"]);
    let mut load = Command::new(env!("CARGO_BIN_EXE_tussah"));
    load.args(["load", "--connections", "200", "--requests", "5000"]);
    // Without the bodies of the answers, the disk is what limits the server.
    load.args(["--method", "HEAD", "--expect", "errors<=0%"]);
    load.args(["--json", "-"]);
    let output = load.arg(format!("http://{}/page", web.address)).output();
    let output = output.expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let (served, rejected) = (
        json["statuses"]["200"].as_u64(),
        json["statuses"]["503"].as_u64(),
    );
    assert!(served > Some(0) && rejected > Some(0), "{text}");
    web.stop();
}

#[test]
fn the_small_web_server_is_small() {
    let lines = |name: &str, comment: &str| {
        let text = std::fs::read_to_string(small_web_folder().join(name)).expect("a file");
        let lines = text.lines().map(str::trim);
        lines
            .filter(|line| !line.is_empty() && !line.starts_with(comment))
            .count()
    };
    assert!(lines("small_web.weave", "//") <= 60);
    assert!(lines("main.rs", "//") <= 200);
    let mut command = Command::new(program());
    let output = command
        .arg("test")
        .arg(small_web_folder().join("small_web.weave"))
        .output();
    let output = output.expect("it starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
