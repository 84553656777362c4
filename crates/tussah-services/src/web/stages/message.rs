//! The messages between the stages other than exchanges: pages to load, and the outcomes.

use std::sync::Arc;

use tussah::stage::TrySender;
use tussah_wire::http::Status;

use crate::web::answer;
use crate::web::answer::page::Page;
use crate::web::connection::exchange::Exchange;
use crate::web::server::Server;
use crate::web::site::LISTING_TYPE;

/// A message to a shard of the page cache.
pub(crate) enum Ask {
    /// A request for a page.
    Page(Box<Exchange>),
    /// A page that was loaded, or could not be loaded.
    Loaded(Box<Load>),
}

/// A page to load, with the request for it.
pub(crate) struct Load {
    pub(crate) exchange: Option<Box<Exchange>>,
    /// The known version of the page, which has to be checked.
    pub(crate) known: Option<Arc<Page>>,
    pub(crate) outcome: Outcome,
    /// The way back, in case the load is lost.
    pub(crate) back: Option<TrySender<Ask>>,
}

/// The outcome of a load.
#[derive(Default)]
pub(crate) enum Outcome {
    /// The load was lost on the way.
    #[default]
    Lost,
    /// The page was loaded.
    Page(Arc<Page>),
    /// The script with this path makes the page.
    Script(Vec<u8>),
    /// Another response takes the place of the page.
    None(Instead),
}

/// The response in place of a page.
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
    /// Answers a request that has waited for the page, and returns it. A request for a script
    /// begins again instead.
    pub(crate) fn answer(
        &self,
        server: &Server,
        mut exchange: Box<Exchange>,
    ) -> Option<Box<Exchange>> {
        match self {
            Self::Lost => answer::text(server, &mut exchange, Status::INTERNAL_SERVER_ERROR, &[]),
            Self::Page(page) => answer::page(server, &mut exchange, page),
            Self::Script(path) => {
                exchange.redirect(path.clone());
                return None;
            }
            Self::None(instead) => instead.answer(server, &mut exchange),
        }
        Some(exchange)
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
            Self::Listing(_) if !exchange.head().method.reads() => {
                answer::other_method(server, exchange);
            }
            Self::Listing(page) => {
                answer::body(server, exchange, Status::OK, &fields, LISTING_TYPE, page);
            }
        }
    }
}
