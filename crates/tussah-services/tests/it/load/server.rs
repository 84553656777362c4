//! A small server.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::net::{IpAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

/// The reaction to a request.
pub enum Action {
    /// Send this.
    Send(Vec<u8>),
    /// Send this and close the connection.
    SendAndClose(Vec<u8>),
    /// Never answer.
    Hang,
}

/// A request with its number.
pub struct Request {
    pub number: usize,
    pub head: String,
}

/// The observations of the server.
#[derive(Default)]
pub struct Seen {
    pub connections: usize,
    pub requests: usize,
    pub peers: BTreeSet<IpAddr>,
    /// The largest number of requests that were present together.
    pub together_max: usize,
    /// The number of requests of each closed connection.
    pub per_connection: Vec<usize>,
    pub last: Option<(String, Vec<u8>)>,
}

type Handler = Arc<dyn Fn(&Request) -> Action + Send + Sync>;

/// A server that lives as long as the test process.
#[derive(Clone)]
pub struct Server {
    pub port: u16,
    seen: Arc<Mutex<Seen>>,
    handler: Handler,
}

/// Returns an answer 200 with a body.
pub fn ok(body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

impl Server {
    /// Answers each request with the handler's action, at an address of this machine.
    pub fn at(address: &str, handler: impl Fn(&Request) -> Action + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((address, 0)).expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let server = Self::new(port, handler);
        let accepting = server.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.expect("there are descriptors");
                stream.set_nodelay(true).expect("TCP has this option");
                let peer = stream.peer_addr().expect("it is connected").ip();
                let server = accepting.clone();
                server.see(|seen| seen.peers.insert(peer));
                thread::spawn(move || server.connection(stream));
            }
        });
        server
    }

    pub fn start(handler: impl Fn(&Request) -> Action + Send + Sync + 'static) -> Self {
        Self::at("127.0.0.1", handler)
    }

    /// Does the same on a Unix socket.
    pub fn unix(path: &Path, handler: impl Fn(&Request) -> Action + Send + Sync + 'static) -> Self {
        let listener = UnixListener::bind(path).expect("the path is free");
        let server = Self::new(0, handler);
        let accepting = server.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let server = accepting.clone();
                let stream = stream.expect("there are descriptors");
                thread::spawn(move || server.connection(stream));
            }
        });
        server
    }

    pub fn new(port: u16, handler: impl Fn(&Request) -> Action + Send + Sync + 'static) -> Self {
        Self {
            port,
            seen: Arc::default(),
            handler: Arc::new(handler),
        }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn see<R>(&self, look: impl FnOnce(&mut Seen) -> R) -> R {
        look(&mut self.seen.lock().expect("no handler panics"))
    }

    /// Serves a connection to its end.
    pub fn connection(&self, mut stream: impl Read + Write) {
        self.see(|seen| seen.connections += 1);
        let mut on_connection = 0;
        // The client may close the connection at any time.
        let _ = self.requests(&mut stream, &mut on_connection);
        self.see(|seen| seen.per_connection.push(on_connection));
    }

    fn requests(
        &self,
        stream: &mut (impl Read + Write),
        on_connection: &mut usize,
    ) -> io::Result<()> {
        let mut buffer = Vec::new();
        loop {
            let beginning = &buffer[..buffer.len().min(4096)];
            let together = beginning
                .windows(4)
                .filter(|four| four == b"\r\n\r\n")
                .count();
            self.see(|seen| seen.together_max = seen.together_max.max(together));
            while let Some((head, body, len)) = parse(&buffer) {
                buffer.drain(..len);
                let number = self.see(|seen| {
                    seen.requests += 1;
                    seen.last = Some((head.clone(), body));
                    seen.requests - 1
                });
                let request = Request { number, head };
                *on_connection += 1;
                match (self.handler)(&request) {
                    Action::Send(bytes) => stream.write_all(&bytes)?,
                    Action::SendAndClose(bytes) => return stream.write_all(&bytes),
                    Action::Hang => {}
                }
                if request.head.contains("\r\nConnection: close") {
                    return Ok(());
                }
            }
            let mut piece = [0; 64 * 1024];
            match stream.read(&mut piece)? {
                0 => return Ok(()),
                len => buffer.extend_from_slice(&piece[..len]),
            }
        }
    }
}

/// Returns the head, the body and the length of the first request, if it is complete.
fn parse(buffer: &[u8]) -> Option<(String, Vec<u8>, usize)> {
    let end = buffer.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = String::from_utf8(buffer[..end].to_vec()).expect("heads are text");
    let length = head.split("Content-Length: ").nth(1).map_or(0, |rest| {
        let digits = rest.split('\r').next().expect("a line has an end");
        digits.parse().expect("a number")
    });
    let body = buffer.get(end..end + length)?.to_vec();
    Some((head, body, end + length))
}
