//! The module that talks to the peers.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tussah::Scope;
use tussah::flow::{AsyncOut, module};
use tussah::net::{TcpListener, TcpStream};
use tussah::sync::mpsc::{Receiver, Sender, channel};

use super::connection::{Event, serve};
use super::handshake::{self, Greeted};
use super::node::Node;
use super::why::Why;

/// Bound, in connections: the maximum number of handshakes with peers that connected to the router,
/// in addition to the peers that have a seat. Further connections wait in the system's queue.
const HANDSHAKES_MAX: usize = 64;
/// The maximum number of events that wait between the connections and the router, whose queue is
/// the one that counts.
const EVENTS_MAX: usize = 16;
/// The maximum number of connections that this router has opened but does not serve yet.
const CONNECTED_MAX: usize = 16;
/// The pause after an error of accepting, so that a lasting one does not take a whole CPU.
const PAUSE: Duration = Duration::from_millis(10);

/// A connection that this router has made, after the handshake.
#[derive(Debug)]
pub(super) struct Connected {
    pub(super) stream: TcpStream,
    pub(super) address: SocketAddr,
    pub(super) greeted: Greeted,
}

/// Accepts connections, serves them and those that the router has made, and sends their packets
/// on.
pub(super) struct Server {
    node: Arc<Node>,
    listener: Arc<TcpListener>,
    connect: Sender<Connected>,
    /// `None` after the start.
    connected: Mutex<Option<Receiver<Connected>>>,
}

#[module]
impl Server {
    fn init(node: Arc<Node>) -> Result<Self, String> {
        let options = TcpListener::builder()
            .nodelay(true)
            .connections_max(node.options.peers_max + HANDSHAKES_MAX);
        let listener = options.bind(SocketAddr::V4(node.options.listen));
        let listener = listener.map_err(|error| error.to_string())?;
        let address = listener.local_addr();
        let address = address.map_err(|error| format!("cannot read the own address: {error}"))?;
        if let SocketAddr::V4(address) = address {
            // It is not set before this.
            let _ = node.listening.set(address);
        }
        let (connect, connected) = channel(CONNECTED_MAX);
        Ok(Self {
            node,
            listener: Arc::new(listener),
            connect,
            connected: Mutex::new(Some(connected)),
        })
    }

    async fn run(&self, connected: Connected) {
        // Fails if the graph is gone.
        let _ = self.connect.send(connected).await;
    }

    async fn start(&self, out: &impl AsyncOut<Event>) {
        let Some(connected) = self.connected.lock().take() else {
            return;
        };
        let (sender, mut events) = channel(EVENTS_MAX);
        let (node, listener) = (Arc::clone(&self.node), Arc::clone(&self.listener));
        // The connections end with the scope, so a graph that is stopped reads nothing more.
        let ended = tussah::scope(|scope: Scope<Infallible>| async move {
            let accepted = accept(Arc::clone(&node), listener, scope.clone(), sender.clone());
            scope.spawn(accepted);
            scope.spawn(adopt(node, connected, scope.clone(), sender));
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
            if let Why::Failed(why) = &failed.why {
                tracing::warn!(peer = %accepted.1, "a handshake failed: {why}");
            }
            tracing::info!(peer = %accepted.1, "a handshake failed: {}", failed.why);
        }
    }
}

/// Starts a thread for each connection that the router has made.
async fn adopt(
    node: Arc<Node>,
    mut connected: Receiver<Connected>,
    scope: Scope<Infallible>,
    events: Sender<Event>,
) -> Result<(), Infallible> {
    while let Ok(connected) = connected.recv().await {
        let (node, events) = (Arc::clone(&node), events.clone());
        scope.spawn(async move {
            let connection = (connected.stream, connected.address);
            serve(&node, connection, connected.greeted, true, &events).await;
            Ok(())
        });
    }
    Ok(())
}
