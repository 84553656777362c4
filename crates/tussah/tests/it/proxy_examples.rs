//! The web proxies of the examples: three programs, of which one behaviour is expected.

#[path = "../../examples/proxy_common/mod.rs"]
mod common;
mod origin;

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use crate::examples::{complaints, example};
use crate::refusing;
use origin::{LARGE, Origin, bytes, checksum};

/// A proxy that runs.
struct Proxy {
    child: Child,
    address: SocketAddr,
}

impl Proxy {
    fn start(name: &str, options: &[&str]) -> Self {
        let mut command = example(name);
        command.args(["--listen", "127.0.0.1:0"]);
        if !options.contains(&"--workers") {
            command.args(["--workers", "2"]);
        }
        command
            .args(options)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let output = child.stdout.take().expect("it is piped");
        let mut line = String::new();
        let read = BufReader::new(output).read_line(&mut line);
        read.expect("it says where it listens");
        let address = line.trim().strip_prefix("listening at ");
        let address = address.expect("it says so").parse().expect("an address");
        Self { child, address }
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).expect("it listens")
    }

    /// Sends a request and reads until the proxy closes the connection.
    fn ask(&self, request: &str) -> Answer {
        let mut stream = self.connect();
        let sent = stream.write_all(request.as_bytes());
        sent.expect("it is open");
        let mut all = Vec::new();
        stream.read_to_end(&mut all).expect("it ends in good order");
        Answer::parse(&all)
    }

    fn get(&self, url: &str) -> Answer {
        self.ask(&format!("GET {url} HTTP/1.1\r\nConnection: close\r\n\r\n"))
    }

    /// Ends it as Ctrl-C does.
    fn stop(mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
        let mut errors = String::new();
        let stderr = self.child.stderr.as_mut().expect("it is piped");
        stderr.read_to_string(&mut errors).expect("it is text");
        let errors = complaints(&errors);
        let status = self.child.wait().expect("it is a child");
        assert!(status.success() && errors.is_empty(), "{status}: {errors}");
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // It is over already where a test has stopped it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Answer {
    head: String,
    status: u16,
    body: Vec<u8>,
}

impl Answer {
    fn parse(all: &[u8]) -> Self {
        let end = all.windows(4).position(|four| four == b"\r\n\r\n");
        let end = end.expect("the head has an end") + 4;
        let head = String::from_utf8(all[..end].to_vec()).expect("the head is text");
        let status = head.split(' ').nth(1).and_then(|text| text.parse().ok());
        Self {
            status: status.expect("it has a status"),
            head,
            body: all[end..].to_vec(),
        }
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("it is text")
    }
}

/// Reads an answer with a length from a connection that stays open.
fn read_one(stream: &mut TcpStream) -> Answer {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("more comes");
        head.extend(byte);
    }
    let mut answer = Answer::parse(&head);
    let lines = answer.head.lines();
    let mut len = lines.filter_map(|line| line.strip_prefix("Content-Length: "));
    let len = len.next().expect("it has a length").parse();
    answer.body = vec![0; len.expect("a number")];
    stream.read_exact(&mut answer.body).expect("more comes");
    answer
}

fn bodies_come_through_whole(program: &str) {
    let (proxy, origin) = (Proxy::start(program, &[]), Origin::start());
    let answer = proxy.get(&origin.url("/small"));
    assert_eq!((answer.status, answer.text()), (200, "hello\n"));
    let answer = proxy.get(&origin.url("/large"));
    assert_eq!(answer.body.len(), LARGE);
    assert_eq!(checksum(&answer.body), checksum(&bytes(LARGE)));
    let answer = proxy.get(&origin.url("/to-the-end"));
    assert_eq!(checksum(&answer.body), checksum(&bytes(100_000)));
    let answer = proxy.get(&origin.url("/chunked"));
    assert!(answer.head.contains("Transfer-Encoding: chunked"));
    assert_eq!(answer.body, origin::chunks(&bytes(300_000)));
    let head = format!(
        "HEAD {} HTTP/1.1\r\nConnection: close\r\n\r\n",
        origin.url("/small")
    );
    let answer = proxy.ask(&head);
    assert!(answer.head.contains("Content-Length: 6") && answer.body.is_empty());
    // An old client gets no chunks, since the origin is told that it is old.
    let answer = proxy.ask(&format!("GET {} HTTP/1.0\r\n\r\n", origin.url("/seen")));
    assert!(answer.text().starts_with("GET /seen HTTP/1.0\r\n"));
    proxy.stop();
}

