//! The state that all stages of a server share.

pub(crate) mod budget;
pub(crate) mod counts;
pub mod port;
pub(crate) mod rejecting;
pub(crate) mod retry;
pub(crate) mod running;
pub(crate) mod serve;
pub mod tls;
pub(crate) mod totals;

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasher as _;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::SystemTime;

use parking_lot::Mutex;
use tussah::stage::control::Memory;
use tussah::sync::Notify;
use tussah_wire::http::Status;
use tussah_wire::http::head::{self, Field};

use crate::web::access_log::{AccessLog, Record};
use crate::web::answer::buffers::Buffers;
use crate::web::answer::clock::Clock;
use crate::web::answer::route::Routes;
use crate::web::config::{CacheKind, Config};
use crate::web::connection::connections::{Connections, Group, LEAVING_MAX};
use crate::web::connection::exchange::Exchange;
use crate::web::connection::stream::Stream;
use crate::web::diagnostics::Seldom;
use crate::web::site::Site;
use budget::Budget;
use counts::Count;
use retry::{Asked, Retry};
use totals::Totals;

/// Bound, in seconds: the time after which the file of a page is checked again. The clock counts
/// whole seconds, so the time may be up to nearly 2 s. Changes become visible soon, and hits cost
/// no system call.
const FRESH_S: u64 = 1;

/// The status in the log of a request whose client disconnected before the response, as in nginx's
/// log. It is never sent.
const CLIENT_GONE: Status = Status::new(499).expect("it has three digits");

/// The status in the log of a request whose connection the server closed without a response, as in
/// nginx's log. It is never sent.
const CUT: Status = Status::new(444).expect("it has three digits");

/// The sender of a request: an address, or `None` on a Unix socket.
pub(crate) type Client = Option<IpAddr>;

/// The state that all stages share.
pub(crate) struct Server {
    pub(crate) config: Config,
    pub(crate) site: Site,
    pub(crate) routes: Routes,
    pub(crate) clock: Arc<Clock>,
    pub(crate) buffers: Arc<Buffers>,
    pub(crate) connections: Group,
    pub(crate) totals: Arc<Totals>,
    /// Limits the messages about unreadable files.
    pub(crate) unread: Seldom,
    pub(crate) log: Option<Arc<AccessLog>>,
    /// The operator's pages for errors: their types and their contents.
    pub(crate) error_pages: BTreeMap<u16, (Arc<str>, Vec<u8>)>,
    pub(crate) head_limits: head::Limits,
    /// The number of shards of the page cache; 0 without a cache.
    pub(crate) shards: usize,
    hasher: foldhash::fast::RandomState,
    /// The turns of rejected clients, for each route.
    pub(crate) retries: Vec<Retry>,
    pub(crate) asked: Asked,
    pub(crate) budget: Budget,
    memories: Arc<Memories>,
    randoms: AtomicU64,
    ending: AtomicBool,
    is_cut: AtomicBool,
    /// Notified when the requests in flight are cut.
    cut: Notify,
}

/// State of the process, independent of the configuration.
pub(crate) struct Shared {
    pub(crate) clock: Arc<Clock>,
    pub(crate) connections: Arc<Connections>,
    pub(crate) totals: Arc<Totals>,
    memories: Arc<Memories>,
}

/// Bound, in routes: the maximum number whose history the server remembers across
/// configurations. Beyond it, the server forgets the history of all routes.
const MEMORIES_MAX: usize = 1024;

/// The knowledge of the controllers of routes, by the names of their stages.
type Memories = Mutex<HashMap<String, Memory>>;

impl Shared {
    /// Creates the state, with an initial limit on connections.
    pub(crate) fn new(connections_max: usize, routes: &Routes, workers: usize) -> Self {
        Self {
            clock: Arc::new(Clock::new()),
            connections: Arc::new(Connections::new(connections_max)),
            totals: Arc::new(Totals::new(routes, workers)),
            memories: Arc::default(),
        }
    }
}

