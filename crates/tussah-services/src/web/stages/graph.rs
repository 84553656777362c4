//! The network of a web server, made from the graph in `web.weave`.
//!
//! The graph defines the instances, their edges and their limits. Each module is a kind of stage.
//! For each instance, this file makes a stage with the edges of the instance. An edge by `call` is
//! a function call, in the color of the connection, or with its exchange. The handler on its other
//! end is part of the caller's type, so a call costs the same as without the graph.

use std::sync::{Arc, OnceLock};

use tussah::stage::control::AutoTarget;
use tussah::stage::{BuildError, Declared, Direct, Edges, Network, Stage, TrySender};

use super::accept::Accept;
use super::admission::{self, CLASSES};
use super::cache_miss::{Back, CacheMiss, load_waiting};
use super::dynamic::Dynamic;
use super::message::Ask;
use super::page_cache::PageCache;
use super::parse::Parse;
use super::plan::{Plan, TEXT, of_applications};
use super::receive::{Pages, Receive};
use super::send::Send;
use crate::web::connection::exchange::Exchange;
use crate::web::connection::stream::Stream;
use crate::web::connection::thread::Entry;
use crate::web::server::Server;
use crate::web::server::counts::Count;

/// The destination of accepted connections.
pub(crate) type AcceptStage = Stage<Stream>;

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
    wire_text(TEXT, network, server)
}

fn wire_text(text: &str, network: &Network, server: &Arc<Server>) -> Result<Wired, BuildError> {
    let mut plan = Plan::new(text, network, server)?;
    let mut caches = Vec::new();
    for node in plan.all("PageCache").collect::<Vec<_>>() {
        let batch = plan.count(node)? as usize;
        for name in plan.names(node) {
            caches.push(network.stage(name).manual().batch(batch).declare()?);
        }
    }
    let mut routes_by_index = vec![None; server.routes.all().len()];
    for node in plan.order() {
        match &*plan.node(node).module {
            "Accept" => make_accept(&plan, node)?,
            "Parse" => make_parse(&mut plan, node)?,
            "Receive" => make_receive(&mut plan, node)?,
            "PageCache" => make_caches(&plan, node, std::mem::take(&mut caches))?,
            "CacheMiss" => make_cache_miss(&plan, node)?,
            "Disk" => make_disk(&plan, node)?,
            module @ ("Route" | "FastCgi") => {
                let routes = of_applications(server, module == "FastCgi");
                for (name, route) in plan.names(node).iter().zip(routes) {
                    routes_by_index[route] = Some(make_route(&plan, node, name, route)?);
                }
            }
            // The graph has no other modules.
            _ => {
                let send = plan.stage(node).direct(|_| Ok(Send(Arc::clone(server))))?;
                plan.keep(node, send);
            }
        }
    }
    Ok(Wired {
        accept: network.find("accept")?,
        routes: routes_by_index.into_iter().flatten().collect(),
    })
}

type ParseHandler = Parse<Receive<Send>, Send>;

fn make_accept(plan: &Plan<'_>, node: usize) -> Result<(), BuildError> {
    let server = plan.server;
    let parse = plan.call::<ParseHandler>(node, "out")?;
    plan.stage(node).manual().direct(|edges| {
        Ok(Accept(Arc::new(Entry {
            server: Arc::clone(server),
            parse: edges.to(&parse).direct(server.room())?,
        })))
    })?;
    Ok(())
}

fn make_parse(plan: &mut Plan<'_>, node: usize) -> Result<(), BuildError> {
    let server = plan.server;
    let receive = plan.call::<Receive<Send>>(node, "out")?;
    let bad = plan.call::<Send>(node, "bad")?;
    let parse = plan.stage(node).direct(|edges| {
        Ok(Parse {
            server: Arc::clone(server),
            receive: edges.to(&receive).direct(server.room())?,
            send: edges.to(&bad).direct(server.room())?,
        })
    })?;
    plan.keep(node, parse);
    Ok(())
}

