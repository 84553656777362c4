//! The network of a web server.

use std::sync::Arc;

use tussah::stage::{BuildError, Declared, Direct, Edges, Many, Network, Stage};

use super::accept::{Accept, Entry};
use super::cache_miss::CacheMiss;
use super::exchange::Exchange;
use super::page_cache::PageCache;
use super::parse::Parse;
use super::receive::Receive;
use super::send::Send;
use super::server::Server;
use super::stream::Stream;

/// The edge by which answers are sent.
pub(crate) type Sending = Direct<Box<Exchange>, Send>;

/// Wires a server; gives the stage that accepted connections are sent to.
pub(crate) fn wire(
    network: &Network,
    server: &Arc<Server>,
) -> Result<Stage<Stream, Arc<Many<Accept>>>, BuildError> {
    let own = || Arc::clone(server);
    // One request of a connection is in the network at a time.
    let room = server.limits.connections_max;

    let send = network.stage("send").direct(|_| Ok(Send))?;
    let declared = (0..server.shards)
        .map(|n| {
            network
                .stage(format!("page cache.{n}"))
                .manual()
                .batch(256)
                .declare()
        })
        .collect::<Result<Vec<_>, _>>()?;
    let caches: Vec<_> = declared.iter().map(Declared::stage).collect();
    let offers = |edges: &Edges<'_>| {
        let offers = caches.iter().map(|cache| edges.to(cache).offer(room));
        offers.collect::<Result<Vec<_>, _>>()
    };
    let miss = network.stage("cache miss").handler(|edges| {
        Ok(CacheMiss {
            server: own(),
            caches: offers(edges)?,
        })
    })?;
    for cache in declared {
        let (own, miss, send) = (own(), miss.clone(), send.clone());
        cache.serial(move |edges| {
            let (miss, send) = (edges.to(&miss).offer(room)?, edges.to(&send).direct(room)?);
            Ok(PageCache::new(Arc::clone(&own), miss, send))
        })?;
    }
    let receive = network.stage("receive").direct(|edges| {
        Ok(Receive {
            server: own(),
            caches: offers(edges)?,
            send: edges.to(&send).direct(room)?,
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
    network.stage("accept").handler(|edges| {
        let parse = edges.to(&parse).direct(room)?;
        Ok(Accept(Arc::new(Entry {
            server: own(),
            parse,
        })))
    })
}