fn requests_have_bodies_too(program: &str) {
    let (proxy, origin) = (Proxy::start(program, &[]), Origin::start());
    let body = bytes(LARGE);
    let expected = format!("{LARGE} {}\n", checksum(&body));
    let url = origin.url("/sum");
    let mut stream = proxy.connect();
    let head = format!("POST {url} HTTP/1.1\r\nContent-Length: {LARGE}\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("it is open");
    stream.write_all(&body).expect("it is open");
    assert_eq!(read_one(&mut stream).text(), expected);
    // The same connection, by chunks, and with a question first.
    let head = format!(
        "POST {url} HTTP/1.1\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("it is open");
    let mut go_on = [0; 25];
    stream.read_exact(&mut go_on).expect("it is told to go on");
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream
        .write_all(&origin::chunks(&body))
        .expect("it is open");
    assert_eq!(read_one(&mut stream).text(), expected);
}

fn fields_of_one_hop_stay_behind(program: &str) {
    let (proxy, origin) = (Proxy::start(program, &[]), Origin::start());
    let url = origin.url("/seen?a=b");
    let answer = proxy.ask(&format!(
        "GET {url} HTTP/1.1\r\nHost: other\r\nConnection: close, x-one\r\nX-One: 1\r\nX-Two: 2\r\nProxy-Connection: x\r\n\r\n"
    ));
    let host = origin.address;
    assert_eq!(
        answer.text(),
        format!(
            "GET /seen?a=b HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nX-Two: 2\r\nVia: 1.1 tussah\r\n\r\n"
        )
    );
    assert!(answer.head.contains("Via: 1.1 tussah"));
    assert!(!answer.head.contains("Keep-Alive"), "{}", answer.head);
}

fn many_at_once(program: &str) {
    let (proxy, origin) = (Proxy::start(program, &[]), Origin::start());
    let one = |n: usize| {
        for path in ["/small", "/kept", "/seen", "/to-the-end"] {
            let answer = proxy.get(&origin.url(path));
            assert_eq!(answer.status, 200, "{n}: {path}: {}", answer.head);
        }
    };
    std::thread::scope(|scope| (0..50).for_each(|n| drop(scope.spawn(move || one(n)))));
    proxy.stop();
}

fn a_slow_client_holds_nobody_up(program: &str) {
    let (proxy, origin) = (Proxy::start(program, &["--workers", "1"]), Origin::start());
    let request = format!(
        "GET {} HTTP/1.1\r\nConnection: close\r\n\r\n",
        origin.url("/large")
    );
    let (mut slow, mut slower) = (proxy.connect(), proxy.connect());
    slow.write_all(request.as_bytes()).expect("it is open");
    let (last, others) = request.as_bytes().split_last().expect("it is not empty");
    for byte in others {
        slower.write_all(&[*byte]).expect("it is open");
        if *byte == b'/' {
            assert_eq!(proxy.get(&origin.url("/small")).text(), "hello\n");
        }
    }
    // One has not read anything of a large body, the other has not sent its last byte.
    assert_eq!(proxy.get(&origin.url("/large")).body.len(), LARGE);
    slower.write_all(&[*last]).expect("it is open");
    for mut stream in [slow, slower] {
        let mut all = Vec::new();
        stream.read_to_end(&mut all).expect("it ends in good order");
        assert_eq!(checksum(&Answer::parse(&all).body), checksum(&bytes(LARGE)));
    }
}

fn a_truncated_response_does_not_seem_complete(program: &str) {
    let (proxy, origin) = (Proxy::start(program, &[]), Origin::start());
    for path in ["/reset", "/reset-to-the-end", "/short", "/bad-chunk"] {
        let mut stream = proxy.connect();
        let request = format!(
            "GET {} HTTP/1.1\r\nConnection: close\r\n\r\n",
            origin.url(path)
        );
        stream.write_all(request.as_bytes()).expect("it is open");
        let error = stream.read_to_end(&mut Vec::new());
        let error = error.expect_err(path);
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{path}");
    }
    assert_eq!(proxy.get(&origin.url("/small")).status, 200);
    proxy.stop();
}

fn errors_are_reported(program: &str) {
    // The usual time limit, so that a busy machine makes no other error a late one.
    let (proxy, origin) = (Proxy::start(program, &[]), Origin::start());
    let check = |answer: Answer, status: u16, text: &str| {
        let expected = (status, true);
        let found = (answer.status, answer.text().contains(text));
        assert_eq!(found, expected, "{}{}", answer.head, answer.text());
    };
    let (_socket, port) = refusing();
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    check(proxy.get(&format!("http://{address}/")), 502, "efused");
    check(proxy.get("http://nosuch.invalid/"), 502, "no such name");
    check(proxy.get("/small"), 400, "a URL that begins with http://");
    check(proxy.ask("nonsense\r\n\r\n"), 400, "");
    let long = format!("GET http://a/{} HTTP/1.1\r\n\r\n", "x".repeat(100_000));
    check(proxy.ask(&long), 431, "at most 16384 bytes");
    check(proxy.get(&origin.url("/nothing")), 502, "without an answer");
    check(
        proxy.get(&origin.url("/nonsense")),
        502,
        "the origin's answer",
    );
    let impatient = Proxy::start(program, &["--origin-limit", "1"]);
    let late = impatient.get(&origin.url("/silent"));
    check(late, 504, "not answered in time");
    impatient.stop();
    // Not read to its end, the body would break the answer off.
    let head = format!("POST http://{address}/ HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n");
    check(proxy.ask(&(head + &"x".repeat(1_000_000))), 502, "efused");
    proxy.stop();
}

fn a_connection_serves_many_requests(program: &str) {
    let (proxy, origin) = (Proxy::start(program, &[]), Origin::start());
    let mut stream = proxy.connect();
    let mut requests = String::new();
    for n in 0..200 {
        requests += &format!("GET {}?{n} HTTP/1.1\r\n\r\n", origin.url("/seen"));
        requests += &format!("GET {} HTTP/1.1\r\n\r\n", origin.url("/kept"));
    }
    let mut write = stream.try_clone().expect("there are descriptors");
    std::thread::scope(|scope| {
        scope.spawn(move || write.write_all(requests.as_bytes()).expect("it is open"));
        for n in 0..200 {
            let seen = read_one(&mut stream);
            let line = format!("GET /seen?{n} HTTP/1.1\r\n");
            assert!(seen.text().starts_with(&line), "{}", seen.text());
            assert_eq!(read_one(&mut stream).text(), "1\n");
        }
    });
    // A half that was closed does not keep the answer from coming; then the proxy closes its own.
    let request = format!("GET {} HTTP/1.1\r\n\r\n", origin.url("/small"));
    stream.write_all(request.as_bytes()).expect("it is open");
    stream.shutdown(Shutdown::Write).expect("it is open");
    assert_eq!(read_one(&mut stream).text(), "hello\n");
    assert_eq!(stream.read(&mut [0]).expect("it ends in good order"), 0);
}

fn cacheable_responses_are_cached(program: &str) {
    let (proxy, origin) = (Proxy::start(program, &[]), Origin::start());
    let (kept, other) = (origin.url("/kept"), origin.url("/other"));
    assert_eq!(proxy.get(&kept).text(), "1\n");
    let again = proxy.get(&kept);
    assert_eq!(again.text(), "1\n");
    assert!(again.head.contains("Age: "), "{}", again.head);
    assert_eq!(
        [proxy.get(&other).text(), proxy.get(&other).text()],
        ["2\n", "3\n"]
    );
    let fresh =
        format!("GET {kept} HTTP/1.1\r\nCache-Control: no-cache\r\nConnection: close\r\n\r\n");
    assert_eq!(proxy.ask(&fresh).text(), "4\n");
    let without = Proxy::start(program, &["--cache", "0"]);
    assert_eq!(
        [without.get(&kept).text(), without.get(&kept).text()],
        ["5\n", "6\n"]
    );
}

fn tunnels_pass_everything(program: &str) {
    let proxy = Proxy::start(program, &[]);
    let echo = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let address = echo.local_addr().expect("it has one");
    let server = std::thread::spawn(move || {
        let (mut stream, _) = echo.accept().expect("it comes");
        let mut all = Vec::new();
        stream.read_to_end(&mut all).expect("it ends in good order");
        stream.write_all(&all).expect("it is open");
    });
    let mut stream = proxy.connect();
    // The first bytes for the origin come with the request.
    let request = format!("CONNECT {address} HTTP/1.1\r\n\r\nearly");
    stream.write_all(request.as_bytes()).expect("it is open");
    let body = bytes(300_000);
    stream.write_all(&body).expect("it is open");
    stream.shutdown(Shutdown::Write).expect("it is open");
    let mut all = Vec::new();
    stream.read_to_end(&mut all).expect("it ends in good order");
    let answer = Answer::parse(&all);
    assert_eq!(answer.status, 200);
    assert_eq!(
        checksum(&answer.body),
        checksum(&[b"early", &body[..]].concat())
    );
    server.join().expect("no panic");
    proxy.stop();
}

fn curl_gets_along_with_it(program: &str) {
    let (proxy, origin) = (Proxy::start(program, &[]), Origin::start());
    let proxy_url = format!("http://{}", proxy.address);
    for tunnel in [false, true] {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--fail", "--proxy", &proxy_url]);
        if tunnel {
            curl.arg("--proxytunnel");
        }
        let output = match curl.arg(origin.url("/chunked")).output() {
            Err(error) if error.kind() == ErrorKind::NotFound => return,
            output => output.expect("curl starts"),
        };
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        assert_eq!(checksum(&output.stdout), checksum(&bytes(300_000)));
    }
}

fn it_explains_itself(program: &str) {
    let output = example(program).arg("--help").output().expect("it starts");
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).expect("it is text");
    assert!(text.contains("--listen <LISTEN>"), "{text}");
}

macro_rules! programs {
    ($($program:ident),*: $checks:tt) => { $(tests! { $program $checks })* };
}

macro_rules! tests {
    ($program:ident [$($check:ident),* $(,)?]) => {
        mod $program {
            $(#[test]
            fn $check() {
                super::$check(stringify!($program));
            })*
        }
    };
}

/// The lines by which two texts differ, as diff(1) gives them: those of the first, and those of the
/// second.
fn difference<'a>(first: &'a str, second: &'a str) -> (Vec<&'a str>, Vec<&'a str>) {
    let (first, second): (Vec<_>, Vec<_>) = (first.lines().collect(), second.lines().collect());
    // The longest common subsequence of what follows each pair of lines.
    let width = second.len() + 1;
    let mut common = vec![0u32; (first.len() + 1) * width];
    for i in (0..first.len()).rev() {
        for j in (0..second.len()).rev() {
            common[i * width + j] = if first[i] == second[j] {
                common[(i + 1) * width + j + 1] + 1
            } else {
                common[(i + 1) * width + j].max(common[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j, mut gone, mut new) = (0, 0, Vec::new(), Vec::new());
    while i < first.len() || j < second.len() {
        let (down, right) = (i < first.len(), j < second.len());
        if down && right && first[i] == second[j] {
            (i, j) = (i + 1, j + 1);
        } else if down && (!right || common[(i + 1) * width + j] >= common[i * width + j + 1]) {
            gone.push(first[i]);
            i += 1;
        } else {
            new.push(second[j]);
            j += 1;
        }
    }
    (gone, new)
}

/// Bound, in lines: those by which the colored program differs from the other.
const COLORING_LINES_MAX: usize = 10;

fn source(name: &str) -> String {
    let path = format!("{}/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn a_few_lines_color_the_program() {
    let plain = source("examples/proxy_callbacks.rs");
    let colored = source("examples/proxy_callbacks_colored.rs");
    let (gone, new) = difference(&plain, &colored);
    assert!(gone.len() <= COLORING_LINES_MAX, "{gone:#?}");
    assert!(new.len() <= COLORING_LINES_MAX, "{new:#?}");
    assert!(new.iter().any(|line| line.contains("CACHE")), "{new:#?}");
    // The page shows them all.
    let page = source("../../docs/proxy.md");
    let is_code = |line: &&&str| !line.starts_with("//") && !line.is_empty();
    let lines = |sign: &str, lines: &[&str]| -> Vec<_> {
        let lines = lines.iter().filter(is_code);
        lines.map(|line| format!("{sign}{}", line.trim())).collect()
    };
    let quoted: Vec<_> = page
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect();
    for line in [lines("-", &gone), lines("+", &new)].concat() {
        assert!(
            quoted.contains(&line),
            "docs/proxy.md does not show {line:?}"
        );
    }
}

#[test]
fn the_page_escapes_its_contents() {
    let page = source("../../docs/proxy.md");
    let mut quotes = 0;
    for part in page.split("<!-- quote: ").skip(1) {
        let (what, rest) = part
            .split_once(" -->\n```rust\n")
            .expect("a quote has its code");
        let (file, region) = what.split_once(' ').expect("a file and a region");
        let (quoted, _) = rest.split_once("```").expect("the code has an end");
        let source = source(&format!("examples/{file}"));
        let marker = format!("// [{region}]\n");
        let found = source.split(&marker).nth(1);
        let found = found.unwrap_or_else(|| panic!("{file} has no region {region}"));
        assert_eq!(quoted.trim(), found.trim(), "{what}");
        quotes += 1;
    }
    assert!(quotes >= 4);
    // And what it says of sizes.
    for file in [
        "proxy.rs",
        "proxy_callbacks.rs",
        "proxy_callbacks_colored.rs",
    ] {
        let lines = source(&format!("examples/{file}")).lines().count();
        let row = format!("| [`{file}`](../crates/tussah/examples/{file}) | {lines} |");
        assert!(page.contains(&row), "docs/proxy.md: expected {row}");
    }
    let common = ["cache", "callbacks", "flow", "head", "mod"];
    let text = |name: &&str| source(&format!("examples/proxy_common/{name}.rs"));
    for name in common {
        let lines = text(&name)
            .split("#[cfg(test)]")
            .next()
            .map_or(0, |text| text.lines().count());
        let row = format!("`{name}.rs` {lines}");
        assert!(page.contains(&row), "docs/proxy.md: expected {row}");
    }
}

programs! {
    proxy, proxy_callbacks, proxy_callbacks_colored: [
        a_connection_serves_many_requests,
        a_slow_client_holds_nobody_up,
        bodies_come_through_whole,
        curl_gets_along_with_it,
        fields_of_one_hop_stay_behind,
        it_explains_itself,
        many_at_once,
        requests_have_bodies_too,
        tunnels_pass_everything,
        errors_are_reported,
        a_truncated_response_does_not_seem_complete,
        cacheable_responses_are_cached,
    ]
}
