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
    /// The assignment of colors to connections.
    pub colors: Colors,
    /// The latency target of every route that does not set its own. Requests that the server cannot
    /// answer in time get status 503.
    pub target: Duration,
    /// The mode of the routes' overload control.
    pub overload: Mode,
    /// The handling of dynamic requests whose clients have half-closed the connection.
    pub half_close: HalfClose,
    /// The time limit for finishing requests in flight during a shutdown, after which the server
    /// cuts them off.
    pub drain: Duration,
    /// The value of the header field `Server`; `None` omits the field.
    pub server_header: Option<String>,
    /// The proxies whose `X-Forwarded-For` field the server trusts. Include every proxy that runs
    /// on this machine; see [`StatusPageOptions::from`].
    pub trusted_proxies: Vec<Peers>,
    /// The address of the FastCGI application, such as php-fpm, that runs the site's PHP scripts.
    /// With `None`, the server runs no scripts except those of the applications in `fastcgi`. With
    /// an address, the server answers a request for a path that ends in `.php` with the output of
    /// the script instead of its source.
    pub php: Option<Address>,
    /// The FastCGI applications. The field `php` adds another application, with default limits.
    pub fastcgi: Vec<FastCgi>,
    /// True to serve the page `/work`. For each request to `/work`, the server computes and then
    /// waits, each for the time that the query specifies.
    pub work: bool,
    /// The page cache.
    pub cache: Cache,
    /// The limits on a client's requests.
    pub limits: Limits,
    /// The time limits for clients.
    pub timeouts: Timeouts,
    /// The certificate and key files for TLS; without them, the server speaks plain HTTP.
    pub tls: Tls,
    /// The access log.
    pub log: Log,
    /// The settings for messages on standard error.
    pub diagnostics: Diagnostics,
    /// The status page, which shows the counters of every stage.
    pub status: StatusPageOptions,
    /// The options for serving files.
    pub site: SiteOptions,
    /// The origins of the values, which [`show`](Self::show) prints. Set this field only through
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
            status: StatusPageOptions::default(),
            site: SiteOptions::default(),
            origins: Origins::default(),
        }
    }
}

/// An address at which a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// A TCP address; if its port is 0, the operating system chooses a free port.
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

/// The assignment of colors to connections. Events of one color run one at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colors {
    /// Each connection has its own color.
    #[default]
    Connection,
    /// All connections share one color. Use this as the baseline for measuring the gain from
    /// separate colors.
    One,
}

/// The handling of a dynamic request whose client has half-closed the connection (sent a FIN). The
/// server cannot tell a client that has left from one that merely has nothing more to send, such as
/// `nc -N`. A reset by the client always cancels the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HalfClose {
    /// The request is cancelled, because the client has most likely left.
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

/// The kind of page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheKind {
    /// The cache consists of shards: one for each worker, each with its own color.
    #[default]
    Sharded,
    /// There is no cache: every request reads its file.
    None,
}

/// The settings of the page cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// The kind of page cache.
    pub kind: CacheKind,
    /// Bound, in bytes: the maximum total size of the cached pages, 200 MB by default.
    pub bytes: u64,
    /// Bound, in bytes: the maximum size of a file whose contents are cached, 128 KB by default.
    /// The cache keeps larger files open; over TCP without TLS, the kernel sends them without
    /// copying.
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
    /// Bound, in bytes: the maximum length of a request's head (16 KiB by default, at most 65,535
    /// bytes); a longer head gets status 431. The request target may be up to 8 KiB long; a longer
    /// target gets status 414.
    pub head_bytes: u64,
    /// Bound, in fields: the maximum number of fields in a request's head, 100 by default; a head
    /// with more fields gets status 431.
    pub headers: usize,
    /// Bound, in bytes: the maximum length of a request's body, 1 MiB by default; a longer body
    /// gets status 413. Unless the route [streams](crate::web::Route::streams) bodies, the server
    /// reads the whole body of a dynamic request before it admits the request. All bodies together
    /// may therefore occupy up to `connections` times `body_bytes` of memory.
    pub body_bytes: u64,
    /// Bound, in connections: the maximum number of open connections of the process, 20,000 by
    /// default. At the limit, a new connection evicts an idle one; if none is idle, the new
    /// connection gets status 503.
    pub connections: usize,
    /// Bound, in requests: the maximum number of requests on one connection, after which the server
    /// closes the connection; unlimited by default.
    pub requests: Option<usize>,
    /// Bound, in percent of the workers' time: the maximum share that rejections for overload may
    /// take, 25 by default; `None` for no bound. Beyond this share, a client that retries early has
    /// to wait until the server has time for another rejection, but no longer than `Retry-After`
    /// specified. When rejections exceed their share, the server also accepts connections more
    /// slowly.
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

