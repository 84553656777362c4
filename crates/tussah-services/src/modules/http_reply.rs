//! A module that sends responses.

use tussah::flow::{Dropped, module};
use tussah::stage::Reason;
use tussah_wire::http::Status;

use super::{Request, Response};

/// Sends responses to the requests of [`HttpListen`](super::HttpListen).
///
/// The input `run` takes a [`Response`]. The input `busy` takes a [`Dropped<Request>`] from a
/// `dropped` port or a `shed` statement. `HttpReply` answers a dropped request with 500 if a module
/// panicked while handling it, and otherwise with 503 and `Retry-After: 1`. Even without an edge to
/// `busy`, a dropped request gets the same status: 500 or 503.
///
/// The module sends as much of a response as the connection accepts without waiting, and the
/// connection's thread sends the rest. A slow client therefore delays no other client, and is
/// itself subject to the time limits of `HttpListen`. A response to a client that has disconnected
/// has no effect. The module can send any number of responses at the same time.
#[module]
#[derive(Default)]
pub struct HttpReply;

#[module]
impl HttpReply {
    fn run(&self, response: Response) {
        response.send();
    }

    #[port]
    fn busy(&self, dropped: Dropped<Request>) {
        let Some(request) = dropped.item else { return };
        request.answer.send_status(match dropped.reason {
            Reason::Panicked => Status::INTERNAL_SERVER_ERROR,
            _ => Status::SERVICE_UNAVAILABLE,
        });
    }
}
