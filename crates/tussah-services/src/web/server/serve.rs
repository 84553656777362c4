//! Builds and runs a web server.

use std::fmt;
use std::future::Future;
use std::io;

use futures_lite::future;
use tussah::console::{STDERR, STDOUT};
use tussah::signal::{Signal, Signals, signal};
use tussah::stage::BuildError;
use tussah::sync::Limit;

use super::running::{OpenSite, Running};
use super::tls::TlsError;
use crate::signals;
use crate::web::answer::reply::Reply;
use crate::web::answer::route::{Request, Route, Routes};
use crate::web::config::{Config, ConfigErrors};
use crate::web::diagnostics::Diagnostics;
use crate::web::site::SiteError;
use crate::web::stages::graph::wire;

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
    /// Creates a server that serves the files that `config` specifies.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            routes: Routes::default(),
            reload: None,
        }
    }

    /// Adds a route: an async function that answers requests of any method for a path. A path that
    /// ends in `/*` matches all paths with that prefix. A path such as `*.php` matches the paths of
    /// scripts with that extension. The route's function receives complete requests, including
    /// their bodies.
    ///
    /// Each route has its own queue and admission control. If more requests arrive than the route
    /// can answer within [`Config::target`], the server rejects the excess requests with status
    /// 503. Other routes are not affected. `Retry-After` tells a rejected client when to retry.
    /// Clients get retry times in the order in which they are rejected. A client that retries at
    /// its retry time, on the same connection, takes precedence over new clients of the route.
    ///
    /// If a client disconnects before it has received the response, its request is cancelled; see
    /// [`Route`].
    #[must_use]
    pub fn route<F, A>(self, path: &str, handler: F) -> Self
    where
        F: Fn(Request) -> A + Send + Sync + 'static,
        A: Future<Output = Reply> + Send + 'static,
    {
        self.route_with(path, Route::new(handler))
    }

    /// Adds a route, as [`route`](Self::route) does, but with options.
    #[must_use]
    pub fn route_with(mut self, path: &str, route: Route) -> Self {
        self.routes = self.routes.route_with(path, route);
        self
    }

    /// Lists a limited resource on the status page. For each listed resource, the page shows how
    /// many requests use it, how many wait for it, and how long requests have waited. If two limits
    /// have the same name, the page shows only the one that was added last.
    #[must_use]
    pub fn limit(mut self, limit: &Limit) -> Self {
        self.routes = self.routes.limit(limit);
        self
    }

    /// Sets the function that loads the new configuration when SIGHUP arrives.
    #[must_use]
    pub fn reload_by(
        mut self,
        load: impl Fn() -> Result<Config, ConfigErrors> + Send + 'static,
    ) -> Self {
        self.reload = Some(Box::new(load));
        self
    }

    /// Starts the server in the current runtime.
    ///
    /// # Errors
    /// Returns an error if the site, the certificates or the access log cannot be opened, or if an
    /// address cannot be bound.
    ///
    /// # Panics
    /// Panics if polled outside a runtime.
    pub async fn start(self) -> Result<Running, WebError> {
        let open: OpenSite = Config::open_site;
        Running::start(self.config, self.routes, open, Box::new(wire))
    }

    /// Runs the server in its own runtime until a signal stops the server. On SIGTERM or Ctrl-C,
    /// the server shuts down and finishes the requests in flight; a second such signal makes it
    /// quit immediately. SIGHUP reloads the configuration and the certificates, and reopens the
    /// logs.
    ///
    /// Diagnostics go to standard error, as [`Config::diagnostics`] specifies, unless the program
    /// has set its own `tracing` subscriber. If the process has only one OS thread, this function
    /// limits the C library's allocator to one arena per worker
    /// ([`bound_arenas`](tussah::heap::bound_arenas)).
    ///
    /// # Errors
    /// Returns the same errors as [`start`](Self::start). Also returns an error if every listener
    /// has failed.
    pub fn run(mut self) -> Result<(), WebError> {
        let _said = Said;
        let diagnostics = Diagnostics::install(&self.config.diagnostics);
        if let Err(error) = crate::descriptors::raise() {
            tracing::warn!(%error, "cannot raise the limit of open files (RLIMIT_NOFILE); it stays as it is");
        }
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
            say(&"shutting down: finishing requests in flight (signal again to quit now)");
            let finished = async { running.stop().await.to_string() };
            let at_once = async {
                while orders.next().await == Order::Reload {}
                "stopped now; requests in flight were cut".to_owned()
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

/// The reason why a server ends on its own.
const NOWHERE: &str = "every listener has failed; no connections can be accepted";

/// Waits for the operator's next command, or for the failure of every listener.
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
        Err(errors) => {
            return say(&format_args!(
                "reload failed, the old configuration stays in effect:\n{errors}"
            ));
        }
    };
    let level = config.diagnostics.level;
    match running.reload(config).await {
        Ok(()) => {
            diagnostics.set_level(level);
            say(&format_args!(
                "configuration and certificates reloaded; {running}"
            ));
        }
        Err(error) => say(&format_args!(
            "reload failed, the old configuration stays in effect: {error}"
        )),
    }
}

/// Prints a message for the operator.
fn say(text: &dyn fmt::Display) {
    STDOUT.say(format!("tussah web: {text}\n").into_bytes());
}

/// A guard whose drop waits until all messages have been written, or have no reader.
struct Said;

impl Drop for Said {
    fn drop(&mut self) {
        STDOUT.flush();
        STDERR.flush();
    }
}

/// A command from the operator, or an event that needs action.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Stop,
    Reload,
    /// No listener accepts connections any longer.
    GiveUp,
}

/// The signals from the operator.
struct Orders([(Signals, Order); 3]);

impl Orders {
    fn listen() -> io::Result<Self> {
        signals::fail_writes_at_the_limit()?;
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

/// Limits the number of allocator arenas, each of which keeps freed memory. Some OS threads read
/// pages, and others free them.
fn bound_arenas(workers: Option<usize>) {
    let cpus = || std::thread::available_parallelism().map_or(1, usize::from);
    if !tussah::heap::bound_arenas(workers.unwrap_or_else(cpus)) {
        tracing::debug!("cannot limit the number of malloc arenas; memory use may be higher");
    }
}

/// An error that prevents a web server from starting or from continuing. The `Debug` output of the
/// error is the same as its `Display` output, so a program whose `main` returns the error prints a
/// readable message.
#[non_exhaustive]
pub enum WebError {
    /// The runtime or its signal handlers cannot be created.
    Runtime(io::Error),
    /// The site's directory, its fallback, or one of its error pages cannot be opened.
    Site(SiteError),
    /// An address cannot be bound, or every listener has failed. The string states the reason and,
    /// if known, the process that uses the address.
    Listen(String),
    /// The certificates cannot be used.
    Tls(TlsError),
    /// The access log cannot be opened.
    Log(String),
    /// The network of stages cannot be created.
    Network(BuildError),
}

impl fmt::Display for WebError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Runtime(error) => write!(f, "cannot start the runtime: {error}"),
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
        let error = WebError::Listen("cannot bind \"x\"".to_owned());
        assert_eq!(format!("{error:?}"), "cannot bind \"x\"");
    }
}
