//! The client of the echo servers: one OS thread, epoll, one request in flight on each connection.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::cli::Options;
use crate::epoll::{Epoll, EventFlags, token};
use crate::measure::jain;
use crate::metric::Metric;
use crate::server::{SILENCE, Server};

/// The size of a request and of its response, in bytes.
const REQUEST: usize = 64;

/// The number of connections that are served before the first measurement of memory, to exclude
/// what a server allocates only once.
const CONNECTIONS_BEFORE: usize = 64;

fn connections(options: &Options) -> usize {
    options.connections_or(100)
}

/// Returns the number of idle connections whose memory is measured.
fn idle(options: &Options) -> usize {
    options.scaled(10_000)
}

/// Returns the maximum number of descriptors that either process needs.
pub fn descriptors(options: &Options) -> usize {
    connections(options).max(idle(options) + CONNECTIONS_BEFORE)
}

/// Measures two processes of the server: one with idle connections and one with busy ones.
pub fn run(options: &Options) -> Vec<Metric> {
    let mut metrics = busy(options);
    metrics.extend(memory(options));
    metrics
}

/// Measures the user memory of an idle connection, after one request on each connection.
fn memory(options: &Options) -> Vec<Metric> {
    // The server inherits the setting. One huge page is as large as the memory of a thousand
    // connections, so the result would be too coarse.
    rustix::thread::disable_transparent_huge_pages(true).expect("Linux can do without huge pages");
    let mut server = Server::start(options);
    let open = |count| (0..count).map(|number| Connection::open(server.address, number));
    let mut all: Vec<Connection> = open(CONNECTIONS_BEFORE).collect();
    let idle = idle(options);
    let before = server.usage();
    for number in 0..idle {
        all.push(Connection::open(server.address, number));
    }
    let after = server.usage();
    let each = |bytes: f64| bytes / idle as f64;
    let anonymous = each(after.anonymous_bytes - before.anonymous_bytes);
    let mut metrics = vec![Metric::lower(
        "resident bytes an idle connection",
        anonymous,
    )];
    if let (Some(before), Some(after)) = (before.heap_bytes, after.heap_bytes) {
        let heap = each(after - before);
        metrics.push(Metric::lower("heap bytes an idle connection", heap));
    }
    metrics
}

/// Measures the speed, after a warm-up that takes a fifth of the time.
fn busy(options: &Options) -> Vec<Metric> {
    let mut server = Server::start(options);
    let window = options.scaled_duration(Duration::from_secs(5));
    let mut load = Load::new(server.address, connections(options));
    load.run(window / 5);
    let before = server.usage();
    let mut outcome = load.run(window);
    let after = server.usage();
    let cpu_s = after.cpu_s - before.cpu_s;
    vec![
        Metric::higher("requests/s", outcome.in_time as f64 / window.as_secs_f64()),
        Metric::lower(
            "CPU s of the server a million requests",
            cpu_s / outcome.latencies_ns.len() as f64 * 1e6,
        ),
        Metric::info("CPUs of the server", cpu_s / (after.at_s - before.at_s)),
        Metric::lower("us p99", outcome.p99_us()),
        Metric::higher("fairness of the worst second (Jain)", outcome.fairness),
    ]
}

/// A connection and its request.
struct Connection {
    stream: TcpStream,
    request: [u8; REQUEST],
    answer: [u8; REQUEST],
    /// The number of bytes of the response received so far.
    received: usize,
    sent_at: Instant,
    random: Rng,
    /// The number of responses in this slice.
    answers: u32,
}

