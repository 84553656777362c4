//! A running web server: its listeners, and the network that they feed. A reload replaces the
//! network.

mod listen;

use std::fmt;
use std::mem;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::RwLock;
use tussah::JoinHandle;
use tussah::stage::{Network, Stage};
use tussah::sync::oneshot;
use tussah::time::{sleep, timeout};

use super::rejecting::Rejecting;
use super::retry::Rate;
use super::serve::WebError;
use super::tls::Reloadable;
use crate::web::access_log::AccessLog;
use crate::web::answer::php::{self, Backends};
use crate::web::answer::route::Routes;
use crate::web::answer::work;
use crate::web::config::{CacheKind, Config, ListenAddress};
use crate::web::connection::exchange::Exchange;
use crate::web::server::{Server, Shared};
use crate::web::site::{Site, SiteError};
use crate::web::stages::graph::{AcceptStage, Wire};
use listen::{Accepting, Listening};

/// Bound, in seconds: the maximum time for which the end of a network waits until the requests that
/// it has cut are in the log. A handler that holds its OS thread, or a disk that hangs, may keep a
/// request for longer.
const CUT_SECONDS: u64 = 5;

/// A running web server. Dropping this value closes the listeners and abandons the connections.
pub struct Running {
    current: Arc<RwLock<Arc<Instance>>>,
    listening: Vec<Listening>,
    /// Replaced networks, until their connections have ended.
    ending: Vec<JoinHandle<Stopped>>,
    routes: Routes,
    open: OpenSite,
    wire: Box<Wire>,
    shared: Shared,
    accepting: Arc<Accepting>,
}

/// A function that opens the files of a configuration.
pub(crate) type OpenSite = fn(&Config) -> Result<Site, SiteError>;

/// A network for one configuration.
pub(crate) struct Instance {
    pub(crate) server: Arc<Server>,
    pub(crate) accept: AcceptStage,
    pub(crate) tls: Option<Reloadable>,
    /// The pools of applications, which a reload keeps.
    backends: Backends,
    network: Network,
    looking: JoinHandle<()>,
}

/// The outcome of stopping a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// The number of connections that were cut off because they did not end in time.
    pub cut: usize,
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cut {
            0 => f.write_str("stopped; all requests in flight were finished"),
            cut => write!(f, "stopped; connections cut after the drain time: {cut}"),
        }
    }
}

impl Running {
    /// Starts a server whose stages `wire` connects.
    pub(crate) fn start(
        config: Config,
        routes: Routes,
        open: OpenSite,
        wire: Box<Wire>,
    ) -> Result<Self, WebError> {
        let shared = Shared::new(
            config.limits.connections,
            &routes,
            tussah::Handle::current().workers(),
        );
        let site = open(&config).map_err(WebError::Site)?;
        let instance = Instance::new(site, config, &routes, &shared, None, &Vec::new(), &wire)?;
        let instance = Arc::new(instance);
        instance.begin();
        let addresses = instance.server.config.listen.clone();
        let current = Arc::new(RwLock::new(instance));
        let accepting = Arc::<Accepting>::default();
        let mut listening = Vec::new();
        for address in addresses {
            listening.push(Listening::begin(address, &current, &accepting)?);
        }
        Ok(Self {
            current,
            listening,
            ending: Vec::new(),
            routes,
            open,
            wire,
            shared,
            accepting,
        })
    }

    /// Returns the addresses of the listeners, including any port that the operating system chose.
    pub fn addresses(&self) -> impl Iterator<Item = &ListenAddress> {
        self.listening.iter().map(Listening::address)
    }

    /// Returns the server's network of stages, for monitoring. Each [`reload`](Self::reload)
    /// replaces this network.
    #[must_use]
    pub fn network(&self) -> Network {
        self.current.read().network.clone()
    }

