//! *HttpRecv*: determines the purpose of a request and the stage for it.

use std::sync::Arc;

use tussah::stage::{Direct, DirectHandler, Event, Refusal, SendError, TrySender};
use tussah_wire::http::encoding::{Accepted, Codings};
use tussah_wire::http::head::Field;
use tussah_wire::http::{Framing, Method, Status, target};

use super::admission;
use super::message::{Ask, Load};
use crate::web::answer;
use crate::web::answer::status;
use crate::web::connection::exchange::{Body, Exchange, Next, Want};
use crate::web::server::Server;
use crate::web::server::budget;
use crate::web::server::counts::{self, Count};

/// Bound, in bytes: the maximum announced length of a body that is not streamed. A client that
/// sends it slowly then occupies neither its route nor what is behind it.
const SHORT_BYTES: u64 = 64 * 1024;

/// The stage.
pub(crate) struct Receive<S> {
    pub(crate) server: Arc<Server>,
    pub(crate) pages: Pages,
    /// The stages of the routes, by index.
    pub(crate) routes: Vec<TrySender<Box<Exchange>>>,
    pub(crate) send: Direct<Box<Exchange>, S>,
}

/// The source of pages.
pub(crate) enum Pages {
    /// The shards of a cache.
    Caches(Vec<TrySender<Ask>>),
    /// The pages' files.
    Miss(TrySender<Box<Load>>),
}

impl<S: DirectHandler<Event = Box<Exchange>>> DirectHandler for Receive<S> {
    type Event = Box<Exchange>;

    fn handle(&self, mut exchange: Box<Exchange>) {
        let head = exchange.head.as_ref().expect("it has been parsed");
        match (&exchange.redirected, head.path(exchange.input.filled())) {
            (Some(path), _) => exchange.key.extend_from_slice(path),
            // These targets stand for the whole server, or for a tunnel (RFC 9112, sections 3.2.3
            // and 3.2.4).
            (None, b"*" | b"") => return self.other_method(exchange),
            (None, raw) => match target::path(raw) {
                Ok(path) => exchange.key.extend_from_slice(&path),
                Err(refusal) => match self.path_of_route(raw) {
                    Some(path) => exchange.key.extend_from_slice(&path),
                    None => return self.refuse(exchange, refusal.status()),
                },
            },
        }
        let is_status = status::is_asked_for(&self.server, &exchange);
        let found = || self.server.routes.find(&exchange.key);
        let route = if is_status { None } else { found() };
        if let Some(route) = route {
            exchange.source = self.server.totals.counts.source_of(route);
        }
        if route.is_none() && exchange.redirected.is_some() {
            return self.refuse(exchange, Status::NOT_FOUND); // a script that no route runs
        }
        // Before the site has been searched, this may be a request for a script with another path,
        // which takes any method and its body.
        let may_run = route.is_none() && !is_status && self.server.site.redirects_to_scripts();
        let is_for_file = route.is_none() && !may_run;
        if !head.method.reads() && (is_for_file || head.method == Method::Trace) {
            return self.other_method(exchange);
        }
        if route.is_some() && exchange.is_gone() {
            return admission::cancel(&self.server, exchange);
        }
        let has_unread = head.framing != Framing::None && matches!(exchange.body, Body::Unread);
        if has_unread && !may_run {
            exchange.body = Body::Wanted(self.want(route, head.framing));
            exchange.key.clear();
            exchange.next = Next::Body;
            return exchange.give_back();
        }
        if is_status {
            status::answer(&self.server, &mut exchange);
            return drop(self.send.send(exchange));
        }
        if let Some(route) = route {
            return self.to_route(exchange, route);
        }
        exchange.source = counts::FILES;
        let codings = self.codings(&exchange);
        exchange.key.push(codings.bits());
        exchange.hash = self.server.hash(&exchange.key);
        // The stages have room for a request of each connection. If they refuse this request, the
        // server is ending.
        match &self.pages {
            Pages::Caches(caches) => {
                let shard = self.server.shard_of(exchange.hash);
                caches[shard].send_or(Ask::Page(exchange), |_, _| {});
            }
            Pages::Miss(miss) => {
                self.server.look();
                miss.send_or(Load::new(exchange, None), |_, _| {});
            }
        }
    }
}

impl<S: DirectHandler<Event = Box<Exchange>>> Receive<S> {
    /// Sends a request to the stage of its route. If its client disconnects, the request is
    /// cancelled there.
    fn to_route(&self, mut exchange: Box<Exchange>, route: usize) {
        self.server.asked.ask();
        exchange.key.push(0);
        let class = admission::class(&self.server, &exchange, route);
        let connection = exchange.connection.clone();
        let (event, request) = Event::new(exchange).class(class).cancellable();
        match connection {
            Some(connection) => connection.leave(request),
            None => request.detach(),
        }
        if let Err(SendError { event, why, .. }) = self.routes[route].try_send(event) {
            let reason = match why {
                Refusal::Full | Refusal::KeyFull => Count::Full,
                _ => Count::Overload,
            };
            let exchange = event.into_inner();
            budget::note_rejected(admission::is_first(&exchange));
            if let Some(exchange) = admission::reject(&self.server, exchange, route, reason) {
                drop(self.send.send(exchange));
            }
        }
    }

    /// Returns the reason for reading a request's body.
    fn want(&self, route: Option<usize>, framing: Framing) -> Want {
        let is_short = matches!(framing, Framing::Length(..=SHORT_BYTES));
        match route.map(|route| &self.server.routes.all()[route].1) {
            None => Want::Next,
            Some(route) if route.streams && !is_short => Want::Stream,
            Some(_) => Want::Whole,
        }
    }

    /// Returns a path whose escapes only a route may have, since no file name contains a slash.
    #[cold]
    fn path_of_route(&self, raw: &[u8]) -> Option<Vec<u8>> {
        let path = target::path_with_escapes(raw).ok()?;
        self.server.routes.find(&path).map(|_| path)
    }

    /// Returns the codings that this client prefers at least as much as no coding, best first.
    #[inline]
    fn codings(&self, exchange: &Exchange) -> Codings {
        let (head, bytes) = (exchange.head(), exchange.input.filled());
        if head.field(Field::AcceptEncoding, bytes).is_none() {
            return Codings::NONE;
        }
        let accepted = Accepted::parse(head.field_lines(Field::AcceptEncoding, bytes));
        accepted.preferred(self.server.config.site.precompressed)
    }

    fn other_method(&self, mut exchange: Box<Exchange>) {
        answer::other_method(&self.server, &mut exchange);
        drop(self.send.send(exchange));
    }

    fn refuse(&self, mut exchange: Box<Exchange>, status: Status) {
        exchange.is_last = true;
        answer::text(&self.server, &mut exchange, status, &[]);
        drop(self.send.send(exchange));
    }
}
