//! An echo server over loopback TCP: 64 bytes each way, one request in flight on each connection.
//!
//! Each server is the idiomatic program of its runtime: a task for each connection that reads into
//! a small buffer and writes the bytes back. The tasks only borrow their connections, so that no
//! task stores a connection twice. All servers have the same client (see [`client`]);
//! [`crate::server`] describes the CPUs of both.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use super::{Peer, Workload, peer};
use crate::cli::Options;
use crate::epoll::{Epoll, EventFlags, token};
use crate::metric::Metric;
use crate::{runtimes, server};

mod client;

#[cfg(feature = "tussah")]
mod tussah;

pub static WORKLOAD: Workload = Workload {
    name: "echo",
    about: "64 bytes echoed over loopback TCP: requests/s, CPU of the server, p99, fairness, bytes an idle connection",
    peers: PEERS,
};

const PEERS: &[Peer] = &[
    peer("floor", |options| run(options, floor)),
    peer("tokio", |options| run(options, tokio)),
    peer("tokio-current", |options| run(options, tokio_current)),
    peer("smol", |options| run(options, smol)),
    #[cfg(feature = "compio")]
    peer("compio", |options| run(options, compio)),
    #[cfg(feature = "tussah")]
    peer("tussah", |options| run(options, tussah::serve)),
];

/// The size of a connection's buffer, in bytes. It is larger than a request, so that a partial read
/// tells the runtime that no more data is available.
const BUFFER: usize = 128;

fn run(options: &Options, serve: fn(&Options)) -> Vec<Metric> {
    server::run(options, client::descriptors(options), serve, client::run)
}

/// Uses an epoll loop for each worker, with one buffer for all of its connections.
fn floor(options: &Options) {
    let workers = options.workers_or(1);
    let listeners = server::listen(workers);
    runtimes::os_threads(options, workers, |index| {
        let listener = server::nonblocking(&listeners[index]);
        let (epoll, mut ready) = (Epoll::new(), Vec::new());
        let mut connections: Vec<Option<Connection>> = Vec::new();
        let mut buffer = [0; 4096];
        epoll.add(listener, usize::MAX, EventFlags::IN);
        loop {
            epoll.wait(&mut ready, None);
            for event in &ready {
                let index = token(event);
                if index == usize::MAX {
                    while let Some(stream) = server::accept(listener) {
                        stream.set_nodelay(true).expect("TCP has this option");
                        epoll.add(&stream, connections.len(), EventFlags::IN);
                        let unsent = Vec::new();
                        connections.push(Some(Connection { stream, unsent }));
                    }
                    continue;
                }
                let connection = connections[index].as_mut();
                let connection = connection.expect("the epoll has it while it is open");
                if !connection.turn(&epoll, index, &mut buffer) {
                    connections[index] = None;
                }
            }
        }
    });
}

/// A connection of the floor, with the bytes that did not fit into its socket (there are almost
/// never any).
struct Connection {
    stream: TcpStream,
    unsent: Vec<u8>,
}

impl Connection {
    /// Echoes the available bytes. Returns false if the connection has ended.
    fn turn(&mut self, epoll: &Epoll, index: usize, buffer: &mut [u8]) -> bool {
        let unsent = !self.unsent.is_empty();
        let echoed = if unsent {
            self.stream.write(&self.unsent).map(|written| {
                self.unsent.drain(..written);
            })
        } else {
            self.stream.read(buffer).and_then(|read| match read {
                0 => Err(ErrorKind::BrokenPipe.into()),
                _ => self.echo(&buffer[..read]),
            })
        };
        match echoed {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => {
                server::ended(&error);
                return false;
            }
        }
        if unsent == self.unsent.is_empty() {
            let flags = match unsent {
                true => EventFlags::IN,
                false => EventFlags::OUT,
            };
            epoll.modify(&self.stream, index, flags);
        }
        true
    }

    /// Writes `bytes`, and keeps those for which the socket has no room.
    fn echo(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let written = match self.stream.write(bytes) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            written => written?,
        };
        if written < bytes.len() {
            self.unsent.extend_from_slice(&bytes[written..]);
        }
        Ok(())
    }
}

fn tokio(options: &Options) {
    let runtime = runtimes::tokio_io(options);
    let serving = runtime.spawn(tokio_serve());
    let served = runtime.block_on(serving);
    served.expect("the server does not panic");
}

/// Does the same on a single OS thread, with tokio's runtime without workers.
fn tokio_current(_: &Options) {
    runtimes::tokio_current().block_on(tokio_serve());
}

async fn tokio_serve() {
    let listener = runtimes::tokio_listener(server::listen_once());
    loop {
        let (mut stream, _) = listener.accept().await.expect("the listener is open");
        tokio::spawn(async move {
            tokio_echo(&mut stream)
                .await
                .unwrap_or_else(|error| server::ended(&error))
        });
    }
}

async fn tokio_echo(stream: &mut tokio::net::TcpStream) -> std::io::Result<()> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    stream.set_nodelay(true)?;
    let mut buffer = [0; BUFFER];
    loop {
        let read = stream.read(&mut buffer).await?;
        if read == 0 {
            return Ok(());
        }
        stream.write_all(&buffer[..read]).await?;
    }
}

fn smol(options: &Options) {
    use async_io::Async;
    runtimes::smol_with(options, options.workers_or(1), runtimes::Reactor::On);
    let listener = Async::new(server::listen_once()).expect("the reactor takes a socket");
    let serve = async move {
        loop {
            let (mut stream, _) = listener.accept().await.expect("the listener is open");
            let echoing = async move {
                smol_echo(&mut stream)
                    .await
                    .unwrap_or_else(|error| server::ended(&error))
            };
            runtimes::SMOL.spawn(echoing).detach();
        }
    };
    futures_lite::future::block_on(runtimes::SMOL.spawn(serve))
}

async fn smol_echo(stream: &mut async_io::Async<TcpStream>) -> std::io::Result<()> {
    use futures_lite::{AsyncReadExt, AsyncWriteExt};
    stream.get_ref().set_nodelay(true)?;
    let mut buffer = [0; BUFFER];
    loop {
        let read = stream.read(&mut buffer).await?;
        if read == 0 {
            return Ok(());
        }
        stream.write_all(&buffer[..read]).await?;
    }
}

/// Uses a runtime and a listener for each worker, since its tasks never migrate.
#[cfg(feature = "compio")]
fn compio(options: &Options) {
    use ::compio::BufResult;
    use ::compio::buf::{IntoInner, IoBuf};
    use ::compio::io::{AsyncRead, AsyncWriteExt};
    use ::compio::net::TcpStream;
    let listeners = server::listen(options.workers_or(1));
    let echo = async |stream: &mut TcpStream| -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let mut buffer = Vec::with_capacity(BUFFER);
        loop {
            let BufResult(read, filled) = stream.read(buffer).await;
            let read = read?;
            if read == 0 {
                return Ok(());
            }
            let BufResult(written, echoed) = stream.write_all(filled.slice(..read)).await;
            written?;
            buffer = echoed.into_inner();
        }
    };
    runtimes::compio(options, async |index| {
        let listener = runtimes::compio_listener(&listeners[index]);
        loop {
            let (mut stream, _) = listener.accept().await.expect("the listener is open");
            let echoing = async move {
                echo(&mut stream)
                    .await
                    .unwrap_or_else(|error| server::ended(&error))
            };
            ::compio::runtime::spawn(echoing).detach();
        }
    });
}