impl Connection {
    /// Opens a connection and makes one request.
    fn open(address: SocketAddr, number: usize) -> Connection {
        let stream = TcpStream::connect(address).expect("the server accepts");
        stream.set_nodelay(true).expect("TCP has this option");
        // A reset leaves no port in TIME_WAIT after the run.
        rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO))
            .expect("a socket has this option");
        let mut connection = Connection {
            stream,
            request: [0; REQUEST],
            answer: [0; REQUEST],
            received: 0,
            sent_at: Instant::now(),
            random: Rng::with_seed(number as u64),
            answers: 0,
        };
        connection.send(Instant::now());
        while !connection.receive() {}
        connection
    }

    /// Sends the next request, with new bytes.
    fn send(&mut self, now: Instant) {
        for word in self.request.chunks_exact_mut(8) {
            word.copy_from_slice(&self.random.u64(..).to_ne_bytes());
        }
        self.received = 0;
        self.sent_at = now;
        let sent = self.stream.write(&self.request);
        let sent = sent.expect("an idle connection takes a request");
        assert_eq!(sent, REQUEST, "an idle socket has room for a request");
    }

    /// Reads the available bytes. Returns true once the response is complete, and checks that it
    /// equals the request.
    fn receive(&mut self) -> bool {
        match self.stream.read(&mut self.answer[self.received..]) {
            Ok(0) => panic!("the server closed a connection"),
            Ok(read) => self.received += read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => panic!("a connection failed: {error}"),
        }
        if self.received < REQUEST {
            return false;
        }
        assert_eq!(
            self.answer, self.request,
            "the echo differs from the request"
        );
        true
    }
}

/// The results of a window of time.
struct Outcome {
    /// The number of responses before the end of the window.
    in_time: usize,
    /// The time from sending to receiving, for each request.
    latencies_ns: Vec<u32>,
    /// Jain's index of the worst full second, or of the window if it is shorter: 1 if all
    /// connections got the same share, 1/n if one of n got everything.
    fairness: f64,
}

impl Outcome {
    fn p99_us(&mut self) -> f64 {
        let rank = (self.latencies_ns.len() * 99).div_ceil(100).max(1) - 1;
        let (_, p99, _) = self.latencies_ns.select_nth_unstable(rank);
        f64::from(*p99) / 1e3
    }
}

/// All connections, idle between two windows.
struct Load {
    epoll: Epoll,
    connections: Vec<Connection>,
}

impl Load {
    fn new(address: SocketAddr, count: usize) -> Load {
        let epoll = Epoll::new();
        let connections = (0..count).map(|number| {
            let connection = Connection::open(address, number);
            let nonblocking = connection.stream.set_nonblocking(true);
            nonblocking.expect("a socket can be set to not block");
            epoll.add(&connection.stream, number, EventFlags::IN);
            connection
        });
        let connections = connections.collect();
        Load { epoll, connections }
    }

    /// Sends requests during `window`, then waits for the last responses.
    fn run(&mut self, window: Duration) -> Outcome {
        let mut outcome = Outcome {
            in_time: 0,
            latencies_ns: Vec::with_capacity(1 << 20),
            fairness: 1.0,
        };
        let slice = window.min(Duration::from_secs(1));
        let start = Instant::now();
        let end = start + window;
        let mut slice_end = start + slice;
        for connection in &mut self.connections {
            connection.answers = 0;
            connection.send(Instant::now());
        }
        let mut under_way = self.connections.len();
        let mut ready = Vec::new();
        while under_way > 0 {
            self.epoll.wait(&mut ready, Some(SILENCE));
            assert!(!ready.is_empty(), "the server stopped answering");
            for event in &ready {
                let connection = &mut self.connections[token(event)];
                if !connection.receive() {
                    continue;
                }
                let now = Instant::now();
                let latency = now - connection.sent_at;
                let latency_ns = u32::try_from(latency.as_nanos()).unwrap_or(u32::MAX);
                outcome.latencies_ns.push(latency_ns);
                if now >= end {
                    under_way -= 1;
                    continue;
                }
                outcome.in_time += 1;
                connection.answers += 1;
                connection.send(now);
                if now >= slice_end {
                    while slice_end <= now {
                        slice_end += slice;
                    }
                    outcome.fairness = outcome.fairness.min(self.fairness());
                }
            }
        }
        if slice_end <= end {
            outcome.fairness = outcome.fairness.min(self.fairness());
        }
        outcome
    }

    /// Returns Jain's index of the responses of all connections, and starts the next slice.
    fn fairness(&mut self) -> f64 {
        let answers: Vec<u64> = self
            .connections
            .iter_mut()
            .map(|connection| u64::from(std::mem::take(&mut connection.answers)))
            .collect();
        jain(&answers)
    }
}
