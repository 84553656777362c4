//! Every key of the configuration: its names, what it means, how it is read and shown.
//!
//! The command line, the environment, files, the help and `--check-config` are all made from this one table.

use std::ops::RangeInclusive;
use std::time::Duration;

use tussah_wire::http::head::HEAD_BYTES_MAX;

use super::settings::Config;
use super::show;
use super::value::{Read, Value};

/// A key.
#[derive(Debug)]
pub(super) struct Key {
    /// Its name in files; with a dot it stands in a section.
    pub(super) name: &'static str,
    /// Its option on the command line. In capitals, with underscores and a prefix, it is the variable.
    pub(super) flag: &'static str,
    /// What the help calls its value: words with `|` between if it is one of these.
    pub(super) value: &'static str,
    /// The heading that it has in the help.
    pub(super) heading: &'static str,
    /// What it means, in a sentence.
    pub(super) about: &'static str,
    pub(super) kind: Kind,
    pub(super) set: fn(&mut Config, &Value) -> Read<()>,
    /// The value as TOML.
    pub(super) show: fn(&Config) -> String,
}

/// What a source says of a key.
pub(super) type Given = (&'static Key, Value);

/// How often an option is given, and whether with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Once, with a value.
    One,
    /// As often as one likes, each time with a value.
    Many,
    /// Once; without a value it means `true`.
    Switch,
}

impl Key {
    /// The words of which its value is one, for shells to complete; none if it is something else.
    pub(super) fn words(&self) -> impl Iterator<Item = &'static str> + use<> {
        let words = if self.kind == Kind::Switch {
            "true|false"
        } else {
            self.value
        };
        words.split('|').filter(|_| words.contains('|'))
    }

    /// The environment variable.
    pub(super) fn variable(&self) -> String {
        format!(
            "{PREFIX}{}",
            self.flag.to_ascii_uppercase().replace('-', "_")
        )
    }
}

/// What the names of the environment variables begin with.
pub(super) const PREFIX: &str = "TUSSAH_WEB_";

/// The key of a name in files.
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

const SERVED: &str = "What is served";
const RUNNING: &str = "Running";
const CACHE: &str = "Cache";
const LIMITS: &str = "Limits";
const TIMEOUTS: &str = "Time-outs";
const TLS: &str = "TLS";
const LOG: &str = "Access log";
const DIAGNOSTICS: &str = "Diagnostics";
const STATUS: &str = "Status and work pages";

