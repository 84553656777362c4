//! A web server that runs: its listeners, and the network that they feed. Another network takes the place of the first when the configuration is loaded anew.

mod listen;

use std::fmt;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use tussah::JoinHandle;
use tussah::stage::Network;
use tussah::time::{sleep, timeout};

use super::access_log::AccessLog;
use super::config::{CacheKind, Config, ListenAddress};
use super::graph::{AcceptStage, wire};
use super::route::Routes;
use super::serve::WebError;
use super::server::{Server, Shared};
use super::tls::Reloadable;
use super::work;
use listen::{Accepting, Listening};

/// A server that runs. Dropping it closes its listeners and lets go of its connections.
pub struct Running {
    current: Arc<RwLock<Arc<Instance>>>,
    listening: Vec<Listening>,
    /// Those whose place another has taken, as long as their connections end.
    ending: Vec<JoinHandle<Stopped>>,
    routes: Routes,
    shared: Shared,
    accepting: Arc<Accepting>,
    ticking: JoinHandle<()>,
}

/// A network, for one configuration.
pub(crate) struct Instance {
    pub(crate) server: Arc<Server>,
    pub(crate) accept: AcceptStage,
    pub(crate) tls: Option<Reloadable>,
    network: Network,
    retrying: JoinHandle<()>,
}

/// What became of a server's connections when it was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Connections that had not ended in time, and were cut.
    pub cut: usize,
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cut {
            0 => f.write_str("stopped; everything in flight was finished"),
            cut => write!(f, "stopped; connections that had not ended in time: {cut}"),
        }
    }
}

impl Running {
    pub(super) async fn start(config: Config, routes: Routes) -> Result<Self, WebError> {
        let shared = Shared::new(config.limits.connections);
        let instance = Arc::new(Instance::new(config, &routes, &shared, None)?);
        instance.begin();
        let addresses = instance.server.config.listen.clone();
        let current = Arc::new(RwLock::new(instance));
        let accepting = Arc::<Accepting>::default();
        let mut listening = Vec::new();
        for address in addresses {
            listening.push(Listening::begin(address, &current, &accepting)?);
        }
        let ticking = tussah::spawn(Arc::clone(&shared.clock).run());
        Ok(Self {
            current,
            listening,
            ending: Vec::new(),
            routes,
            shared,
            accepting,
            ticking,
        })
    }

    /// Where it listens: with the ports that the system has chosen.
    pub fn addresses(&self) -> impl Iterator<Item = &ListenAddress> {
        self.listening.iter().map(Listening::address)
    }

    /// The network of stages, to be looked at. It is another one after each [`reload`](Self::reload).
    #[must_use]
    pub fn network(&self) -> Network {
        self.current.read().network.clone()
    }

    /// How many connections are open, whatever configuration they have begun with.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.connections.count()
    }

    /// Waits until every listener has failed, so that nothing more is accepted.
    pub(super) async fn accepts_nothing(&self) {
        self.accepting.none().await;
    }

    /// Opens the access log again, as after it was moved away.
    pub fn reopen_log(&self) {
        if let Some(log) = &self.current.read().server.log {
            log.reopen();
        }
    }

    /// Has another configuration hold for new connections; those that are open end after the request that they have begun. The number of workers stays as it is.
    ///
    /// # Errors
    /// As [`Web::start`](super::Web::start); everything then stays as it was.
    pub async fn reload(&mut self, config: Config) -> Result<(), WebError> {
        let before = Arc::clone(&self.current.read());
        let log = before
            .server
            .log
            .clone()
            .filter(|_| before.server.config.log == config.log);
        let next = Arc::new(Instance::new(config, &self.routes, &self.shared, log)?);
        let wanted = &next.server.config.listen;
        // One that has failed is begun again.
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
        self.ending
            .push(tussah::spawn(async move { before.end(drain).await }));
        Ok(())
    }

    /// Stops: who has connected before is served once more, nothing more is accepted, and what is in flight is finished, for as long as [`Config::drain`] says. What a [`reload`](Self::reload) has left to end is waited for too, for as long as
    /// its own configuration says.
    pub async fn stop(mut self) -> Stopped {
        self.ending.retain(|ending| !ending.is_finished());
        close(self.listening).await;
        let current = Arc::clone(&self.current.read());
        let drain = current.server.config.drain;
        let mut stopped = current.end(drain).await;
        for ending in self.ending {
            stopped.cut += ending.await.map_or(0, |stopped| stopped.cut);
        }
        self.ticking.abort();
        if let Some(log) = current.server.log.clone() {
            // The disk may be slow; the log says it if something is lost.
            let _ = tussah::spawn_blocking(move || log.close()).await;
        }
        stopped
    }
}

