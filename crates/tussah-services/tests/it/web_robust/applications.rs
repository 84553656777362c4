//! FastCGI applications that hang, end, or break the rules. Each time, standard error has the
//! reason, the next request succeeds, and nothing of the failed request is left in the server.

use std::io::Write as _;
use std::net::TcpStream;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;

use rustix::net::listen;
use serde_json::Value;

use super::client::{Client, request};
use super::process::{Process, Site, until};
use crate::fastcgi::faults::{read_records, record_for, whole};
use crate::fastcgi::php::Php;

/// A server that has answered a request for `/good.php`, and a client that stays connected.
struct Watched {
    server: Process,
    client: Client<TcpStream>,
    /// The open descriptors after that request: one of them is the idle connection to the
    /// application.
    descriptors: usize,
    /// The number of bytes on standard error up to the last line that was expected.
    heard: usize,
}

impl Watched {
    #[track_caller]
    fn start(site: Site, options: &str) -> Self {
        let server = site.serve(options);
        let client = server.connect();
        let mut watched = Self {
            server,
            client,
            descriptors: 0,
            heard: 0,
        };
        watched.expect_good();
        watched.descriptors = watched.server.descriptors();
        watched
    }

    /// Requests a page, and waits for the line on standard error.
    #[track_caller]
    fn expect_failure(&mut self, method: &str, path: &str, status: u16, reason: &str) -> String {
        let head = format!("{method} {path} HTTP/1.1\r\nHost: a\r\n\r\n");
        self.client.send(head);
        self.expect_status(status, reason)
    }

    #[track_caller]
    fn expect_status(&mut self, status: u16, reason: &str) -> String {
        assert_eq!(self.client.answer().status, status, "{reason}");
        self.expect_line(&format!("answered {status}: {reason}"))
    }

    /// Waits for a line with these words, after the last one. Returns the line.
    #[track_caller]
    fn expect_line(&mut self, words: &str) -> String {
        let mut line = String::new();
        until(&format!("the server says {words:?}"), || {
            let said = self.server.said();
            let Some(at) = said[self.heard..].find(words) else {
                return false;
            };
            let at = self.heard + at;
            let begin = said[..at].rfind('\n').map_or(0, |end| end + 1);
            self.heard = said[at..].find('\n').map_or(said.len(), |end| at + end);
            line = said[begin..self.heard].to_owned();
            true
        });
        assert!(line.contains("WARN") && line.contains("script="), "{line}");
        line
    }

    /// Requests `/good.php`, and then waits until nothing but that connection is left.
    #[track_caller]
    fn expect_good(&mut self) {
        let answer = self.client.ask(&request("/good.php", ""));
        assert_eq!((answer.status, answer.text()), (200, "good"));
        let Self {
            server,
            client,
            descriptors,
            ..
        } = self;
        until("nothing is in use", || is_unused(client));
        if *descriptors > 0 {
            let found = server.descriptors();
            until(&format!("{descriptors} descriptors, not {found}"), || {
                server.descriptors() == *descriptors
            });
        }
    }
}

/// Returns whether the status page shows neither a connection in use nor a servlet of an
/// application at work.
fn is_unused(client: &mut Client<TcpStream>) -> bool {
    let page = client.ask(&request("/status?format=json", ""));
    let page: Value = serde_json::from_slice(&page.body).expect("it is JSON");
    let is_zero = |of: &Value, names: &[&str]| names.iter().all(|name| of[name] == 0);
    let limits = page["limits"].as_array().expect("a list");
    let stages = page["stages"].as_array().expect("a list").iter();
    let name = |stage: &&Value| stage["name"].as_str().map(str::to_owned);
    let mut of_applications =
        stages.filter(|stage| name(stage).is_some_and(|name| name.starts_with("fastcgi ")));
    limits
        .iter()
        .all(|limit| is_zero(limit, &["in_use", "waiting"]))
        && of_applications.all(|stage| is_zero(stage, &["queued", "in_service", "servlets_busy"]))
}

const GOOD: &str = "<?php echo 'good';";

/// Returns a script that creates a file, and then waits for another one.
fn hanging(begun: &Path) -> String {
    format!(
        "<?php touch('{}'); while (!file_exists(__DIR__ . '/go')) {{ usleep(1000); clearstatcache(); }}",
        begun.display()
    )
}

#[test]
fn a_script_that_hangs() {
    let php = Php::start();
    let begun = php.directory.path().join("begun");
    let site = Site::new().file("site/good.php", GOOD);
    let site = site.file("hang.php", hanging(&begun));
    let config = format!(
        "[[fastcgi]]\naddress = \"{}\"\nprefix = \"/hangs/\"\ntimeout = \"300ms\"\n\
         params = {{ SCRIPT_FILENAME = \"{}\" }}",
        php.address(),
        site.path("hang.php").display()
    );
    let site = site.file("site.toml", config);
    let options = format!("--php {} --config {{}}/site.toml", php.address());
    let mut watched = Watched::start(site, &options);
    let reason = "the application neither read nor sent a byte for 300ms";
    for method in ["GET", "POST"] {
        watched.expect_failure(method, "/hangs/", 504, reason);
        assert!(begun.exists(), "the script has not begun");
        watched.expect_good();
    }
}

