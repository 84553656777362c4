//! Starts, runs and stops a video server.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tussah::flow::{self, GraphError, Params, Value, module};
use tussah::sync::oneshot;

use super::graph;
use super::library::Library;
use super::options::{Options, show_rate};
use crate::command::Command;
use crate::web::config;
use crate::web::site::SiteError;

/// A video server that has not been started.
///
/// ```no_run
/// use tussah_services::video::{Options, Video};
///
/// fn main() -> Result<(), tussah_services::video::VideoError> {
///     let root = "/srv/videos".into();
///     Video::new(Options { root, ..Options::default() }).run()
/// }
/// ```
#[derive(Debug)]
pub struct Video {
    options: Options,
}

/// A running video server. Dropping this handle does not stop the server.
#[derive(Debug)]
pub struct Running {
    graph: flow::Running,
    library: Arc<Library>,
    address: SocketAddr,
}

impl Video {
    /// Creates a server.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self { options }
    }

    /// Starts the server in the current runtime. For each disk whose rate is not stated, the
    /// function blocks the calling OS thread for about half a second, to measure the rate.
    ///
    /// # Errors
    /// Returns an error if an option is out of range, if the directory or a disk cannot be opened,
    /// or if the address cannot be bound.
    ///
    /// # Panics
    /// Panics if polled outside a runtime.
    pub async fn start(self) -> Result<Running, VideoError> {
        let options = self.options;
        check(&options)?;
        let (ready, address) = oneshot::async_channel();
        let (listen, connections) = (options.listen, options.connections as u64);
        let patience = options.patience;
        let library = Arc::new(Library::open(options, ready)?);
        let params = Params::new()
            .typed("library", Arc::clone(&library))
            .with("disks", Value::Count(library.disks.len() as u64))
            .with("listen", Value::Address(listen.to_string()))
            .with("connections", Value::Count(connections))
            .with("patience", Value::Duration(patience));
        let graph = graph::Video::graph(&params).map_err(VideoError::graph)?;
        let graph = graph.start().map_err(|error| match error {
            // The other instances cannot fail to start.
            GraphError::Instance { why, .. } => VideoError::Listen(why),
            error => VideoError::graph(error),
        })?;
        // It is not set before this.
        let _ = library.network.set(graph.network().clone());
        let address = address.await.unwrap_or(listen);
        Ok(Running {
            graph,
            library,
            address,
        })
    }

    /// Runs the server in its own runtime until SIGTERM or Ctrl-C, and then shuts the server down.
    /// During the shutdown, the server accepts no connections, and lets streams continue for up to
    /// [`Options::drain`]. A second signal makes the server quit immediately.
    ///
    /// # Errors
    /// Returns the same errors as [`start`](Self::start).
    pub fn run(self) -> Result<(), VideoError> {
        let command = Command {
            name: "tussah video",
            diagnostics: config::Diagnostics::default(),
            workers: self.options.workers,
            leaving: "streams continue for a while",
            cut: "streams",
        };
        let stop = async |running: Running| running.stop().await;
        command.run(async || self.start().await, stop, VideoError::Runtime)
    }
}

impl Running {
    /// Returns the address at which the server listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the server's running graph, for monitoring.
    #[must_use]
    pub fn graph(&self) -> &flow::Running {
        &self.graph
    }

    /// Shuts down the server. The server stops accepting connections, and lets streams continue for
    /// up to [`Options::drain`].
    pub async fn stop(&self) {
        let drain = self.library.options.drain;
        self.graph.stop_within(drain).await;
    }
}

impl fmt::Display for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (root, address) = (self.library.options.root.display(), self.address);
        write!(f, "serving {root} on http://{address}/ (")?;
        for disk in &self.library.disks {
            write!(f, "disk {} {}, ", disk.path.display(), show_rate(disk.rate))?;
        }
        f.write_str("status at /status)")
    }
}

/// Checks the ranges of the options that only this server has.
fn check(options: &Options) -> Result<(), VideoError> {
    let times = [("chunk", options.chunk), ("ahead", options.ahead)];
    for (name, time) in times {
        if !(TIME_MIN..=TIME_MAX).contains(&time) {
            return Err(VideoError::Option(format!(
                "`{name}` is {time:?}: expected {TIME_MIN:?} to {TIME_MAX:?}"
            )));
        }
    }
    if options.chunk > options.ahead {
        return Err(VideoError::Option(format!(
            "`chunk` is {:?}: expected at most `ahead`, which is {:?}",
            options.chunk, options.ahead
        )));
    }
    Ok(())
}

/// The shortest and the longest chunk.
const TIME_MIN: Duration = Duration::from_millis(100);
const TIME_MAX: Duration = Duration::from_secs(3600);

/// Passes the address of the listener on, once the graph runs.
pub(super) struct Ready {
    library: Arc<Library>,
}

#[module]
impl Ready {
    fn init(library: Arc<Library>) -> Self {
        Self { library }
    }

    fn run(&self, address: SocketAddr) {
        if let Some(ready) = self.library.ready.lock().take() {
            // Without a receiver, the start has been given up.
            let _ = ready.send(address);
        }
    }
}

/// The sender of the address of the listener.
pub(super) type Address = Mutex<Option<oneshot::Sender<SocketAddr>>>;

/// An error that prevents a video server from starting.
#[derive(Debug)]
#[non_exhaustive]
pub enum VideoError {
    /// The runtime or its signal handlers cannot be created.
    Runtime(io::Error),
    /// An option is out of range.
    Option(String),
    /// The directory cannot be served.
    Site(SiteError),
    /// A disk cannot be opened.
    Disk(String),
    /// The address cannot be bound, or a limit of the listener is out of range.
    Listen(String),
    /// The graph cannot be created.
    Graph(String),
}

impl VideoError {
    fn graph(error: impl fmt::Display) -> Self {
        Self::Graph(error.to_string())
    }
}

impl fmt::Display for VideoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Runtime(error) => write!(f, "cannot start the runtime: {error}"),
            Self::Site(error) => error.fmt(f),
            Self::Option(text) | Self::Disk(text) | Self::Listen(text) | Self::Graph(text) => {
                f.write_str(text)
            }
        }
    }
}

impl std::error::Error for VideoError {}
