//! *CacheMiss*: loads pages that are not in memory. If the system has the data in memory, the page
//! is loaded at once. If a disk is needed, the request goes to the stage *disk*, which may wait.

use std::fs::File;
use std::io;
use std::sync::Arc;

use rustix::io::Errno;
use tussah::stage::{Batch, DirectHandler, Offerer};
use tussah_wire::http::Status;

use super::graph::Sending;
use super::page_cache::Ask;
use crate::web::answer;
use crate::web::answer::page::{self, Page};
use crate::web::connection::exchange::Exchange;
use crate::web::server::Server;
use crate::web::site::{Codings, Found, LISTING_TYPE, Missing, Opened, Site};

/// A page to load, with the request for it.
pub(crate) struct Load {
    pub(crate) exchange: Option<Box<Exchange>>,
    /// The known version of the page, which has to be checked.
    known: Option<Arc<Page>>,
    pub(crate) outcome: Outcome,
    /// The way back, in case the load is lost.
    back: Option<Offerer<Ask>>,
}

/// The outcome of a load.
#[derive(Default)]
pub(crate) enum Outcome {
    /// The load was lost on the way.
    #[default]
    Lost,
    /// There it is.
    Page(Arc<Page>),
    /// There is no page, but another answer.
    None(Instead),
}

/// The answer in place of a page.
pub(crate) enum Instead {
    /// An error.
    Error(Status),
    /// A redirect to the directory.
    Redirect(String),
    /// A listing of a directory.
    Listing(Vec<u8>),
}

impl Load {
    pub(crate) fn new(exchange: Box<Exchange>, known: Option<Arc<Page>>) -> Box<Self> {
        Box::new(Self {
            exchange: Some(exchange),
            known,
            outcome: Outcome::Lost,
            back: None,
        })
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // Other requests may wait for the page.
        if let (Some(exchange), Some(back)) = (self.exchange.take(), self.back.take()) {
            let lost = Self::new(exchange, None);
            back.send_or(Ask::Loaded(lost), |_, _| {}); // if this fails, the server ends
        }
    }
}

impl Outcome {
    /// Answers a request that has waited for the page.
    pub(crate) fn answer(&self, server: &Server, exchange: &mut Exchange) {
        match self {
            Self::Lost => answer::text(server, exchange, Status::INTERNAL_SERVER_ERROR, &[]),
            Self::Page(page) => answer::page(server, exchange, page),
            Self::None(instead) => instead.answer(server, exchange),
        }
    }
}

impl Instead {
    fn answer(&self, server: &Server, exchange: &mut Exchange) {
        let mut fields = server.site.fields(exchange.path());
        match self {
            Self::Error(status) => {
                // The error may end sooner than the page's cache rule assumes.
                fields.retain(|(name, _)| !name.eq_ignore_ascii_case("Cache-Control"));
                answer::text(server, exchange, *status, &fields);
            }
            Self::Redirect(path) => {
                let mut location = path.clone();
                if let Some(query) = exchange.head().query(exchange.input.filled()) {
                    location.push('?');
                    location.push_str(&String::from_utf8_lossy(query));
                }
                fields.push(("Location", &location));
                answer::text(server, exchange, Status::MOVED_PERMANENTLY, &fields);
            }
            Self::Listing(page) => {
                answer::body(server, exchange, Status::OK, &fields, LISTING_TYPE, page);
            }
        }
    }
}

/// The destination of loaded pages.
pub(crate) enum Back {
    /// To the shards of the page cache.
    Caches(Vec<Offerer<Ask>>),
    /// To the requester, since nothing is cached.
    Send(Sending),
}

impl Back {
    fn send(&self, server: &Server, mut load: Box<Load>) {
        let Some(exchange) = &load.exchange else {
            return;
        };
        match self {
            Self::Caches(caches) => {
                load.back = None; // from here on the load cannot be lost
                let cache = &caches[server.shard_of(exchange.hash)];
                cache.send_or(Ask::Loaded(load), |_, _| {}); // if this fails, the server ends
            }
            Self::Send(send) => {
                let outcome = std::mem::take(&mut load.outcome);
                if let Some(mut exchange) = load.exchange.take() {
                    outcome.answer(server, &mut exchange);
                    drop(send.send(exchange));
                }
            }
        }
    }

