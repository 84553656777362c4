//! *Dynamic*: has a function answer. What can't be answered within the target is turned away at once.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use tussah::stage::{Batch, Handler};
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
            let reply = self.reply(&mut exchange).await;
            let fields = reply.fields.iter();
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

/// What a handler is given.
fn request(server: &Server, exchange: &mut Exchange) -> Request {
    let head = *exchange.head();
    let connection = exchange.connection.as_ref();
    let client = connection.and_then(|connection| server.client(&connection.stream, exchange));
    let body = match std::mem::take(&mut exchange.body) {
        Body::Read(body) => body,
        Body::Unread | Body::Wanted { .. } => Vec::new(),
    };
    Request {
        head,
        bytes: exchange.input.filled()[..head.len()].to_vec(),
        path: exchange.path().to_vec(),
        body,
        client,
    }
}

/// Answers a request that is turned away: the client is told when to come again, each another time.
pub(crate) fn overloaded(server: &Server, mut exchange: Box<Exchange>, send: &Sending) {
    let after_s = server.retry_s.load(Ordering::Relaxed);
    // Between once and twice as long, so that those who are turned away together don't come together.
    let after_s = after_s + server.random() % (after_s + 1);
    let after = after_s.to_string();
    answer::text(
        server,
        &mut exchange,
        Status::SERVICE_UNAVAILABLE,
        &[("Retry-After", &after)],
    );
    drop(send.send(exchange));
}