    /// Returns the number of open connections, including those that still use an earlier
    /// configuration.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.connections.count()
    }

    /// Waits until every listener has failed, so that the server no longer accepts connections.
    pub(super) async fn accepts_nothing(&self) {
        self.accepting.none().await;
    }

    /// Reopens the access log, as required after log rotation.
    pub fn reopen_log(&self) {
        if let Some(log) = &self.current.read().server.log {
            log.reopen();
        }
    }

    /// Applies a new configuration to new connections. Each open connection ends after its current
    /// request; an idle connection serves at most one more request. A reload does not change the
    /// number of workers.
    ///
    /// # Errors
    /// Returns the same errors as [`Web::start`](super::serve::Web::start). If the reload fails,
    /// the current configuration stays in effect.
    pub async fn reload(&mut self, config: Config) -> Result<(), WebError> {
        let before = Arc::clone(&self.current.read());
        let log = before
            .server
            .log
            .clone()
            .filter(|_| before.server.config.log == config.log);
        let site = (self.open)(&config).map_err(WebError::Site)?;
        let replaced = before.server.log.clone().filter(|_| log.is_none());
        let (routes, shared, backends) = (&self.routes, &self.shared, &before.backends);
        let next = Instance::new(site, config, routes, shared, log, backends, &self.wire)?;
        let next = Arc::new(next);
        let wanted = &next.server.config.listen;
        // A listener that has failed is started again.
        self.listening.retain(|listening| !listening.has_ended());
        let mut added = Vec::new();
        for address in wanted {
            if !self
                .listening
                .iter()
                .any(|listening| listening.is_for(address))
            {
                added.push(Listening::begin(
                    address.clone(),
                    &self.current,
                    &self.accepting,
                )?);
            }
        }
        let is_wanted =
            |listening: &Listening| wanted.iter().any(|address| listening.is_for(address));
        let (kept, gone) = mem::take(&mut self.listening)
            .into_iter()
            .partition(is_wanted);
        self.listening = kept;
        self.listening.append(&mut added);
        let connections_max = next.server.config.limits.connections;
        next.begin();
        *self.current.write() = next;
        self.shared.connections.set_max(connections_max);
        close(gone).await;
        let drain = before.server.config.drain;
        self.ending.retain(|ending| !ending.is_finished());
        self.ending.push(tussah::spawn(async move {
            let stopped = before.end(drain).await;
            close_log(replaced).await;
            stopped
        }));
        Ok(())
    }

    /// Shuts down the server gracefully. The server accepts no further connections, serves at most
    /// one more request from each client that has already connected, and finishes requests in
    /// flight. [`Config::drain`] limits the duration of the shutdown; after that, the server cuts
    /// off and logs the remaining requests. A connection accepted before a [`reload`](Self::reload)
    /// keeps the limit of its original configuration.
    pub async fn stop(mut self) -> Stopped {
        self.ending.retain(|ending| !ending.is_finished());
        close(self.listening).await;
        let current = Arc::clone(&self.current.read());
        let drain = current.server.config.drain;
        let mut stopped = current.end(drain).await;
        for ending in self.ending {
            stopped.cut += ending.await.map_or(0, |stopped| stopped.cut);
        }
        close_log(current.server.log.clone()).await;
        stopped
    }
}

impl fmt::Display for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let current = self.current.read();
        let config = &current.server.config;
        write!(f, "serving {} on", config.root.display())?;
        for address in self.addresses() {
            match address {
                ListenAddress::Tcp(address) if current.tls.is_some() => {
                    write!(f, " https://{address}/")?
                }
                ListenAddress::Tcp(address) => write!(f, " http://{address}/")?,
                ListenAddress::Unix(_) => write!(f, " {address}")?,
            }
        }
        let cache = match config.cache.kind {
            CacheKind::None => "no cache".to_owned(),
            CacheKind::Sharded => format!("cache {} MB", config.cache.bytes / 1_000_000),
        };
        write!(f, " (latency target {:?}, {cache}", config.target)?;
        match &config.status.path {
            Some(path) => write!(f, ", status at {path})"),
            None => f.write_str(")"),
        }
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running")
            .field("addresses", &self.addresses().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.looking.abort();
        self.server.cut();
        // The stages refer to each other, and to the server.
        self.network.close();
    }
}

