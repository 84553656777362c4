//! The admission of requests for routes: their classes, and how they are rejected or cancelled.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tussah::stage::Class;
use tussah_wire::http::Status;

use crate::web::answer;
use crate::web::connection::exchange::Exchange;
use crate::web::connection::state::{Connection, NONE};
use crate::web::server::Server;
use crate::web::server::counts::Count;

/// The classes of dynamic requests, in order of precedence: rejected clients that retry on time,
/// then new clients and clients that retry early, then clients that have just been served. Without
/// the last class, served clients would return immediately and take the room that they have freed.
const IN_TURN: Class = Class(0);
const NEW: Class = Class(1);
const AGAIN: Class = Class(2);

/// The number of classes.
pub(crate) const CLASSES: usize = 3;

/// The result of a connection's last request for a route: [`NONE`], served, or rejected for a
/// number of seconds, which is smaller.
pub(crate) const SERVED: u8 = HOW_MASK as u8;

/// The lower bits of the word hold the result, and the upper bits hold as much of the route's index
/// as fits. A collision changes the order of at most a few requests.
const HOW_BITS: u32 = 6;
const HOW_MASK: u16 = (1 << HOW_BITS) - 1;

/// Combines the result of a request and its route in one word.
pub(crate) fn last(route: usize, how: u8) -> u16 {
    (route as u16) << HOW_BITS | u16::from(how)
}

/// Returns the class of a request for a route. The connection's requests for other routes have no
/// influence.
pub(crate) fn class(server: &Server, exchange: &Exchange, route: usize) -> Class {
    let Some(connection) = &exchange.connection else {
        return NEW;
    };
    // Relaxed: the owner of the connection's last exchange wrote it.
    let last = connection.last.load(Ordering::Relaxed);
    class_after(
        last,
        route,
        connection.waits_since_s(),
        server.clock.passed_s(),
    )
}

/// Returns the class of a request from the result of the previous request and the start of the wait
/// for the client.
fn class_after(before: u16, route: usize, since_s: u64, now_s: u64) -> Class {
    let how = (before & HOW_MASK) as u8;
    if before == NONE || before != last(route, how) {
        return NEW;
    }
    match how {
        SERVED => AGAIN,
        // This holds as long as the client has received no other response since then.
        after_s if now_s >= since_s + u64::from(after_s) => IN_TURN,
        _ => NEW,
    }
}

/// Returns whether no request of the connection for a route has been answered.
pub(crate) fn is_first(exchange: &Exchange) -> bool {
    let connection = exchange.connection.as_ref();
    // Relaxed: see `class`.
    connection.is_none_or(|connection| connection.last.load(Ordering::Relaxed) == NONE)
}

/// Returns the time until a rejected client should retry.
pub(crate) fn retry_left(server: &Server, connection: &Connection) -> Duration {
    let how = connection.last.load(Ordering::Relaxed) & HOW_MASK;
    let at = Duration::from_secs(connection.waits_since_s() + u64::from(how));
    at.saturating_sub(server.clock.passed())
}

/// Rejects a request. Each client gets a different time to retry. Returns the response to send,
/// unless the client has disconnected or the server has cut the request.
pub(crate) fn reject(
    server: &Server,
    mut exchange: Box<Exchange>,
    route: usize,
    reason: Count,
) -> Option<Box<Exchange>> {
    detach(&exchange);
    if exchange.is_gone() || server.is_cut() {
        cancel(server, exchange);
        return None;
    }
    server.totals.counts.add(exchange.source, reason);
    let clients = server.connections.all().count();
    let after_s = server.retries[route].after_s(clients, server.random());
    if let Some(connection) = &exchange.connection {
        connection
            .last
            .store(last(route, after_s), Ordering::Relaxed);
    }
    let after = after_s.to_string();
    answer::text(
        server,
        &mut exchange,
        Status::SERVICE_UNAVAILABLE,
        &[("Retry-After", &after)],
    );
    Some(exchange)
}

/// Lets a request continue, whatever its client does.
pub(crate) fn detach(exchange: &Exchange) {
    let connection = exchange.connection.as_ref();
    if let Some(request) = connection.and_then(|connection| connection.take_request()) {
        request.detach();
    }
}

/// Ends a request whose client has disconnected, or that the server has cut.
#[cold]
pub(crate) fn cancel(server: &Server, mut exchange: Box<Exchange>) {
    if let Some(connection) = exchange.connection.clone() {
        server.note_unanswered(&connection.stream, &mut exchange);
    }
    exchange.abandon();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::server::retry::AFTER_S_MAX;

    #[test]
    fn a_rejected_client_that_retries_on_time_goes_first() {
        let table = [
            (NONE, 109, NEW),
            (last(7, SERVED), 109, AGAIN),
            (last(7, 3), 100, NEW),
            (last(7, 3), 102, NEW),
            (last(7, 3), 103, IN_TURN),
            (last(7, 3), 109, IN_TURN),
            (last(7, AFTER_S_MAX), 159, NEW),
            (last(7, AFTER_S_MAX), 160, IN_TURN),
            // Another route has no record of it.
            (last(6, SERVED), 109, NEW),
            (last(6, 3), 109, NEW),
        ];
        assert_eq!(class_after(NONE, 0, 100, 109), NEW);
        for (before, now_s, expected) in table {
            let found = class_after(before, 7, 100, now_s);
            assert_eq!(found, expected, "{before:x} {now_s}");
        }
        assert!(IN_TURN < NEW && NEW < AGAIN, "the first class goes first");
    }
}
