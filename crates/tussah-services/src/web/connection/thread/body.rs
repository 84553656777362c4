//! Reads the body of a request.

use std::future::poll_fn;
use std::sync::Arc;

use tussah::time::timeout;
use tussah_wire::http::body::{Decoder, Limits};
use tussah_wire::http::{Refusal, Status};

use super::feed::Feed;
use crate::web::connection::exchange::{Body, Exchange, Want};
use crate::web::connection::stream::Stream;
use crate::web::server::Server;

/// Reads the body, and keeps it if a handler needs it. If the handler reads the body while it
/// arrives, returns the feed instead.
///
/// # Errors
/// Returns the status with which to respond, or `None` if the connection is broken.
pub(super) async fn read(
    stream: &Stream,
    server: &Server,
    exchange: &mut Exchange,
) -> Result<Option<Box<Feed>>, Option<Status>> {
    let limits = Limits {
        body_bytes_max: server.config.limits.body_bytes,
        ..Limits::default()
    };
    let decoder = Decoder::new(exchange.head().framing, limits).map_err(refused)?;
    if matches!(exchange.body, Body::Wanted(Want::Stream)) {
        let feed = Feed::new(exchange, decoder);
        exchange.body = Body::Piped(Arc::clone(feed.pipe()));
        return Ok(Some(Box::new(feed)));
    }
    let all = read_all(stream, server, exchange, decoder);
    let read = timeout(server.config.timeouts.body, all).await;
    exchange.body = Body::Read(read.map_err(|_| Some(Status::REQUEST_TIMEOUT))??);
    Ok(None)
}

fn refused(refusal: Refusal) -> Option<Status> {
    Some(refusal.status())
}

async fn read_all(
    stream: &Stream,
    server: &Server,
    exchange: &mut Exchange,
    mut decoder: Decoder,
) -> Result<Vec<u8>, Option<Status>> {
    let head = *exchange.head();
    let keep = matches!(exchange.body, Body::Wanted(Want::Whole));
    let mut body = Vec::new();
    let mut asked = !head.expect_continue;
    loop {
        let bytes = &exchange.input.filled()[head.len()..];
        let step = decoder.decode(bytes).map_err(refused)?;
        if keep {
            body.extend_from_slice(&bytes[step.body.clone()]);
        }
        exchange.input.remove(head.len(), step.consumed);
        if step.done {
            return Ok(body);
        }
        if exchange.input.filled().len() > head.len() {
            continue;
        }
        if !asked {
            // No part of the body has arrived: the client waits for this (RFC 9110, section
            // 10.1.1).
            asked = true;
            let text = b"HTTP/1.1 100 Continue\r\n\r\n";
            let sent = super::write::bytes(stream, server, text).await;
            sent.map_err(|_| None)?;
        }
        if exchange.input.is_full() {
            exchange.input.grow();
        }
        let read = poll_fn(|cx| stream.poll_read(cx, exchange.input.room())).await;
        match read {
            Ok(len @ 1..) => exchange.input.add(len),
            _ => return Err(None),
        }
    }
}
