//! A module that sends responses.

use tussah::flow::{Dropped, module};
use tussah::stage::Reason;
use tussah_wire::http::Status;

use super::{Request, Response};

/// Sends responses to the requests of [`HttpListen`](super::HttpListen).
///
/// Inputs: `run` takes [`Response`]; `busy` takes [`Dropped<Request>`], from a port `dropped` or an
/// edge `shed`: it answers 500 if the handling of the request panicked, and otherwise 503 with
/// `Retry-After: 1`. Without an edge to `busy`, these requests get the same status when they are
/// dropped.
///
/// A call writes as much as the connection has room for, and the connection itself sends the rest.
/// So a slow client holds up nobody. `HttpListen` has the time limits for that. A response to a
/// client that has disconnected has no effect. It sends any number of responses at a time.
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
