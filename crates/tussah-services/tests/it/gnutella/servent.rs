//! Routers in this process, and a servent that does as its test says.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, SocketAddrV4, TcpStream};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tussah::{Clock, ManualClock, Runtime};
use tussah_services::gnutella::{Gnutella, Options, Running};
use tussah_wire::gnutella::{Descriptor, Guid, Header, Kind, Limits, Payload, push_descriptor};

/// Returns options for a router that connects to nothing by itself.
pub fn options() -> Options {
    Options {
        listen: "127.0.0.1:0".parse().expect("an address"),
        http: "127.0.0.1:0".parse().expect("an address"),
        keep: 0,
        each_max: 100,
        ..Options::default()
    }
}

/// A runtime with routers, until it is dropped.
pub struct Net {
    runtime: Runtime,
    pub routers: Vec<Running>,
}

impl Net {
    pub fn new() -> Self {
        let runtime = Runtime::builder().workers(2).build().expect("a runtime");
        let routers = Vec::new();
        Self { runtime, routers }
    }

    /// A runtime whose clock the test moves.
    pub fn with_clock() -> (Self, ManualClock) {
        let clock = Clock::manual();
        let runtime = Runtime::builder().workers(2).clock(clock.clock()).build();
        let (runtime, routers) = (runtime.expect("a runtime"), Vec::new());
        (Self { runtime, routers }, clock)
    }

    /// Starts a router with a change of [`options`].
    pub fn add(&mut self, change: impl FnOnce(&mut Options)) -> &Running {
        let mut options = options();
        change(&mut options);
        let started = self.runtime.block_on(Gnutella::new(options).start());
        self.routers
            .push(started.unwrap_or_else(|error| panic!("{error}")));
        self.routers.last().expect("it was added")
    }

    /// Starts a single router with a change of [`options`].
    pub fn of(change: impl FnOnce(&mut Options)) -> Self {
        let mut net = Self::new();
        net.add(change);
        net
    }

    pub fn stop(&self, number: usize) {
        self.runtime.block_on(self.routers[number].stop());
    }

    pub fn status(&self, number: usize) -> Value {
        let (_, body) = get(self.routers[number].http(), "/status?format=json", "");
        serde_json::from_slice(&body).expect("it is JSON")
    }

    /// Returns a counter of the first router, such as `packets/sent`.
    pub fn count(&self, path: &str) -> u64 {
        let status = self.status(0);
        let count = status.pointer(&format!("/{path}"));
        count.and_then(Value::as_u64).expect("a number")
    }

    /// Waits until a counter of the first router has a value.
    pub fn expect(&self, path: &str, value: u64) {
        while self.count(path) != value {
            thread::yield_now();
        }
    }

    /// Returns the number of a router's peers.
    pub fn peers(&self, number: usize) -> usize {
        let status = self.status(number);
        status["peers"].as_array().expect("a list").len()
    }

    /// Waits until a router has that many peers.
    pub fn expect_peers(&self, number: usize, peers: usize) {
        while self.peers(number) != peers {
            thread::yield_now();
        }
    }

    /// Connects a servent to the first router, and returns the first ping.
    pub fn servent_and_ping(&self) -> (Servent, Packet) {
        let (mut servent, _) = Servent::greet(self.routers[0].address(), "");
        servent.write(b"GNUTELLA/0.6 200 OK\r\n\r\n");
        let ping = servent.next().expect("a ping");
        (servent, ping)
    }

    /// Connects a servent to the first router.
    pub fn servent(&self) -> Servent {
        Servent::connect(self.routers[0].address())
    }
}

/// Returns the status and the body of a response.
pub fn get(address: SocketAddr, path: &str, lines: &str) -> (u16, Vec<u8>) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{lines}\r\n");
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.write_all(request.as_bytes()).expect("it is read");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("an answer");
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let body = bytes.split_off(end.expect("a head") + 4);
    let status = String::from_utf8_lossy(&bytes[9..12]).parse();
    (status.expect("a status"), body)
}

/// A packet that a servent has received.
#[derive(Debug)]
pub struct Packet {
    pub header: Header,
    pub payload: Vec<u8>,
}

impl Packet {
    /// Returns the identifier, the kind, the TTL and the hops.
    pub fn head(&self) -> (Guid, Kind, u8, u8) {
        let Header {
            id,
            kind,
            ttl,
            hops,
        } = self.header;
        (id, kind, ttl, hops)
    }
}

/// A peer of a router.
pub struct Servent {
    pub stream: TcpStream,
    bytes: VecDeque<u8>,
}

