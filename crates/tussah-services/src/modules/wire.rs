//! The stages of a listener: connections accept and parse requests as those of the web server do,
//! and pass them to the listener's graph.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tussah::stage::{BuildError, Direct, DirectHandler, Network};
use tussah::sync::mpsc::Sender;
use tussah_wire::http::{Framing, Method, Status, target};

use super::answer::Answer;
use super::{Request, Response};
use crate::web;
use crate::web::connection::exchange::{Body, Exchange, Next, Want};
use crate::web::connection::state::NONE;
use crate::web::connection::stream::Stream;
use crate::web::connection::thread::Entry;
use crate::web::server::Server;
use crate::web::stages::accept::enter;
use crate::web::stages::graph::Wired;
use crate::web::stages::parse::Parse;

/// A message from a connection to the graph.
pub(super) enum Arrival {
    /// A request over the connection with this number.
    Request(u64, Request),
    /// A bad request, with its proposed response.
    Bad(Response),
    /// The connection with this number has ended. A later connection may reuse the number.
    End(u64),
}

/// Connects the stages.
pub(super) fn wire(
    network: &Network,
    server: &Arc<Server>,
    arrivals: &Sender<Arrival>,
) -> Result<Wired, BuildError> {
    let room = server.room();
    let receive = network.stage("receive").direct(|_| {
        Ok(Receive {
            server: Arc::clone(server),
            arrivals: arrivals.clone(),
        })
    })?;
    let refuse = network.stage("refuse").direct(|_| {
        Ok(Refuse {
            server: Arc::clone(server),
            arrivals: arrivals.clone(),
        })
    })?;
    let parse = network.stage("parse").direct(|edges| {
        Ok(Parse {
            server: Arc::clone(server),
            receive: edges.to(&receive).direct(room)?,
            send: edges.to(&refuse).direct(room)?,
        })
    })?;
    network.stage("accept").manual().direct(|edges| {
        let parse: Direct<_, Parse<Receive, Refuse>> = edges.to(&parse).direct(room)?;
        Ok(Accept {
            entry: Arc::new(Entry {
                server: Arc::clone(server),
                parse,
            }),
            arrivals: arrivals.clone(),
        })
    })?;
    Ok(Wired {
        accept: network.find("accept")?,
        routes: Vec::new(),
    })
}

/// *Accept*: starts a thread for each connection. When the connection ends, the thread notifies the
/// graph.
struct Accept {
    entry: Arc<Entry<Parse<Receive, Refuse>>>,
    arrivals: Sender<Arrival>,
}

impl DirectHandler for Accept {
    type Event = Stream;

    fn handle(&self, stream: Stream) {
        let Some((connection, serving)) = enter(&self.entry, stream) else {
            return;
        };
        let arrivals = self.arrivals.clone();
        tussah::spawn(async move {
            serving.await;
            // Relaxed: the end of the last exchange came first.
            if connection.last.load(Ordering::Relaxed) != NONE {
                // Fails if the graph is gone, with all of its flows.
                let _ = arrivals.send(Arrival::End(number(&connection))).await;
            }
        });
    }
}

/// Returns the number of a connection. No other connection can have this number until the last
/// reference to the connection is dropped.
fn number<T>(connection: &Arc<T>) -> u64 {
    Arc::as_ptr(connection) as usize as u64
}

/// *Receive*: passes whole requests to the graph.
struct Receive {
    server: Arc<Server>,
    arrivals: Sender<Arrival>,
}

impl DirectHandler for Receive {
    type Event = Box<Exchange>;

    fn handle(&self, mut exchange: Box<Exchange>) {
        let head = *exchange.head();
        let path = match head.path(exchange.input.filled()) {
            // These targets stand for the whole server, or for a tunnel (RFC 9112, sections 3.2.3
            // and 3.2.4).
            b"*" => Ok(b"*".to_vec()),
            b"" => Err(Status::NOT_IMPLEMENTED),
            raw => target::path_with_escapes(raw).map_err(|refusal| refusal.status()),
        };
        let body_bytes_max = self.server.config.limits.body_bytes;
        let status = match (&path, head.framing) {
            (Err(status), _) => Some(*status),
            (_, Framing::Length(len)) if len > body_bytes_max => Some(Status::CONTENT_TOO_LARGE),
            _ if head.method == Method::Connect => Some(Status::NOT_IMPLEMENTED),
            _ => None,
        };
        if let Some(status) = status {
            exchange.is_last = true;
            return refuse(&self.server, &self.arrivals, exchange, status);
        }
        if head.framing != Framing::None && matches!(exchange.body, Body::Unread) {
            exchange.body = Body::Wanted(Want::Whole);
            exchange.next = Next::Body;
            return exchange.give_back();
        }
        let Some(connection) = exchange.connection.clone() else {
            return;
        };
        let request = web::Request {
            head,
            bytes: exchange.input.filled()[..head.len()].to_vec(),
            path: path.unwrap_or_default(),
            body: match std::mem::take(&mut exchange.body) {
                Body::Read(body) => body,
                _ => Vec::new(),
            },
            stream: None,
            client: connection.stream.peer(),
            ends: None,
        };
        let answer = Answer::new(&self.server, exchange, None);
        let request = Arrival::Request(number(&connection), Request::new(request, answer));
        // A request for which there is no room is answered when it is dropped, here.
        if self.arrivals.try_send(request).is_ok() {
            // Relaxed: only this connection's thread and its stages use it.
            connection.last.store(PASSED, Ordering::Relaxed);
        }
    }
}

/// The value of a connection's `last` after a request has been passed to the graph.
const PASSED: u16 = NONE + 1;

/// *Refuse*: passes bad requests to the graph, with the response that the parser proposes.
struct Refuse {
    server: Arc<Server>,
    arrivals: Sender<Arrival>,
}

impl DirectHandler for Refuse {
    type Event = Box<Exchange>;

    fn handle(&self, exchange: Box<Exchange>) {
        let status = exchange.response.status;
        refuse(&self.server, &self.arrivals, exchange, status);
    }
}

fn refuse(
    server: &Arc<Server>,
    arrivals: &Sender<Arrival>,
    exchange: Box<Exchange>,
    status: Status,
) {
    let answer = Answer::new(server, exchange, Some(status));
    let response = Response::of_status(status, answer);
    // Without room the response is dropped here, which answers with the same status.
    let _ = arrivals.try_send(Arrival::Bad(response));
}
