//! *Dynamic*: the stage of a route, whose function answers requests. A request that cannot be
//! answered within the target is rejected at once, and one whose client has gone is cancelled.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use futures_lite::FutureExt as _;
use tussah::stage::{Batch, Class, Handler};
use tussah_wire::http::{Method, Status};

use super::graph::Sending;
use crate::web::answer;
use crate::web::answer::route::{Answering, Reply, Request};
use crate::web::connection::exchange::{Body, Exchange};
use crate::web::connection::state::NONE;
use crate::web::server::Server;
use crate::web::server::counts::Count;

/// The stage.
pub(crate) struct Dynamic {
    pub(crate) server: Arc<Server>,
    /// The index of its route.
    pub(crate) route: usize,
    pub(crate) send: Sending,
}

impl Handler for Dynamic {
    type Event = Box<Exchange>;

    async fn handle(&self, batch: &mut Batch<Box<Exchange>>) {
        while let Some(exchange) = batch.next() {
            let mut serving = Serving(&self.server, Some(exchange));
            let Some(exchange) = self.begin(&mut serving) else {
                continue;
            };
            let mut reply = self.reply(exchange).await;
            let Some(mut exchange) = serving.1.take() else {
                continue;
            };
            detach(&exchange);
            if reply.status.code() < 200 {
                tracing::error!(status = %reply.status, "a handler returned a status below 200; answered 500 instead");
                reply = Reply::status(Status::INTERNAL_SERVER_ERROR);
            }
            if reply.status.code() >= 500 {
                batch.fail(1);
            }
            let fields = reply.fields.iter();
            let fields = fields.filter(|(name, _)| !is_own(name));
            let fields: Vec<_> = fields.map(|(name, value)| (&**name, &**value)).collect();
            let (kind, body) = (&*reply.media_type, &*reply.body);
            answer::body(
                &self.server,
                &mut exchange,
                reply.status,
                &fields,
                kind,
                body,
            );
            drop(self.send.send(exchange)); // if this fails, the server ends
        }
    }
}

impl Dynamic {
    /// Starts a request, unless its client has gone. From here on it can be cancelled only if the
    /// handler may be dropped.
    fn begin<'a>(&self, serving: &'a mut Serving<'_>) -> Option<&'a mut Exchange> {
        let exchange = serving.1.as_deref_mut()?;
        let (_, route) = &self.server.routes.all()[self.route];
        let may_drop =
            route.is_cancellable || matches!(exchange.head().method, Method::Get | Method::Head);
        if let Some(connection) = &exchange.connection {
            // Only the holder of this handle can cancel the request.
            let taken = (!may_drop).then(|| connection.take_request()).flatten();
            if connection.is_gone() {
                drop(taken.or_else(|| connection.take_request()));
                return None;
            }
            if let Some(request) = taken {
                request.detach();
            }
            connection
                .last
                .store(last(self.route, SERVED), Ordering::Relaxed);
        }
        Some(exchange)
    }

    /// Calls the handler and returns its answer.
    async fn reply(&self, exchange: &mut Exchange) -> Reply {
        let (_, route) = &self.server.routes.all()[self.route];
        let request = request(&self.server, exchange);
        // A panic affects only this request, and the panic hook has reported it.
        let answering = catch_unwind(AssertUnwindSafe(|| (route.handler)(request)));
        let reply = match answering {
            Ok(answering) => {
                AssertUnwindSafe(AtWork(Some(answering)))
                    .catch_unwind()
                    .await
            }
            Err(panic) => Err(panic),
        };
        reply.unwrap_or_else(|_| Reply::status(Status::INTERNAL_SERVER_ERROR))
    }
}

/// A request in service. If its client goes, it is cancelled: the stage drops its handler's future.
struct Serving<'a>(&'a Server, Option<Box<Exchange>>);

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        if let Some(exchange) = self.1.take()
            && exchange.is_gone()
        {
            cancel(self.0, exchange);
        }
    }
}

/// A handler's future. A panic of its drop is contained, and the panic hook reports it.
struct AtWork(Option<Answering>);

impl Future for AtWork {
    type Output = Reply;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Reply> {
        let answering = self.0.as_mut().expect("it is there until it is dropped");
        answering.as_mut().poll(cx)
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        let answering = self.0.take();
        drop(catch_unwind(AssertUnwindSafe(|| drop(answering))));
    }
}

/// Lets a request continue, whatever its client does.
fn detach(exchange: &Exchange) {
    let connection = exchange.connection.as_ref();
    if let Some(request) = connection.and_then(|connection| connection.take_request()) {
        request.detach();
    }
}

/// The status in the log of a request whose client went before the answer, as in nginx's log. It is
/// never sent.
const CLIENT_GONE: Status = Status::new(499).expect("it has three digits");

