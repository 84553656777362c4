//! The clients of the scenarios that compare costs: one OS thread, one request in flight on each
//! connection.
//!
//! They pause between two slices, after all responses have arrived. A server's CPU time in a slice
//! is thus the cost of its requests: none is in flight at either end of the slice.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use super::response::{self, Head};
use super::site::Site;
use super::slice::Slice;
use super::windows::Windows;
use crate::epoll::{Epoll, EventFlags, token};

/// Bound, in seconds: the maximum time without a response from any server. The slowest server needs
/// less for a full round.
const SILENCE_SECONDS_MAX: u64 = 30;

/// The share of failed requests above which a server counts as broken.
const FAILED_MAX: f64 = 0.2;

/// Bound, in bytes: the maximum length of one read. A file of the largest class takes four reads.
const READ_BYTES_MAX: usize = 256 * 1024;

/// The plan of the clients.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The addresses of the servers. If there are several, clients are divided evenly among them.
    pub addresses: Vec<SocketAddr>,
    /// The site to request.
    pub site: Arc<Site>,
    /// The number of clients, each with one connection at a time.
    pub connections: usize,
    /// The number of requests after which a client closes its connection and opens another one.
    pub requests_per_connection: u32,
    /// The seed of the random numbers.
    pub seed: u64,
}

/// The end of a slice, after which clients send no more requests.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// After this time.
    Time(Duration),
    /// After this number of requests.
    Requests(u64),
    /// After this number of windows of fairness, but at the latest after this time.
    Windows(usize, Duration),
}

/// The clients with their connections.
#[derive(Debug)]
pub struct Clients {
    plan: Plan,
    requests: Vec<Vec<u8>>,
    epoll: Epoll,
    all: Vec<Client>,
    random: Rng,
    buffer: Vec<u8>,
    failed: u64,
}

#[derive(Debug)]
struct Client {
    stream: Option<TcpStream>,
    page: usize,
    /// The number of requests that the connection may still carry.
    left: u32,
    /// True if the client never had a connection.
    is_new: bool,
    sent_at: Instant,
    /// True if the last request failed.
    failed: bool,
    state: State,
    /// The beginning of an incomplete head.
    head: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// No request is in flight.
    Idle,
    /// The connection is being made; the request follows.
    Connecting,
    /// The head of the response is outstanding.
    Head,
    /// This many bytes of the body are outstanding; the flag is true if the server closes the
    /// connection afterwards.
    Body(usize, bool),
}

impl Clients {
    /// Creates clients without connections. Each client opens its own connection with its first
    /// request.
    pub fn new(plan: Plan) -> Clients {
        let host = plan.addresses[0];
        let request = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let pages = plan.site.pages.iter();
        Clients {
            requests: pages.map(|page| request(&page.path).into_bytes()).collect(),
            epoll: Epoll::new(),
            all: (0..plan.connections).map(|_| Client::new()).collect(),
            random: Rng::with_seed(plan.seed),
            buffer: vec![0; READ_BYTES_MAX],
            failed: 0,
            plan,
        }
    }

    /// Sends one request from each client.
    ///
    /// # Errors
    ///
    /// Returns errors as [`run`](Self::run) does.
    pub fn once(&mut self) -> Result<Slice, String> {
        self.run(Until::Requests(self.plan.connections as u64), None)
    }

    /// Sends requests until the end of the slice, and waits for all responses.
    ///
    /// # Errors
    ///
    /// Returns an error if a response is wrong, or if none arrives for too long.
    pub fn run(
        &mut self,
        until: Until,
        mut windows: Option<&mut Windows>,
    ) -> Result<Slice, String> {
        let start = Instant::now();
        let mut slice = Slice::new();
        let failed_before = self.failed;
        let (mut sent, mut under_way) = (0, 0);
        let more = |sent: u64, now: Instant, windows: &Option<&mut Windows>| match until {
            Until::Time(time) => now.duration_since(start) < time,
            Until::Requests(count) => sent < count,
            Until::Windows(count, time) => {
                let ended = windows.as_ref().map_or(0, |windows| windows.ended);
                ended < count && now.duration_since(start) < time
            }
        };
        for index in 0..self.all.len() {
            if more(sent, start, &windows) {
                self.send(index, &mut slice)?;
                (sent, under_way) = (sent + 1, under_way + 1);
            }
        }
        let mut ready = Vec::new();
        while under_way > 0 {
            self.epoll
                .wait(&mut ready, Some(Duration::from_secs(SILENCE_SECONDS_MAX)));
            if ready.is_empty() {
                return Err(format!(
                    "no answer for {SILENCE_SECONDS_MAX} s, {under_way} outstanding"
                ));
            }
            for event in &ready {
                let index = token(event);
                if !self.receive(index)? {
                    continue;
                }
                let now = Instant::now();
                if !self.all[index].failed {
                    slice.requests += 1;
                    let taken = now.duration_since(self.all[index].sent_at);
                    slice.latency_ns.saturating_record(taken.as_nanos() as u64);
                    if let Some(windows) = windows.as_deref_mut() {
                        windows.completed(index, now);
                    }
                }
                if more(sent, now, &windows) {
                    self.send(index, &mut slice)?;
                    sent += 1;
                } else {
                    under_way -= 1;
                }
            }
        }
        slice.elapsed = start.elapsed();
        slice.failed = self.failed - failed_before;
        if slice.failed as f64 > FAILED_MAX * slice.requests as f64 {
            return Err(format!(
                "{} requests failed and {} succeeded",
                slice.failed, slice.requests
            ));
        }
        Ok(slice)
    }

