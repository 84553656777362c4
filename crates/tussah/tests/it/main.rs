//! The integration tests of tussah, except those of flow graphs.

mod alone;
mod callbacks;
mod cancel;
mod colored;
mod common;
#[cfg(feature = "dns")]
mod dns;
mod events;
mod examples;
mod foreign;
mod fs;
mod net;
mod no_runtime;
mod pipe;
mod process;
mod proxy_examples;
mod scopes;
mod send;
mod signal;
mod stages;
mod stages_governor;
mod stages_graph;
mod stages_net;
mod stages_proxy;
mod stages_record;
mod stages_shutdown;
mod stages_threads;
mod stages_trace;
mod sync;
mod threads;
mod time;
mod udp;
mod unix;

use std::net::Ipv6Addr;

use common::{by_hand, idle, run, runtime};
use socket2::{Domain, SockAddr, Socket, Type};

/// Runs a future as a thread of a runtime with one worker, whose driver exists from the first wait
/// on: for tests that count descriptors.
#[track_caller]
fn run_on_one<F>(future: F) -> F::Output
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    runtime(1).block_on_spawned(future)
}

/// A port that refuses TCP connections at all addresses of this machine while its socket is kept.
/// One that was given back could become another test's.
fn refusing() -> (Socket, u16) {
    let socket = Socket::new(Domain::IPV6, Type::STREAM, None).expect("a socket");
    socket.set_only_v6(false).expect("set");
    let any = std::net::SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
    socket.bind(&any.into()).expect("there is a port");
    let address = socket
        .local_addr()
        .as_ref()
        .ok()
        .and_then(SockAddr::as_socket);
    (socket, address.expect("it is bound").port())
}
