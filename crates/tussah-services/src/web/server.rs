//! What all stages of a server share.

use std::collections::BTreeMap;
use std::hash::BuildHasher as _;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::SystemTime;

use tussah_wire::http::head::{self, Field};

use super::access_log::{AccessLog, Record};
use super::buffers::Buffers;
use super::clock::Clock;
use super::config::{CacheKind, Config};
use super::connections::{Connections, Group, LEAVING_MAX};
use super::diagnostics::Seldom;
use super::exchange::Exchange;
use super::retry::Retry;
use super::route::Routes;
use super::site::{Site, SiteError};
use super::stream::Stream;
use super::totals::Totals;

/// Bound, in seconds: for how long a page is given without another look at its file, by a clock of whole seconds, so for up to nearly 2 s; then changes are seen soon, and hits cost
/// no system call.
const FRESH_S: u64 = 1;

/// Who has sent a request: an address, or `None` by a Unix socket.
pub(crate) type Client = Option<IpAddr>;

/// What all stages share.
pub(crate) struct Server {
    pub(crate) config: Config,
    pub(crate) site: Site,
    pub(crate) routes: Routes,
    pub(crate) clock: Arc<Clock>,
    pub(crate) buffers: Arc<Buffers>,
    pub(crate) connections: Group,
    pub(crate) totals: Arc<Totals>,
    /// Whether it was said that files can't be read.
    pub(crate) unread: Seldom,
    pub(crate) log: Option<Arc<AccessLog>>,
    /// One's own pages for errors: their types, and their bytes.
    pub(crate) error_pages: BTreeMap<u16, (Arc<str>, Vec<u8>)>,
    pub(crate) head_limits: head::Limits,
    /// Shards of the page cache; none if there is no cache.
    pub(crate) shards: usize,
    hasher: foldhash::fast::RandomState,
    pub(crate) retry: Retry,
    randoms: AtomicU64,
    ending: AtomicBool,
}

/// What belongs to the process, whatever the configuration.
pub(crate) struct Shared {
    pub(crate) clock: Arc<Clock>,
    pub(crate) connections: Arc<Connections>,
    pub(crate) totals: Arc<Totals>,
}

impl Shared {
    /// With so many connections at first.
    pub(crate) fn new(connections_max: usize) -> Self {
        Self {
            clock: Arc::new(Clock::new()),
            connections: Arc::new(Connections::new(connections_max)),
            totals: Arc::default(),
        }
    }
}

impl Server {
    /// # Errors
    /// If the site can't be opened.
    pub(crate) fn new(
        config: Config,
        routes: Routes,
        shared: &Shared,
        log: Option<Arc<AccessLog>>,
        workers: usize,
    ) -> Result<Self, SiteError> {
        let site = Site::open(&config.root, config.site.clone())?;
        let error_pages = error_pages(&site, &config);
        Ok(Self {
            site,
            routes,
            clock: Arc::clone(&shared.clock),
            totals: Arc::clone(&shared.totals),
            unread: Seldom::new(),
            log,
            error_pages,
            buffers: Arc::new(Buffers::new(config.cache.bytes)),
            connections: shared.connections.group(),
            head_limits: head::Limits {
                head_bytes_max: config.limits.head_bytes as usize,
                fields_max: config.limits.headers,
                ..head::Limits::default()
            },
            shards: match config.cache.kind {
                CacheKind::None => 0,
                // More would be more turns with fewer requests in each.
                CacheKind::Sharded => workers,
            },
            hasher: foldhash::fast::RandomState::default(),
            retry: Retry::new(),
            randoms: AtomicU64::new(0),
            ending: AtomicBool::new(false),
            config,
        })
    }

    /// Bound, in requests: how many are in the network at a time, one of each connection, those that are leaving included; so a queue with so much room is never full.
    pub(crate) fn room(&self) -> u64 {
        (self.config.limits.connections + LEAVING_MAX) as u64
    }

    /// Pages that were looked at in this second or later need not be looked at again.
    #[inline]
    pub(crate) fn fresh_s(&self) -> u64 {
        self.clock.passed_s().saturating_sub(FRESH_S)
    }

