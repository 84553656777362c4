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

use tussah::stage::{BuildError, Declared, Direct, Edges, Network, Sender};

use super::accept::{Accept, Entry};
use super::cache_miss::{Back, CacheMiss, disk};
use super::dynamic::{Dynamic, overloaded};
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

/// Wires a server, and gives where accepted connections are sent.
///
/// One request of a connection is in the network at a time, so a queue that has room for all connections is never full.
pub(crate) fn wire(network: &Network, server: &Arc<Server>) -> Result<Sender<Stream>, BuildError> {
    let own = || Arc::clone(server);
    let room = server.config.limits.connections as u64;

    let send = network.stage("send").direct(|_| Ok(Send(own())))?;
    let caches = (0..server.shards).map(|n| network.stage(format!("page cache {n}")));
    let caches = caches.map(|cache| cache.manual().batch(CACHE_BATCH).declare());
    let caches: Vec<Declared<Ask>> = caches.collect::<Result<_, _>>()?;
    let shards: Vec<_> = caches.iter().map(Declared::stage).collect();
    let to_shards = |edges: &Edges<'_>| -> Result<Vec<_>, BuildError> {
        shards
            .iter()
            .map(|shard| edges.to(shard).offer(room))
            .collect()
    };
    let back = |edges: &Edges<'_>| match server.shards {
        0 => Ok(Back::Send(edges.to(&send).direct(room)?)),
        _ => Ok(Back::Caches(to_shards(edges)?)),
    };
    let disk = network
        .stage("disk")
        .manual()
        .batch(1)
        .queue(room)
        .blocking(|edges| Ok(disk(own(), back(edges)?)))?;
    let miss = network.stage("cache miss").manual().direct(|edges| {
        Ok(CacheMiss {
            server: own(),
            disk: edges.to(&disk).offer(room)?,
            back: back(edges)?,
        })
    })?;
    for cache in caches {
        let (server, miss, send) = (own(), miss.clone(), send.clone());
        cache.serial(move |edges| {
            let (miss, send) = (edges.to(&miss).offer(room)?, edges.to(&send).direct(room)?);
            Ok(PageCache::new(Arc::clone(&server), miss, send))
        })?;
    }

    let (turned_away, to_send) = (own(), Arc::new(OnceLock::<Sending>::new()));
    let send_late = Arc::clone(&to_send);
    let dynamic = network
        .stage("dynamic")
        .target(server.config.target)
        .batch(1)
        .servlets(DYNAMIC_MAX)
        .queue(room)
        .on_drop(move |exchange, _| {
            if let Some(send) = send_late.get() {
                overloaded(&turned_away, exchange, send);
            }
        })
        .handler(|edges| {
            let send = edges.to(&send).direct(room)?;
            Ok(Dynamic {
                server: own(),
                send: to_send.get_or_init(|| send).clone(),
            })
        })?;
    let receive = network.stage("receive").direct(|edges| {
        let pages = match server.shards {
            0 => Pages::Miss(edges.to(&miss).offer(room)?),
            _ => Pages::Caches(to_shards(edges)?),
        };
        let (dynamic, send) = (
            edges.to(&dynamic).offer(room)?,
            edges.to(&send).direct(room)?,
        );
        Ok(Receive {
            server: own(),
            pages,
            dynamic,
            send,
        })
    })?;
    let parse = network.stage("parse").direct(|edges| {
        let (receive, send) = (
            edges.to(&receive).direct(room)?,
            edges.to(&send).direct(room)?,
        );
        Ok(Parse {
            server: own(),
            receive,
            send,
        })
    })?;
    let accept = network.stage("accept").manual().direct(|edges| {
        let parse = edges.to(&parse).direct(room)?;
        Ok(Accept(Arc::new(Entry {
            server: own(),
            parse,
        })))
    })?;
    Ok(accept.sender())
}
