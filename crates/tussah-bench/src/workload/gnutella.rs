//! Packets of the Gnutella network through a router, over loopback TCP.
//!
//! It comes from "SEDA: An Architecture for Well-Conditioned, Scalable Internet Services" (SOSP
//! 2001), section 5.2. The mix has 15 % queries, as in the paper; the other packets are pings and
//! pongs. Pings and queries go to all other peers, and pongs go back. The server is the router of
//! `tussah gnutella`, and [`client`] is another process: see [`crate::server`].
//!
//! With `--bottleneck-ms`, each query takes this time in addition, and the client sends 1000
//! packets a second, as in section 5.2.2. By Little's law, the queries then need
//! `1000 * 0.15 * time` servlets.

use std::collections::{HashMap, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::{Peer, Workload, peer};
use crate::cli::Options;
use crate::epoll::{Epoll, EventFlags, token};
use crate::metric::Metric;
use crate::{runtimes, server};
use packets::{PING, PONG, QUERY, head};

mod client;
mod packets;

#[cfg(feature = "tussah")]
mod tussah;

pub static WORKLOAD: Workload = Workload {
    name: "gnutella",
    about: "packets through a Gnutella router with --connections peers (4), 15 % of them queries: M/s, CPU of the router; servlets with --bottleneck-ms",
    peers: PEERS,
};

const PEERS: &[Peer] = &[
    peer("floor", |options| run(options, floor)),
    #[cfg(feature = "tussah")]
    peer("tussah", |options| run(options, tussah::serve)),
];

fn run(options: &Options, serve: fn(&Options)) -> Vec<Metric> {
    server::run(options, client::connections(options), serve, client::run)
}

/// Returns the time that each query takes in addition.
fn bottleneck(options: &Options) -> Option<Duration> {
    options.bottleneck_ms.map(Duration::from_millis)
}

/// Bound, in routes: the maximum number for pings, and for queries, as in the router of tussah.
const ROUTES_MAX: usize = 100_000;
/// The size of one read, in bytes.
const BUFFER: usize = 64 << 10;

/// Uses one epoll loop, two tables, and a buffer for each peer. With a bottleneck, it sleeps for
/// each query, as the paper's router with a single thread does.
fn floor(options: &Options) {
    let bottleneck = bottleneck(options);
    runtimes::os_threads(options, 1, |_| {
        let listener = server::listen_once();
        let listener = server::nonblocking(&listener);
        let (epoll, mut ready) = (Epoll::new(), Vec::new());
        epoll.add(listener, usize::MAX, EventFlags::IN);
        let mut router = Router {
            bottleneck,
            ..Router::default()
        };
        loop {
            epoll.wait(&mut ready, None);
            for event in &ready {
                if token(event) == usize::MAX {
                    while let Some(stream) = server::accept(listener) {
                        stream.set_nodelay(true).expect("TCP has this option");
                        epoll.add(&stream, router.links.len(), EventFlags::IN);
                        router.links.push(Some(Link::new(stream)));
                    }
                    continue;
                }
                router.turn(&epoll, token(event));
            }
        }
    });
}

/// A peer of the floor.
struct Link {
    stream: TcpStream,
    /// The number of empty lines of the handshake that have arrived; it has two.
    greeted: usize,
    received: Vec<u8>,
    unsent: Vec<u8>,
    waits: bool,
}

impl Link {
    fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            greeted: 0,
            received: Vec::new(),
            unsent: Vec::new(),
            waits: false,
        }
    }
}

/// The router of the floor.
#[derive(Default)]
struct Router {
    links: Vec<Option<Link>>,
    pings: Routes,
    queries: Routes,
    bottleneck: Option<Duration>,
}

/// A table of routes, which forgets the oldest one when it is full.
#[derive(Default)]
struct Routes {
    of: HashMap<[u8; 16], usize>,
    order: VecDeque<[u8; 16]>,
}

impl Routes {
    fn insert(&mut self, id: [u8; 16], link: usize) -> bool {
        if self.of.contains_key(&id) {
            return false;
        }
        if self.order.len() == ROUTES_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.of.remove(&oldest);
        }
        self.order.push_back(id);
        self.of.insert(id, link);
        true
    }
}

impl Router {
    /// Reads once from a peer, routes what has arrived, and writes.
    fn turn(&mut self, epoll: &Epoll, number: usize) {
        let Some(link) = &mut self.links[number] else {
            return;
        };
        let mut bytes = std::mem::take(&mut link.received);
        let start = bytes.len();
        bytes.resize(start + BUFFER, 0);
        match link.stream.read(&mut bytes[start..]) {
            Ok(0) => return self.links[number] = None,
            Ok(read) => bytes.truncate(start + read),
            Err(error) if error.kind() == ErrorKind::WouldBlock => bytes.truncate(start),
            Err(error) => {
                server::ended(&error);
                return self.links[number] = None;
            }
        }
        let mut at = link.greet(&bytes);
        if link.greeted == 2 {
            while let Some((id, kind, len)) = head(&bytes[at..]) {
                self.route(number, id, kind, &bytes[at..at + len]);
                at += len;
            }
        }
        if let Some(link) = &mut self.links[number] {
            bytes.drain(..at);
            link.received = bytes;
        }
        for number in 0..self.links.len() {
            self.write(epoll, number);
        }
    }

    fn route(&mut self, from: usize, id: [u8; 16], kind: u8, packet: &[u8]) {
        let mut passed = packet.to_vec();
        passed[17] -= 1;
        passed[18] += 1;
        match kind {
            PONG => {
                let link = self.pings.of.get(&id).copied();
                let link = link.and_then(|link| self.links[link].as_mut());
                link.expect("the client answers its own pings")
                    .unsent
                    .extend(passed);
                return;
            }
            PING => {
                assert!(self.pings.insert(id, from), "each ping is new");
                let link = self.links[from].as_mut().expect("it was read");
                packets::push(&mut link.unsent, id, PONG, 1);
            }
            _ => {
                assert!(self.queries.insert(id, from), "each query is new");
                if let (QUERY, Some(time)) = (kind, self.bottleneck) {
                    std::thread::sleep(time);
                }
            }
        }
        for (number, link) in self.links.iter_mut().enumerate() {
            if let Some(link) = link.as_mut().filter(|_| number != from) {
                link.unsent.extend_from_slice(&passed);
            }
        }
    }

    /// Writes what waits for a peer, as far as its socket has room.
    fn write(&mut self, epoll: &Epoll, number: usize) {
        let Some(link) = &mut self.links[number] else {
            return;
        };
        if !link.unsent.is_empty() {
            match link.stream.write(&link.unsent) {
                Ok(written) => drop(link.unsent.drain(..written)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => {
                    server::ended(&error);
                    return self.links[number] = None;
                }
            }
        }
        let waits = !link.unsent.is_empty();
        if waits != link.waits {
            link.waits = waits;
            let flags = match waits {
                true => EventFlags::IN | EventFlags::OUT,
                false => EventFlags::IN,
            };
            epoll.modify(&link.stream, number, flags);
        }
    }
}

impl Link {
    /// Answers the handshake. Returns the number of bytes that belong to it.
    fn greet(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        while self.greeted < 2 {
            let rest = &bytes[at..];
            let Some(end) = rest.windows(4).position(|four| four == b"\r\n\r\n") else {
                break;
            };
            at += end + 4;
            self.greeted += 1;
            match self.greeted {
                1 => self.unsent.extend(b"GNUTELLA/0.6 200 OK\r\n\r\n"),
                _ => packets::push(&mut self.unsent, [0xff; 16], PING, 7),
            }
        }
        at
    }
}