/// The reason when the system has closed a connection: it ended, or it broke if the application has
/// not read the whole request.
const CLOSED: &str = "the connection ";

#[test]
fn an_application_that_is_killed() {
    let mut php = Php::start();
    let begun = php.directory.path().join("begun");
    let part = "<?php echo str_repeat('x', 100000); flush(); while (true) usleep(1000);";
    let site = Site::new().file("site/good.php", GOOD);
    let site = site.file("site/hang.php", hanging(&begun));
    let site = site.file("site/part.php", part);
    let mut watched = Watched::start(site, &format!("--php {}", php.address()));
    // A script that may have done a part of its work does not run again.
    watched
        .client
        .send("POST /hang.php HTTP/1.1\r\nHost: a\r\n\r\n");
    until("the script has begun", || begun.exists());
    php.kill();
    watched.expect_status(502, CLOSED);
    // Its last process may still take connections.
    let socket = php.directory.path().join("php.sock");
    until("the socket refuses", || {
        UnixStream::connect(&socket).is_err()
    });
    let line = watched.expect_failure("GET", "/good.php", 502, "connect to ");
    assert!(line.contains("Connection refused"), "{line}");
    php.restart();
    watched.expect_good();
    // Once the head has been sent, the status is no longer 502.
    let mut other = watched.server.connect();
    other.send("GET /part.php HTTP/1.0\r\n\r\n");
    assert!(other.fill());
    php.kill();
    while other.fill() {} // until the server ends the connection
    watched.expect_line(&format!("ended the response early: {CLOSED}"));
    drop(other);
    php.restart();
    watched.expect_good();
}

/// Answers each request by the name of its script, and closes the connection after a wrong answer.
fn answer(mut stream: UnixStream) {
    while let Some((id, content)) = read_records(&mut stream) {
        let content = String::from_utf8_lossy(&content).into_owned();
        let (is_last, bytes) = if content.contains("/good.php") {
            (false, whole(id, b"A: b\n\ngood"))
        } else if content.contains("/garbage.php") {
            (true, b"HTTP/1.1 200 OK\r\n\r\n".to_vec())
        } else if content.contains("/part.php") {
            (true, record_for(id, 6, b"Status: 200\n\nhal")[..20].into())
        } else if content.contains("/no-head.php") {
            (true, whole(id, b"A: b\n"))
        } else if content.contains("/length.php") {
            (true, whole(id, b"Content-Length: 4\n\nabc"))
        } else {
            (true, Vec::new())
        };
        stream.write_all(&bytes).expect("the server reads");
        if is_last {
            return;
        }
    }
}

#[test]
fn an_application_that_breaks_the_rules() {
    let closed = "the connection ended before the response";
    let garbage = "the response is not FastCGI: byte 0: expected version 1 of FastCGI, found 72";
    let no_head = "the application ended the request without a complete head";
    let table = [
        ("/garbage.php", garbage),
        ("/early.php", closed),
        ("/part.php", closed),
        ("/no-head.php", no_head),
        (
            "/length.php",
            "expected a body of 4 bytes (Content-Length), found 3",
        ),
    ];
    let mut site = Site::new().file("site/good.php", "");
    for (path, _) in table {
        site = site.file(&format!("site{path}"), "");
    }
    let socket: PathBuf = site.path("socket");
    let listener = UnixListener::bind(&socket).expect("a listener");
    thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.expect("a connection");
            thread::spawn(move || answer(stream));
        }
    });
    let mut watched = Watched::start(site, &format!("--php unix:{}", socket.display()));
    for method in ["GET", "POST"] {
        for (path, reason) in table {
            let line = watched.expect_failure(method, path, 502, reason);
            assert!(line.contains(&format!("script=\"{path}\"")), "{line}");
            watched.expect_good();
        }
    }
}

/// The system drops further attempts to connect while the queue of a listener is full.
#[test]
fn an_application_that_accepts_no_connection() {
    let (socket, address) = crate::refusing();
    listen(&socket, 0).expect("it is bound");
    let in_queue = TcpStream::connect(address).expect("it listens");
    let php = Php::start();
    let site = Site::new().file("site/good.php", GOOD);
    let config = format!(
        "[[fastcgi]]\naddress = \"{address}\"\nprefix = \"/full/\"\ntimeout-connect = \"300ms\""
    );
    let site = site.file("site.toml", config);
    let options = format!("--php {} --config {{}}/site.toml", php.address());
    let mut watched = Watched::start(site, &options);
    let reason = "no connection was accepted within 300ms";
    for method in ["GET", "POST"] {
        watched.expect_failure(method, "/full/", 504, reason);
        watched.expect_good();
    }
    drop(in_queue);
}