/// The time limits for clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// The time limit for receiving a request's head, from its first byte to its last, and for the
    /// TLS handshake.
    pub head: Duration,
    /// The time limit for receiving the whole body of a request. The total time for a streamed body
    /// is unlimited. Instead, the server adds up the time that it spends waiting for a streamed
    /// body. Whenever the total waiting time reaches the limit, the server checks how much of the
    /// body has arrived since the last check, and resets the total. The server stops reading the
    /// body if nothing has arrived since the last check, or if the average rate is below
    /// [`rate`](Self::rate).
    pub body: Duration,
    /// The time for which a connection may be idle between a response and the next request.
    pub idle: Duration,
    /// The time after which the server resets the connection of a client that stalls while reading
    /// a response.
    pub write: Duration,
    /// The minimum rate, in bytes per second, at which a client must read a response or send a
    /// streamed body; `None` means no minimum. The server averages the rate of a response over
    /// `write`, and the rate of a streamed body over `body`, not counting chunk sizes, chunk
    /// extensions and trailers.
    pub rate: Option<u64>,
    /// The time for which the server continues to read from a client after closing its own side of
    /// the connection. During a shutdown, the server also keeps idle connections open for this
    /// time, in case a request is already on its way. During a shutdown, idle connections stay open
    /// for at most half of [`Config::drain`].
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

/// The certificate and key files for TLS; set both or neither.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// The file that contains the certificate and its chain, in PEM format.
    pub cert: Option<PathBuf>,
    /// The file that contains the certificate's private key, in PEM format.
    pub key: Option<PathBuf>,
}

/// The destination of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogFile {
    /// Standard output.
    Stdout,
    /// A file that log lines are appended to.
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
    /// The common log format, extended with the referrer and the user agent.
    #[default]
    Combined,
}

/// The settings of the access log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// The destination of the log; `None` disables the log.
    pub file: Option<LogFile>,
    /// The format.
    pub format: LogFormat,
}

/// The settings for messages on standard error. Only [`Web::run`](crate::web::Web::run) applies
/// these settings, and only if the program has not set its own `tracing` subscriber.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    /// The most detailed level of messages to write.
    pub level: DiagnosticsLevel,
    /// The format of messages. A reload does not change the format.
    pub format: DiagnosticsFormat,
}

/// The level of messages; each level includes all levels listed before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiagnosticsLevel {
    /// No messages.
    Off,
    /// Failures that lose data or leave work undone.
    Error,
    /// Degraded service.
    #[default]
    Warn,
    /// The activity of the runtime and its stages.
    Info,
    /// Refused requests.
    Debug,
}

/// The format of messages; each message is one line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiagnosticsFormat {
    /// Text, for people to read.
    #[default]
    Text,
    /// A JSON object, for programs to parse.
    Json,
}

/// Options for the status page, which shows the counters of every stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusPageOptions {
    /// The path of the status page; `None` disables the page.
    pub path: Option<String>,
    /// The clients that may see the page; for other clients, the page does not exist. A client
    /// behind a [trusted](Config::trusted_proxies) proxy is identified by the address that the
    /// proxy specifies. Clients behind an untrusted proxy do not see the page if the proxy adds
    /// `X-Forwarded-For` or `Forwarded`. If an untrusted proxy adds neither field, the server takes
    /// the proxy itself for a client. If an untrusted proxy on this machine adds neither
    /// `X-Forwarded-For` nor `Forwarded`, all of its clients can see the page by default.
    pub from: Vec<Peers>,
}

impl Default for StatusPageOptions {
    fn default() -> Self {
        let loopback = ["127.0.0.0/8", "::1/128"];
        let from = loopback.map(|network| network.parse().expect("a network"));
        Self {
            path: Some("/status".into()),
            from: from.into(),
        }
    }
}