fn make_receive(plan: &mut Plan<'_>, node: usize) -> Result<(), BuildError> {
    let server = plan.server;
    let answered = plan.call::<Send>(node, "answered")?;
    let receive = plan.stage(node).direct(|edges| {
        Ok(Receive {
            server: Arc::clone(server),
            pages: match plan.has(node, "file") {
                true => Pages::Miss(only(plan.queue(node, "file")?.offers(edges)?)),
                false => Pages::Caches(plan.queue(node, "page")?.offers(edges)?),
            },
            routes: routes(plan, node, edges)?,
            send: edges.to(&answered).direct(server.room())?,
        })
    })?;
    plan.keep(node, receive);
    Ok(())
}

/// Makes the edges to the stages of the routes, by index.
fn routes(
    plan: &Plan<'_>,
    node: usize,
    edges: &Edges<'_>,
) -> Result<Vec<TrySender<Box<Exchange>>>, BuildError> {
    let mut by_index = Vec::new();
    for (port, is_application) in [("route", false), ("script", true)] {
        let mut indices = of_applications(plan.server, is_application).peekable();
        if indices.peek().is_some() {
            let offers = plan.queue(node, port)?.offers(edges)?;
            by_index.extend(indices.zip(offers));
        }
    }
    by_index.sort_by_key(|(index, _)| *index);
    Ok(by_index.into_iter().map(|(_, offer)| offer).collect())
}

fn make_caches(
    plan: &Plan<'_>,
    node: usize,
    declared: Vec<Declared<Ask>>,
) -> Result<(), BuildError> {
    let server = plan.server;
    for cache in declared {
        let (server, miss) = (Arc::clone(server), plan.queue(node, "miss")?);
        let send = plan.call::<Send>(node, "out")?;
        cache.serial(move |edges| {
            let miss = only(miss.offers(edges)?);
            let send = edges.to(&send).direct(server.room())?;
            Ok(PageCache::new(Arc::clone(&server), miss, send))
        })?;
    }
    Ok(())
}

fn make_cache_miss(plan: &Plan<'_>, node: usize) -> Result<(), BuildError> {
    let server = plan.server;
    plan.stage(node).manual().direct(|edges| {
        Ok(CacheMiss {
            server: Arc::clone(server),
            disk: only(plan.queue(node, "slow")?.offers(edges)?),
            back: back(plan, node, edges)?,
        })
    })?;
    Ok(())
}

fn make_disk(plan: &Plan<'_>, node: usize) -> Result<(), BuildError> {
    let server = plan.server;
    let batch = plan.count(node)? as usize;
    let disk = plan.stage(node).manual().batch(batch).queue(server.room());
    let make = |edges: &Edges<'_>| {
        let back = back(plan, node, edges)?;
        Ok(load_waiting(Arc::clone(server), back))
    };
    disk.blocking(make)?;
    Ok(())
}

/// Makes the edge by which a loaded page returns: to the page cache, or, without one, to the
/// client.
fn back(plan: &Plan<'_>, node: usize, edges: &Edges<'_>) -> Result<Back<Send>, BuildError> {
    let server = plan.server;
    if plan.has(node, "answered") {
        let send = plan.call::<Send>(node, "answered")?;
        return Ok(Back::Send(edges.to(&send).direct(server.room())?));
    }
    Ok(Back::Caches(plan.queue(node, "out")?.offers(edges)?))
}

/// Returns the only sender of an edge to an instance without shards.
fn only<T>(mut senders: Vec<T>) -> T {
    senders.pop().expect("each instance is at least one stage")
}

