//! The client of the routers: all peers on one OS thread, with two rounds of packets in flight.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::packets::{self, Counts, PING, PONG, QUERY, head, id, kind};
use crate::cli::Options;
use crate::measure::Samples;
use crate::metric::Metric;
use crate::server::{SILENCE, Server};

/// The packets of a round, from all peers.
const ROUND: usize = 4000;
/// The rounds in flight. Pongs answer pings of the round that has already come back.
const IN_FLIGHT: u64 = 2;
/// The packets a second with a bottleneck, as in the paper.
const RATE: u64 = 1000;
/// Bound, in bytes: the maximum growth of the router after the warm-up. Its tables need 20 MB, and
/// become full only after 700,000 packets. Of 10^8 packets, a router must not keep a byte for every
/// third.
const GROWTH_MAX: f64 = 32e6;
/// The time between two looks at the servlets.
const LOOK: Duration = Duration::from_millis(50);

/// Returns the number of peers.
pub fn connections(options: &Options) -> usize {
    options.connections_or(4).max(2)
}

pub fn run(options: &Options) -> Vec<Metric> {
    match super::bottleneck(options) {
        None => speed(options),
        Some(time) => bottleneck(options, time),
    }
}

/// Connects peers, and reads the first ping of the router on each connection.
fn connect(server: &Server, count: usize) -> Vec<TcpStream> {
    let connect = |_| {
        let mut stream = TcpStream::connect(server.address).expect("the server accepts");
        stream.set_nodelay(true).expect("TCP has this option");
        let set = stream.set_read_timeout(Some(SILENCE));
        set.expect("a socket has a timeout");
        let mut write = |text: &[u8]| stream.write_all(text).expect("the server reads");
        write(b"GNUTELLA CONNECT/0.6\r\n\r\n");
        let mut answer = Vec::new();
        let mut byte = [0];
        while !answer.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte).expect("the server answers");
            answer.push(byte[0]);
        }
        assert!(answer.starts_with(b"GNUTELLA/0.6 200"));
        let greeted = stream.write_all(b"GNUTELLA/0.6 200 OK\r\n\r\n");
        greeted.expect("the server reads");
        let mut ping = [0; 23];
        stream.read_exact(&mut ping).expect("a ping");
        assert_eq!(ping[16], PING);
        stream
    };
    (0..count).map(connect).collect()
}

/// Measures the speed, after a warm-up of a tenth of the packets.
fn speed(options: &Options) -> Vec<Metric> {
    let mut server = Server::start(options);
    let peers = connections(options);
    let mut load = Load {
        streams: connect(&server, peers),
        each: (ROUND / peers).max(20),
        sent: 0,
        received: 0,
        buffer: vec![0; 256 << 10],
    };
    let all = options.scaled(4_000_000).div_ceil(load.each * peers) as u64;
    load.run((all / 10).max(IN_FLIGHT));
    let before = server.usage();
    let first = load.received;
    load.run(load.received + all);
    let after = server.usage();
    let packets = ((load.received - first) as usize * load.each * peers) as f64;
    let (copies, _) = Counts::of(load.each).received(peers);
    check_growth(before.anonymous_bytes, after.anonymous_bytes);
    let (elapsed_s, cpu_s) = (after.at_s - before.at_s, after.cpu_s - before.cpu_s);
    vec![
        Metric::higher("M packets/s to the router", packets / elapsed_s / 1e6),
        Metric::lower("ns of the router's CPU a packet", cpu_s / packets * 1e9),
        Metric::info(
            "packets from the router for each to it",
            copies as f64 / load.each as f64,
        ),
        Metric::info("CPUs of the router", cpu_s / elapsed_s),
        Metric::info(
            "MB in memory after the warm-up",
            before.anonymous_bytes / 1e6,
        ),
        Metric::info("MB in memory at the end", after.anonymous_bytes / 1e6),
    ]
}

/// Checks that a router keeps nothing of the packets that it has passed on.
///
/// # Panics
/// Panics if it has grown by more than its tables may.
fn check_growth(before_bytes: f64, after_bytes: f64) {
    let growth = after_bytes - before_bytes;
    assert!(
        growth <= GROWTH_MAX,
        "the router grew by {:.1} MB after the warm-up, from {:.1} MB: at most {:.0} MB are allowed",
        growth / 1e6,
        before_bytes / 1e6,
        GROWTH_MAX / 1e6,
    );
}

struct Load {
    streams: Vec<TcpStream>,
    /// The packets of each peer in a round.
    each: usize,
    /// Rounds.
    sent: u64,
    received: u64,
    buffer: Vec<u8>,
}

impl Load {
    /// Sends and receives until `received` rounds have come back in all. Rounds stay in flight.
    fn run(&mut self, received: u64) {
        while self.received < received {
            while self.sent < self.received + IN_FLIGHT {
                self.send();
            }
            self.receive();
        }
    }

