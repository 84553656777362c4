//! Starts, runs and stops a router.

use std::fmt;
use std::io;
use std::net::{SocketAddr, SocketAddrV4};
use std::sync::Arc;

use tussah::flow::{self, GraphError, Params, Value, module};
use tussah::sync::oneshot;
use tussah::time::{now, timeout};

use super::graph;
use super::node::Node;
use super::options::Options;
use crate::command::Command;
use crate::web::config::{self, DiagnosticsLevel};
use crate::web::site::SiteError;

/// A router that has not been started.
///
/// ```no_run
/// use tussah_services::gnutella::{Gnutella, Options};
///
/// fn main() -> Result<(), tussah_services::gnutella::GnutellaError> {
///     let peers = vec!["192.0.2.1:6346".to_owned()];
///     Gnutella::new(Options { peers, ..Options::default() }).run()
/// }
/// ```
#[derive(Debug)]
pub struct Gnutella {
    options: Options,
}

/// A running router. Dropping this value does not stop the router.
#[derive(Debug)]
pub struct Running {
    graph: flow::Running,
    node: Arc<Node>,
    address: SocketAddrV4,
    http: SocketAddr,
}

impl Gnutella {
    /// Creates a router.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self { options }
    }

    /// Starts the router in the current runtime. Blocks the calling OS thread while the router
    /// lists the shared files.
    ///
    /// # Errors
    /// Returns an error if an option is out of range, if the shared directory or the file with
    /// hosts cannot be read, or if an address cannot be bound.
    ///
    /// # Panics
    /// Panics if polled outside a runtime.
    pub async fn start(self) -> Result<Running, GnutellaError> {
        let options = self.options;
        let (ready, http) = oneshot::async_channel();
        let (listen, http_listen, look) = (options.listen, options.http, options.look());
        let node = Arc::new(Node::new(options, ready)?);
        let params = Params::new()
            .typed("node", Arc::clone(&node))
            .with("http", Value::Address(http_listen.to_string()))
            .with("look", Value::Duration(look));
        let graph = graph::Gnutella::graph(&params).map_err(GnutellaError::graph)?;
        let graph = graph.start().map_err(|error| match error {
            GraphError::Instance { why, .. } => GnutellaError::Start(why),
            error => GnutellaError::graph(error),
        })?;
        // It is not set before this.
        let _ = node.network.set(graph.network().clone());
        let http = http.await.unwrap_or(SocketAddr::V4(http_listen));
        let address = node.listening.get().copied().unwrap_or(listen);
        Ok(Running {
            graph,
            node,
            address,
            http,
        })
    }

    /// Runs the router in its own runtime until SIGTERM or Ctrl-C. The router then sends the
    /// remaining packets to its peers, for up to [`Options::drain`]; a second signal makes the
    /// router quit immediately.
    ///
    /// # Errors
    /// Returns the same errors as [`start`](Self::start).
    pub fn run(self) -> Result<(), GnutellaError> {
        let mut diagnostics = config::Diagnostics::default();
        if self.options.verbose {
            diagnostics.level = DiagnosticsLevel::Info;
        }
        let command = Command {
            name: "tussah gnutella",
            diagnostics,
            workers: self.options.workers,
            leaving: "taking leave of the peers",
            cut: "connections",
        };
        let stop = async |running: Running| running.stop().await;
        command.run(async || self.start().await, stop, GnutellaError::Runtime)
    }
}

impl Running {
    /// Returns the address to which peers connect.
    #[must_use]
    pub fn address(&self) -> SocketAddrV4 {
        self.address
    }

    /// Returns the address at which the router serves files and its status over HTTP.
    #[must_use]
    pub fn http(&self) -> SocketAddr {
        self.http
    }

    /// Returns the router's running graph, for monitoring.
    #[must_use]
    pub fn graph(&self) -> &flow::Running {
        &self.graph
    }

    /// Shuts down the router: it sends each peer its queued packets and a Bye packet, and closes
    /// the connections. Meanwhile, clients can finish their downloads. The shutdown takes at most
    /// [`Options::drain`].
    pub async fn stop(&self) {
        let drain = self.node.options.drain;
        let begun = now();
        self.node.close();
        // Peers that do not read are cut off by the stop of the graph.
        let _ = timeout(drain, self.node.empty()).await;
        let taken = now().saturating_duration_since(begun);
        self.graph.stop_within(drain.saturating_sub(taken)).await;
    }
}

impl fmt::Display for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (address, http, files) = (self.address, self.http, self.node.share.files());
        write!(
            f,
            "listening at {address} for peers (files: {files}, status: http://{http}/status)"
        )
    }
}

/// Passes the address of HTTP on, once it listens.
pub(super) struct Ready {
    node: Arc<Node>,
}

#[module]
impl Ready {
    fn init(node: Arc<Node>) -> Self {
        Self { node }
    }

    fn run(&self, address: SocketAddr) {
        // It is not set before this.
        let _ = self.node.http.set(address);
        if let Some(ready) = self.node.ready.lock().take() {
            // Without a receiver, the start has been given up.
            let _ = ready.send(address);
        }
    }
}

/// The reason why a router cannot be started.
#[derive(Debug)]
#[non_exhaustive]
pub enum GnutellaError {
    /// The runtime or its signal handlers cannot be created.
    Runtime(io::Error),
    /// An option is out of range.
    Option(String),
    /// The directory with shared files cannot be opened.
    Share(SiteError),
    /// The router cannot bind an address, or cannot read the shared directory or the file with
    /// hosts.
    Start(String),
    /// The graph cannot be created.
    Graph(String),
}

impl GnutellaError {
    fn graph(error: impl fmt::Display) -> Self {
        Self::Graph(error.to_string())
    }
}

impl fmt::Display for GnutellaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Runtime(error) => write!(f, "cannot start the runtime: {error}"),
            Self::Share(error) => error.fmt(f),
            Self::Option(text) | Self::Start(text) | Self::Graph(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for GnutellaError {}
