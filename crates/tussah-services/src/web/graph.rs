//! The network of a web server: the figure of the paper, in a page.
//!
//! ```text
//!              ┌───────────────── a connection's color ──────────────────┐
//! listeners ─► accept ══► parse ══► receive ──┬────────────► page cache ═╪═► send
//!                           │ │        ║      │                 │  ▲     │
//!                           ╚═╧════════╩══════╪═► send          ▼  │     │
//!                        (errors)             │            cache miss ─► disk
//!                                             └────────────► dynamic ════╪═► send
//! ═══ direct: a function call, in the color of the connection, or with its exchange      ─── by a queue
//! ```
//! After Welsh, Culler and Brewer: SEDA, SOSP 2001, figure 5.

use std::sync::{Arc, OnceLock};

use tussah::stage::{BuildError, Declared, Direct, DirectHost, Edges, Network, Offerer, Stage};

use super::accept::{Accept, Entry};
use super::cache_miss::{Back, CacheMiss, Load, load_waiting};
use super::dynamic::{CLASSES, Dynamic, overloaded};
use super::exchange::Exchange;
use super::page_cache::{Ask, PageCache};
use super::parse::Parse;
use super::receive::{Pages, Receive};
use super::send::Send;
use super::server::Server;
use super::stream::Stream;

/// The edge by which answers are sent.
pub(crate) type Sending = Direct<Box<Exchange>, Send>;

/// Bound, in pages: how many requests a shard of the cache puts into the order of their lengths at once; as many as become ready at one look of a driver.
const CACHE_BATCH: usize = 256;

/// Bound, in requests: how many dynamic pages are made at the same time, if they wait.
const DYNAMIC_MAX: usize = 4096;

/// Where accepted connections are sent.
pub(crate) type AcceptStage = Stage<Stream, DirectHost<Accept>>;

type SendStage = Stage<Box<Exchange>, DirectHost<Send>>;

/// Wires a server, and gives where accepted connections are sent.
///
/// One request of a connection is in the network at a time, so a queue that has room for all connections is never full.
pub(crate) fn wire(network: &Network, server: &Arc<Server>) -> Result<AcceptStage, BuildError> {
    let (own, room) = (|| Arc::clone(server), server.room());
    let send = network.stage("send").direct(|_| Ok(Send(own())))?;
    let pages = wire_pages(network, server, &send)?;
    let dynamic = wire_dynamic(network, server, &send)?;

    let receive = network.stage("receive").direct(|edges| {
        Ok(Receive {
            server: own(),
            pages: pages.edges(edges, room)?,
            dynamic: edges.to(&dynamic).offer(room)?,
            send: edges.to(&send).direct(room)?,
        })
    })?;
    let parse = network.stage("parse").direct(|edges| {
        Ok(Parse {
            server: own(),
            receive: edges.to(&receive).direct(room)?,
            send: edges.to(&send).direct(room)?,
        })
    })?;
    network.stage("accept").manual().direct(|edges| {
        let parse = edges.to(&parse).direct(room)?;
        Ok(Accept(Arc::new(Entry {
            server: own(),
            parse,
        })))
    })
}

/// Where pages come from.
enum PageStages {
    Caches(Vec<Stage<Ask>>),
    Miss(Stage<Box<Load>>),
}

impl PageStages {
    fn edges(&self, edges: &Edges<'_>, room: u64) -> Result<Pages, BuildError> {
        Ok(match self {
            Self::Caches(caches) => Pages::Caches(to_caches(caches, edges, room)?),
            Self::Miss(miss) => Pages::Miss(edges.to(miss).offer(room)?),
        })
    }
}

fn to_caches(
    caches: &[Stage<Ask>],
    edges: &Edges<'_>,
    room: u64,
) -> Result<Vec<Offerer<Ask>>, BuildError> {
    caches
        .iter()
        .map(|cache| edges.to(cache).offer(room))
        .collect()
}

/// The page cache, in shards or not at all, and what loads pages.
fn wire_pages(
    network: &Network,
    server: &Arc<Server>,
    send: &SendStage,
) -> Result<PageStages, BuildError> {
    let (own, room) = (|| Arc::clone(server), server.room());
    let declare = |n| {
        network
            .stage(format!("page cache {n}"))
            .manual()
            .batch(CACHE_BATCH)
            .declare()
    };
    let declared = (0..server.shards)
        .map(declare)
        .collect::<Result<Vec<_>, _>>()?;
    let caches: Vec<_> = declared.iter().map(Declared::stage).collect();
    let back = |edges: &Edges<'_>| match &*caches {
        [] => Ok(Back::Send(edges.to(send).direct(room)?)),
        caches => Ok(Back::Caches(to_caches(caches, edges, room)?)),
    };

    let disk = network.stage("disk").manual().batch(1).queue(room);
    let disk = disk.blocking(|edges| Ok(load_waiting(own(), back(edges)?)))?;
    let miss = network.stage("cache miss").manual().direct(|edges| {
        Ok(CacheMiss {
            server: own(),
            disk: edges.to(&disk).offer(room)?,
            back: back(edges)?,
        })
    })?;
    for cache in declared {
        let (server, miss, send) = (own(), miss.clone(), send.clone());
        cache.serial(move |edges| {
            let miss = edges.to(&miss).offer(room)?;
            Ok(PageCache::new(
                Arc::clone(&server),
                miss,
                edges.to(&send).direct(room)?,
            ))
        })?;
    }
    Ok(if caches.is_empty() {
        PageStages::Miss(network.find("cache miss")?)
    } else {
        PageStages::Caches(caches)
    })
}

/// What answers by functions, with a latency target: what can't be met is turned away, and told so past all queues.
fn wire_dynamic(
    network: &Network,
    server: &Arc<Server>,
    send: &SendStage,
) -> Result<Stage<Box<Exchange>>, BuildError> {
    let room = server.room();
    let edge = Arc::new(OnceLock::<Sending>::new());
    let (turned_away, by) = (Arc::clone(server), Arc::clone(&edge));
    let dynamic = network
        .stage("dynamic")
        .target(server.config.target)
        .classes(CLASSES)
        .batch(1);
    let dynamic = dynamic
        .servlets(DYNAMIC_MAX)
        .queue(room)
        .on_drop(move |exchange, _| {
            if let Some(send) = by.get() {
                overloaded(&turned_away, exchange, send);
            }
        });
    dynamic.handler(|edges| {
        let send = edges.to(send).direct(room)?;
        let send = edge.get_or_init(|| send).clone();
        Ok(Dynamic {
            server: Arc::clone(server),
            send,
        })
    })?;
    network.find("dynamic")
}
