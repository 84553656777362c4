//! The settings of a web server, with their defaults.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use tussah::net::Hangup;
use tussah::stage::control::Mode;

use super::fastcgi::FastCgi;
use super::load::Origins;
use super::peers::Peers;
use crate::fastcgi::Address;
use crate::web::site::SiteOptions;

/// The configuration of a web server.
///
/// ```
/// use tussah_services::web::config::{Config, Limits, ListenAddress};
///
/// let config = Config {
///     root: "/srv/www".into(),
///     listen: vec![ListenAddress::Tcp("[::1]:8080".parse()?)],
///     limits: Limits { connections: 1000, ..Default::default() },
///     ..Default::default()
/// };
/// assert!(config.show().contains("root = \"/srv/www\""));
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Config {
    /// The directory to serve.
    pub root: PathBuf,
    /// The addresses to listen on; at least one.
    pub listen: Vec<ListenAddress>,
    /// The number of workers; `None` means one for each CPU.
    pub workers: Option<usize>,
    /// The objects that have a color of their own.
    pub colors: Colors,
    /// The latency target of each route that has no target of its own. The server rejects a request
    /// with 503 if it cannot answer the request in time.
    pub target: Duration,
    /// The mode of the routes' overload control.
    pub overload: Mode,
    /// The handling of a dynamic request whose client has closed its side of the connection.
    pub half_close: HalfClose,
    /// The time limit for finishing requests in flight during a shutdown.
    pub drain: Duration,
    /// The value of the header field `Server`; `None` omits the field.
    pub server_header: Option<String>,
    /// The proxies whose `X-Forwarded-For` is trusted. List every proxy on this machine; see
    /// [`Status::from`].
    pub trusted_proxies: Vec<Peers>,
    /// The application that runs the scripts of the site, such as php-fpm; `None` runs none. The
    /// server then answers paths that end in `.php` with their output instead of their text.
    pub php: Option<Address>,
    /// The FastCGI applications. The field `php` adds one more application, with default limits.
    pub fastcgi: Vec<FastCgi>,
    /// True to serve the page `/work`, which does the amount of work that its query states.
    pub work: bool,
    /// The page cache.
    pub cache: Cache,
    /// The limits on a client's requests.
    pub limits: Limits,
    /// The time limits for a client.
    pub timeouts: Timeouts,
    /// The files for TLS; without them the server speaks plain HTTP.
    pub tls: Tls,
    /// The access log.
    pub log: Log,
    /// The messages on standard error.
    pub diagnostics: Diagnostics,
    /// The status page, which shows the counters of every stage.
    pub status: Status,
    /// The options for serving files.
    pub site: SiteOptions,
    /// The sources of the values, for [`show`](Self::show). Set this field only through
    /// `..Default::default()`.
    pub origins: Origins,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            root: ".".into(),
            listen: vec![ListenAddress::Tcp(([127, 0, 0, 1], 8080).into())],
            workers: None,
            colors: Colors::default(),
            target: Duration::from_secs(1),
            overload: Mode::default(),
            half_close: HalfClose::default(),
            drain: Duration::from_secs(30),
            server_header: Some("tussah".into()),
            trusted_proxies: Vec::new(),
            php: None,
            fastcgi: Vec::new(),
            work: false,
            cache: Cache::default(),
            limits: Limits::default(),
            timeouts: Timeouts::default(),
            tls: Tls::default(),
            log: Log::default(),
            diagnostics: Diagnostics::default(),
            status: Status::default(),
            site: SiteOptions::default(),
            origins: Origins::default(),
        }
    }
}

/// An address at which a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// A TCP port; with port 0 the system chooses a free one.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// The objects that have a color of their own. Events of one color run one at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colors {
    /// Each connection has its own color.
    #[default]
    Connection,
    /// No object has its own color: all connections share one. Use this to measure the gain from
    /// colors.
    One,
}

/// The handling of a dynamic request whose client has closed its side of the connection (FIN). The
/// server cannot tell a client that has left from one that merely has nothing more to send, such as
/// `nc -N`. A reset always cancels the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HalfClose {
    /// The request is cancelled, since the client has most likely left.
    #[default]
    Cancel,
    /// The request is answered.
    Serve,
}

impl HalfClose {
    /// Returns the kind of hang-up after which a client counts as gone.
    pub(crate) fn gone_at(self) -> Hangup {
        match self {
            Self::Cancel => Hangup::Half,
            Self::Serve => Hangup::Full,
        }
    }
}

/// The stage that caches pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheKind {
    /// Shards, one for each worker, each with its own color.
    #[default]
    Sharded,
    /// There is no cache: every request reads its file.
    None,
}

/// The settings of the page cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// The stage that holds the cache.
    pub kind: CacheKind,
    /// Bound, in bytes: the total size of the cached pages, 200 MB by default.
    pub bytes: u64,
    /// Bound, in bytes: the largest file whose contents are cached, 128 KB by default. Larger files
    /// stay open; over TCP without TLS, the system sends them without copying.
    pub file_bytes: u64,
}

