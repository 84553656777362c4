//! The wait of a client whose request was rejected after the budget for rejections was used up.

use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tussah::net::Hangup;
use tussah::time::sleep;

use super::feed::Feed;
use super::{After, go_on};
use crate::web::connection::exchange::{Exchange, Next};
use crate::web::connection::state::{Connection, Event};
use crate::web::connection::stream::More;
use crate::web::server::Server;
use crate::web::stages::admission;

/// Sends the rest of the rejection, and then waits before the connection's next request is read or
/// parsed. Returns false if the connection has ended.
pub(super) async fn wait_for_turn(
    turn: Duration,
    connection: &Connection,
    server: &Server,
    feed: &mut Option<Box<Feed>>,
) -> bool {
    let mut next = None;
    if connection.is_handed() {
        let Event::Handed(Some(mut handed)) = poll_fn(|cx| connection.poll(cx, &mut None)).await
        else {
            return false;
        };
        match go_on(&connection.stream, server, &mut handed, feed).await {
            After::Parse => {
                // The time to retry counts from this response.
                connection.wait_since(server.clock.passed_s());
                next = Some(handed);
            }
            After::Wait => {
                Exchange::put(handed);
                connection.wait(server.clock.passed_s());
            }
            After::Close => {
                Exchange::put(handed);
                return false;
            }
            After::End => return false,
        }
    } else if connection.is_busy() {
        return true; // the rejection comes later
    }
    wait(turn, connection, server).await;
    if let Some(mut exchange) = next {
        exchange.next = Next::Again;
        connection.hand(exchange);
    }
    true
}

/// Waits for the turn, or for the client's time to retry if that comes first. The wait ends early
/// if the client has hung up, the connection has to make room for another one, or the server ends.
async fn wait(turn: Duration, connection: &Connection, server: &Server) {
    let wait = turn.min(admission::retry_left(server, connection));
    let mut sleep = pin!(sleep(wait));
    poll_fn(|cx| {
        let more = connection.stream.poll_more(cx, Hangup::Half);
        let has_hung_up = matches!(more, Poll::Ready(More::Gone));
        if has_hung_up || connection.is_leaving() || server.is_ending() {
            return Poll::Ready(());
        }
        sleep.as_mut().poll(cx).map(drop)
    })
    .await;
}
