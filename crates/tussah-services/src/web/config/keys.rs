//! Every key of the configuration: its names, its meaning, and the functions to read and show it.
//!
//! The command line, the environment, files, the help and `--check-config` are all derived from
//! this table.

use std::ops::RangeInclusive;
use std::time::Duration;

use tussah_wire::http::head::HEAD_BYTES_MAX;

use super::fastcgi;
use super::settings::Config;
use super::show;
use super::value::{Read, Value};

/// A key of the configuration.
#[derive(Debug)]
pub(super) struct Key {
    /// The name in files; a name with a dot is in a section.
    pub(super) name: &'static str,
    /// The option on the command line. The environment variable is the same in capitals, with
    /// underscores and a prefix.
    pub(super) flag: &'static str,
    /// The name of the value in the help, or words separated by `|` if the value is one of these.
    pub(super) value: &'static str,
    /// The heading in the help.
    pub(super) heading: &'static str,
    /// The meaning in one sentence.
    pub(super) about: &'static str,
    pub(super) kind: Kind,
    pub(super) set: fn(&mut Config, &Value) -> Read<()>,
    /// Formats the value as TOML.
    pub(super) show: fn(&Config) -> String,
}

/// A key with the value from one source.
pub(super) type Given = (&'static Key, Value);

/// The number of times that an option may occur, and whether it has a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The option occurs once, with a value.
    One,
    /// The option occurs any number of times, each time with a value.
    Many,
    /// The option occurs once; without a value it means `true`.
    Switch,
}

impl Key {
    /// Returns the words of which the value is one, for shell completion; there are none for other
    /// values.
    pub(super) fn words(&self) -> impl Iterator<Item = &'static str> + use<> {
        let words = if self.kind == Kind::Switch {
            "true|false"
        } else {
            self.value
        };
        words.split('|').filter(|_| words.contains('|'))
    }

    /// Returns the name of the environment variable.
    pub(super) fn variable(&self) -> String {
        format!(
            "{PREFIX}{}",
            self.flag.to_ascii_uppercase().replace('-', "_")
        )
    }
}

/// The prefix of the environment variables.
pub(super) const PREFIX: &str = "TUSSAH_WEB_";

