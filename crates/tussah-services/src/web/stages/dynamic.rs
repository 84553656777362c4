//! *Dynamic*: the stage of a route, whose function answers requests. A request that cannot be
//! answered within the target is rejected immediately, and a request whose client has disconnected
//! is cancelled, as is a request that the server cuts.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use futures_lite::{FutureExt as _, future};
use tussah::stage::{Batch, Direct, DirectHandler, Handler};
use tussah_wire::http::{Framing, Method, Status};

use super::admission::{self, cancel, detach};
use crate::web::answer;
use crate::web::answer::reply::{Reply, ReplyBody};
use crate::web::answer::request_body::RequestBody;
use crate::web::answer::route::{Answer, Answering, Request};
use crate::web::answer::spool::Keeping;
use crate::web::connection::exchange::{Body, Exchange};
use crate::web::connection::pipe::Reader;
use crate::web::connection::state::NONE;
use crate::web::server::Server;

/// The stage.
pub(crate) struct Dynamic<S> {
    pub(crate) server: Arc<Server>,
    /// The index of the stage's route.
    pub(crate) route: usize,
    pub(crate) send: Direct<Box<Exchange>, S>,
}

impl<S: DirectHandler<Event = Box<Exchange>>> Handler for Dynamic<S> {
    type Event = Box<Exchange>;

    async fn handle(&self, batch: &mut Batch<Box<Exchange>>) {
        while let Some(exchange) = batch.next() {
            let mut serving = Serving(&self.server, Some(exchange));
            let Some((request, may_drop)) = self.begin(&mut serving) else {
                continue;
            };
            let mut answering = pin!(self.answer(request));
            let answer = match may_drop {
                true => Some(answering.as_mut().await),
                false => unless_cut(&self.server, answering.as_mut()).await,
            };
            let Some(mut exchange) = serving.1.take() else {
                continue;
            };
            let Some(answer) = answer else {
                cancel(&self.server, exchange);
                batch.leave_out(1);
                answering.await;
                continue;
            };
            detach(&exchange);
            let mut reply = match answer {
                Answer::Reply(reply) => reply,
                Answer::Later(keeping) => {
                    batch.leave_out(1);
                    keep(Arc::clone(&self.server), exchange, keeping);
                    continue;
                }
            };
            if reply.status.code() < 200 {
                tracing::error!(status = %reply.status, "a handler returned a status below 200; answered 500 instead");
                reply = Reply::status(Status::INTERNAL_SERVER_ERROR);
            }
            if reply.status == Status::RESET_CONTENT {
                // RFC 9110, section 15.3.6: such a response has no content.
                reply.body = ReplyBody::Bytes(Vec::new());
            }
            if reply.status.code() >= 500 {
                batch.fail(1);
            } else if matches!(exchange.body, Body::Piped(_)) {
                // The time depends on the client.
                batch.leave_out(1);
            }
            let fields = reply.fields.iter();
            let fields = fields.filter(|(name, _)| !answer::is_own(name));
            let fields: Vec<_> = fields.map(|(name, value)| (&**name, &**value)).collect();
            let (server, kind) = (&self.server, &*reply.media_type);
            match reply.body {
                ReplyBody::Bytes(body) => {
                    answer::body(server, &mut exchange, reply.status, &fields, kind, &body);
                }
                ReplyBody::Stream(body) => {
                    answer::stream(server, &mut exchange, reply.status, &fields, kind, body);
                }
            }
            drop(self.send.send(exchange)); // if this fails, the server ends
        }
    }
}

impl<S> Dynamic<S> {
    /// Starts a request, unless its client has disconnected. From here on, it can be cancelled only
    /// if the handler may be dropped. Returns the request for the handler, and whether the handler
    /// may be dropped.
    fn begin(&self, serving: &mut Serving<'_>) -> Option<(Request, bool)> {
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
            let served = admission::last(self.route, admission::SERVED);
            connection.last.store(served, Ordering::Relaxed);
        }
        let request = request(&self.server, exchange, route.is_application);
        Some((request, may_drop))
    }

    /// Calls the handler and returns its result.
    async fn answer(&self, request: Request) -> Answer {
        let (_, route) = &self.server.routes.all()[self.route];
        // A panic affects only this request, and the panic hook has reported it.
        let answering = catch_unwind(AssertUnwindSafe(|| (route.handler)(request)));
        let answer = match answering {
            Ok(answering) => {
                AssertUnwindSafe(AtWork(Some(answering)))
                    .catch_unwind()
                    .await
            }
            Err(panic) => Err(panic),
        };
        answer.unwrap_or_else(|_| Answer::Reply(Reply::status(Status::INTERNAL_SERVER_ERROR)))
    }
}

/// Waits for the answer of a handler that may not be dropped; returns `None` if the server cuts the
/// request first.
async fn unless_cut(
    server: &Server,
    answering: Pin<&mut impl Future<Output = Answer>>,
) -> Option<Answer> {
    let answer = async { Some(answering.await) };
    let cut = async {
        server.until_cut().await;
        None
    };
    future::or(answer, cut).await
}

/// Waits for the body of a request outside of the stage, and lets the request begin again. Clients
/// that send slowly would otherwise occupy all of the stage's servlets.
fn keep(server: Arc<Server>, exchange: Box<Exchange>, keeping: Keeping) {
    if let Some(connection) = &exchange.connection {
        // It has not been served yet, and must not come behind those that have.
        connection.last.store(NONE, Ordering::Relaxed);
    }
    tussah::spawn(async move {
        match keeping.await {
            Ok(body) => exchange.resume(Ok(body)),
            Err(Some(status)) => exchange.resume(Err(status)),
            Err(None) => cancel(&server, exchange),
        }
    });
}

/// A request in service. If its client disconnects or the server cuts it, it is cancelled: the
/// stage drops its handler's future.
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
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        let answering = self.0.as_mut().expect("it is there until it is dropped");
        answering.poll(cx)
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        let answering = self.0.take();
        drop(catch_unwind(AssertUnwindSafe(|| drop(answering))));
    }
}

/// Returns the request for the handler.
fn request(server: &Server, exchange: &mut Exchange, needs_ends: bool) -> Request {
    let head = *exchange.head();
    let (body, stream) = match &mut exchange.body {
        Body::Read(body) => (std::mem::take(body), None),
        Body::Piped(pipe) => {
            let len = match head.framing {
                Framing::Length(len) => Some(len),
                _ => None,
            };
            let piped = RequestBody::piped(Reader::new(pipe), len);
            (Vec::new(), Some(Box::new(piped)))
        }
        body @ Body::Kept(_) => match std::mem::replace(body, Body::Read(Vec::new())) {
            Body::Kept(kept) => (Vec::new(), Some(Box::new(kept))),
            _ => (Vec::new(), None),
        },
        _ => (Vec::new(), None),
    };
    let connection = exchange.connection.as_ref();
    let client = connection.and_then(|connection| server.client(&connection.stream, exchange));
    let ends = connection.filter(|_| needs_ends);
    let ends = ends.and_then(|connection| connection.stream.ends());
    Request {
        head,
        bytes: exchange.input.filled()[..head.len()].to_vec(),
        path: exchange.path().to_vec(),
        body,
        stream,
        client,
        ends,
    }
}
