//! Reads the body of a request.

use std::future::poll_fn;

use tussah::time::timeout;
use tussah_wire::http::Status;
use tussah_wire::http::body::{Decoder, Limits};

use crate::web::connection::exchange::{Body, Exchange};
use crate::web::connection::stream::Stream;
use crate::web::server::Server;

/// Reads the body, and keeps it if a handler needs it.
///
/// # Errors
/// Returns the status with which to respond, or `None` if the connection is broken.
pub(super) async fn read(
    stream: &Stream,
    server: &Server,
    exchange: &mut Exchange,
) -> Result<(), Option<Status>> {
    let all = read_all(stream, server, exchange);
    let read = timeout(server.config.timeouts.body, all).await;
    exchange.body = Body::Read(read.map_err(|_| Some(Status::REQUEST_TIMEOUT))??);
    Ok(())
}

async fn read_all(
    stream: &Stream,
    server: &Server,
    exchange: &mut Exchange,
) -> Result<Vec<u8>, Option<Status>> {
    let head = *exchange.head();
    let keep = matches!(exchange.body, Body::Wanted { keep: true });
    let limits = Limits {
        body_bytes_max: server.config.limits.body_bytes,
        ..Limits::default()
    };
    let refused = |refusal: tussah_wire::http::Refusal| Some(refusal.status());
    let mut decoder = Decoder::new(head.framing, limits).map_err(refused)?;
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
