//! A web server, made and run.

use std::fmt;
use std::future::Future;
use std::io;

use futures_lite::future;
use rustix::process::{Resource, getrlimit, setrlimit};
use tussah::signal::{Signal, Signals, signal};
use tussah::stage::BuildError;

use super::config::{Config, ConfigErrors};
use super::console::{STDERR, STDOUT};
use super::diagnostics::Diagnostics;
use super::route::{Reply, Request, Routes};
use super::running::Running;
use super::site::SiteError;
use super::tls::TlsError;
use crate::signals;

type Reload = Box<dyn Fn() -> Result<Config, ConfigErrors> + Send>;

/// A web server that has not been started.
///
/// ```no_run
/// use tussah_services::web::{Reply, Request, Web, config::Config};
///
/// fn main() -> Result<(), tussah_services::web::WebError> {
///     let hello = async |request: Request| Reply::text(format!("Hello from {}\n", request.path()));
///     Web::new(Config::default()).route("/hello", hello).run()
/// }
/// ```
pub struct Web {
    pub(super) config: Config,
    pub(super) routes: Routes,
    reload: Option<Reload>,
}

impl Web {
    /// A server of files, as they are configured.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            routes: Routes::default(),
            reload: None,
        }
    }

    /// Has an async function answer for a path, whatever the method; for all paths that begin so, if it ends in `/*`. It is given requests whole, with their bodies. When more arrive
    /// than can be answered within [`Config::target`], the rest is turned away with 503 before it gets here,
    /// and told when its turn is (`Retry-After`): in the order of a queue that holds who was turned away. On a connection that was turned away the next request goes before those
    /// of others.
    #[must_use]
    pub fn route<F, A>(mut self, path: &str, handler: F) -> Self
    where
        F: Fn(Request) -> A + Send + Sync + 'static,
        A: Future<Output = Reply> + Send + 'static,
    {
        self.routes = self.routes.route(path, handler);
        self
    }

    /// Where a new configuration comes from when the process gets SIGHUP.
    #[must_use]
    pub fn reload_by(
        mut self,
        load: impl Fn() -> Result<Config, ConfigErrors> + Send + 'static,
    ) -> Self {
        self.reload = Some(Box::new(load));
        self
    }

    /// Starts the server in the runtime that the caller runs in.
    ///
    /// # Errors
    /// If the site or the certificates can't be opened, or an address can't be had.
    ///
    /// # Panics
    /// Outside of a runtime.
    pub async fn start(self) -> Result<Running, WebError> {
        Running::start(self.config, self.routes).await
    }

    /// Runs the server in a runtime of its own, with at most as many arenas of the C library's allocator as workers if the process has no second OS thread yet
    /// ([`bound_arenas`](tussah::heap::bound_arenas)), until SIGTERM or Ctrl-C: then what is in flight is finished, and a second one ends that at once. SIGHUP loads
    /// configuration and certificates anew, and opens logs again.
    ///
    /// What goes wrong meanwhile is said on standard error, as [`Config::diagnostics`] has it, unless the program has set a subscriber of `tracing` of its own.
    ///
    /// # Errors
    /// As [`start`](Self::start); and if every listener has failed.
    pub fn run(mut self) -> Result<(), WebError> {
        let _said = Said;
        let diagnostics = Diagnostics::install(&self.config.diagnostics);
        raise_descriptors();
        bound_arenas(self.config.workers);
        let mut builder = tussah::Runtime::builder();
        if let Some(workers) = self.config.workers {
            builder = builder.workers(workers);
        }
        let runtime = builder.build().map_err(WebError::Runtime)?;
        let reload = self.reload.take();
        runtime.block_on(async {
            let orders = Orders::listen().map_err(WebError::Runtime)?;
            let mut running = self.start().await?;
            say(&running);
            let order = loop {
                match next(&orders, &running).await {
                    Order::Reload => reload_by(&mut running, reload.as_ref(), &diagnostics).await,
                    other => break other,
                }
            };
            if order == Order::GiveUp {
                say(&NOWHERE);
            }
            say(&"stopping: what is in flight is finished; once more stops at once");
            let finished = async { running.stop().await.to_string() };
            let at_once = async {
                while orders.next().await == Order::Reload {}
                "stopped at once".to_owned()
            };
            say(&future::or(finished, at_once).await);
            match order {
                Order::GiveUp => Err(WebError::Listen(NOWHERE.to_owned())),
                _ => Ok(()),
            }
        })
    }
}

