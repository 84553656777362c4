//! *CacheMiss*: loads pages that are not in memory. If the system has the data in memory, the page
//! is loaded immediately. If a disk is needed, the request goes to the stage *disk*, which may
//! wait.

use std::fs::File;
use std::io;
use std::sync::Arc;

use tussah::stage::{Batch, Direct, DirectHandler, TrySender};
use tussah_wire::http::Status;

use super::message::{Ask, Instead, Load, Outcome};
use crate::web::answer::page::{self, Page};
use crate::web::connection::exchange::Exchange;
use crate::web::server::Server;
use crate::web::site::{Codings, Found, Missing, Opened, Site, is_exhausted};

/// The destination of loaded pages.
pub(crate) enum Back<S> {
    /// To the shards of the page cache.
    Caches(Vec<TrySender<Ask>>),
    /// To the requester, since nothing is cached.
    Send(Direct<Box<Exchange>, S>),
}

impl<S: DirectHandler<Event = Box<Exchange>>> Back<S> {
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
                let exchange = load.exchange.take();
                let answered = exchange.and_then(|exchange| outcome.answer(server, exchange));
                if let Some(exchange) = answered {
                    drop(send.send(exchange));
                }
            }
        }
    }

    /// Makes sure that a lost load returns, since others may wait for the same page.
    fn guard(&self, server: &Server, load: &mut Load) {
        if let (Self::Caches(caches), Some(exchange)) = (self, &load.exchange) {
            load.back = Some(caches[server.shard_of(exchange.hash)].clone());
        }
    }
}

/// The stage.
pub(crate) struct CacheMiss<S> {
    pub(crate) server: Arc<Server>,
    pub(crate) disk: TrySender<Box<Load>>,
    pub(crate) back: Back<S>,
}

impl<S: DirectHandler<Event = Box<Exchange>>> DirectHandler for CacheMiss<S> {
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
            // The stage has room for a request of each connection. If it refuses this request, the
            // server is ending.
            self.disk.send_or(load, |_, _| {});
        }
    }
}

/// *Disk*: loads pages on OS threads that may wait.
pub(crate) fn load_waiting<S: DirectHandler<Event = Box<Exchange>>>(
    server: Arc<Server>,
    back: Back<S>,
) -> impl Fn(&mut Batch<Box<Load>>) + Send + Sync {
    move |batch| {
        while let Some(mut load) = batch.next() {
            look_up(&server, &mut load, Site::look_up, page::read);
            back.send(&server, load);
        }
    }
}

/// Looks a page up. Returns false if this would have to wait.
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
        Ok(Found::Script { path }) => {
            load.outcome = Outcome::Script(path);
            return true;
        }
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

/// Returns the page of a file: the known page if the file has not changed.
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

/// Returns the response for a failing disk. A lack of descriptors or memory is temporary.
fn failed(server: &Server, path: &[u8], error: &io::Error) -> Instead {
    tell(server, path, error);
    Instead::Error(if is_exhausted(error) {
        Status::SERVICE_UNAVAILABLE
    } else {
        Status::INTERNAL_SERVER_ERROR
    })
}

/// Logs that a file cannot be read, at most once per second.
#[cold]
fn tell(server: &Server, path: &[u8], error: &io::Error) {
    if let Some(more) = server.unread.may_say(server.clock.passed_s()) {
        let path = String::from_utf8_lossy(path);
        tracing::error!(more, ?path, "cannot read a file: {error}");
    }
}
