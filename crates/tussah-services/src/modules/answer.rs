//! The right to answer a request.

use std::sync::Arc;

use parking_lot::Mutex;
use tussah::stage::DirectHandler as _;
use tussah_wire::http::Status;

use crate::web::answer;
use crate::web::connection::exchange::Exchange;
use crate::web::server::Server;
use crate::web::stages::send::Send;

/// The right to answer a request once. If a test has made the request, no client waits for the
/// answer.
///
/// When the last clone is dropped, a request without an answer gets one: 500 during a panic, and
/// 503 otherwise.
#[derive(Clone)]
pub(super) struct Answer(Option<Arc<Pending>>);

struct Pending {
    server: Arc<Server>,
    /// `None` after the answer.
    exchange: Mutex<Option<Box<Exchange>>>,
    /// The answer to give if the graph gives none.
    otherwise: Option<Status>,
}

impl Answer {
    pub(super) fn new(
        server: &Arc<Server>,
        exchange: Box<Exchange>,
        otherwise: Option<Status>,
    ) -> Self {
        Self(Some(Arc::new(Pending {
            server: Arc::clone(server),
            exchange: Mutex::new(Some(exchange)),
            otherwise,
        })))
    }

    pub(super) fn nobody() -> Self {
        Self(None)
    }

    /// Returns whether the client has disconnected, or has its answer.
    pub(super) fn is_over(&self) -> bool {
        let is_over = |pending: &Arc<Pending>| {
            let exchange = pending.exchange.lock();
            exchange.as_ref().is_none_or(|exchange| exchange.is_gone())
        };
        self.0.as_ref().is_none_or(is_over)
    }

    /// Answers the request, unless it has been answered.
    pub(super) fn send(&self, write: impl FnOnce(&Server, &mut Exchange)) {
        if let Some(pending) = &self.0 {
            pending.send(write);
        }
    }

    /// Answers with a status alone, and asks the client to retry after a second if it is 503.
    pub(super) fn send_status(&self, status: Status) {
        if let Some(pending) = &self.0 {
            pending.send_status(status);
        }
    }
}

impl Pending {
    fn send(&self, write: impl FnOnce(&Server, &mut Exchange)) {
        let exchange = self.exchange.lock().take();
        let Some(mut exchange) = exchange else { return };
        if exchange.is_gone() {
            return exchange.abandon();
        }
        write(&self.server, &mut exchange);
        Send(Arc::clone(&self.server)).handle(exchange);
    }

    fn send_status(&self, status: Status) {
        let fields: &[_] = match status {
            Status::SERVICE_UNAVAILABLE => &[("Retry-After", "1")],
            _ => &[],
        };
        self.send(|server, exchange| answer::text(server, exchange, status, fields));
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let status = match self.otherwise {
            Some(status) => status,
            None if std::thread::panicking() => Status::INTERNAL_SERVER_ERROR,
            None => Status::SERVICE_UNAVAILABLE,
        };
        self.send_status(status);
    }
}
