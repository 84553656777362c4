//! The client of the servers that accept and close: one OS thread, epoll, several connection
//! attempts in flight at the same time.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use crate::cli::Options;
use crate::epoll::{Epoll, EventFlags, token};
use crate::metric::Metric;
use crate::server::{SILENCE, Server};

/// Returns the number of connections that are open at the same time.
pub fn under_way(options: &Options) -> usize {
    options.connections_or(64)
}

/// Measures the server, after a warm-up of a fifth of the time.
pub fn run(options: &Options) -> Vec<Metric> {
    let mut server = Server::start(options);
    let window = options.scaled_duration(Duration::from_secs(5));
    let load = Load {
        server: server.address,
        under_way: under_way(options),
    };
    load.run(window / 5);
    let before = server.usage();
    let outcome = load.run(window);
    let after = server.usage();
    let cpu_s = after.cpu_s - before.cpu_s;
    vec![
        Metric::higher(
            "connections/s",
            outcome.in_time as f64 / window.as_secs_f64(),
        ),
        Metric::lower(
            "CPU s of the server a million connections",
            cpu_s / outcome.all as f64 * 1e6,
        ),
        Metric::info("CPUs of the server", cpu_s / (after.at_s - before.at_s)),
    ]
}

struct Load {
    server: std::net::SocketAddr,
    under_way: usize,
}

/// Connections that the server has closed.
struct Outcome {
    /// The connections closed before the end of the window.
    in_time: usize,
    /// All connections, including those in flight at the end of the window.
    all: usize,
}

impl Load {
    /// Opens connections during `window`, then waits until the last connections have ended.
    fn run(&self, window: Duration) -> Outcome {
        let (epoll, mut ready) = (Epoll::new(), Vec::new());
        let mut outcome = Outcome { in_time: 0, all: 0 };
        let end = Instant::now() + window;
        let open = |place| Some(self.connect(&epoll, place));
        let mut connections: Vec<Option<OwnedFd>> = (0..self.under_way).map(open).collect();
        while connections.iter().any(Option::is_some) {
            epoll.wait(&mut ready, Some(SILENCE));
            assert!(!ready.is_empty(), "the server stopped accepting");
            for event in &ready {
                let place = token(event);
                let connection = connections[place].as_ref();
                if !ended(connection.expect("the epoll has it until it is closed")) {
                    continue;
                }
                connections[place] = None;
                outcome.all += 1;
                if Instant::now() < end {
                    outcome.in_time += 1;
                    connections[place] = open(place);
                }
            }
        }
        outcome
    }

    /// Starts to open a connection.
    fn connect(&self, epoll: &Epoll, place: usize) -> OwnedFd {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)
            .expect("there are descriptors");
        // Closing the socket resets it after the server's close, so that no port stays in use.
        sockopt::set_socket_linger(&socket, Some(Duration::ZERO))
            .expect("a socket has this option");
        match rustix::net::connect(&socket, &self.server) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => panic!("connect failed: {error}"),
        }
        epoll.add(&socket, place, EventFlags::IN);
        socket
    }
}

/// Returns whether the server has closed the connection, without sending anything.
fn ended(connection: &OwnedFd) -> bool {
    match rustix::io::read(connection, &mut [0]) {
        Ok(0) => true,
        Ok(_) => panic!("the server sent unexpected data"),
        Err(Errno::AGAIN) => false,
        Err(error) => panic!("a connection failed: {error}"),
    }
}
