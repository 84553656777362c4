//! Bursts of packets from many connections, each burst acknowledged: the benchmark of SEDA's
//! asynchronous sockets.
//!
//! It comes from "SEDA: An Architecture for Well-Conditioned, Scalable Internet Services" (SOSP
//! 2001), the section on asynchronous socket I/O. Each client sends bursts of 1000 packets of 8 KB,
//! and the server answers each burst with 32 bytes. The paper's clients are other machines; here,
//! [`client`] is another process: see [`crate::server`].

use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_lite::AsyncRead;

use super::{Peer, Workload, peer};
use crate::cli::Options;
use crate::epoll::{Epoll, EventFlags, token};
use crate::metric::Metric;
use crate::{runtimes, server};
use burst::{ACK, PACKET, Receiver};

mod burst;
mod client;

#[cfg(feature = "tussah")]
mod tussah;

pub static WORKLOAD: Workload = Workload {
    name: "bursts",
    about: "bursts of 1000 packets of 8 KB over loopback TCP, each acknowledged: MB/s, CPU of the server",
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

/// The size of the buffer of an OS thread, in bytes. A read is processed immediately, so all
/// connections of a worker share the buffer. It stays in the CPU's cache, and a waiting connection
/// needs none.
const BUFFER: usize = 8 * PACKET;

thread_local! {
    static SHARED: RefCell<Box<[u8]>> = RefCell::new(vec![0; BUFFER].into());
}

/// Reads once with `poll_read` into the buffer of the OS thread. Returns the acknowledgement if a
/// burst has ended.
async fn receive_shared(
    receiver: &mut Receiver,
    mut poll_read: impl FnMut(&mut Context<'_>, &mut [u8]) -> Poll<io::Result<usize>>,
) -> io::Result<Option<[u8; ACK]>> {
    poll_fn(|context| {
        SHARED.with_borrow_mut(|buffer| {
            let read = ready!(poll_read(context, buffer))?;
            Poll::Ready(match read {
                0 => Err(ErrorKind::BrokenPipe.into()),
                _ => Ok(receiver.take(&buffer[..read])),
            })
        })
    })
    .await
}

fn run(options: &Options, serve: fn(&Options)) -> Vec<Metric> {
    server::run(options, client::connections(options), serve, client::run)
}

/// Uses an epoll loop for each worker, with one buffer for all of its connections.
fn floor(options: &Options) {
    let workers = options.workers_or(1);
    let listeners = server::listen(workers);
    runtimes::os_threads(options, workers, |index| {
        let listener = server::nonblocking(&listeners[index]);
        let (epoll, mut ready) = (Epoll::new(), Vec::new());
        let mut buffer = vec![0; BUFFER];
        let mut connections: Vec<Option<(TcpStream, Receiver)>> = Vec::new();
        epoll.add(listener, usize::MAX, EventFlags::IN);
        loop {
            epoll.wait(&mut ready, None);
            for event in &ready {
                if token(event) == usize::MAX {
                    while let Some(stream) = server::accept(listener) {
                        stream.set_nodelay(true).expect("TCP has this option");
                        epoll.add(&stream, connections.len(), EventFlags::IN);
                        connections.push(Some((stream, Receiver::default())));
                    }
                    continue;
                }
                let connection = &mut connections[token(event)];
                let (stream, receiver) = connection
                    .as_mut()
                    .expect("the epoll has it while it is open");
                match floor_turn(stream, receiver, &mut buffer) {
                    Ok(()) => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(error) => {
                        server::ended(&error);
                        *connection = None;
                    }
                }
            }
        }
    });
}

/// Reads once and acknowledges. The answer always fits, since the client reads it before it sends
/// more.
fn floor_turn(
    stream: &mut TcpStream,
    receiver: &mut Receiver,
    buffer: &mut [u8],
) -> io::Result<()> {
    let read = stream.read(buffer)?;
    if read == 0 {
        return Err(ErrorKind::BrokenPipe.into());
    }
    match receiver.take(&buffer[..read]) {
        Some(ack) => stream.write_all(&ack),
        None => Ok(()),
    }
}

fn tokio(options: &Options) {
    let runtime = runtimes::tokio_io(options);
    let serving = runtime.spawn(tokio_serve());
    let served = runtime.block_on(serving);
    served.expect("the server does not panic");
}

/// Does the same on the OS thread of one runtime, without workers.
fn tokio_current(_: &Options) {
    runtimes::tokio_current().block_on(tokio_serve());
}

async fn tokio_serve() {
    use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf};
    let listener = runtimes::tokio_listener(server::listen_once());
    let receive = async |mut stream: tokio::net::TcpStream| -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut receiver = Receiver::default();
        loop {
            let ack = receive_shared(&mut receiver, |context, buffer| {
                let mut buffer = ReadBuf::new(buffer);
                ready!(Pin::new(&mut stream).poll_read(context, &mut buffer))?;
                Poll::Ready(Ok(buffer.filled().len()))
            });
            if let Some(ack) = ack.await? {
                stream.write_all(&ack).await?;
            }
        }
    };
    loop {
        let (stream, _) = listener.accept().await.expect("the listener is open");
        tokio::spawn(async move {
            receive(stream)
                .await
                .unwrap_or_else(|error| server::ended(&error))
        });
    }
}

fn smol(options: &Options) {
    use async_io::Async;
    use futures_lite::AsyncWriteExt;
    runtimes::smol_with(options, options.workers_or(1), runtimes::Reactor::On);
    let listener = Async::new(server::listen_once()).expect("the reactor takes a socket");
    let receive = async |mut stream: Async<TcpStream>| -> io::Result<()> {
        stream.get_ref().set_nodelay(true)?;
        let mut receiver = Receiver::default();
        loop {
            let ack = receive_shared(&mut receiver, |context, buffer| {
                Pin::new(&mut stream).poll_read(context, buffer)
            });
            if let Some(ack) = ack.await? {
                stream.write_all(&ack).await?;
            }
        }
    };
    let serve = async move {
        loop {
            let (stream, _) = listener.accept().await.expect("the listener is open");
            let receiving = async move {
                receive(stream)
                    .await
                    .unwrap_or_else(|error| server::ended(&error))
            };
            runtimes::SMOL.spawn(receiving).detach();
        }
    };
    futures_lite::future::block_on(runtimes::SMOL.spawn(serve))
}

/// Uses a runtime and a listener for each worker, since its tasks never migrate, and a buffer for
/// each connection, since the kernel owns it while the connection waits.
#[cfg(feature = "compio")]
fn compio(options: &Options) {
    use ::compio::BufResult;
    use ::compio::io::{AsyncRead, AsyncWriteExt};
    use ::compio::net::TcpStream;
    let listeners = server::listen(options.workers_or(1));
    let receive = async |mut stream: TcpStream| -> io::Result<()> {
        stream.set_nodelay(true)?;
        let (mut buffer, mut receiver) = (Vec::with_capacity(BUFFER), Receiver::default());
        loop {
            let BufResult(read, filled) = stream.read(buffer).await;
            let read = read?;
            if read == 0 {
                return Ok(());
            }
            if let Some(ack) = receiver.take(&filled[..read]) {
                stream.write_all(ack).await.0?;
            }
            buffer = filled;
        }
    };
    runtimes::compio(options, async |index| {
        let listener = runtimes::compio_listener(&listeners[index]);
        loop {
            let (stream, _) = listener.accept().await.expect("the listener is open");
            let receiving = async move {
                receive(stream)
                    .await
                    .unwrap_or_else(|error| server::ended(&error))
            };
            ::compio::runtime::spawn(receiving).detach();
        }
    });
}