impl fmt::Display for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let current = self.current.read();
        let config = &current.server.config;
        write!(f, "serving {} at", config.root.display())?;
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
        write!(f, " (dynamic pages within {:?}, {cache}", config.target)?;
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
        self.retrying.abort();
        self.server.connections.cut_all();
        // Its stages refer to each other, and to the server.
        self.network.close();
    }
}

impl Instance {
    fn new(
        config: Config,
        routes: &Routes,
        shared: &Shared,
        log: Option<Arc<AccessLog>>,
    ) -> Result<Self, WebError> {
        let tls = match (&config.tls.cert, &config.tls.key) {
            (Some(cert), Some(key)) => Some(Reloadable::open(cert, key).map_err(WebError::Tls)?),
            _ => None,
        };
        let log = match (log, &config.log.file) {
            (Some(log), _) => Some(log),
            (None, Some(file)) => {
                let opened = AccessLog::open(file, config.log.format);
                let failed =
                    |error| WebError::Log(format!("the access log can't be opened: {error}"));
                Some(Arc::new(opened.map_err(failed)?))
            }
            (None, None) => None,
        };
        let routes = if config.work {
            work::route(routes.clone(), &config.root)
        } else {
            routes.clone()
        };
        let network = Network::new("web");
        let workers = tussah::Handle::current().workers();
        let server = Server::new(config, routes, shared, log, workers);
        let server = Arc::new(server.map_err(WebError::Site)?);
        let accept = wire(&network, &server).map_err(WebError::Network)?;
        let retrying = tussah::spawn(estimate_retry(network.clone(), Arc::clone(&server)));
        Ok(Self {
            server,
            accept,
            tls,
            network,
            retrying,
        })
    }

    /// Has its stages counted, as those of the current configuration.
    fn begin(&self) {
        let server = &self.server;
        server
            .totals
            .begin(server.connections.number(), &self.network);
    }

    /// Ends it: connections finish what they have begun, for so long.
    async fn end(&self, drain: Duration) -> Stopped {
        // From here on a connection is among those that are waited for, or whoever has accepted it has it back.
        self.accept.drain().await;
        self.server.end();
        let ended = timeout(drain, self.server.connections.none()).await;
        let cut = match ended {
            Ok(()) => 0,
            Err(_) => self.server.connections.count(),
        };
        self.server.connections.cut_all();
        self.server.totals.end(self.server.connections.number());
        self.network.close();
        Stopped { cut }
    }
}

async fn close(listening: Vec<Listening>) {
    for listening in listening {
        listening.close().await;
    }
}

/// Finds out once a second how many dynamic pages can be made in a second: as many as were made while some were turned away, or as were made at any time.
async fn estimate_retry(network: Network, server: Arc<Server>) {
    let Ok(dynamic) = network.find::<Box<super::exchange::Exchange>>("dynamic") else {
        return;
    };
    let (mut before, mut rate, mut known) = (dynamic.stats(), 0.0_f64, 0);
    loop {
        sleep(Duration::from_secs(1)).await;
        let stats = dynamic.stats();
        let made = (stats.finished - before.finished) as f64;
        if stats.refused + stats.shed > before.refused + before.shed {
            // What was made when nobody was turned away may be all that was asked for.
            known += stats.finished - before.finished;
            rate += if rate > 0.0 {
                (made - rate) / 4.0
            } else {
                made
            };
        } else {
            rate = rate.max(made);
        }
        server.retry.set_rate(rate, known);
        before = stats;
    }
}
