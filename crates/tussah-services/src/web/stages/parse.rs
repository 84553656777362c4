//! *HttpParse*: makes requests from the bytes that connections read.

use std::sync::Arc;
use std::time::Instant;

use tussah::stage::{Direct, DirectHandler};
use tussah_wire::http::Status;
use tussah_wire::http::head::{self, Scan};

use crate::web::answer;
use crate::web::connection::exchange::{Body, Exchange, Next};
use crate::web::server::Server;

/// The stage.
pub(crate) struct Parse<R, S> {
    pub(crate) server: Arc<Server>,
    pub(crate) receive: Direct<Box<Exchange>, R>,
    pub(crate) send: Direct<Box<Exchange>, S>,
}

impl<R, S> DirectHandler for Parse<R, S>
where
    R: DirectHandler<Event = Box<Exchange>>,
    S: DirectHandler<Event = Box<Exchange>>,
{
    type Event = Box<Exchange>;

    fn handle(&self, mut exchange: Box<Exchange>) {
        // A stage that refuses the exchange drops it, which closes the connection: the server is
        // ending.
        if let Body::Refused(status) = exchange.body {
            return self.refuse(exchange, status);
        }
        if exchange.head.is_some() {
            return drop(self.receive.send(exchange)); // its body has been read
        }
        let limits = &self.server.head_limits;
        let bytes = exchange.input.filled();
        let parsed = match &mut exchange.coming {
            None => head::parse(bytes, limits),
            Some((scan, _)) => scan.parse(bytes, limits),
        };
        match parsed {
            Ok(Some(head)) => {
                exchange.head = Some(head);
                if let Err(refused) = self.receive.send(exchange) {
                    drop(refused); // the server ends
                }
            }
            Ok(None) => {
                exchange
                    .coming
                    .get_or_insert_with(|| (Scan::new(), Instant::now()));
                exchange.next = Next::Read;
                exchange.give_back();
            }
            Err(refusal) => {
                tracing::debug!(%refusal, "refused a request");
                self.refuse(exchange, refusal.status());
            }
        }
    }
}

impl<R, S> Parse<R, S>
where
    S: DirectHandler<Event = Box<Exchange>>,
{
    /// Answers a request that cannot be read, as the last request of its connection.
    fn refuse(&self, mut exchange: Box<Exchange>, status: Status) {
        exchange.is_last = true;
        answer::text(&self.server, &mut exchange, status, &[]);
        drop(self.send.send(exchange));
    }
}
