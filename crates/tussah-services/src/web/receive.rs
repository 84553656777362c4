//! *HttpRecv*: says which stage a request goes to.

use std::sync::Arc;

use tussah::stage::{DirectHandler, Offerer};

use super::exchange::Exchange;
use super::graph::Sending;
use super::page_cache::Ask;
use super::server::Server;

/// The stage.
pub(crate) struct Receive {
    pub(crate) server: Arc<Server>,
    pub(crate) caches: Vec<Offerer<Ask>>,
    pub(crate) send: Sending,
}

impl DirectHandler for Receive {
    type Event = Box<Exchange>;

    fn handle(&self, mut exchange: Box<Exchange>) {
        let Exchange {
            path, head, input, ..
        } = &mut *exchange;
        if let Some(head) = head {
            path.extend_from_slice(head.path(input.filled()));
        }
        exchange.hash = self.server.hash(&exchange.path);
        let shard = self.server.shard_of(exchange.hash);
        self.caches[shard].send_or(Ask::Page(exchange), |_, _| {});
    }
}
