//! Connections that the server accepts and closes immediately.
//!
//! Each server is a loop that accepts and drops. All servers have the same client: see [`client`];
//! for the CPUs of both, see [`crate::server`].

use super::{Peer, Workload, peer};
use crate::cli::Options;
use crate::epoll::{Epoll, EventFlags};
use crate::metric::Metric;
use crate::{runtimes, server};

mod client;

#[cfg(feature = "tussah")]
mod tussah;

pub static WORKLOAD: Workload = Workload {
    name: "connect",
    about: "connections accepted and closed over loopback TCP: connections/s, CPU of the server",
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

fn run(options: &Options, serve: fn(&Options)) -> Vec<Metric> {
    server::run(options, client::under_way(options), serve, client::run)
}

/// Uses an epoll loop for each worker.
fn floor(options: &Options) {
    let workers = options.workers_or(1);
    let listeners = server::listen(workers);
    runtimes::os_threads(options, workers, |index| {
        let listener = server::nonblocking(&listeners[index]);
        let (epoll, mut ready) = (Epoll::new(), Vec::new());
        epoll.add(listener, 0, EventFlags::IN);
        loop {
            epoll.wait(&mut ready, None);
            while let Some(stream) = server::accept(listener) {
                drop(stream);
            }
        }
    });
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
    let listener = runtimes::tokio_listener(server::listen_once());
    loop {
        drop(listener.accept().await.expect("the listener is open"));
    }
}

fn smol(options: &Options) {
    runtimes::smol_with(options, options.workers_or(1), runtimes::Reactor::On);
    let listener = async_io::Async::new(server::listen_once());
    let listener = listener.expect("the reactor takes a socket");
    futures_lite::future::block_on(runtimes::SMOL.spawn(async move {
        loop {
            drop(listener.accept().await.expect("the listener is open"));
        }
    }))
}

/// Uses a runtime and a listener for each worker, since its tasks never migrate.
#[cfg(feature = "compio")]
fn compio(options: &Options) {
    let listeners = server::listen(options.workers_or(1));
    runtimes::compio(options, async |index| {
        let listener = runtimes::compio_listener(&listeners[index]);
        loop {
            drop(listener.accept().await.expect("the listener is open"));
        }
    });
}