    /// Of what is asked for; made in the connection's color, so that the cache need not (libasync-smp, section "HTTP server").
    #[inline]
    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        self.hasher.hash_one(key)
    }

    /// The shard of a page, if there are any.
    #[inline]
    pub(crate) fn shard_of(&self, hash: u64) -> usize {
        // The tables of the shards take other bits than these 32, of which it is a share.
        let bits = u64::from((hash >> 24) as u32);
        ((bits * self.shards as u64) >> 32) as usize
    }

    /// Who has sent a request: the peer; or, if that is a proxy that is trusted, whom it names last that is none.
    pub(crate) fn client(&self, stream: &Stream, exchange: &Exchange) -> Option<IpAddr> {
        let (Ok(named) | Err(named)) = self.forwarded_for(stream, exchange);
        named.or_else(|| stream.peer())
    }

    /// The same, if it is known: nobody, if a proxy has sent it that is not trusted or names nobody.
    pub(crate) fn known_client(&self, stream: &Stream, exchange: &Exchange) -> Option<Client> {
        let head = exchange.head.as_ref()?;
        let says = |field| head.field(field, exchange.input.filled()).is_some();
        let peer = known_peer(stream)?;
        if let Some(named) = self.forwarded_for(stream, exchange).ok()? {
            return Some(Some(named));
        }
        let is_proxy = says(Field::ForwardedFor)
            || says(Field::Forwarded)
            || peer.is_some() && self.trusts(peer);
        (!is_proxy).then_some(peer)
    }

    fn trusts(&self, peer: Option<IpAddr>) -> bool {
        let proxies = &self.config.trusted_proxies;
        proxies.iter().any(|peers| peers.contains(peer))
    }

    /// Whom trusted proxies name as the one whose request they forward.
    ///
    /// # Errors
    /// With the last proxy that is named so, if what it says can't be read.
    fn forwarded_for(
        &self,
        stream: &Stream,
        exchange: &Exchange,
    ) -> Result<Option<IpAddr>, Option<IpAddr>> {
        let (Some(head), bytes) = (&exchange.head, exchange.input.filled()) else {
            return Ok(None);
        };
        let has_proxies = !self.config.trusted_proxies.is_empty();
        if !(has_proxies && known_peer(stream).is_some_and(|peer| self.trusts(peer))) {
            return Ok(None);
        }
        let lines: Vec<_> = head.field_lines(Field::ForwardedFor, bytes).collect();
        let names = lines
            .iter()
            .rev()
            .flat_map(|line| line.rsplit(|&byte| byte == b','));
        let mut client = None;
        for name in names {
            let name = std::str::from_utf8(name).unwrap_or("").trim();
            let named = name.parse::<IpAddr>().map_err(|_| client)?;
            client = Some(named.to_canonical());
            if !self.trusts(client) {
                break;
            }
        }
        Ok(client)
    }

    /// Some number, another each time.
    pub(crate) fn random(&self) -> u32 {
        let count = self.randoms.fetch_add(1, Ordering::Relaxed);
        (self.hasher.hash_one(count) >> 32) as u32
    }

    /// Writes down what became of a request: it was answered, or as much of that was sent as could be.
    #[inline]
    pub(crate) fn note(&self, stream: &Stream, exchange: &Exchange) {
        if let Some(log) = &self.log {
            self.log(log, stream, exchange);
        }
    }

    #[cold]
    fn log(&self, log: &AccessLog, stream: &Stream, exchange: &Exchange) {
        let bytes = exchange.input.filled();
        let line = bytes.split(|&byte| byte == b'\r').next().unwrap_or(b"");
        let field = |field| exchange.head.as_ref()?.field(field, bytes);
        log.log(&Record {
            client: self.client(stream, exchange),
            user: None,
            time: SystemTime::now(),
            request: line,
            status: exchange.response.status.code(),
            body_bytes: exchange.response.body_sent(),
            referrer: field(Field::Referer),
            user_agent: field(Field::UserAgent),
        });
    }

    /// Whether connections are to end with the request that they have begun.
    #[inline]
    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    /// Has all connections end with the request that they have begun.
    pub(crate) fn end(&self) {
        self.ending.store(true, Ordering::Relaxed);
        self.connections.wake_all();
    }
}

/// Who has connected. Who has broken off is not known any more.
fn known_peer(stream: &Stream) -> Option<Client> {
    let peer = stream.peer();
    (peer.is_some() || stream.is_unix()).then_some(peer)
}

/// Read once, so that nobody waits for them later.
fn error_pages(site: &Site, config: &Config) -> BTreeMap<u16, (Arc<str>, Vec<u8>)> {
    let statuses = config.site.error_pages.keys();
    let page = |&status: &u16| {
        let opened = site.error_page(status).ok()??;
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut &opened.file, &mut bytes).ok()?;
        Some((status, (opened.meta.media_type, bytes)))
    };
    statuses.filter_map(page).collect()
}