/// Creates the stage of a route. It rejects requests that it cannot answer within its target; the
/// 503 bypasses all queues.
fn make_route(
    plan: &Plan<'_>,
    node: usize,
    name: &str,
    route: usize,
) -> Result<Stage<Box<Exchange>>, BuildError> {
    let server = plan.server;
    let (room, in_service) = (server.room(), plan.count(node)? as usize);
    let send = plan.call::<Send>(node, "out")?;
    let (_, options) = &server.routes.all()[route];
    let edge = Arc::new(OnceLock::<Direct<_, Send>>::new());
    let (rejects, by) = (Arc::clone(server), Arc::clone(&edge));
    let stage = plan
        .network
        .stage(name)
        .classes(CLASSES)
        .batch(1)
        .queue(room);
    let stage = if options.waits {
        stage.manual().servlets(room as usize)
    } else {
        let target = options.target.unwrap_or(server.config.target);
        let auto = AutoTarget::new(target).remember(&server.memory(name));
        auto.switch().set(server.config.overload);
        stage.target(target).controller(auto).servlets(in_service)
    };
    let stage = stage.on_drop(move |exchange, _| {
        if let Some(send) = by.get()
            && let Some(exchange) = admission::reject(&rejects, exchange, route, Count::Overload)
        {
            drop(send.send(exchange));
        }
    });
    stage.handler(|edges| {
        let send = edges.to(&send).direct(room)?;
        let send = edge.get_or_init(|| send).clone();
        Ok(Dynamic {
            server: Arc::clone(server),
            route,
            send,
        })
    })?;
    plan.network.find(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::answer::reply::Reply;
    use crate::web::answer::route::{Route, Routes};
    use crate::web::config::{Cache, CacheKind, Config};
    use crate::web::server::Shared;
    use crate::web::site::Site;

    /// Connects the stages of a server with or without a cache and a route.
    fn wire_with(text: &str, kind: CacheKind, has_route: bool) -> Result<(), BuildError> {
        let runtime = tussah::Runtime::builder().workers(2).build();
        runtime.expect("a runtime").block_on(async {
            let mut routes = Routes::default();
            if has_route {
                let script = Route::new(async |_| Reply::text("a")).of_application();
                routes = routes.route_with("*.php", script);
                routes = routes.route("/a", async |_| Reply::text("a"));
            }
            let cache = Cache {
                kind,
                ..Cache::default()
            };
            let config = Config {
                cache,
                ..Config::default()
            };
            let shared = Shared::new(1, &routes, 2);
            let server = Server::new(Site::empty(), config, routes, &shared, None, 2);
            let server = Arc::new(server);
            let network = Network::new("web");
            let wired = wire_text(text, &network, &server).map(drop);
            network.close();
            wired
        })
    }

    #[test]
    fn the_server_needs_each_edge_of_its_graph() {
        let kinds = [CacheKind::Sharded, CacheKind::None];
        let all = || {
            kinds
                .into_iter()
                .flat_map(|kind| [(kind, true), (kind, false)])
        };
        for (kind, has_route) in all() {
            wire_with(TEXT, kind, has_route).expect("the whole graph can be made");
        }
        let edges = TEXT.lines().filter(|line| line.contains("->"));
        for edge in edges {
            let rest: Vec<_> = TEXT.lines().filter(|line| *line != edge).collect();
            let rest = rest.join("\n");
            let is_missed = |(kind, has_route)| wire_with(&rest, kind, has_route).is_err();
            assert!(all().any(is_missed), "{edge}");
        }
    }

    #[test]
    fn other_edges_than_those_of_the_stages_are_refused() {
        let check = |from: &str, to: &str, expected: &str| {
            let text = TEXT.replacen(from, to, 1);
            let error = wire_with(&text, CacheKind::Sharded, true);
            let error = error.expect_err(to).to_string();
            assert!(error.contains(expected), "{error}");
        };
        check(
            "parse.bad -> send via call",
            "parse.bad -> receive via call",
            "expected a call of another stage at `parse.bad -> receive`",
        );
        check(
            "parse.bad -> send via call",
            "parse.bad -> send",
            "expected a call of another stage at `parse.bad -> send`",
        );
        check(
            "route via queue(room, when_full: shed)",
            "route",
            "expected a queue that sheds at `receive.route -> route`",
        );
        check(
            "receive.page -> page_cache",
            "receive.page -> disk",
            "web.weave:38: `receive.page` sends `Ask`, but `disk` expects `Load`",
        );
    }
}
