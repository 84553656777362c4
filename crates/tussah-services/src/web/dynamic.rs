//! *Dynamic*: has a function answer. What can't be answered within the target is turned away at once.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use tussah::stage::{Batch, Class, Handler};
use tussah_wire::http::Status;

use super::answer;
use super::exchange::{Body, Exchange};
use super::graph::Sending;
use super::route::{Reply, Request};
use super::server::Server;

/// The stage.
pub(crate) struct Dynamic {
    pub(crate) server: Arc<Server>,
    pub(crate) send: Sending,
}

impl Handler for Dynamic {
    type Event = Box<Exchange>;

    async fn handle(&self, batch: &mut Batch<Box<Exchange>>) {
        while let Some(mut exchange) = batch.next() {
            if let Some(connection) = &exchange.connection {
                connection.last.store(SERVED, Ordering::Relaxed);
            }
            let mut reply = self.reply(&mut exchange).await;
            if reply.status.code() < 200 {
                tracing::error!(status = %reply.status, "expected a final status of a handler");
                reply = Reply::status(Status::INTERNAL_SERVER_ERROR);
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
            drop(self.send.send(exchange)); // if it is not taken, the server ends
        }
    }
}

impl Dynamic {
    async fn reply(&self, exchange: &mut Exchange) -> Reply {
        let Some(route) = self.server.routes.find(exchange.path()) else {
            return Reply::status(Status::NOT_FOUND);
        };
        let failed = |_| Reply::status(Status::INTERNAL_SERVER_ERROR);
        let request = request(&self.server, exchange);
        let answering = match catch_unwind(AssertUnwindSafe(|| route(request))) {
            Ok(answering) => answering,
            Err(panic) => return failed(panic),
        };
        let mut answering = pin!(answering);
        poll_fn(|cx| {
            // A panic is this request's alone; the panic hook has told of it.
            match catch_unwind(AssertUnwindSafe(|| answering.as_mut().poll(cx))) {
                Ok(polled) => polled,
                Err(panic) => Poll::Ready(failed(panic)),
            }
        })
        .await
    }
}

/// Whether a field is one that the server says itself: a second one would make another message of it.
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

/// What a handler is given.
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

/// The classes of dynamic requests, the first first: who was turned away and comes again when told to; who has just come, or comes too soon; and who has just been served. Else
/// those who are served would come again at once, and take the place that they have left.
const IN_TURN: Class = Class(0);
const NEW: Class = Class(1);
const AGAIN: Class = Class(2);

/// So many classes there are.
pub(crate) const CLASSES: usize = 3;

/// How a connection's last dynamic request went: there was none, it was served, or it was turned away for so many seconds, which are fewer.
pub(crate) const NONE: u8 = 0;
const SERVED: u8 = u8::MAX;

/// The class of a request.
pub(crate) fn class(server: &Server, exchange: &Exchange) -> Class {
    let Some(connection) = &exchange.connection else {
        return NEW;
    };
    // Relaxed: written by who had the connection's last exchange.
    let last = connection.last.load(Ordering::Relaxed);
    class_after(last, connection.waits_since_s(), server.clock.passed_s())
}

/// The class of a request by how the one before it went, and since when the client was waited for.
fn class_after(last: u8, since_s: u64, now_s: u64) -> Class {
    match last {
        NONE => NEW,
        SERVED => AGAIN,
        // As long as the client has not got another answer since.
        after_s if now_s >= since_s + u64::from(after_s) => IN_TURN,
        _ => NEW,
    }
}

/// Answers a request that is turned away: the client is told when to come again, each another time.
pub(crate) fn overloaded(server: &Server, mut exchange: Box<Exchange>, send: &Sending) {
    let clients = server.connections.all().count();
    let after_s = server.retry.after_s(clients, server.random());
    if let Some(connection) = &exchange.connection {
        connection.last.store(after_s, Ordering::Relaxed);
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

    #[test]
    fn who_was_turned_away_goes_first_when_its_turn_has_come() {
        let table = [
            (NONE, 109, NEW),
            (SERVED, 109, AGAIN),
            (3, 100, NEW),
            (3, 102, NEW),
            (3, 103, IN_TURN),
            (3, 109, IN_TURN),
        ];
        for (last, now_s, expected) in table {
            assert_eq!(class_after(last, 100, now_s), expected, "{last} {now_s}");
        }
        assert!(IN_TURN < NEW && NEW < AGAIN, "the first class goes first");
    }
}
