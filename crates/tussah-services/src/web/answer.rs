//! The answer to a request for a page: whole, a part of it, or that it has not changed.

use std::sync::Arc;

use tussah_wire::http::{Method, Status};

use super::exchange::Exchange;
use super::page::Page;
use super::response::Piece;
use super::server::Server;

/// Makes the answer.
#[inline]
pub(crate) fn answer(server: &Server, exchange: &mut Exchange, page: &Arc<Page>) {
    begin(server, exchange, Status::OK);
    let end = match exchange.head.map_or(Method::Get, |head| head.method) {
        Method::Head => page.head_len(),
        _ => page.len(),
    };
    exchange
        .response
        .push(Piece::Page(Arc::clone(page), 0..end));
}

/// Makes the beginning of an answer: status, date, and what becomes of the connection.
#[inline]
pub(crate) fn begin(server: &Server, exchange: &mut Exchange, status: Status) {
    let keep_alive = exchange.keep_alive();
    let response = &mut exchange.response;
    response.status = status;
    response.keep_alive = keep_alive;
    server.clock.begin(status, &mut response.own);
    if !response.keep_alive {
        response.own.extend_from_slice(b"Connection: close\r\n");
    }
    response.push(Piece::Own(0..response.own.len()));
}

/// Answers with an error, or whatever else has a short text.
pub(crate) fn short(server: &Server, exchange: &mut Exchange, status: Status) {
    let keep_alive = exchange.keep_alive();
    let response = &mut exchange.response;
    response.clear();
    response.status = status;
    response.keep_alive = keep_alive;
    server.clock.begin(status, &mut response.own);
    let text = status.reason();
    let close = if response.keep_alive {
        ""
    } else {
        "Connection: close\r\n"
    };
    let rest = format!(
        "{close}Content-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\r\n{text}\n",
        text.len() + 1
    );
    response.own.extend_from_slice(rest.as_bytes());
    response.push(Piece::Own(0..response.own.len()));
}