impl Instance {
    fn new(
        site: Site,
        config: Config,
        routes: &Routes,
        shared: &Shared,
        log: Option<Arc<AccessLog>>,
        before: &Backends,
        wire: &Wire,
    ) -> Result<Self, WebError> {
        let tls = match (&config.tls.cert, &config.tls.key) {
            (Some(cert), Some(key)) => Some(Reloadable::open(cert, key).map_err(WebError::Tls)?),
            _ => None,
        };
        let log = match (log, &config.log.file) {
            (Some(log), _) => Some(log),
            (None, Some(file)) => {
                let opened = AccessLog::open(file, config.log.format);
                let failed = |error| WebError::Log(format!("cannot open the access log: {error}"));
                Some(Arc::new(opened.map_err(failed)?))
            }
            (None, None) => None,
        };
        let mut routes = routes.clone();
        if config.work {
            routes = work::route(routes, &config.root);
        }
        let backends = php::backends(&config, before);
        for backend in &backends {
            routes = php::route(routes, &config, backend).map_err(WebError::Site)?;
        }
        let network = Network::new("web");
        let workers = tussah::Handle::current().workers();
        let server = Arc::new(Server::new(site, config, routes, shared, log, workers));
        let wired = wire(&network, &server).map_err(WebError::Network)?;
        let looking = tussah::spawn(look(wired.routes, Arc::clone(&server)));
        Ok(Self {
            server,
            accept: wired.accept,
            tls,
            backends,
            network,
            looking,
        })
    }

    /// Starts to count its stages as those of the current configuration.
    fn begin(&self) {
        let server = &self.server;
        server
            .totals
            .begin(server.connections.number(), &self.network);
    }

    /// Ends the network: connections may finish what they have begun, within `drain`.
    async fn end(&self, drain: Duration) -> Stopped {
        // From here on, a connection is either among those to wait for, or back with its acceptor.
        self.accept.drain().await;
        self.server.end();
        let connections = &self.server.connections;
        let mut cut = 0;
        if timeout(drain, connections.none()).await.is_err() {
            cut = connections.count();
            self.server.cut();
            let limit = Duration::from_secs(CUT_SECONDS);
            if timeout(limit, connections.none()).await.is_err() {
                let requests = connections.count();
                tracing::warn!(
                    requests,
                    "cut requests that do not end within {CUT_SECONDS} s; they are missing from the access log"
                );
            }
        }
        self.server.totals.end(connections.number());
        self.network.close();
        Stopped { cut }
    }
}

/// Writes the rest of a log that no request needs any longer. Handlers may still refer to it.
async fn close_log(log: Option<Arc<AccessLog>>) {
    let Some(log) = log else { return };
    // The disk may be slow; if lines are lost, the log states it. A disk that hangs may occupy the
    // whole blocking pool, so this is an OS thread of its own.
    let (tell, told) = oneshot::async_channel();
    let closing = Arc::clone(&log);
    let close = move || drop(tell.send(closing.close()));
    let closer = thread::Builder::new().name("close-log".into());
    if closer.spawn(close).is_ok() {
        let _ = told.await;
    }
    // If there is no other OS thread, this one waits, for a short time.
    log.close();
}

async fn close(listening: Vec<Listening>) {
    for listening in listening {
        listening.close().await;
    }
}

/// Updates, once per second, how many requests per second each route can answer. Also logs
/// overloads.
async fn look(routes: Vec<Stage<Box<Exchange>>>, server: Arc<Server>) {
    let each = routes
        .iter()
        .map(|_| (Rate::default(), Rejecting::default()));
    let mut each: Vec<_> = each.collect();
    let (mut before, mut rejected_before) = (0, 0);
    loop {
        sleep(Duration::from_secs(1)).await;
        let (mut arrived, mut inside, mut rejected) = (0, 0, 0);
        let routes = routes.iter().zip(&mut each).zip(&server.retries);
        for ((stage, (rate, rejecting)), retry) in routes {
            let stats = stage.stats();
            rate.look(&stats);
            retry.set_rate(rate);
            rejecting.look(&stats);
            arrived += stats.arrived;
            rejected += stats.refused;
            inside += stats.queued + stats.in_service;
        }
        if std::mem::replace(&mut rejected_before, rejected) == rejected {
            server.budget.calm();
        }
        if arrived == before && inside == 0 {
            server.asked.again().await;
        }
        before = arrived;
    }
}
