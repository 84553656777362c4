//! *PageCache*: one shard of the pages in memory, which only its own stage accesses.
//!
//! The pages are distributed over several serial stages, each with exclusive access to its handler,
//! so there is no lock. In a batch, hits come before misses, and short responses before long ones:
//! shortest connection first (Welsh, Culler and Brewer: SEDA, SOSP 2001, section 5.1.1). The new
//! order affects one batch only, so no request starves.

#![expect(
    clippy::vec_box,
    reason = "exchanges and loads go through queues in their boxes"
)]

mod table;

use std::mem;
use std::sync::Arc;

use tussah::stage::{Batch, Direct, DirectHandler, SerialHandler, TrySender};

use super::message::{Ask, Load, Outcome};
use crate::web::answer;
use crate::web::connection::exchange::Exchange;
use crate::web::server::Server;
use crate::web::server::counts::Count;
use table::{Found, Table};

/// A shard.
pub(crate) struct PageCache<S> {
    server: Arc<Server>,
    table: Table,
    /// The exchanges to answer at the end of a batch.
    answered: Vec<Box<Exchange>>,
    /// The pages to load at the end of a batch.
    missed: Vec<Box<Load>>,
    miss: TrySender<Box<Load>>,
    send: Direct<Box<Exchange>, S>,
}

impl<S: DirectHandler<Event = Box<Exchange>>> PageCache<S> {
    pub(crate) fn new(
        server: Arc<Server>,
        miss: TrySender<Box<Load>>,
        send: Direct<Box<Exchange>, S>,
    ) -> Self {
        Self {
            table: Table::new(server.config.cache.bytes as usize / server.shards),
            server,
            answered: Vec::new(),
            missed: Vec::new(),
            miss,
            send,
        }
    }

    fn look_up(&mut self, mut exchange: Box<Exchange>) {
        let (fresh_s, unix_s) = (self.server.fresh_s(), self.server.clock.last_unix_s());
        match self.table.look_up(exchange, fresh_s, unix_s) {
            Found::Hit(page, hit) => {
                exchange = hit;
                answer::page(&self.server, &mut exchange, &page);
                self.answered.push(exchange);
            }
            Found::Miss(known, exchange) => {
                let count = match known {
                    None => Count::Missed,
                    Some(_) => Count::Checked,
                };
                self.server.totals.counts.add(exchange.source, count);
                self.missed.push(Load::new(exchange, known));
            }
            Found::Waits => {}
        }
    }

    /// Answers all requests that have waited for a page.
    #[expect(clippy::boxed_local, reason = "it comes in one")]
    fn loaded(&mut self, mut load: Box<Load>) {
        let outcome = mem::take(&mut load.outcome);
        let Some(exchange) = load.exchange.take() else {
            return;
        };
        let page = match &outcome {
            Outcome::Page(page) => Some((page, self.server.clock.last_passed_s())),
            Outcome::Lost | Outcome::Script(_) | Outcome::None(_) => None,
        };
        let waited = self.table.loaded(exchange.hash, &exchange.key, page);
        let all = std::iter::once(exchange).chain(waited);
        let answered = all.filter_map(|exchange| outcome.answer(&self.server, exchange));
        self.answered.extend(answered);
    }
}

impl<S: DirectHandler<Event = Box<Exchange>>> SerialHandler for PageCache<S> {
    type Event = Ask;

    async fn handle(&mut self, batch: &mut Batch<Ask>) {
        self.server.look();
        while let Some(ask) = batch.next() {
            match ask {
                Ask::Page(exchange) => self.look_up(exchange),
                Ask::Loaded(load) => self.loaded(load),
            }
        }
        self.answered.sort_by_key(|exchange| exchange.response.len);
        for exchange in self.answered.drain(..) {
            if let Err(refused) = self.send.send(exchange) {
                drop(refused); // the server ends
            }
        }
        for load in self.missed.drain(..) {
            self.miss.send_or(load, |load, _why| {
                // The stage has room for a request of each connection, so a refusal means that the
                // server is ending.
                drop(load);
            });
        }
    }
}