/// Ends a request whose client has gone.
#[cold]
pub(crate) fn cancel(server: &Server, mut exchange: Box<Exchange>) {
    exchange.response.clear();
    exchange.response.status = CLIENT_GONE;
    server.totals.counts.add(exchange.source, Count::Gone);
    if let Some(connection) = &exchange.connection {
        server.write_down(&connection.stream, &exchange);
    }
    exchange.abandon();
}

/// Returns whether the server sets this field itself; a second one would change the meaning of the
/// message.
fn is_own(name: &str) -> bool {
    let own = [
        "connection",
        "content-length",
        "content-type",
        "date",
        "server",
        "transfer-encoding",
    ];
    own.iter().any(|own| own.eq_ignore_ascii_case(name))
}

/// Returns the request for the handler.
fn request(server: &Server, exchange: &mut Exchange) -> Request {
    let head = *exchange.head();
    let body = match std::mem::take(&mut exchange.body) {
        Body::Read(body) => body,
        Body::Unread | Body::Wanted { .. } => Vec::new(),
    };
    let connection = exchange.connection.as_ref();
    let client = connection.and_then(|connection| server.client(&connection.stream, exchange));
    Request {
        head,
        bytes: exchange.input.filled()[..head.len()].to_vec(),
        path: exchange.path().to_vec(),
        body,
        client,
    }
}

/// The classes of dynamic requests, in order of precedence: rejected clients that retry on time,
/// then new clients and those that retry early, then clients that have just been served. Without
/// the last class, served clients would return at once and take the room that they have freed.
const IN_TURN: Class = Class(0);
const NEW: Class = Class(1);
const AGAIN: Class = Class(2);

/// The number of classes.
pub(crate) const CLASSES: usize = 3;

/// The result of a connection's last request for a route: [`NONE`], served, or rejected for a
/// number of seconds, which is smaller.
const SERVED: u8 = HOW_MASK as u8;

/// The lower bits of the word hold the result, the upper ones as much of the route's index as fits.
/// A collision changes the order of a few requests at most.
const HOW_BITS: u32 = 6;
const HOW_MASK: u16 = (1 << HOW_BITS) - 1;

/// Combines the result of a request and its route in one word.
fn last(route: usize, how: u8) -> u16 {
    (route as u16) << HOW_BITS | u16::from(how)
}

/// Returns the class of a request for a route. The connection's requests for other routes have no
/// influence.
pub(crate) fn class(server: &Server, exchange: &Exchange, route: usize) -> Class {
    let Some(connection) = &exchange.connection else {
        return NEW;
    };
    // Relaxed: the owner of the connection's last exchange wrote it.
    let last = connection.last.load(Ordering::Relaxed);
    class_after(
        last,
        route,
        connection.waits_since_s(),
        server.clock.passed_s(),
    )
}

/// Returns the class of a request by the result of the one before it, and by the start of the wait
/// for the client.
fn class_after(before: u16, route: usize, since_s: u64, now_s: u64) -> Class {
    let how = (before & HOW_MASK) as u8;
    if before == NONE || before != last(route, how) {
        return NEW;
    }
    match how {
        SERVED => AGAIN,
        // This holds as long as the client has received no other answer since.
        after_s if now_s >= since_s + u64::from(after_s) => IN_TURN,
        _ => NEW,
    }
}

/// Rejects a request. Each client gets a different time to retry.
pub(crate) fn overloaded(
    server: &Server,
    mut exchange: Box<Exchange>,
    route: usize,
    reason: Count,
    send: &Sending,
) {
    detach(&exchange);
    if exchange.is_gone() {
        return cancel(server, exchange);
    }
    server.totals.counts.add(exchange.source, reason);
    let clients = server.connections.all().count();
    let after_s = server.retries[route].after_s(clients, server.random());
    if let Some(connection) = &exchange.connection {
        connection
            .last
            .store(last(route, after_s), Ordering::Relaxed);
    }
    let after = after_s.to_string();
    answer::text(
        server,
        &mut exchange,
        Status::SERVICE_UNAVAILABLE,
        &[("Retry-After", &after)],
    );
    drop(send.send(exchange));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::server::retry::AFTER_S_MAX;

    #[test]
    fn a_rejected_client_that_retries_on_time_goes_first() {
        let table = [
            (NONE, 109, NEW),
            (last(7, SERVED), 109, AGAIN),
            (last(7, 3), 100, NEW),
            (last(7, 3), 102, NEW),
            (last(7, 3), 103, IN_TURN),
            (last(7, 3), 109, IN_TURN),
            (last(7, AFTER_S_MAX), 159, NEW),
            (last(7, AFTER_S_MAX), 160, IN_TURN),
            // Another route has no record of it.
            (last(6, SERVED), 109, NEW),
            (last(6, 3), 109, NEW),
        ];
        assert_eq!(class_after(NONE, 0, 100, 109), NEW);
        for (before, now_s, expected) in table {
            let found = class_after(before, 7, 100, now_s);
            assert_eq!(found, expected, "{before:x} {now_s}");
        }
        assert!(IN_TURN < NEW && NEW < AGAIN, "the first class goes first");
    }
}
