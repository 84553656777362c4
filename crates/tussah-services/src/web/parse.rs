//! *HttpParse*: makes requests of what connections read.

use std::sync::Arc;

use tussah::stage::{Direct, DirectHandler};
use tussah_wire::http::head;

use super::answer::short;
use super::exchange::{Exchange, Next};
use super::graph::Sending;
use super::receive::Receive;
use super::server::Server;

/// The stage.
pub(crate) struct Parse {
    pub(crate) server: Arc<Server>,
    pub(crate) receive: Direct<Box<Exchange>, Receive>,
    pub(crate) send: Sending,
}

impl DirectHandler for Parse {
    type Event = Box<Exchange>;

    fn handle(&self, mut exchange: Box<Exchange>) {
        // What is not taken further on is dropped there, which closes the connection: the server ends.
        match head::parse(exchange.input.filled(), &head::Limits::default()) {
            Ok(Some(head)) => {
                exchange.head = Some(head);
                drop(self.receive.send(exchange));
            }
            Ok(None) => {
                exchange.next = Next::Read;
                exchange.give_back();
            }
            Err(refusal) => {
                short(&self.server, &mut exchange, refusal.status());
                exchange.response.keep_alive = false;
                drop(self.send.send(exchange));
            }
        }
    }
}