impl Servent {
    /// Connects, and makes no handshake.
    pub fn silent(address: SocketAddrV4) -> Self {
        let stream = TcpStream::connect(address).expect("it listens");
        let patience = Some(Duration::from_secs(60));
        stream.set_read_timeout(patience).expect("it is not zero");
        let bytes = VecDeque::new();
        Self { stream, bytes }
    }

    /// Connects, and returns the answer to the request to connect.
    pub fn greet(address: SocketAddrV4, lines: &str) -> (Self, String) {
        let mut servent = Self::silent(address);
        let connect = format!("GNUTELLA CONNECT/0.6\r\nUser-Agent: test\r\n{lines}\r\n");
        servent.write(connect.as_bytes());
        let head = servent.head();
        (servent, head)
    }

    /// Connects as a peer that listens at an address, and reads the first ping.
    pub fn connect_with(address: SocketAddrV4, lines: &str) -> Self {
        let (mut servent, head) = Self::greet(address, lines);
        assert!(head.starts_with("GNUTELLA/0.6 200 OK\r\n"), "{head}");
        servent.write(b"GNUTELLA/0.6 200 OK\r\n\r\n");
        let ping = servent.next().expect("a ping");
        assert_eq!((ping.header.kind, ping.header.ttl), (Kind::Ping, 7));
        servent
    }

    pub fn connect(address: SocketAddrV4) -> Self {
        Self::connect_with(address, "")
    }

    pub fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("it is read");
    }

    /// Reads the head of a part of the handshake.
    pub fn head(&mut self) -> String {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            self.stream.read_exact(&mut byte).expect("more of the head");
            head.push(byte[0]);
        }
        String::from_utf8(head).expect("text")
    }

    /// Sends a packet with the identifier of another one.
    pub fn answer(&mut self, id: Guid, payload: &Payload<'_>) {
        let mut bytes = Vec::new();
        push_descriptor(&mut bytes, id, 7, 0, payload).expect("it is valid");
        self.write(&bytes);
    }

    pub fn send(&mut self, id: u8, ttl: u8, payload: &Payload<'_>) {
        self.write(&packet(id, ttl, payload));
    }

    /// Sends a packet with this payload, right or wrong.
    pub fn send_bytes(&mut self, id: u8, kind: Kind, payload: &[u8]) {
        let header = Header {
            id: Guid([id; 16]),
            kind,
            ttl: 7,
            hops: 0,
        };
        let mut bytes = header.to_bytes(payload.len() as u32).to_vec();
        bytes.extend_from_slice(payload);
        self.write(&bytes);
    }

    /// Returns the next packet; `None` at the end of the connection, which may be a reset.
    pub fn next(&mut self) -> Option<Packet> {
        let mut buffer = [0; 16 << 10];
        loop {
            let bytes = self.bytes.make_contiguous();
            if let Some(packet) = Descriptor::parse(bytes, &Limits::default()).expect("a packet") {
                let len = packet.len();
                let packet = Packet {
                    header: packet.header,
                    payload: packet.payload.to_vec(),
                };
                self.bytes.drain(..len);
                return Some(packet);
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => return None,
                Ok(len) => self.bytes.extend(&buffer[..len]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Requires that the connection ends with a Bye.
    pub fn expect_bye(&mut self, code: u16) -> String {
        let bye = self.next().expect("a Bye");
        let Ok(Payload::Bye(said)) = Payload::parse(bye.header.kind, &bye.payload) else {
            panic!("expected a Bye, not {bye:?}");
        };
        assert_eq!(said.code, code);
        let text = String::from_utf8_lossy(said.text).into_owned();
        assert!(self.next().is_none());
        text
    }

    /// Requires that the router has sent a query, and nothing else.
    pub fn expect_query_and_nothing(&mut self, query: u8, id: u8) {
        let next = self.next().expect("a query");
        assert_eq!(
            (next.header.id, next.header.kind),
            (Guid([query; 16]), Kind::Query)
        );
        self.expect_nothing(id);
    }

    /// Requires that the router has sent nothing so far: it answers a ping first.
    pub fn expect_nothing(&mut self, id: u8) {
        self.send(id, 1, &Payload::Ping(b""));
        let next = self.next().expect("a pong");
        assert_eq!(next.head(), (Guid([id; 16]), Kind::Pong, 1, 0));
    }
}

/// Returns the bytes of a packet.
pub fn packet(id: u8, ttl: u8, payload: &Payload<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    push_descriptor(&mut bytes, Guid([id; 16]), ttl, 0, payload).expect("it is valid");
    bytes
}
