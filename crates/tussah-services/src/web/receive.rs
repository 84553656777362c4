//! *HttpRecv*: says what a request is for, and which stage it goes to.

use std::sync::Arc;

use tussah::stage::{DirectHandler, Event, Offerer, SendError};
use tussah_wire::http::encoding::{Accepted, Codings};
use tussah_wire::http::head::Field;
use tussah_wire::http::{Framing, Method, Status, target};

use super::answer;
use super::cache_miss::Load;
use super::dynamic::{self, overloaded};
use super::exchange::{Body, Exchange, Next};
use super::graph::Sending;
use super::page_cache::Ask;
use super::server::Server;
use super::status;

/// The stage.
pub(crate) struct Receive {
    pub(crate) server: Arc<Server>,
    pub(crate) pages: Pages,
    pub(crate) dynamic: Offerer<Box<Exchange>>,
    pub(crate) send: Sending,
}

/// Where pages come from.
pub(crate) enum Pages {
    /// From the shards of a cache.
    Caches(Vec<Offerer<Ask>>),
    /// From their files.
    Miss(Offerer<Box<Load>>),
}

impl DirectHandler for Receive {
    type Event = Box<Exchange>;

    fn handle(&self, mut exchange: Box<Exchange>) {
        let head = exchange.head.as_ref().expect("it has been parsed");
        match head.path(exchange.input.filled()) {
            // All of the server, or a tunnel (RFC 9112, sections 3.2.3 and 3.2.4).
            b"*" | b"" => return self.other_method(exchange),
            raw => match target::path(raw) {
                Ok(path) => exchange.key.extend_from_slice(&path),
                Err(refusal) => match self.path_of_route(raw) {
                    Some(path) => exchange.key.extend_from_slice(&path),
                    None => return self.refuse(exchange, refusal.status()),
                },
            },
        }
        let is_status = status::is_asked_for(&self.server, &exchange);
        let has_route = !is_status && self.server.routes.find(&exchange.key).is_some();
        let reads = matches!(head.method, Method::Get | Method::Head);
        if !reads && (!has_route || head.method == Method::Trace) {
            return self.other_method(exchange);
        }
        if head.framing != Framing::None && matches!(exchange.body, Body::Unread) {
            exchange.body = Body::Wanted { keep: has_route };
            exchange.key.clear();
            exchange.next = Next::Body;
            return exchange.give_back();
        }
        if is_status {
            status::answer(&self.server, &mut exchange);
            return drop(self.send.send(exchange));
        }
        if has_route {
            exchange.key.push(0);
            let class = dynamic::class(&self.server, &exchange);
            let event = Event::new(exchange).class(class);
            if let Err(SendError { event, .. }) = self.dynamic.try_send(event) {
                overloaded(&self.server, event.into_inner(), &self.send);
            }
            return;
        }
        let codings = self.codings(&exchange);
        exchange.key.push(codings.bits());
        exchange.hash = self.server.hash(&exchange.key);
        // They have room for a request of each connection: if they don't take this one, the server ends.
        match &self.pages {
            Pages::Caches(caches) => {
                let shard = self.server.shard_of(exchange.hash);
                caches[shard].send_or(Ask::Page(exchange), |_, _| {});
            }
            Pages::Miss(miss) => miss.send_or(Load::new(exchange, None), |_, _| {}),
        }
    }
}

impl Receive {
    /// A path with escapes that only a route can have: no file has a slash in its name.
    #[cold]
    fn path_of_route(&self, raw: &[u8]) -> Option<Vec<u8>> {
        let path = target::path_with_escapes(raw).ok()?;
        self.server.routes.find(&path).map(|_| path)
    }

    /// The codings of a file that are as good for this client as none, the best first.
    #[inline]
    fn codings(&self, exchange: &Exchange) -> Codings {
        let (head, bytes) = (exchange.head(), exchange.input.filled());
        if head.field(Field::AcceptEncoding, bytes).is_none() {
            return Codings::NONE;
        }
        let accepted = Accepted::parse(head.field_lines(Field::AcceptEncoding, bytes));
        accepted.preferred(self.server.config.site.precompressed)
    }

    /// Files can be read only.
    fn other_method(&self, mut exchange: Box<Exchange>) {
        let head = exchange.head();
        let status = match head.method {
            Method::Options => Status::NO_CONTENT,
            Method::Connect | Method::Trace | Method::Other => Status::NOT_IMPLEMENTED,
            _ => Status::METHOD_NOT_ALLOWED,
        };
        // A body may be coming, which nobody reads; or what is meant for a tunnel.
        exchange.is_last |= !matches!(head.framing, Framing::None | Framing::Length(0))
            || head.method == Method::Connect;
        answer::text(
            &self.server,
            &mut exchange,
            status,
            &[("Allow", "GET, HEAD, OPTIONS")],
        );
        drop(self.send.send(exchange));
    }

    fn refuse(&self, mut exchange: Box<Exchange>, status: Status) {
        exchange.is_last = true;
        answer::text(&self.server, &mut exchange, status, &[]);
        drop(self.send.send(exchange));
    }
}
