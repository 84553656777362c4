//! Starting and ending a server.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tussah::net::TcpListener;
use tussah::stage::Network;

use super::clock::Clock;
use super::graph::wire;
use super::server::{Limits, Server};
use super::stream::Stream;

/// Serves a directory.
pub fn run(root: PathBuf, listen: &str, workers: usize) -> std::io::Result<()> {
    let runtime = tussah::Runtime::builder().workers(workers).build()?;
    runtime.block_on(async {
        let server = Arc::new(Server {
            clock: Arc::new(Clock::new()),
            root,
            shards: if workers == 1 { 1 } else { 2 * workers },
            hasher: foldhash::fast::RandomState::default(),
            cache_bytes: 200_000_000,
            limits: Limits {
                connections_max: 20_000,
                idle_max: Duration::from_secs(60),
                head_max: Duration::from_secs(10),
                stall_max: Duration::from_secs(30),
                linger_max: Duration::from_secs(2),
            },
        });
        tussah::spawn(Arc::clone(&server.clock).run());
        let network = Network::new("web");
        let accept = wire(&network, &server).expect("the network is sound");
        let listener = TcpListener::bind(listen)?;
        println!("listening at {}", listener.local_addr()?);
        let sender = accept.sender();
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let _ = sender.send(Stream::Tcp(stream)).await;
        }
    })
}
