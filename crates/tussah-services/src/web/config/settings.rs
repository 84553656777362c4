//! What can be set about a web server, with the defaults.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::load::Origins;
use super::peers::Peers;
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
    /// The directory that is served.
    pub root: PathBuf,
    /// Where connections are accepted; at least one.
    pub listen: Vec<ListenAddress>,
    /// How many OS threads run the server; `None` is one for each CPU.
    pub workers: Option<usize>,
    /// What has a color of its own.
    pub colors: Colors,
    /// Within which time dynamic content is answered; what can't be is turned away with 503.
    pub target: Duration,
    /// How long requests in flight may take when the server is told to stop.
    pub drain: Duration,
    /// The value of `Server`, or none.
    pub server_header: Option<String>,
    /// Whose word about the client's address is believed (`X-Forwarded-For`). Every proxy on this machine should be here, see [`Status::from`].
    pub trusted_proxies: Vec<Peers>,
    /// Whether the page `/work` is there, which costs as much as it is asked for.
    pub work: bool,
    /// What is kept in memory.
    pub cache: Cache,
    /// How much a client may ask for.
    pub limits: Limits,
    /// How long a client may take.
    pub timeouts: Timeouts,
    /// Which files TLS takes, or none for plain HTTP.
    pub tls: Tls,
    /// What is written down of requests.
    pub log: Log,
    /// What the server says on standard error of what goes wrong.
    pub diagnostics: Diagnostics,
    /// The page with the counters of every stage.
    pub status: Status,
    /// What is served, and how.
    pub site: SiteOptions,
    /// Where the values come from, for [`show`](Self::show); not to be set, but by `..Default::default()`.
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
            drain: Duration::from_secs(30),
            server_header: Some("tussah".into()),
            trusted_proxies: Vec::new(),
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

/// Where a server accepts connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// A TCP port; port 0 is any free one.
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

/// What has a color of its own: events of one color run one at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colors {
    /// Each connection.
    #[default]
    Connection,
    /// Nothing: all connections have one color. So it is measured what colors are worth.
    One,
}

/// The stage that keeps pages in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheKind {
    /// Shards, each in a color: as many as workers.
    #[default]
    Sharded,
    /// None: every request reads its file.
    None,
}

/// What is kept in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// Which stage keeps it.
    pub kind: CacheKind,
    /// Bound, in bytes: what all pages in the cache take, 200 MB by default.
    pub bytes: u64,
    /// Bound, in bytes: how long a file may be to be kept, 1 MB by default; longer ones are sent from the file.
    pub file_bytes: u64,
}

impl Default for Cache {
    fn default() -> Self {
        Self {
            kind: CacheKind::Sharded,
            bytes: 200_000_000,
            file_bytes: 1_000_000,
        }
    }
}

/// How much a client may ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bound, in bytes: the head of a request, 16 KiB by default, 65,535 at most; 431 beyond. Of that the target may have 8 KiB; 414 beyond.
    pub head_bytes: u64,
    /// Bound, in fields: the head of a request, 100 by default; 431 beyond.
    pub headers: usize,
    /// Bound, in bytes: the body of a request, 1 MiB by default; 413 beyond. A body for a route is read whole before the request is let in, so bodies may take as much memory as `connections` times this.
    pub body_bytes: u64,
    /// Bound, in connections: those of the process that are open at a time, 20,000 by default. For one more, one that is idle makes room; 503 if there is none.
    pub connections: usize,
    /// Bound, in requests: how many one connection may carry before it is closed; none by default.
    pub requests: Option<usize>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_bytes: 16 << 10,
            headers: 100,
            body_bytes: 1 << 20,
            connections: 20_000,
            requests: None,
        }
    }
}

/// How long a client may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// From the first byte of a request's head, or the TLS handshake, to its last.
    pub head: Duration,
    /// For the body of a request, whole.
    pub body: Duration,
    /// From an answer to the next request.
    pub idle: Duration,
    /// Without taking a byte of an answer; then the connection is reset.
    pub write: Duration,
    /// The slowest that a client may take an answer, on average over `write`, in bytes a second.
    pub rate: Option<u64>,
    /// For going on sending when the server has closed its side; and, when it stops, for a request that is on its way.
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
    /// Its private key, PEM.
    pub key: Option<PathBuf>,
}

/// Where a log goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogFile {
    /// Standard output.
    Stdout,
    /// A file, which is appended to.
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

/// How a request is written down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// NCSA's common log format.
    Common,
    /// The same with referrer and user agent.
    #[default]
    Combined,
}

/// What is written down of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// Where to, or nowhere.
    pub file: Option<LogFile>,
    /// How.
    pub format: LogFormat,
}

/// What the server says on standard error of what goes wrong. Only [`Web::run`](crate::web::Web::run) sets it up, and
/// only if the program has no subscriber of `tracing` of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    /// How much.
    pub level: DiagnosticsLevel,
    /// How. It stays as it was when the server started.
    pub format: DiagnosticsFormat,
}

/// How much is said: each level includes those before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiagnosticsLevel {
    /// Nothing.
    Off,
    /// What fails, and is lost or stays undone.
    Error,
    /// What goes on only in part, too.
    #[default]
    Warn,
    /// What a runtime and its stages do, too.
    Info,
    /// Requests that are refused, too.
    Debug,
}

/// How a diagnostic is written: in a line each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiagnosticsFormat {
    /// For people.
    #[default]
    Text,
    /// An object of JSON, for programs.
    Json,
}

/// The page with the counters of every stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Where it is, or nowhere.
    pub path: Option<String>,
    /// Who sees it; to others it is not there. Who comes through a proxy is who that names, if it is [trusted](Config::trusted_proxies), and else nobody. A proxy
    /// that is not trusted and adds no field (`X-Forwarded-For`, `Forwarded`) can't be told from a client: through one on this machine everybody sees the page.
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
