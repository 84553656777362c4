//! *CacheMiss*: loads pages that are not in memory. What the system has at hand is taken at once, and what the disk has to be waited for goes to a stage that may block.

use std::fs::File;
use std::io::Read as _;
use std::sync::Arc;

use tussah::stage::{Batch, Handler, Offerer};
use tussah_wire::http::Status;

use super::answer::{answer, short};
use super::exchange::Exchange;
use super::page::Page;
use super::page_cache::Ask;
use super::server::Server;

/// A page that is to be loaded, and for whom.
pub(crate) struct Load {
    pub(crate) exchange: Option<Box<Exchange>>,
    /// What was known of it, to be looked at again.
    pub(crate) known: Option<Arc<Page>>,
    pub(crate) outcome: Outcome,
}

/// What became of it.
#[derive(Default)]
pub(crate) enum Outcome {
    /// It was lost on the way.
    #[default]
    Lost,
    /// There it is.
    Page(Arc<Page>),
    /// There is none.
    None(Status),
}

impl Load {
    pub(crate) fn new(exchange: Box<Exchange>, known: Option<Arc<Page>>) -> Box<Self> {
        Box::new(Self {
            exchange: Some(exchange),
            known,
            outcome: Outcome::Lost,
        })
    }
}

impl Outcome {
    /// Answers one who has waited for it.
    pub(crate) fn answer(&self, server: &Server, exchange: &mut Exchange) {
        match self {
            Self::Lost => short(server, exchange, Status::INTERNAL_SERVER_ERROR),
            Self::Page(page) => answer(server, exchange, page),
            Self::None(status) => short(server, exchange, *status),
        }
    }
}

/// The stage.
pub(crate) struct CacheMiss {
    pub(crate) server: Arc<Server>,
    pub(crate) caches: Vec<Offerer<Ask>>,
}

impl Handler for CacheMiss {
    type Event = Box<Load>;

    async fn handle(&self, batch: &mut Batch<Box<Load>>) {
        while let Some(mut load) = batch.next() {
            let Some(exchange) = &load.exchange else {
                continue;
            };
            let shard = self.server.shard_of(exchange.hash);
            load.outcome = open(&self.server, &exchange.path);
            self.caches[shard].send_or(Ask::Loaded(load), |_, _| {});
        }
    }
}

fn open(server: &Server, path: &[u8]) -> Outcome {
    let path = server
        .root
        .join(std::str::from_utf8(&path[1..]).unwrap_or(""));
    let Ok(mut file) = File::open(path) else {
        return Outcome::None(Status::NOT_FOUND);
    };
    let mut body = Vec::new();
    if file.read_to_end(&mut body).is_err() {
        return Outcome::None(Status::NOT_FOUND);
    }
    let head = format!(
        "Server: tussah\r\nContent-Type: text/html; charset=utf-8\r\nETag: \"0123456789abcdef\"\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nAccept-Ranges: bytes\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let head_len = head.len();
    let mut bytes = head.into_bytes();
    bytes.append(&mut body);
    Outcome::Page(Arc::new(Page::new(bytes, head_len)))
}