    /// Sends the next request of a client, on a new connection if it has none or has used it up.
    fn send(&mut self, index: usize, slice: &mut Slice) -> Result<(), String> {
        let page = self.plan.site.pick(&mut self.random);
        let client = &mut self.all[index];
        client.page = page;
        client.sent_at = Instant::now();
        client.failed = false;
        client.state = State::Head;
        if client.left == 0 {
            client.stream = None;
        }
        client.left = client.left.wrapping_sub(1);
        // If the server closed an idle connection, this is not a failure.
        if let Some(stream) = &mut client.stream
            && write(stream, &self.requests[page]).is_ok()
        {
            return Ok(());
        }
        client.left = self.plan.requests_per_connection - 1;
        // The first connections end one by one, like later ones, so that every slice has its share
        // of ends.
        if client.is_new && client.left < u32::MAX / 2 {
            client.left = self.random.usize(..client.left as usize + 1) as u32;
        }
        client.is_new = false;
        slice.connects += 1;
        let (mut stream, connected) =
            connect(self.plan.addresses[index % self.plan.addresses.len()])?;
        let flags = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
        if connected {
            write(&mut stream, &self.requests[page])?;
            self.epoll.add(&stream, index, flags);
        } else {
            client.state = State::Connecting;
            self.epoll.add(&stream, index, flags | EventFlags::OUT);
        }
        client.stream = Some(stream);
        Ok(())
    }

    /// Receives the available bytes for a client. Returns whether the response is complete.
    fn receive(&mut self, index: usize) -> Result<bool, String> {
        loop {
            let client = &mut self.all[index];
            let Some(stream) = &mut client.stream else {
                return Ok(false);
            };
            match client.state {
                // The server closed an unused connection, or the event is stale.
                State::Idle => {
                    if matches!(stream.read(&mut self.buffer), Ok(0)) {
                        client.stream = None;
                    }
                    return Ok(false);
                }
                State::Connecting => {
                    let request = &self.requests[client.page];
                    client.state = State::Head;
                    let flags = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
                    self.epoll.modify(&*stream, index, flags);
                    write(stream, request)?;
                    return Ok(false);
                }
                State::Head | State::Body(..) => {}
            }
            let read = match stream.read(&mut self.buffer) {
                Ok(read) if read > 0 => read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                _ => {
                    client.fail();
                    self.failed += 1;
                    return Ok(true);
                }
            };
            let expected = self.plan.site.pages[client.page].len;
            if client.take(&self.buffer[..read], expected)? {
                return Ok(true);
            }
            if read < self.buffer.len() {
                return Ok(false);
            }
        }
    }
}

impl Client {
    fn new() -> Client {
        Client {
            stream: None,
            page: 0,
            left: 0,
            is_new: true,
            sent_at: Instant::now(),
            failed: false,
            state: State::Idle,
            head: Vec::new(),
        }
    }

    /// Handles a connection that closed within a response.
    fn fail(&mut self) {
        self.stream = None;
        self.state = State::Idle;
        self.head = Vec::new();
        self.failed = true;
    }

    /// Handles the next bytes of a response whose body should have `expected` bytes. Returns
    /// whether the response is complete.
    fn take(&mut self, bytes: &[u8], expected: usize) -> Result<bool, String> {
        let (left, close, body) = match self.state {
            State::Body(left, close) => (left, close, bytes.len()),
            _ => {
                let Some((head, body)) = self.take_head(bytes)? else {
                    return Ok(false);
                };
                if head.status != 200 || head.body != expected {
                    let Head { status, body, .. } = head;
                    return Err(format!(
                        "status {status} with {body} bytes, expected {expected}"
                    ));
                }
                (head.body, head.close, body)
            }
        };
        if body > left {
            return Err("bytes after the end of the answer".into());
        }
        if body < left {
            self.state = State::Body(left - body, close);
            return Ok(false);
        }
        self.state = State::Idle;
        if close {
            self.stream = None;
        }
        Ok(true)
    }

    /// Returns the head once it is complete, and the number of body bytes that came with it.
    fn take_head(&mut self, bytes: &[u8]) -> Result<Option<(Head, usize)>, String> {
        if self.head.is_empty() {
            if let Some(head) = response::head(bytes)? {
                return Ok(Some((head, bytes.len() - head.len)));
            }
            self.head.extend_from_slice(bytes);
            return Ok(None);
        }
        self.head.extend_from_slice(bytes);
        let found = response::head(&self.head)?;
        Ok(found.map(|head| {
            let body = self.head.len() - head.len;
            self.head = Vec::new();
            (head, body)
        }))
    }
}

/// Sends a request. It always fits into the socket buffer of a connection without outstanding
/// responses.
fn write(stream: &mut TcpStream, request: &[u8]) -> Result<(), String> {
    match stream.write(request) {
        Ok(written) if written == request.len() => Ok(()),
        Ok(written) => Err(format!("only {written} bytes of a request were sent")),
        Err(error) => Err(format!("cannot send a request: {error}")),
    }
}

/// Opens a socket. Returns whether it is already connected, as is usual on the loopback.
fn connect(address: SocketAddr) -> Result<(TcpStream, bool), String> {
    let failed = |error: rustix::io::Errno| format!("cannot connect to {address}: {error}");
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None);
    let socket = socket.map_err(failed)?;
    sockopt::set_tcp_nodelay(&socket, true).map_err(failed)?;
    match rustix::net::connect(&socket, &address) {
        Ok(()) => Ok((socket.into(), true)),
        Err(rustix::io::Errno::INPROGRESS) => Ok((socket.into(), false)),
        Err(error) => Err(failed(error)),
    }
}