    /// Makes sure that a lost load comes back, since others may wait for the same page.
    fn guard(&self, server: &Server, load: &mut Load) {
        if let (Self::Caches(caches), Some(exchange)) = (self, &load.exchange) {
            load.back = Some(caches[server.shard_of(exchange.hash)].clone());
        }
    }
}

/// The stage.
pub(crate) struct CacheMiss {
    pub(crate) server: Arc<Server>,
    pub(crate) disk: Offerer<Box<Load>>,
    pub(crate) back: Back,
}

impl DirectHandler for CacheMiss {
    type Event = Box<Load>;

    fn handle(&self, mut load: Box<Load>) {
        self.back.guard(&self.server, &mut load);
        if look_up(
            &self.server,
            &mut load,
            Site::try_look_up,
            page::read_cached,
        ) {
            self.back.send(&self.server, load);
        } else {
            // The stage has room for a request of each connection. If it refuses this one, the
            // server ends.
            self.disk.send_or(load, |_, _| {});
        }
    }
}

/// *Disk*: does the same on OS threads that may wait.
pub(crate) fn load_waiting(
    server: Arc<Server>,
    back: Back,
) -> impl Fn(&mut Batch<Box<Load>>) + Send + Sync {
    move |batch| {
        while let Some(mut load) = batch.next() {
            look_up(&server, &mut load, Site::look_up, page::read);
            back.send(&server, load);
        }
    }
}

/// Looks a page up. Returns false if that would have to wait.
fn look_up(
    server: &Server,
    load: &mut Load,
    look_up: impl FnOnce(&Site, &[u8], Codings) -> Result<Found, Missing>,
    read: impl FnOnce(&File, &mut [u8]) -> io::Result<()>,
) -> bool {
    let Some(exchange) = &load.exchange else {
        return true;
    };
    let codings = Codings::from_bits(exchange.key.last().copied().unwrap_or(0));
    let instead = match look_up(&server.site, exchange.path(), codings) {
        Err(Missing::WouldBlock) => return false,
        Ok(Found::File(opened)) => {
            match make(server, exchange.path(), load.known.take(), opened, read) {
                Ok(page) => {
                    load.outcome = Outcome::Page(page);
                    return true;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(error) => failed(server, exchange.path(), &error),
            }
        }
        Ok(Found::Redirect { location }) => Instead::Redirect(location),
        Ok(Found::Listing(page)) => Instead::Listing(page),
        Err(Missing::NotFound) => Instead::Error(Status::NOT_FOUND),
        Err(Missing::Forbidden | Missing::NotAFile) => Instead::Error(Status::FORBIDDEN),
        Err(Missing::Io(error)) => match load.known.take() {
            // The known page may be slightly old, but it is available.
            Some(known) if is_exhausted(&error) => {
                tell(server, exchange.path(), &error);
                load.outcome = Outcome::Page(known);
                return true;
            }
            _ => failed(server, exchange.path(), &error),
        },
    };
    load.outcome = Outcome::None(instead);
    true
}

/// Returns the page of a file: the known one if the file has not changed.
fn make(
    server: &Server,
    path: &[u8],
    known: Option<Arc<Page>>,
    opened: Opened,
    read: impl FnOnce(&File, &mut [u8]) -> io::Result<()>,
) -> io::Result<Arc<Page>> {
    match known {
        Some(known) if known.is_of(&opened.meta) => Ok(known),
        _ => Ok(Arc::new(Page::load(server, path, opened, read)?)),
    }
}

/// Returns the answer for a failing disk. A lack of descriptors or memory is temporary.
fn failed(server: &Server, path: &[u8], error: &io::Error) -> Instead {
    tell(server, path, error);
    Instead::Error(if is_exhausted(error) {
        Status::SERVICE_UNAVAILABLE
    } else {
        Status::INTERNAL_SERVER_ERROR
    })
}

/// Logs that a file cannot be read, at most once a second.
#[cold]
fn tell(server: &Server, path: &[u8], error: &io::Error) {
    if let Some(more) = server.unread.may_say(server.clock.passed_s()) {
        let path = String::from_utf8_lossy(path);
        tracing::error!(more, ?path, "cannot read a file: {error}");
    }
}

/// Returns whether the system lacks descriptors or memory.
fn is_exhausted(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM)
    )
}
