//! *CacheMiss*: loads pages that are not in memory. What the system has at hand is taken at once; what a disk has to be waited for goes on to the stage *disk*, which may wait.

use std::fs::File;
use std::io;
use std::sync::Arc;

use rustix::io::Errno;
use tussah::stage::{Batch, DirectHandler, Offerer};
use tussah_wire::http::Status;

use super::answer;
use super::exchange::Exchange;
use super::graph::Sending;
use super::page::{self, Page};
use super::page_cache::Ask;
use super::server::Server;
use super::site::{Codings, Found, LISTING_TYPE, Missing, Opened, Site};

/// A page that is to be loaded, and for whom.
pub(crate) struct Load {
    pub(crate) exchange: Option<Box<Exchange>>,
    /// What was known of it, to be looked at again.
    known: Option<Arc<Page>>,
    pub(crate) outcome: Outcome,
    /// Where to go back, if it is lost on the way.
    back: Option<Offerer<Ask>>,
}

/// What became of it.
#[derive(Default)]
pub(crate) enum Outcome {
    /// It was lost on the way.
    #[default]
    Lost,
    /// There it is.
    Page(Arc<Page>),
    /// There is none, but something else.
    None(Instead),
}

/// What is sent where there is no page.
pub(crate) enum Instead {
    /// An error.
    Error(Status),
    /// The way to the directory.
    Redirect(String),
    /// A list of a directory's files.
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
        // Others may wait for it.
        if let (Some(exchange), Some(back)) = (self.exchange.take(), self.back.take()) {
            let lost = Self::new(exchange, None);
            back.send_or(Ask::Loaded(lost), |_, _| {}); // the server ends
        }
    }
}

impl Outcome {
    /// Answers one who has waited for it.
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
                // It may be over sooner than what the page's rule is made for.
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

/// Where loaded pages go.
pub(crate) enum Back {
    /// To the shards of the page cache.
    Caches(Vec<Offerer<Ask>>),
    /// To whoever asked, since nothing is kept.
    Send(Sending),
}

impl Back {
    fn send(&self, server: &Server, mut load: Box<Load>) {
        let Some(exchange) = &load.exchange else {
            return;
        };
        match self {
            Self::Caches(caches) => {
                load.back = None; // it is not lost any more
                let cache = &caches[server.shard_of(exchange.hash)];
                cache.send_or(Ask::Loaded(load), |_, _| {}); // if it is not taken, the server ends
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

    /// Sees to it that a load is not lost: others may wait for the same page.
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
            // It has room for a request of each connection; if it takes this one not, the server ends.
            self.disk.send_or(load, |_, _| {});
        }
    }
}

/// *Disk*: as the other, on OS threads that may wait.
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

/// Looks a page up; false if that would have to wait.
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
            // It may be a little old, but it is there.
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

/// The page of a file: the one that is known if the file has not changed.
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

/// What a failing disk is answered with: without descriptors or memory one may come again.
fn failed(server: &Server, path: &[u8], error: &io::Error) -> Instead {
    tell(server, path, error);
    Instead::Error(if is_exhausted(error) {
        Status::SERVICE_UNAVAILABLE
    } else {
        Status::INTERNAL_SERVER_ERROR
    })
}

/// Says that a file can't be read, of many once a second.
#[cold]
fn tell(server: &Server, path: &[u8], error: &io::Error) {
    if let Some(more) = server.unread.may_say(server.clock.passed_s()) {
        let path = String::from_utf8_lossy(path);
        tracing::error!(more, ?path, "a file can't be read: {error}");
    }
}

/// Whether the system lacks descriptors or memory.
fn is_exhausted(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM)
    )
}
