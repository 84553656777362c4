//! *Accept*: starts a thread for each connection, up to the limit on connections.

use std::sync::Arc;

use tussah::Color;
use tussah::stage::DirectHandler;

use crate::web::config::Colors;
use crate::web::connection::exchange::Exchange;
use crate::web::connection::state::Connection;
use crate::web::connection::stream::Stream;
use crate::web::connection::thread::{Entry, refuse, serve};
use crate::web::diagnostics::Seldom;

/// The color of all connections if connections have no colors of their own.
const ALL: Color = Color(1);

/// The stage.
pub(crate) struct Accept<P>(pub(crate) Arc<Entry<P>>);

impl<P: DirectHandler<Event = Box<Exchange>>> DirectHandler for Accept<P> {
    type Event = Stream;

    fn handle(&self, stream: Stream) {
        if let Some((_, serving)) = enter(&self.0, stream) {
            match self.0.server.config.colors {
                Colors::Connection => drop(tussah::spawn(serving)),
                Colors::One => drop(tussah::spawn_in(ALL, serving)),
            }
        }
    }
}

/// Makes a connection, and returns the future that serves it. If there are too many connections,
/// refuses it instead.
pub(crate) fn enter<P: DirectHandler<Event = Box<Exchange>>>(
    entry: &Arc<Entry<P>>,
    stream: Stream,
) -> Option<(Arc<Connection>, impl Future<Output = ()> + Send + use<P>)> {
    let server = &entry.server;
    let connection = Arc::new(Connection::new(stream, server.config.half_close.gone_at()));
    let now_s = server.clock.passed_s();
    match server.connections.enter(&connection, now_s) {
        Some(entered) => {
            let serving = serve(Arc::clone(&connection), Arc::clone(entry), entered);
            Some((connection, serving))
        }
        None => {
            tell(now_s);
            drop(tussah::spawn(refuse(connection, Arc::clone(server))));
            None
        }
    }
}

/// Logs that there are too many connections.
#[cold]
fn tell(now_s: u64) {
    static SELDOM: Seldom = Seldom::new();
    if let Some(more) = SELDOM.may_say(now_s) {
        tracing::warn!(
            more,
            "refused a connection with 503: limits.connections reached and none is idle"
        );
    }
}