/// The keys in the order of the help; those without a section come first, as TOML wants it.
pub(super) const KEYS: &[Key] = &[
    key!(
        One "root", "root", "DIR", SERVED,
        "The directory that is served",
        root = Value::path,
        |c| show::path(&c.root)
    ),
    key!(
        Many "index", "index", "FILE", SERVED,
        "The files that stand for a directory, in order of preference",
        site.index = |v| v.list(Value::file_name),
        |c| show::texts(&c.site.index)
    ),
    key!(
        Switch "listing", "listing", "BOOL", SERVED,
        "List directories that have no index; else they are not found",
        site.listing = Value::switch,
        |c| show::plain(&c.site.listing)
    ),
    key!(
        One "fallback", "fallback", "FILE", SERVED,
        "Give this file where nothing is found and the path has no extension: for single-page applications",
        site.fallback = |v| v.or_none("off", Value::file_name),
        |c| show::or("off", &c.site.fallback, |x| show::text(x))
    ),
    key!(
        One "symlinks", "symlinks", "none|inside|all", SERVED,
        "Which symbolic links are followed: none, those that stay inside DIR (absolute ones by its path), or all",
        site.symlinks = Value::choice,
        |c| show::choice(&c.site.symlinks)
    ),
    key!(
        One "dotfiles", "dotfiles", "hidden|served", SERVED,
        "Names that begin with a dot are hidden (but for .well-known) or served",
        site.dotfiles = Value::choice,
        |c| show::choice(&c.site.dotfiles)
    ),
    key!(
        Many "precompressed", "precompressed", "CODING", SERVED,
        "Give FILE.br, FILE.zst or FILE.gz for FILE to clients that take it (br, zstd, gzip); of codings liked equally the first",
        site.precompressed = Value::codings,
        |c| show::codings(c.site.precompressed)
    ),
    key!(
        One "cache-control", "cache-control", "VALUE", SERVED,
        "The Cache-Control of every page for which no other rule sets one; errors have none",
        site.cache_control = |v| v.or_none("off", Value::field_value),
        |c| show::or("off", &c.site.cache_control, |x| show::text(x))
    ),
    key!(
        Many "headers", "header", "RULE", SERVED,
        "Add a header field: `NAME: VALUE` for all paths, or `/assets/* NAME: VALUE` for some",
        site.rules = Value::rules,
        |c| show::rules(&c.site.rules)
    ),
    key!(
        Many "errors", "error-page", "CODE=FILE", SERVED,
        "Pages of one's own for errors, such as 404=404.html",
        site.error_pages = Value::error_pages,
        |c| show::table(&c.site.error_pages)
    ),
    key!(
        Many "types", "type", "EXT=TYPE", SERVED,
        "Media types of one's own, such as md=text/markdown",
        site.types = Value::types,
        |c| show::table(&c.site.types)
    ),
    key!(
        Many "listen", "listen", "ADDRESS", RUNNING,
        "Where to accept connections: IP:PORT, PORT alone on loopback, or unix:PATH; port 0 is any free one",
        listen = |v| v.list(Value::listen_address),
        |c| show::words(&c.listen)
    ),
    key!(
        One "workers", "workers", "N", RUNNING,
        "How many OS threads work; auto is one for each CPU",
        workers = |v| v.or_none("auto", |v| v.count(1..=1024)),
        |c| show::or("auto", &c.workers, show::plain)
    ),
    key!(
        One "colors", "colors", "connection|one", RUNNING,
        "What has a color of its own, and so runs beside the others: each connection; or one for all, to measure what that is worth",
        colors = Value::choice,
        |c| show::choice(&c.colors)
    ),
    key!(
        One "target", "target", "TIME", RUNNING,
        "Within which time dynamic pages are answered; what can't be is turned away with 503",
        target = |v| v.duration(time(1, DAY_MS)),
        |c| show::duration(&c.target)
    ),
    key!(
        One "drain", "drain", "TIME", RUNNING,
        "How long requests in flight may take when the server is told to stop",
        drain = |v| v.duration(time(0, DAY_MS)),
        |c| show::duration(&c.drain)
    ),
    key!(
        One "server-header", "server-header", "TEXT", RUNNING,
        "What answers say in Server, or off",
        server_header = |v| v.or_none("off", Value::field_value),
        |c| show::or("off", &c.server_header, |x| show::text(x))
    ),
    key!(
        Many "trusted-proxies", "trusted-proxies", "NETWORK", RUNNING,
        "Addresses and networks of proxies, whose X-Forwarded-For is believed; unix is all who come by a Unix socket. Name every proxy on this machine, see --status-from",
        trusted_proxies = |v| v.list(Value::peers),
        |c| show::words(&c.trusted_proxies)
    ),
    key!(
        One "cache.kind", "cache", "sharded|none", CACHE,
        "The stage that keeps pages in memory: sharded, or none. Whether a file has changed is looked at once a second, by its ctime, length, inode and device",
        cache.kind = Value::choice,
        |c| show::choice(&c.cache.kind)
    ),
    key!(
        One "cache.size", "cache-size", "SIZE", CACHE,
        "What all pages in memory take",
        cache.bytes = |v| v.size(0..=1 << 40),
        |c| show::size(&c.cache.bytes)
    ),
    key!(
        One "cache.file-size", "cache-file-size", "SIZE", CACHE,
        "How long a file may be to be kept in memory; longer ones are sent from the file",
        cache.file_bytes = |v| v.size(0..=1 << 30),
        |c| show::size(&c.cache.file_bytes)
    ),
    key!(
        One "limits.head", "limit-head", "SIZE", LIMITS,
        "The head of a request; 431 beyond. Of that the target in its first line may have 8KiB; 414 beyond",
        limits.head_bytes = |v| v.size(512..=HEAD_BYTES_MAX as u64),
        |c| show::size(&c.limits.head_bytes)
    ),
    key!(
        One "limits.headers", "limit-headers", "N", LIMITS,
        "Header fields of a request; 431 beyond",
        limits.headers = |v| v.count(8..=1000),
        |c| show::plain(&c.limits.headers)
    ),
    key!(
        One "limits.body", "limit-body", "SIZE", LIMITS,
        "The body of a request; 413 beyond. Those for pages that are made are read whole before a request is let in, so they may take --limit-connections times this of memory",
        limits.body_bytes = |v| v.size(0..=1 << 40),
        |c| show::size(&c.limits.body_bytes)
    ),
    key!(
        One "limits.connections", "limit-connections", "N", LIMITS,
        "Connections of the process at a time. For one more, one that waits for a request makes room, of many the one that has waited longest; if there is none, it is answered with 503",
        limits.connections = |v| v.count(1..=10_000_000),
        |c| show::plain(&c.limits.connections)
    ),
    key!(
        One "limits.requests", "limit-requests", "N", LIMITS,
        "Requests of one connection, which is closed then; or off",
        limits.requests = |v| v.or_none("off", |v| v.count(1..=usize::MAX)),
        |c| show::or("off", &c.limits.requests, show::plain)
    ),
    key!(
        One "timeouts.head", "timeout-head", "TIME", TIMEOUTS,
        "For the TLS handshake, and for a request from the first byte of its head to the last",
        timeouts.head = |v| v.duration(time(1, DAY_MS)),
        |c| show::duration(&c.timeouts.head)
    ),
    key!(
        One "timeouts.body", "timeout-body", "TIME", TIMEOUTS,
        "For the body of a request, whole",
        timeouts.body = |v| v.duration(time(1, DAY_MS)),
        |c| show::duration(&c.timeouts.body)
    ),
    key!(
        One "timeouts.idle", "timeout-idle", "TIME", TIMEOUTS,
        "From an answer to the next request",
        timeouts.idle = |v| v.duration(time(1, DAY_MS)),
        |c| show::duration(&c.timeouts.idle)
    ),
    key!(
        One "timeouts.write", "timeout-write", "TIME", TIMEOUTS,
        "Without taking a byte of an answer; then the connection is reset, so that the system keeps nothing for the client",
        timeouts.write = |v| v.duration(time(1, DAY_MS)),
        |c| show::duration(&c.timeouts.write)
    ),
    key!(
        One "timeouts.rate", "timeout-rate", "SIZE", TIMEOUTS,
        "The slowest that a client may take an answer, in bytes a second over --timeout-write; or off",
        timeouts.rate = |v| v.or_none("off", |v| v.size(1..=1 << 30)),
        |c| show::or("off", &c.timeouts.rate, show::size)
    ),
    key!(
        One "timeouts.linger", "timeout-linger", "TIME", TIMEOUTS,
        "For going on sending after the server has closed its side, and for a request on its way when it stops",
        timeouts.linger = |v| v.duration(time(0, DAY_MS)),
        |c| show::duration(&c.timeouts.linger)
    ),
    key!(
        One "tls.cert", "tls-cert", "FILE", TLS,
        "The certificate with its chain, PEM; then all TCP ports speak TLS",
        tls.cert = |v| v.or_none("off", Value::path),
        |c| show::or("off", &c.tls.cert, |x| show::path(x))
    ),
    key!(
        One "tls.key", "tls-key", "FILE", TLS,
        "The private key of the certificate, PEM",
        tls.key = |v| v.or_none("off", Value::path),
        |c| show::or("off", &c.tls.key, |x| show::path(x))
    ),
    key!(
        One "log.file", "log-file", "FILE", LOG,
        "Write down each request: in a file, in a pipe that somebody reads, on standard output (-), or off",
        log.file = |v| v.or_none("off", Value::log_file),
        |c| show::or("off", &c.log.file, show::log_file)
    ),
    key!(
        One "log.format", "log-format", "common|combined", LOG,
        "How: common, or combined, which has referrer and user agent too",
        log.format = Value::choice,
        |c| show::choice(&c.log.format)
    ),
    key!(
        One "diagnostics.level", "diagnostics-level", "off|error|warn|info|debug", DIAGNOSTICS,
        "How much to say on standard error of what goes wrong: failures (error), what goes on only in part (warn), and more",
        diagnostics.level = Value::choice,
        |c| show::choice(&c.diagnostics.level)
    ),
    key!(
        One "diagnostics.format", "diagnostics-format", "text|json", DIAGNOSTICS,
        "How to say it: text, or json with an object a line; it takes effect when the server starts",
        diagnostics.format = Value::choice,
        |c| show::choice(&c.diagnostics.format)
    ),
    key!(
        One "status.path", "status-path", "PATH", STATUS,
        "Where the page with the counters of every stage is, or off",
        status.path = |v| v.or_none("off", Value::url_path),
        |c| show::or("off", &c.status.path, |x| show::text(x))
    ),
    key!(
        Many "status.from", "status-from", "NETWORK", STATUS,
        "Addresses and networks that see that page, loopback by default; unix is all who come by a Unix socket. Who comes through a proxy is who that names, if it is one of --trusted-proxies, and else does not see it. A proxy that is not one of these and adds neither X-Forwarded-For nor Forwarded can't be told from a client: through one on this machine everybody sees the page",
        status.from = |v| v.list(Value::peers),
        |c| show::words(&c.status.from)
    ),
    key!(
        Switch "status.work", "work", "BOOL", STATUS,
        "Answer /work?compute=20ms&wait=20ms, which costs what it is asked for: only for measuring",
        work = Value::switch,
        |c| show::plain(&c.work)
    ),
];

/// Bound, in milliseconds: the longest time that can be set, a day; a longer one is a mistake in the unit.
const DAY_MS: u64 = 86_400_000;

fn time(least_ms: u64, most_ms: u64) -> RangeInclusive<Duration> {
    Duration::from_millis(least_ms)..=Duration::from_millis(most_ms)
}