impl fmt::Debug for Web {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Web")
            .field("config", &self.config)
            .field("routes", &self.routes)
            .finish_non_exhaustive()
    }
}

/// Why a server ends by itself.
const NOWHERE: &str = "there is nowhere left to accept connections: every listener has failed";

/// What to do next: what the operator wants, or what is left.
async fn next(orders: &Orders, running: &Running) -> Order {
    let nowhere = async {
        running.accepts_nothing().await;
        Order::GiveUp
    };
    future::or(orders.next(), nowhere).await
}

async fn reload_by(running: &mut Running, reload: Option<&Reload>, diagnostics: &Diagnostics) {
    running.reopen_log();
    let Some(reload) = reload else { return };
    let config = match reload() {
        Ok(config) => config,
        Err(errors) => return say(&format_args!("the configuration stays as it is:\n{errors}")),
    };
    let level = config.diagnostics.level;
    match running.reload(config).await {
        Ok(()) => {
            diagnostics.set_level(level);
            say(&format_args!(
                "configuration and certificates are loaded anew; {running}"
            ));
        }
        Err(error) => say(&format_args!("the configuration stays as it is: {error}")),
    }
}

/// Tells the operator.
fn say(text: &dyn fmt::Display) {
    STDOUT.say(format!("tussah web: {text}\n").into_bytes());
}

/// Waits, when this is dropped, until all that was said is written, or nobody seems to read it.
struct Said;

impl Drop for Said {
    fn drop(&mut self) {
        STDOUT.flush();
        STDERR.flush();
    }
}

/// What the operator wants, or has to be done.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Stop,
    Reload,
    /// Nothing can be accepted any more.
    GiveUp,
}

/// The signals by which the operator says so.
struct Orders([(Signals, Order); 3]);

impl Orders {
    fn listen() -> io::Result<Self> {
        Ok(Self([
            (signal(Signal::INT)?, Order::Stop),
            (signal(Signal::TERM)?, Order::Stop),
            (signal(Signal::HUP)?, Order::Reload),
        ]))
    }

    async fn next(&self) -> Order {
        let [first, second, third] = &self.0;
        let wait = async |(signals, order): &(Signals, Order)| {
            signals::wait(signals).await;
            *order
        };
        future::or(future::or(wait(first), wait(second)), wait(third)).await
    }
}

/// Has the process open as many descriptors as it may.
fn raise_descriptors() {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current < limit.maximum {
        limit.current = limit.maximum;
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            tracing::warn!(%error, "the number of descriptors stays as it is");
        }
    }
}

/// Has the allocator keep what it keeps for each arena a few times at most: pages are read by some OS threads, and let go by others.
fn bound_arenas(workers: Option<usize>) {
    let cpus = || std::thread::available_parallelism().map_or(1, usize::from);
    if !tussah::heap::bound_arenas(workers.unwrap_or_else(cpus)) {
        tracing::debug!("the allocator's arenas are not bounded");
    }
}

/// Why a server can't be started. To `main`, which shows what it returns by `Debug`, it says the same as to others.
#[non_exhaustive]
pub enum WebError {
    /// No runtime could be had, or no signals.
    Runtime(io::Error),
    /// The directory, or a page in it that is named in the configuration.
    Site(SiteError),
    /// An address: why it can't be listened at, and who has it if that can be known.
    Listen(String),
    /// The certificates.
    Tls(TlsError),
    /// The access log.
    Log(String),
    /// The network of stages.
    Network(BuildError),
}

impl fmt::Display for WebError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Runtime(error) => write!(f, "the runtime can't be started: {error}"),
            Self::Site(error) => error.fmt(f),
            Self::Listen(text) | Self::Log(text) => f.write_str(text),
            Self::Tls(error) => error.fmt(f),
            Self::Network(error) => error.fmt(f),
        }
    }
}

impl fmt::Debug for WebError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for WebError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Runtime(error) => Some(error),
            Self::Site(error) => Some(error),
            Self::Tls(error) => Some(error),
            Self::Network(error) => Some(error),
            Self::Listen(_) | Self::Log(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn main_shows_a_sentence() {
        let error = WebError::Listen("can't listen at \"x\"".to_owned());
        assert_eq!(format!("{error:?}"), "can't listen at \"x\"");
    }
}