/// Returns the key with a name in files.
pub(super) fn key(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

macro_rules! key {
    (
        $kind:ident $name:literal, $flag:literal, $value:literal, $heading:expr,
        $about:literal,
        $($field:ident).+ = $read:expr,
        $show:expr
    ) => {
        Key {
            name: $name,
            flag: $flag,
            value: $value,
            heading: $heading,
            about: $about,
            kind: Kind::$kind,
            set: |config, value| {
                let read: fn(&Value) -> Read<_> = $read;
                config.$($field).+ = read(value)?;
                Ok(())
            },
            show: $show,
        }
    };
}

const SERVED: &str = "Content";
const RUNNING: &str = "Server";
const CACHE: &str = "Cache";
const LIMITS: &str = "Limits";
const TIMEOUTS: &str = "Timeouts";
const TLS: &str = "TLS";
const LOG: &str = "Access log";
const DIAGNOSTICS: &str = "Diagnostics";
const STATUS: &str = "Status and work pages";

/// The keys in the order of the help. Those without a section come first, as TOML requires.
pub(super) const KEYS: &[Key] = &[
    key!(
        One "root", "root", "DIR", SERVED,
        "Directory to serve",
        root = Value::path,
        |c| show::path(&c.root)
    ),
    key!(
        Many "index", "index", "FILE", SERVED,
        "Index files of a directory, in order of preference; they may be scripts",
        site.index = |v| v.list(Value::file_name),
        |c| show::texts(&c.site.index)
    ),
    key!(
        Switch "listing", "listing", "BOOL", SERVED,
        "List directories that have no index file; otherwise they answer 404",
        site.listing = Value::switch,
        |c| show::plain(&c.site.listing)
    ),
    key!(
        One "fallback", "fallback", "FILE", SERVED,
        "Serve this file if nothing is found and the path has no extension, for single-page applications; or off. A script takes all paths where nothing is found",
        site.fallback = |v| v.or_none("off", Value::file_name),
        |c| show::or("off", &c.site.fallback, |x| show::text(x))
    ),
    key!(
        One "symlinks", "symlinks", "none|inside|all", SERVED,
        "Symbolic links to follow: none, those that stay inside DIR, or all. An absolute link stays inside if its target begins with the path of DIR",
        site.symlinks = Value::choice,
        |c| show::choice(&c.site.symlinks)
    ),
    key!(
        One "dotfiles", "dotfiles", "hidden|served", SERVED,
        "Treatment of names that begin with a dot: hidden, except .well-known, or served",
        site.dotfiles = Value::choice,
        |c| show::choice(&c.site.dotfiles)
    ),
    key!(
        Many "precompressed", "precompressed", "CODING", SERVED,
        "Serve FILE.br, FILE.zst or FILE.gz in place of FILE to clients that accept br, zstd or gzip. If a client has no preference, the first one wins",
        site.precompressed = Value::codings,
        |c| show::codings(c.site.precompressed)
    ),
    key!(
        One "cache-control", "cache-control", "VALUE", SERVED,
        "Cache-Control header of each page for which no --header rule sets one; error responses never have it",
        site.cache_control = |v| v.or_none("off", Value::field_value),
        |c| show::or("off", &c.site.cache_control, |x| show::text(x))
    ),
    key!(
        Many "headers", "header", "RULE", SERVED,
        "Add a response header: `NAME: VALUE` for all paths, or `/assets/* NAME: VALUE` for some",
        site.rules = Value::rules,
        |c| show::rules(&c.site.rules)
    ),
    key!(
        Many "errors", "error-page", "CODE=FILE", SERVED,
        "Custom page for an error status, for example 404=404.html",
        site.error_pages = Value::error_pages,
        |c| show::table(&c.site.error_pages)
    ),
    key!(
        Many "types", "type", "EXT=TYPE", SERVED,
        "Media type of a file extension, for example md=text/markdown",
        site.types = Value::types,
        |c| show::table(&c.site.types)
    ),
    key!(
        One "php", "php", "ADDRESS", SERVED,
        "FastCGI application that runs the site's .php files, such as php-fpm: unix:PATH or IP:PORT; or off, which serves them as files",
        php = |v| v.or_none("off", Value::application),
        |c| show::or("off", &c.php, |x| show::text(&x.to_string()))
    ),
    key!(
        Many "fastcgi", "fastcgi", "PATHS=ADDRESS", SERVED,
        "FastCGI application for the names with a suffix, such as .php=unix:PATH, or for a prefix, such as /app/=IP:PORT. A file also sets its limits and variables",
        fastcgi = fastcgi::read,
        fastcgi::show_all
    ),
    key!(
        Many "listen", "listen", "ADDRESS", RUNNING,
        "Address to accept connections on: IP:PORT, PORT (on 127.0.0.1) or unix:PATH; port 0 picks a free port",
        listen = |v| v.list(Value::listen_address),
        |c| show::words(&c.listen)
    ),
    key!(
        One "workers", "workers", "N", RUNNING,
        "Number of worker threads; auto starts one per CPU",
        workers = |v| v.or_none("auto", |v| v.count(1..=1024)),
        |c| show::or("auto", &c.workers, show::plain)
    ),
    key!(
        One "colors", "colors", "connection|one", RUNNING,
        "Give each connection its own color, so that connections run in parallel; or give all connections one color, to measure what colors gain",
        colors = Value::choice,
        |c| show::choice(&c.colors)
    ),
    key!(
        One "target", "target", "TIME", RUNNING,
        "Latency target of dynamic routes; requests that would miss it are rejected with 503",
        target = |v| v.duration(time(1, DAY_MS)),
        |c| show::duration(&c.target)
    ),
    key!(
        One "overload", "overload", "on|observe|off", RUNNING,
        "Overload control of dynamic routes: on; observe, which answers all requests and counts those that it would have rejected; or off",
        overload = Value::choice,
        |c| show::choice(&c.overload)
    ),
    key!(
        One "half-close", "half-close", "cancel|serve", RUNNING,
        "What to do with a dynamic request whose client has sent FIN: cancel it, because the client has most likely gone, or serve it, for clients that only close their sending side",
        half_close = Value::choice,
        |c| show::choice(&c.half_close)
    ),
    key!(
        One "drain", "drain", "TIME", RUNNING,
        "How long a graceful shutdown waits for requests in flight",
        drain = |v| v.duration(time(0, DAY_MS)),
        |c| show::duration(&c.drain)
    ),
    key!(
        One "server-header", "server-header", "TEXT", RUNNING,
        "Value of the Server response header, or off",
        server_header = |v| v.or_none("off", Value::field_value),
        |c| show::or("off", &c.server_header, |x| show::text(x))
    ),
    key!(
        Many "trusted-proxies", "trusted-proxies", "NETWORK", RUNNING,
        "Proxies whose X-Forwarded-For is trusted: addresses, networks, or unix for all Unix socket peers. List every proxy on this machine; see --status-from",
        trusted_proxies = |v| v.list(Value::peers),
        |c| show::words(&c.trusted_proxies)
    ),
    key!(
        One "cache.kind", "cache", "sharded|none", CACHE,
        "Page cache: sharded, or none. The server checks a cached file for changes at most once a second, by its ctime, length, inode and device",
        cache.kind = Value::choice,
        |c| show::choice(&c.cache.kind)
    ),
    key!(
        One "cache.size", "cache-size", "SIZE", CACHE,
        "Memory limit of the page cache",
        cache.bytes = |v| v.size(0..=1 << 40),
        |c| show::size(&c.cache.bytes)
    ),
    key!(
        One "cache.file-size", "cache-file-size", "SIZE", CACHE,
        "Size of the largest file whose contents to cache; larger files stay open, and are sent by sendfile (copied with TLS)",
        cache.file_bytes = |v| v.size(0..=1 << 30),
        |c| show::size(&c.cache.file_bytes)
    ),
    key!(
        One "limits.head", "limit-head", "SIZE", LIMITS,
        "Largest request head (else 431); the target in its first line may have 8KiB (else 414)",
        limits.head_bytes = |v| v.size(512..=HEAD_BYTES_MAX as u64),
        |c| show::size(&c.limits.head_bytes)
    ),
    key!(
        One "limits.headers", "limit-headers", "N", LIMITS,
        "Maximum number of header fields in a request (else 431)",
        limits.headers = |v| v.count(8..=1000),
        |c| show::plain(&c.limits.headers)
    ),
    key!(
        One "limits.body", "limit-body", "SIZE", LIMITS,
        "Largest request body (else 413), also for PHP. Bodies for dynamic routes other than PHP are buffered whole before admission, so they can use up to --limit-connections times this much memory",
        limits.body_bytes = |v| v.size(0..=1 << 40),
        |c| show::size(&c.limits.body_bytes)
    ),
    key!(
        One "limits.connections", "limit-connections", "N", LIMITS,
        "Maximum number of open connections of the process. At the limit, a new connection evicts an idle one; if none is idle, it gets 503",
        limits.connections = |v| v.count(1..=10_000_000),
        |c| show::plain(&c.limits.connections)
    ),
    key!(
        One "limits.requests", "limit-requests", "N", LIMITS,
        "Requests per connection before the server closes it, or off",
        limits.requests = |v| v.or_none("off", |v| v.count(1..=usize::MAX)),
        |c| show::or("off", &c.limits.requests, show::plain)
    ),
    key!(
        One "limits.rejecting", "limit-rejecting", "PERCENT", LIMITS,
        "Share of the workers' time that rejections for overload may take, or off. Beyond it, a client that retries early waits until its turn or its Retry-After, and connections are accepted more slowly",
        limits.rejecting = |v| v.or_none("off", |v| v.count(1..=100)),
        |c| show::or("off", &c.limits.rejecting, show::plain)
    ),
    key!(
        One "timeouts.head", "timeout-head", "TIME", TIMEOUTS,
        "Time limit for the TLS handshake, and for a request head from its first byte to its last",
        timeouts.head = |v| v.duration(time(1, DAY_MS)),
        |c| show::duration(&c.timeouts.head)
    ),
    key!(
        One "timeouts.body", "timeout-body", "TIME", TIMEOUTS,
        "Time limit for a whole request body; for an upload to PHP, how long to wait for a client that sends less than --timeout-rate",
        timeouts.body = |v| v.duration(time(1, DAY_MS)),
        |c| show::duration(&c.timeouts.body)
    ),
    key!(
        One "timeouts.idle", "timeout-idle", "TIME", TIMEOUTS,
        "Time limit from a response to the next request",
        timeouts.idle = |v| v.duration(time(1, DAY_MS)),
        |c| show::duration(&c.timeouts.idle)
    ),
    key!(
        One "timeouts.write", "timeout-write", "TIME", TIMEOUTS,
        "How long a client may stall while reading a response. The connection is then reset, which frees its kernel buffers",
        timeouts.write = |v| v.duration(time(1, DAY_MS)),
        |c| show::duration(&c.timeouts.write)
    ),
    key!(
        One "timeouts.rate", "timeout-rate", "SIZE", TIMEOUTS,
        "Minimum rate at which a client reads a response, in bytes per second over --timeout-write; or off",
        timeouts.rate = |v| v.or_none("off", |v| v.size(1..=1 << 30)),
        |c| show::or("off", &c.timeouts.rate, show::size)
    ),
    key!(
        One "timeouts.linger", "timeout-linger", "TIME", TIMEOUTS,
        "How long a client may keep sending after the server has closed its side, and how long a shutdown waits for a request on its way",
        timeouts.linger = |v| v.duration(time(0, DAY_MS)),
        |c| show::duration(&c.timeouts.linger)
    ),
    key!(
        One "tls.cert", "tls-cert", "FILE", TLS,
        "Certificate with its chain, in PEM; all TCP listeners then speak TLS",
        tls.cert = |v| v.or_none("off", Value::path),
        |c| show::or("off", &c.tls.cert, |x| show::path(x))
    ),
    key!(
        One "tls.key", "tls-key", "FILE", TLS,
        "Private key of the certificate, in PEM",
        tls.key = |v| v.or_none("off", Value::path),
        |c| show::or("off", &c.tls.key, |x| show::path(x))
    ),
    key!(
        One "log.file", "log-file", "FILE", LOG,
        "Access log: a file, a pipe with a reader, - for standard output, or off",
        log.file = |v| v.or_none("off", Value::log_file),
        |c| show::or("off", &c.log.file, show::log_file)
    ),
    key!(
        One "log.format", "log-format", "common|combined", LOG,
        "Format of the access log: common, or combined, which adds referrer and user agent",
        log.format = Value::choice,
        |c| show::choice(&c.log.format)
    ),
    key!(
        One "diagnostics.level", "diagnostics-level", "off|error|warn|info|debug", DIAGNOSTICS,
        "Messages on standard error: failures (error), degraded service (warn), activity of the runtime (info), or refused requests (debug)",
        diagnostics.level = Value::choice,
        |c| show::choice(&c.diagnostics.level)
    ),
    key!(
        One "diagnostics.format", "diagnostics-format", "text|json", DIAGNOSTICS,
        "Format of these messages: text, or json with one object per line. A reload does not change it",
        diagnostics.format = Value::choice,
        |c| show::choice(&c.diagnostics.format)
    ),
    key!(
        One "status.path", "status-path", "PATH", STATUS,
        "Path of the status page, or off. It shows rates, response times, rejections and statuses; programs add ?format=json or ?format=prometheus",
        status.path = |v| v.or_none("off", Value::url_path),
        |c| show::or("off", &c.status.path, |x| show::text(x))
    ),
    key!(
        Many "status.from", "status-from", "NETWORK", STATUS,
        "Clients that may see the status page: addresses, networks, or unix for all Unix socket peers. A client behind one of --trusted-proxies counts as the address that the proxy reports; a client behind any other proxy is refused. WARNING: a proxy on this machine that is not listed there and adds neither X-Forwarded-For nor Forwarded looks like a local client and exposes the page to everybody",
        status.from = |v| v.list(Value::peers),
        |c| show::words(&c.status.from)
    ),
    key!(
        Switch "status.work", "work", "BOOL", STATUS,
        "Serve /work?compute=20ms&wait=20ms, which computes and waits for these times; for benchmarks only",
        work = Value::switch,
        |c| show::plain(&c.work)
    ),
];

/// Bound, in milliseconds: the longest time of a setting, one day. A longer one is a mistake in the
/// unit.
const DAY_MS: u64 = 86_400_000;

fn time(least_ms: u64, most_ms: u64) -> RangeInclusive<Duration> {
    Duration::from_millis(least_ms)..=Duration::from_millis(most_ms)
}
