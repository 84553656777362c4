//! The module that talks to the peers.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tussah::Scope;
use tussah::flow::{AsyncOut, module};
use tussah::net::{TcpListener, TcpStream};
use tussah::sync::mpsc::{Receiver, Sender, channel};

use super::connection::{Event, serve};
use super::handshake;
use super::node::{Adopted, Node};

/// Bound, in connections: the handshakes of peers that have connected, beyond those that have a
/// seat. Further ones wait in the system's queue.
const HANDSHAKES_MAX: usize = 64;
/// Bound, in events: those that wait between the connections and the router, whose queue is the
/// one that counts.
const EVENTS_MAX: usize = 16;
/// The pause after an error of accepting, so that a lasting one does not take a whole CPU.
const PAUSE: Duration = Duration::from_millis(10);

/// Accepts connections, serves them and those that the catcher made, and sends their packets on.
pub(super) struct Server {
    node: Arc<Node>,
    listener: Arc<TcpListener>,
}

#[module]
impl Server {
    fn init(node: Arc<Node>) -> Result<Self, String> {
        let options = TcpListener::builder()
            .nodelay(true)
            .connections_max(node.options.peers_max + HANDSHAKES_MAX);
        let listener = options.bind(SocketAddr::V4(node.options.listen));
        let listener = listener.map_err(|error| error.to_string())?;
        if let Ok(SocketAddr::V4(address)) = listener.local_addr() {
            // It is not set before this.
            let _ = node.listening.set(address);
        }
        Ok(Self {
            node,
            listener: Arc::new(listener),
        })
    }

    async fn start(&self, out: &impl AsyncOut<Event>) {
        let Some(adopted) = self.node.adopted.lock().take() else {
            return;
        };
        let (sender, mut events) = channel(EVENTS_MAX);
        let (node, listener) = (Arc::clone(&self.node), Arc::clone(&self.listener));
        // The connections end with the scope, so a graph that is stopped reads nothing more.
        let ended = tussah::scope(|scope: Scope<Infallible>| async move {
            let accepted = accept(Arc::clone(&node), listener, scope.clone(), sender.clone());
            scope.spawn(accepted);
            scope.spawn(adopt(node, adopted, scope.clone(), sender));
            while let Ok(event) = events.recv().await {
                out.send(event).await;
            }
            Ok(())
        });
        let Ok(()) = ended.await;
    }
}

/// Starts a thread for each connection, forever.
async fn accept(
    node: Arc<Node>,
    listener: Arc<TcpListener>,
    scope: Scope<Infallible>,
    events: Sender<Event>,
) -> Result<(), Infallible> {
    loop {
        match listener.accept().await {
            Ok(accepted) => {
                let (node, events) = (Arc::clone(&node), events.clone());
                scope.spawn(async move {
                    greet(&node, accepted, &events).await;
                    Ok(())
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tussah::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn greet(node: &Arc<Node>, accepted: (TcpStream, SocketAddr), events: &Sender<Event>) {
    match handshake::answer(node, &accepted.0, accepted.1).await {
        Ok(greeted) => serve(node, accepted, greeted, false, events).await,
        Err(failed) => {
            node.counts.end(&failed.why);
            tracing::info!(peer = %accepted.1, "a handshake failed: {}", failed.why);
        }
    }
}

/// Starts a thread for each connection that the catcher made.
async fn adopt(
    node: Arc<Node>,
    mut adopted: Receiver<Adopted>,
    scope: Scope<Infallible>,
    events: Sender<Event>,
) -> Result<(), Infallible> {
    while let Ok(adopted) = adopted.recv().await {
        let (node, events) = (Arc::clone(&node), events.clone());
        scope.spawn(async move {
            let connection = (adopted.stream, adopted.address);
            serve(&node, connection, adopted.greeted, true, &events).await;
            Ok(())
        });
    }
    Ok(())
}
