//! The client of the burst servers: one OS thread, epoll, one burst in flight on each connection.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::burst::{ACK, BURST, PACKET, ack, burst};
use crate::cli::Options;
use crate::epoll::{Epoll, EventFlags, token};
use crate::metric::Metric;
use crate::server::{SILENCE, Server};

/// Bound, in bytes: the maximum number written to a connection before the next connection's turn.
const WRITE_MAX: usize = 8 * PACKET;

/// Returns the number of open connections.
pub fn connections(options: &Options) -> usize {
    options.connections_or(16)
}

/// Measures the server, after a warm-up of a fifth of the time.
pub fn run(options: &Options) -> Vec<Metric> {
    let mut server = Server::start(options);
    let window = options.scaled_duration(Duration::from_secs(5));
    let mut load = Load::new(&server, connections(options));
    load.run(window / 5);
    let before = server.usage();
    load.run(window);
    let after = server.usage();
    load.finish(&mut server);
    let bytes = (after.received_bytes - before.received_bytes) as f64;
    let (elapsed_s, cpu_s) = (after.at_s - before.at_s, after.cpu_s - before.cpu_s);
    vec![
        Metric::higher("MB/s at the server", bytes / elapsed_s / 1e6),
        Metric::lower("CPU s of the server a GB", cpu_s / bytes * 1e9),
        Metric::info("CPUs of the server", cpu_s / elapsed_s),
    ]
}

/// A connection and its burst.
struct Connection {
    stream: TcpStream,
    number: u64,
    /// The number of sent bytes of the burst.
    sent: usize,
    ack: [u8; ACK],
    /// The number of received bytes of the acknowledgement.
    acked: usize,
}

impl Connection {
    /// Sends until the socket is full, up to a bound.
    fn send(&mut self, burst: &[u8]) -> usize {
        let end = BURST.min(self.sent + WRITE_MAX);
        match self.stream.write(&burst[self.sent..end]) {
            Ok(written) => {
                self.sent += written;
                written
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            Err(error) => panic!("a connection failed: {error}"),
        }
    }

    /// Reads the available bytes. Returns true once the acknowledgement is complete and the next
    /// burst may begin.
    fn receive(&mut self) -> bool {
        match self.stream.read(&mut self.ack[self.acked..]) {
            Ok(0) => panic!("the server closed a connection"),
            Ok(read) => self.acked += read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => panic!("a connection failed: {error}"),
        }
        if self.acked < ACK {
            return false;
        }
        assert_eq!(
            self.ack,
            ack(self.number),
            "the acknowledgement is for another burst"
        );
        self.number += 1;
        (self.sent, self.acked) = (0, 0);
        true
    }
}

struct Load {
    epoll: Epoll,
    burst: Vec<u8>,
    connections: Vec<Connection>,
    /// Bytes sent on all connections.
    sent: u64,
}

impl Load {
    fn new(server: &Server, count: usize) -> Load {
        let epoll = Epoll::new();
        let connections = (0..count).map(|index| {
            let stream = TcpStream::connect(server.address).expect("the server accepts");
            stream.set_nodelay(true).expect("TCP has this option");
            let nonblocking = stream.set_nonblocking(true);
            nonblocking.expect("a socket can be set to not block");
            // A reset leaves no port in TIME_WAIT after the run.
            rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO))
                .expect("a socket has this option");
            epoll.add(&stream, index, EventFlags::OUT);
            Connection {
                stream,
                number: 0,
                sent: 0,
                ack: [0; ACK],
                acked: 0,
            }
        });
        let connections = connections.collect();
        Load {
            epoll,
            burst: burst(),
            connections,
            sent: 0,
        }
    }

    /// Sends bursts during `window`, and leaves the last bursts incomplete.
    fn run(&mut self, window: Duration) {
        let end = Instant::now() + window;
        let mut ready = Vec::new();
        while Instant::now() < end {
            self.epoll.wait(&mut ready, Some(SILENCE));
            assert!(!ready.is_empty(), "the server stopped reading");
            for event in &ready {
                let index = token(event);
                let connection = &mut self.connections[index];
                if connection.sent < BURST {
                    self.sent += connection.send(&self.burst) as u64;
                    if connection.sent == BURST {
                        self.epoll.modify(&connection.stream, index, EventFlags::IN);
                    }
                } else if connection.receive() {
                    self.epoll
                        .modify(&connection.stream, index, EventFlags::OUT);
                }
            }
        }
    }

    /// Checks that the server has received all bytes and acknowledged all complete bursts.
    fn finish(&mut self, server: &mut Server) {
        let end = Instant::now() + SILENCE;
        while server.usage().received_bytes < self.sent {
            assert!(
                Instant::now() < end,
                "the server has not received all bytes"
            );
        }
        assert_eq!(
            server.usage().received_bytes,
            self.sent,
            "more was received than sent"
        );
        for connection in &mut self.connections {
            if connection.sent < BURST {
                continue;
            }
            let blocking = connection.stream.set_nonblocking(false);
            blocking.expect("a socket can be set to block");
            let limit = connection.stream.set_read_timeout(Some(SILENCE));
            limit.expect("a socket can have a time limit");
            while !connection.receive() {
                assert!(Instant::now() < end, "a burst is not acknowledged");
            }
        }
    }
}