impl Server {
    /// Creates the server's state.
    pub(crate) fn new(
        site: Site,
        config: Config,
        routes: Routes,
        shared: &Shared,
        log: Option<Arc<AccessLog>>,
        workers: usize,
    ) -> Self {
        let error_pages = error_pages(&site, &config);
        Self {
            site,
            retries: routes.all().iter().map(|_| Retry::new()).collect(),
            asked: Asked::default(),
            memories: Arc::clone(&shared.memories),
            budget: Budget::new(config.limits.rejecting, workers),
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
                // More shards would mean more turns with fewer requests in each turn.
                CacheKind::Sharded => workers,
            },
            hasher: foldhash::fast::RandomState::default(),
            randoms: AtomicU64::new(0),
            ending: AtomicBool::new(false),
            is_cut: AtomicBool::new(false),
            cut: Notify::new(),
            config,
        }
    }

    /// Returns the memory of a route's controller, which a reload keeps.
    pub(crate) fn memory(&self, stage: &str) -> Memory {
        let mut memories = self.memories.lock();
        if memories.len() == MEMORIES_MAX && !memories.contains_key(stage) {
            memories.clear();
        }
        memories.entry(stage.to_owned()).or_default().clone()
    }

    /// Returns the maximum number of requests in the network at the same time, one per connection,
    /// including connections that are leaving. A queue with this room is never full.
    pub(crate) fn room(&self) -> u64 {
        (self.config.limits.connections + LEAVING_MAX) as u64
    }

    /// Reads the clock, before requests are answered and counted.
    #[inline]
    pub(crate) fn look(&self) {
        self.clock.look();
        self.totals
            .begin_second(self.clock.last_passed_s(), &self.routes);
    }

    /// Returns the second from which on the last check of a page's file is still valid. Call it
    /// after reading the clock.
    #[inline]
    pub(crate) fn fresh_s(&self) -> u64 {
        self.clock.last_passed_s().saturating_sub(FRESH_S)
    }

    /// Returns the hash of a key. It is computed in the connection's color to relieve the cache
    /// (libasync-smp, section "HTTP server").
    #[inline]
    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        self.hasher.hash_one(key)
    }

    /// Returns the shard of a page, if there are shards.
    #[inline]
    pub(crate) fn shard_of(&self, hash: u64) -> usize {
        // The tables of the shards use bits other than these 32.
        let bits = u64::from((hash >> 24) as u32);
        ((bits * self.shards as u64) >> 32) as usize
    }

    /// Returns the client of a request: the peer or, behind trusted proxies, the last address that
    /// is not a trusted proxy.
    pub(crate) fn client(&self, stream: &Stream, exchange: &Exchange) -> Option<IpAddr> {
        let (Ok(named) | Err(named)) = self.forwarded_for(stream, exchange);
        named.or_else(|| stream.peer())
    }

    /// Does the same as [`client`](Self::client) if the client is known. The client is unknown
    /// behind a proxy that is not trusted or specifies no address.
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

    /// Returns the client that trusted proxies specify as the origin of the request.
    ///
    /// # Errors
    /// Returns the last trusted proxy whose field cannot be read.
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

    /// Returns a random number.
    pub(crate) fn random(&self) -> u32 {
        let count = self.randoms.fetch_add(1, Ordering::Relaxed);
        (self.hasher.hash_one(count) >> 32) as u32
    }

    /// Counts and logs a request that was answered, with as much of the response as could be sent.
    #[inline]
    pub(crate) fn note(&self, stream: &Stream, exchange: &Exchange) {
        let response = &exchange.response;
        let counts = &self.totals.counts;
        counts.add_response(exchange.source, response.status, response.sent_in_all);
        self.write_down(stream, exchange);
    }

    /// Counts and logs a request whose response could not be sent completely.
    #[cold]
    pub(crate) fn note_broken(&self, stream: &Stream, exchange: &mut Exchange) {
        if self.is_cut() && exchange.response.sent_in_all == 0 {
            self.note_unanswered(stream, exchange);
        } else {
            self.note(stream, exchange);
        }
    }

    /// Counts and logs a request without a response: its client has disconnected, or the server has
    /// cut it.
    #[cold]
    pub(crate) fn note_unanswered(&self, stream: &Stream, exchange: &mut Exchange) {
        let (status, count) = match self.is_cut() {
            true => (CUT, Count::Cut),
            false => (CLIENT_GONE, Count::Gone),
        };
        exchange.response.clear();
        exchange.response.status = status;
        self.totals.counts.add(exchange.source, count);
        self.write_down(stream, exchange);
    }

    /// Logs a request.
    #[inline]
    fn write_down(&self, stream: &Stream, exchange: &Exchange) {
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

    /// Returns whether connections end after their current request.
    #[inline]
    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    /// Makes all connections end after their current request.
    pub(crate) fn end(&self) {
        self.ending.store(true, Ordering::Relaxed);
        self.connections.wake_all();
    }

    /// Returns whether the requests in flight have been cut.
    pub(crate) fn is_cut(&self) -> bool {
        // Relaxed: the system calls of `cut` come before the failures that they cause.
        self.is_cut.load(Ordering::Relaxed)
    }

    /// Cuts the requests in flight, and ends all connections.
    pub(crate) fn cut(&self) {
        self.is_cut.store(true, Ordering::Relaxed);
        self.cut.notify_waiters();
        self.connections.cut_all();
    }

    /// Waits until the requests in flight are cut.
    pub(crate) async fn until_cut(&self) {
        let cut = self.cut.notified();
        // The lock of `Notify` orders this after `cut`, unless that is yet to notify.
        if !self.is_cut() {
            cut.await;
        }
    }
}

/// Returns the peer. After a reset it is unknown.
fn known_peer(stream: &Stream) -> Option<Client> {
    let peer = stream.peer();
    (peer.is_some() || stream.is_unix()).then_some(peer)
}

/// Reads the error pages at the start, so that no request waits for them.
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