    fn send(&mut self) {
        let peers = self.streams.len();
        for peer in 0..peers {
            let mut bytes = Vec::new();
            for number in 0..self.each {
                let kind = kind(number);
                let answered = self.sent.checked_sub(IN_FLIGHT);
                let (id, kind) = match (kind, answered) {
                    // The next peer has sent this ping. The first rounds have none to answer.
                    (PONG, Some(round)) => (id(round, (peer + 1) % peers, self.ping(number)), PONG),
                    (PONG, None) => continue,
                    (kind, _) => (id(self.sent, peer, number), kind),
                };
                packets::push(&mut bytes, id, kind, 7);
            }
            self.streams[peer]
                .write_all(&bytes)
                .expect("the router reads");
        }
        self.sent += 1;
    }

    /// Returns the number of a ping, for the pong with this number.
    fn ping(&self, number: usize) -> usize {
        let pings = (0..self.each).map(|step| (number + step) % self.each);
        let mut pings = pings.filter(|number| kind(*number) == PING);
        pings.next().expect("a round has pings")
    }

    /// Receives a round. The number of bytes is exact, so nothing is lost and nothing is doubled.
    fn receive(&mut self) {
        let mut counts = Counts::of(self.each);
        if self.received < IN_FLIGHT {
            counts.pongs = 0;
        }
        let (_, bytes) = counts.received(self.streams.len());
        for stream in &mut self.streams {
            let mut left = bytes;
            while left > 0 {
                let len = left.min(self.buffer.len());
                let read = stream.read(&mut self.buffer[..len]);
                let read = read.expect("the router answers in time");
                assert!(read > 0, "the router closed a connection");
                left -= read;
            }
        }
        self.received += 1;
    }
}

/// Sends packets at a fixed rate while each query takes time, and looks at the servlets in the
/// second half.
fn bottleneck(options: &Options, time: Duration) -> Vec<Metric> {
    let mut server = Server::start(options);
    let streams = connect(&server, connections(options));
    let window = options.scaled_duration(Duration::from_secs(20));
    let all = (window.as_secs_f64() * RATE as f64).ceil() as usize;
    let sent: Vec<AtomicU64> = (0..all).map(|_| AtomicU64::new(0)).collect();
    let (pings, queries) = (
        Samples::leak(all * streams.len()),
        Samples::leak(all * streams.len()),
    );
    let start = Instant::now();
    let (mut busy, mut allowed) = (Vec::new(), Vec::new());
    std::thread::scope(|scope| {
        for stream in &streams {
            let sent = &sent;
            scope.spawn(move || receive(stream, start, sent, pings, queries));
        }
        let mut look = || {
            let usage = server.usage();
            busy.push(usage.servlets as f64);
            allowed.push(usage.servlets_allowed as f64);
        };
        let mut looked = start;
        for number in 0..all {
            let due = Duration::from_nanos(number as u64 * 1_000_000_000 / RATE);
            std::thread::sleep(due.saturating_sub(start.elapsed()));
            let kind = match kind(number) {
                PONG => PING,
                other => other,
            };
            let mut bytes = Vec::new();
            packets::push(&mut bytes, id(number as u64, 0, 0), kind, 7);
            let now_ns = start.elapsed().as_nanos() as u64;
            // Release: pairs with the acquire of the peer that receives the packet.
            sent[number].store(now_ns, Ordering::Release);
            let mut stream = &streams[number % streams.len()];
            stream.write_all(&bytes).expect("the router reads");
            if looked.elapsed() >= LOOK {
                looked = Instant::now();
                if number > all / 2 {
                    look();
                }
            }
        }
        look();
        // What is on its way is lost, which does no harm here.
        for stream in &streams {
            let _ = stream.shutdown(Shutdown::Both);
        }
    });
    let needed = RATE as f64 * 0.15 * time.as_secs_f64();
    let mean = |looks: &[f64]| looks.iter().sum::<f64>() / looks.len() as f64;
    let mut metrics = vec![
        Metric::info("servlets by Little's law", needed),
        Metric::info("busy servlets", mean(&busy)),
        Metric::info("allowed servlets", mean(&allowed)),
    ];
    for (name, samples) in [("ping", pings), ("query", queries)] {
        if samples.len() > 0 {
            let us = |per_mille| samples.quantile_ns(per_mille) / 1e3;
            metrics.push(Metric::lower(&format!("us p50 of a {name}"), us(500)));
            metrics.push(Metric::lower(&format!("us p99 of a {name}"), us(990)));
        }
    }
    metrics
}

/// Records the times from the sending of packets to their arrival, until the connection ends.
fn receive(
    mut stream: &TcpStream,
    start: Instant,
    sent: &[AtomicU64],
    pings: &Samples,
    queries: &Samples,
) {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 16 << 10]);
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        let now = start.elapsed();
        bytes.extend_from_slice(&buffer[..read]);
        let mut at = 0;
        while let Some((id, kind, len)) = head(&bytes[at..]) {
            at += len;
            let samples = match kind {
                PING => pings,
                QUERY => queries,
                _ => continue,
            };
            let number = u64::from_le_bytes(id[..8].try_into().expect("eight bytes"));
            // A ping of the router itself has another number.
            if let Some(sent) = sent.get(number as usize) {
                let sent = Duration::from_nanos(sent.load(Ordering::Acquire));
                samples.record(now.saturating_sub(sent));
            }
        }
        bytes.drain(..at);
    }
}
