//! A client that may stop, drip, or vanish, over whatever carries bytes.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::process::PATIENCE;

/// A connection. A server that says nothing for too long fails the test.
pub struct Client<S> {
    pub stream: S,
    buffer: Vec<u8>,
}

/// An answer, whole.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

/// How a connection ends, when there is no whole answer.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    /// Before the first byte of an answer.
    Between,
    /// Within one, after N bytes of its body.
    Within(Vec<u8>),
}

impl Answer {
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines
            .find(|(other, _)| other.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    pub fn ends(&self) -> bool {
        self.field("Connection") == Some("close")
    }

    pub fn text(&self) -> &str {
        str::from_utf8(&self.body).expect("the body is text")
    }
}

/// A socket, which can be limited.
pub trait Socket: Read + Write {
    fn patient(&self) -> io::Result<()>;
}

impl Socket for TcpStream {
    fn patient(&self) -> io::Result<()> {
        self.set_nodelay(true)?;
        // So that the server has to wait for who reads slowly, however much the system would take.
        rustix::net::sockopt::set_socket_recv_buffer_size(self, 256 << 10)?;
        self.set_read_timeout(Some(PATIENCE))?;
        self.set_write_timeout(Some(PATIENCE))
    }
}

impl Socket for UnixStream {
    fn patient(&self) -> io::Result<()> {
        self.set_read_timeout(Some(PATIENCE))?;
        self.set_write_timeout(Some(PATIENCE))
    }
}

impl<S: Read + Write> Socket for rustls::StreamOwned<rustls::ClientConnection, S>
where
    S: Socket,
{
    fn patient(&self) -> io::Result<()> {
        self.sock.patient()
    }
}

impl<S: Socket> Client<S> {
    pub fn new(stream: S) -> Self {
        stream.patient().expect("sockets have these options");
        Self {
            stream,
            buffer: Vec::new(),
        }
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream
            .write_all(bytes.as_ref())
            .expect("the server takes it");
    }

    #[track_caller]
    pub fn ask(&mut self, request: &str) -> Answer {
        self.send(request);
        self.answer()
    }

    #[track_caller]
    pub fn answer(&mut self) -> Answer {
        self.next()
            .unwrap_or_else(|end| panic!("expected an answer, found the end: {:?}", end.brief()))
    }

    #[track_caller]
    pub fn expect_end(&mut self) {
        match self.next() {
            Err(End::Between) => {}
            other => panic!(
                "expected the end, found {:?}",
                other.map(|answer| answer.head).map_err(|end| end.brief())
            ),
        }
    }

    /// The next answer, or how the connection ends.
    pub fn next(&mut self) -> Result<Answer, End> {
        let head_end = loop {
            if let Some(end) = self.buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            if !self.fill() {
                return Err(if self.buffer.is_empty() {
                    End::Between
                } else {
                    End::Within(Vec::new())
                });
            }
        };
        let head: Vec<u8> = self.buffer.drain(..head_end).collect();
        let head = String::from_utf8(head).expect("a head is text");
        let status = head.get(9..12).and_then(|code| code.parse().ok());
        let mut answer = Answer {
            status: status.unwrap_or_else(|| panic!("expected a status line: {head}")),
            head,
            body: Vec::new(),
        };
        let len = answer
            .field("Content-Length")
            .map_or(0, |len| len.parse().expect("a number"));
        while self.buffer.len() < len {
            if !self.fill() {
                return Err(End::Within(std::mem::take(&mut self.buffer)));
            }
        }
        answer.body = self.buffer.drain(..len).collect();
        Ok(answer)
    }

    /// Reads more; false at the end.
    pub fn fill(&mut self) -> bool {
        let mut piece = vec![0; 64 * 1024];
        match self.stream.read(&mut piece) {
            Ok(0) => false,
            Ok(len) => {
                self.buffer.extend_from_slice(&piece[..len]);
                true
            }
            // TLS without its own end is an end, too.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe
                ) =>
            {
                false
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => self.fill(),
            Err(error) => panic!("expected more, found {error}"),
        }
    }
}

impl Client<TcpStream> {
    /// Nothing more will be sent.
    pub fn finish(&self) {
        drop(self.stream.shutdown(Shutdown::Write));
    }

    /// Vanishes: the server gets a reset.
    pub fn vanish(self) {
        rustix::net::sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO))
            .expect("TCP has this option");
    }
}

impl End {
    /// Without what came.
    pub fn brief(&self) -> String {
        match self {
            Self::Between => "between answers".to_owned(),
            Self::Within(body) => format!("{} bytes into a body", body.len()),
        }
    }
}

/// A request without a body. `lines` end with CR LF each.
pub fn request(path: &str, lines: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n{lines}\r\n")
}
