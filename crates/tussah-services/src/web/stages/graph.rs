//! The network of a web server, on one page: the figure of the paper.
//!
//! ```text
//!              ┌───────────────── a connection's color ──────────────────┐
//! listeners ─► accept ══► parse ══► receive ──┬────────────► page cache ═╪═► send
//!                           │ │        ║      │                 │  ▲     │
//!                           ╚═╧════════╩══════╪═► send          ▼  │     │
//!                        (errors)             │            cache miss ─► disk
//!                                             └─► one stage a route ═════╪═► send
//! ═══ direct: a function call, in the color of the connection, or with its exchange      ─── by a queue
//! ```
//! The figure is figure 5 of Welsh, Culler and Brewer: SEDA, SOSP 2001.

use std::sync::{Arc, OnceLock};

use tussah::stage::control::AutoTarget;
use tussah::stage::host::DirectHost;
use tussah::stage::{BuildError, Declared, Direct, Edges, Network, Stage, TrySender};

use super::accept::Accept;
use super::admission::{self, CLASSES};
use super::cache_miss::{Back, CacheMiss, load_waiting};
use super::dynamic::Dynamic;
use super::message::{Ask, Load};
use super::page_cache::PageCache;
use super::parse::Parse;
use super::receive::{Pages, Receive};
use super::send::Send;
use crate::web::connection::exchange::Exchange;
use crate::web::connection::stream::Stream;
use crate::web::connection::thread::Entry;
use crate::web::server::Server;
use crate::web::server::counts::Count;

/// Bound, in pages: the requests that a shard of the cache sorts by length at once. They are as
/// many as one look of a driver makes ready.
const CACHE_BATCH: usize = 256;

/// Bound, in requests: the requests of a route in service at the same time, if they wait.
const IN_SERVICE_MAX: usize = 4096;

/// The destination of accepted connections.
pub(crate) type AcceptStage = Stage<Stream>;

type SendStage = Stage<Box<Exchange>, DirectHost<Send>>;

/// A function that connects the stages of a server.
pub(crate) type Wire =
    dyn Fn(&Network, &Arc<Server>) -> Result<Wired, BuildError> + std::marker::Send + Sync;

/// A network with its edges.
pub(crate) struct Wired {
    pub(crate) accept: AcceptStage,
    /// The stages of the routes, by index.
    pub(crate) routes: Vec<Stage<Box<Exchange>>>,
}

/// Connects the stages of a server.
///
/// A connection has one request in the network at a time, so a queue with room for all connections
/// is never full.
pub(crate) fn wire(network: &Network, server: &Arc<Server>) -> Result<Wired, BuildError> {
    let (own, room) = (|| Arc::clone(server), server.room());
    let send = network.stage("send").direct(|_| Ok(Send(own())))?;
    let pages = wire_pages(network, server, &send)?;
    let routes = 0..server.routes.all().len();
    let routes = routes.map(|route| wire_route(network, server, route, &send));
    let routes = routes.collect::<Result<Vec<_>, _>>()?;

    let receive = network.stage("receive").direct(|edges| {
        Ok(Receive {
            server: own(),
            pages: pages.edges(edges, room)?,
            routes: routes
                .iter()
                .map(|stage| edges.to(stage).offer(room))
                .collect::<Result<_, _>>()?,
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
    })?;
    let accept = network.find("accept")?;
    Ok(Wired { accept, routes })
}

/// The source of pages.
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
) -> Result<Vec<TrySender<Ask>>, BuildError> {
    caches
        .iter()
        .map(|cache| edges.to(cache).offer(room))
        .collect()
}

/// Connects the page cache, sharded or absent, and the stages that load pages.
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

/// Creates the stage of a route. It rejects requests that it cannot answer within its target; the
/// 503 bypasses all queues.
fn wire_route(
    network: &Network,
    server: &Arc<Server>,
    route: usize,
    send: &SendStage,
) -> Result<Stage<Box<Exchange>>, BuildError> {
    let room = server.room();
    let (path, options) = &server.routes.all()[route];
    let edge = Arc::new(OnceLock::<Direct<_, Send>>::new());
    let (rejects, by) = (Arc::clone(server), Arc::clone(&edge));
    let name = format!("route {path}");
    let stage = network.stage(&name).classes(CLASSES).batch(1).queue(room);
    let stage = if options.waits {
        stage.manual().servlets(room as usize)
    } else {
        let target = options.target.unwrap_or(server.config.target);
        let auto = AutoTarget::new(target);
        auto.switch().set(server.config.overload);
        stage
            .target(target)
            .controller(auto)
            .servlets(IN_SERVICE_MAX)
    };
    let stage = stage.on_drop(move |exchange, _| {
        if let Some(send) = by.get()
            && let Some(exchange) = admission::reject(&rejects, exchange, route, Count::Overload)
        {
            drop(send.send(exchange));
        }
    });
    stage.handler(|edges| {
        let send = edges.to(send).direct(room)?;
        let send = edge.get_or_init(|| send).clone();
        Ok(Dynamic {
            server: Arc::clone(server),
            route,
            send,
        })
    })?;
    network.find(&name)
}