impl Default for Cache {
    fn default() -> Self {
        Self {
            kind: CacheKind::Sharded,
            bytes: 200_000_000,
            file_bytes: 128_000,
        }
    }
}

/// The limits on a client's requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bound, in bytes: the length of a request's head, 16 KiB by default, at most 65,535; a longer
    /// head gets status 431. The target may have 8 KiB; a longer target gets status 414.
    pub head_bytes: u64,
    /// Bound, in fields: the number of fields in a request's head, 100 by default; more get status
    /// 431.
    pub headers: usize,
    /// Bound, in bytes: the length of a request's body, 1 MiB by default; a longer body gets status
    /// 413. Unless its route [streams](crate::web::Route::streams) bodies, the server reads the
    /// body of a dynamic request completely before it admits the request. All bodies together may
    /// therefore take `connections` times this much memory.
    pub body_bytes: u64,
    /// Bound, in connections: the open connections of the process, 20,000 by default. At the limit,
    /// a new connection evicts an idle one; if there is none, the new connection gets 503.
    pub connections: usize,
    /// Bound, in requests: the number on one connection, after which the server closes it;
    /// unlimited by default.
    pub requests: Option<usize>,
    /// Bound, in percent of the workers' time: the time that rejections for overload may take, 25
    /// by default; `None` for no bound. Beyond it, a client that retries early waits until its turn
    /// or its `Retry-After`, and the server accepts connections more slowly.
    pub rejecting: Option<usize>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_bytes: 16 << 10,
            headers: 100,
            body_bytes: 1 << 20,
            connections: 20_000,
            requests: None,
            rejecting: Some(25),
        }
    }
}

/// The time limits for a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// The time limit for a request's head, from its first byte to its last, and for the TLS
    /// handshake.
    pub head: Duration,
    /// The time limit for the whole body of a request. A streamed body has no total limit, but the
    /// server gives up if it receives less than `rate` times this time while it waits this long.
    pub body: Duration,
    /// The time limit from a response to the next request.
    pub idle: Duration,
    /// The time for which a client may stall while reading a response, before its connection is
    /// reset.
    pub write: Duration,
    /// The minimum rate at which a client reads a response, on average over `write`, or sends a
    /// streamed body, in bytes per second.
    pub rate: Option<u64>,
    /// The time for which a client may continue to send after the server has closed its side.
    /// During a shutdown, it is also the time limit for a request that is on its way.
    pub linger: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(10),
            body: Duration::from_secs(30),
            idle: Duration::from_secs(60),
            write: Duration::from_secs(30),
            rate: Some(500),
            linger: Duration::from_secs(2),
        }
    }
}

/// The files for TLS: both or none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// The certificate with its chain, PEM.
    pub cert: Option<PathBuf>,
    /// The certificate's private key, PEM.
    pub key: Option<PathBuf>,
}

/// The destination of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogFile {
    /// Standard output.
    Stdout,
    /// A file, to which the log is appended.
    Path(PathBuf),
}

impl fmt::Display for LogFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdout => f.write_str("standard output"),
            Self::Path(path) => path.display().fmt(f),
        }
    }
}

/// The format of the access log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// NCSA's common log format.
    Common,
    /// The same format with the referrer and the user agent.
    #[default]
    Combined,
}

/// The settings of the access log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// The destination; `None` disables the log.
    pub file: Option<LogFile>,
    /// The format.
    pub format: LogFormat,
}

/// The settings of the messages on standard error. Only [`Web::run`](crate::web::Web::run) applies
/// them, and only if the program has no `tracing` subscriber of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    /// The most detailed level of messages to write.
    pub level: DiagnosticsLevel,
    /// The format. A reload does not change it.
    pub format: DiagnosticsFormat,
}

/// The level of messages; each level includes those before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiagnosticsLevel {
    /// No messages.
    Off,
    /// Failures that lose something or leave something undone.
    Error,
    /// Degraded service.
    #[default]
    Warn,
    /// The activity of the runtime and its stages.
    Info,
    /// Refused requests.
    Debug,
}

/// The format of messages, one on each line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiagnosticsFormat {
    /// Text for people.
    #[default]
    Text,
    /// A JSON object for programs.
    Json,
}

/// The status page, which shows the counters of every stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The path; `None` disables the page.
    pub path: Option<String>,
    /// The clients that may see the page; for others it does not exist. For a client of a
    /// [trusted](Config::trusted_proxies) proxy, the address that the proxy specifies decides. For
    /// clients of any other proxy the page does not exist. However, an untrusted proxy that adds
    /// neither `X-Forwarded-For` nor `Forwarded` looks like a client. If it runs on this machine,
    /// every client sees the page through it.
    pub from: Vec<Peers>,
}

impl Default for Status {
    fn default() -> Self {
        let loopback = ["127.0.0.0/8", "::1/128"];
        let from = loopback.map(|network| network.parse().expect("a network"));
        Self {
            path: Some("/status".into()),
            from: from.into(),
        }
    }
}
