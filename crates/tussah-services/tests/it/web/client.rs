//! A client that does as it is told, right or wrong.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use tussah_wire::http::Framing;
use tussah_wire::http::body::{Decoder, Limits};

/// A connection. A server that says nothing for too long fails the test.
pub struct Client {
    stream: TcpStream,
    /// The bytes that were received and not yet consumed.
    buffer: Vec<u8>,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    /// The values of a field, with commas between them.
    pub fn field(&self, name: &str) -> Option<String> {
        let lines = self
            .head
            .lines()
            .skip(1)
            .filter_map(|line| line.split_once(": "));
        let values: Vec<_> = lines
            .filter(|(other, _)| other.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
            .collect();
        (!values.is_empty()).then(|| values.join(", "))
    }

    #[track_caller]
    pub fn expect_field(&self, name: &str) -> String {
        self.field(name)
            .unwrap_or_else(|| panic!("no {name} in {}", self.head))
    }

    /// The head without what the clock and the connection add.
    pub fn told(&self) -> String {
        let lines = self.head.lines();
        let kept =
            lines.filter(|line| !line.starts_with("Date: ") && !line.starts_with("Connection: "));
        kept.collect::<Vec<_>>().join("\n")
    }

    pub fn text(&self) -> &str {
        str::from_utf8(&self.body).expect("the body is text")
    }

    pub fn ends(&self) -> bool {
        self.field("Connection").as_deref() == Some("close")
    }
}

impl Client {
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the server listens");
        stream.set_nodelay(true).expect("TCP has this option");
        Self::new(stream)
    }

    pub fn connect_unix(path: &Path) -> Self {
        let stream = UnixStream::connect(path).expect("the server listens");
        Self::new(OwnedFd::from(stream).into())
    }

    /// By a socket of any kind, of which nothing is used that only TCP has.
    fn new(stream: TcpStream) -> Self {
        let patience = Some(Duration::from_secs(20));
        stream.set_read_timeout(patience).expect("it is not zero");
        stream.set_write_timeout(patience).expect("it is not zero");
        Self {
            stream,
            buffer: Vec::new(),
        }
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.try_send(bytes).expect("the server takes it");
    }

    /// The same to a server that may have closed the connection.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> std::io::Result<()> {
        self.stream.write_all(bytes.as_ref())
    }

    /// The same connection, for a thread that sends while this client receives.
    pub fn other_end(&self) -> TcpStream {
        self.stream.try_clone().expect("there are descriptors")
    }

    /// Nothing more will be sent.
    pub fn finish(&mut self) {
        drop(self.stream.shutdown(Shutdown::Write));
    }

    /// The next answer, to a request other than HEAD.
    #[track_caller]
    pub fn answer(&mut self) -> Answer {
        self.next(true).expect("an answer, found the end")
    }

    #[track_caller]
    pub fn answer_without_body(&mut self) -> Answer {
        self.next(false).expect("an answer, found the end")
    }

    /// The next answer; `None` at the end of the connection.
    #[track_caller]
    pub fn next(&mut self, with_body: bool) -> Option<Answer> {
        let end = loop {
            if let Some(end) = self.buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            if !self.fill() {
                assert_eq!(
                    String::from_utf8_lossy(&self.buffer),
                    "",
                    "an answer is cut"
                );
                return None;
            }
        };
        let head = String::from_utf8(self.buffer.drain(..end).collect()).expect("a head is text");
        let mut answer = Answer {
            status: head
                .strip_prefix("HTTP/1.1 ")
                .and_then(|rest| rest.get(..3)?.parse().ok())
                .unwrap_or_else(|| panic!("expected a status line: {head}")),
            head,
            body: Vec::new(),
        };
        let empty = !with_body || matches!(answer.status, 100..=199 | 204 | 304);
        if answer.field("Transfer-Encoding").is_some() {
            assert_eq!(answer.field("Content-Length"), None, "{}", answer.head);
            answer.body = if empty { Vec::new() } else { self.chunks() };
        } else if !empty {
            let len: usize = answer
                .expect_field("Content-Length")
                .parse()
                .expect("one number");
            self.fill_to(len);
            answer.body = self.buffer.drain(..len).collect();
        }
        Some(answer)
    }

    /// Reads a body of chunks.
    #[track_caller]
    fn chunks(&mut self) -> Vec<u8> {
        let limits = Limits {
            body_bytes_max: u64::MAX,
            ..Limits::default()
        };
        let mut decoder = Decoder::new(Framing::Chunked, limits).expect("no limit is exceeded");
        let mut body = Vec::new();
        loop {
            let step = decoder.decode(&self.buffer).expect("valid chunks");
            body.extend_from_slice(&self.buffer[step.body]);
            self.buffer.drain(..step.consumed);
            if step.done {
                return body;
            }
            assert!(!self.buffer.is_empty() || self.fill(), "a body is cut");
        }
    }

    /// Reads until N bytes are there.
    #[track_caller]
    pub fn fill_to(&mut self, len: usize) {
        while self.buffer.len() < len {
            assert!(self.fill(), "expected {len} bytes, found the end");
        }
    }

    /// Reads more; false at the end.
    #[track_caller]
    fn fill(&mut self) -> bool {
        let mut piece = vec![0; 64 * 1024];
        match self.stream.read(&mut piece) {
            Ok(0) => false,
            Ok(len) => {
                self.buffer.extend_from_slice(&piece[..len]);
                true
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => false,
            // The watchdog of a runtime in this process sends signals.
            Err(error) if error.kind() == ErrorKind::Interrupted => self.fill(),
            Err(error) => panic!("expected more of an answer: {error}"),
        }
    }

    /// Sends a request, and takes the answer to it.
    #[track_caller]
    pub fn ask(&mut self, request: impl AsRef<[u8]>) -> Answer {
        let request = request.as_ref();
        self.send(request);
        self.next(!request.starts_with(b"HEAD "))
            .expect("an answer, found the end")
    }

    /// Asks for a path with more lines of a head.
    #[track_caller]
    pub fn get(&mut self, path: &str, lines: &str) -> Answer {
        self.ask(request("GET", path, lines))
    }

    /// Whatever comes, the connection is reset in the end.
    #[track_caller]
    pub fn expect_cut(&mut self) {
        let error = io::copy(&mut self.stream, &mut io::sink());
        let error = error.expect_err("the connection is reset");
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }

    /// The connection ends here, and nothing more comes.
    #[track_caller]
    pub fn expect_end(&mut self) {
        let more = self.next(true);
        assert!(more.is_none(), "expected the end: {more:?}");
    }
}

/// A request without a body. `lines` end with CR LF each.
pub fn request(method: &str, path: &str, lines: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nHost: a\r\n{lines}\r\n")
}

/// A request with a body of known length.
pub fn sized(path: &str, lines: &str, body: &[u8]) -> Vec<u8> {
    let lines = format!("Content-Length: {}\r\n{lines}", body.len());
    [request("POST", path, &lines).as_bytes(), body].concat()
}

/// A request with a body in chunks.
pub fn chunked(path: &str, lines: &str, chunks: &[&[u8]]) -> Vec<u8> {
    let mut bytes = request(
        "POST",
        path,
        &format!("Transfer-Encoding: chunked\r\n{lines}"),
    )
    .into_bytes();
    for chunk in chunks {
        bytes.extend(format!("{:X}\r\n", chunk.len()).bytes());
        bytes.extend(*chunk);
        bytes.extend(b"\r\n");
    }
    bytes.extend(b"0\r\n\r\n");
    bytes
}
