//! Writes responses: a whole page, a part of it, "not modified", or a short message.

pub(crate) mod buffers;
pub(crate) mod clock;
pub(crate) mod page;
pub(crate) mod php;
pub(crate) mod reply;
pub(crate) mod request_body;
pub(crate) mod route;
pub(crate) mod spool;
pub(crate) mod status;
pub(crate) mod work;

use std::sync::Arc;

use tussah_wire::http::condition::{self, Outcome};
use tussah_wire::http::range::{ByteRange, ContentRange, Multipart, Ranges};
use tussah_wire::http::response::HeadWriter;
use tussah_wire::http::{Method, Status};

use crate::web::connection::exchange::Exchange;
use crate::web::connection::response::Piece;
use crate::web::connection::source::{Framing, Source};
use crate::web::server::Server;
use page::Page;
use reply::ReplyStream;

/// Answers a request for a page.
#[inline]
pub(crate) fn page(server: &Server, exchange: &mut Exchange, page: &Arc<Page>) {
    let head = exchange.head();
    if !head.method.reads() {
        return other_method(server, exchange);
    }
    if head.conditional {
        return by_conditions(server, exchange, page);
    }
    let with_body = head.method != Method::Head;
    whole(server, exchange, page, with_body);
}

#[inline]
fn whole(server: &Server, exchange: &mut Exchange, page: &Arc<Page>, with_body: bool) {
    let keep_alive = exchange.keeps_alive() && !server.is_ending();
    let is_unchanged = keep_alive && with_body && page.file.is_none() && !exchange.is_old();
    if !is_unchanged || !page.is_of_second(server.clock.last_unix_s()) {
        return with_own_head(server, exchange, page, with_body);
    }
    let response = &mut exchange.response;
    response.status = Status::OK;
    response.keep_alive = keep_alive;
    response.head_len = page.head_len() as u64;
    response.push(Piece::Page(Arc::clone(page), page.whole()));
}

/// Sends a page with a current date, with fields about the connection, or without its body.
#[cold]
fn with_own_head(server: &Server, exchange: &mut Exchange, page: &Arc<Page>, with_body: bool) {
    begin(server, exchange, Status::OK);
    end_own(exchange, 0);
    let response = &mut exchange.response;
    response.head_len = response.len + page.head().len() as u64;
    let range = if with_body {
        page.after_date()
    } else {
        page.head()
    };
    response.push(Piece::Page(Arc::clone(page), range));
    if with_body && page.file.is_some() {
        response.push(Piece::File(Arc::clone(page), 0..page.body_len));
    }
}

/// Answers a request with conditions, or for a part (RFC 9110, section 13.2.2).
#[cold]
fn by_conditions(server: &Server, exchange: &mut Exchange, page: &Arc<Page>) {
    let head = *exchange.head();
    let bytes = exchange.input.filled();
    let validators = page.validators();
    match condition::evaluate(&head, bytes, Some(&validators)) {
        Outcome::Proceed => {}
        Outcome::NotModified => {
            begin(server, exchange, Status::NOT_MODIFIED);
            end_own(exchange, 0);
            let lines = Piece::Page(Arc::clone(page), page.shared_lines());
            exchange.response.push(lines);
            own(exchange, |own| own.extend_from_slice(b"\r\n"));
            return end_head(exchange);
        }
        Outcome::Failed => return text(server, exchange, Status::PRECONDITION_FAILED, &[]),
    }
    match Ranges::of(&head, bytes, &validators, page.body_len) {
        Ranges::Whole => whole(server, exchange, page, head.method != Method::Head),
        Ranges::Single(range) => single(server, exchange, page, range),
        Ranges::Several(ranges) => several(server, exchange, page, &ranges),
        Ranges::Unsatisfiable => {
            let range = ContentRange::none(page.body_len).to_string();
            text(
                server,
                exchange,
                Status::RANGE_NOT_SATISFIABLE,
                &[("Content-Range", &range)],
            );
        }
    }
}

fn single(server: &Server, exchange: &mut Exchange, page: &Arc<Page>, range: ByteRange) {
    begin(server, exchange, Status::PARTIAL_CONTENT);
    end_own(exchange, 0);
    exchange
        .response
        .push(Piece::Page(Arc::clone(page), page.part_lines()));
    let content_range = ContentRange::of(range, page.body_len);
    own(exchange, |own| {
        let lines = format!(
            "Content-Range: {content_range}\r\nContent-Length: {}\r\n\r\n",
            range.len()
        );
        own.extend_from_slice(lines.as_bytes());
    });
    end_head(exchange);
    exchange.response.push(part(page, range));
}

fn several(server: &Server, exchange: &mut Exchange, page: &Arc<Page>, ranges: &[ByteRange]) {
    let random = server.hash(&exchange.hash.to_ne_bytes());
    let parts = Multipart::new(ranges, page.body_len, &page.meta.media_type, random);
    let Ok(parts) = parts else {
        return whole(server, exchange, page, true);
    };
    begin(server, exchange, Status::PARTIAL_CONTENT);
    end_own(exchange, 0);
    exchange
        .response
        .push(Piece::Page(Arc::clone(page), page.shared_lines()));
    own(exchange, |own| {
        let coding = page.meta.coding.map_or(String::new(), |coding| {
            format!("Content-Encoding: {}\r\n", coding.name())
        });
        let (kind, len) = (parts.content_type(), parts.len());
        let lines = format!("{coding}Content-Type: {kind}\r\nContent-Length: {len}\r\n\r\n");
        own.extend_from_slice(lines.as_bytes());
    });
    end_head(exchange);
    for one in &parts.parts {
        own(exchange, |own| own.extend_from_slice(&one.head));
        exchange.response.push(part(page, one.range));
    }
    own(exchange, |own| own.extend_from_slice(&parts.end));
}

fn part(page: &Arc<Page>, range: ByteRange) -> Piece {
    let range = range.first..range.last + 1;
    match page.file {
        Some(_) => Piece::File(Arc::clone(page), range),
        None => Piece::Page(Arc::clone(page), page.body(range)),
    }
}

/// Answers a request for a file with another method than GET and HEAD: files are read-only.
#[cold]
pub(crate) fn other_method(server: &Server, exchange: &mut Exchange) {
    let method = exchange.head().method;
    let status = match method {
        Method::Options => Status::NO_CONTENT,
        Method::Connect | Method::Trace | Method::Other => Status::NOT_IMPLEMENTED,
        _ => Status::METHOD_NOT_ALLOWED,
    };
    // Data for a tunnel may follow.
    exchange.is_last |= method == Method::Connect;
    let allow = [("Allow", "GET, HEAD, OPTIONS")];
    text(server, exchange, status, &allow);
}

/// Answers with the operator's page for a status, or with a short message.
pub(crate) fn text(
    server: &Server,
    exchange: &mut Exchange,
    status: Status,
    fields: &[(&str, &str)],
) {
    match server.error_pages.get(&status.code()) {
        Some((kind, page)) => body(server, exchange, status, fields, kind, page),
        None => {
            let text = format!("{} {}\n", status.code(), status.reason());
            let kind = "text/plain; charset=utf-8";
            body(server, exchange, status, fields, kind, text.as_bytes());
        }
    }
}

/// Returns whether the server sets this field itself; a second one would change the meaning of the
/// message.
pub(crate) fn is_own(name: &str) -> bool {
    let own = [
        "connection",
        "content-length",
        "content-type",
        "date",
        "server",
        "transfer-encoding",
    ];
    own.iter().any(|own| own.eq_ignore_ascii_case(name))
}

/// Answers with a body that is in memory.
pub(crate) fn body(
    server: &Server,
    exchange: &mut Exchange,
    status: Status,
    fields: &[(&str, &str)],
    kind: &str,
    body: &[u8],
) {
    let framing = Framing::Length(body.len() as u64);
    if head(server, exchange, status, fields, kind, framing) {
        exchange.response.own.extend_from_slice(body);
    }
    end_own(exchange, 0);
}

/// Answers with a piece as the body.
pub(crate) fn piece(
    server: &Server,
    exchange: &mut Exchange,
    status: Status,
    fields: &[(&str, &str)],
    kind: &str,
    body: Piece,
) {
    let framing = Framing::Length(body.len());
    let has_body = head(server, exchange, status, fields, kind, framing);
    end_own(exchange, 0);
    if has_body && body.len() > 0 {
        exchange.response.push(body);
    }
}

/// Answers with a body that is made while it is sent.
pub(crate) fn stream(
    server: &Server,
    exchange: &mut Exchange,
    status: Status,
    fields: &[(&str, &str)],
    kind: &str,
    body: ReplyStream,
) {
    let mut framing = match body.len {
        Some(len) => Framing::Length(len),
        None if exchange.is_old() => Framing::UntilClose,
        None => Framing::Chunked,
    };
    if exchange.head().method == Method::Head && body.len.is_none() || !status.has_body() {
        framing = Framing::Nothing;
    }
    exchange.is_last |= framing == Framing::UntilClose;
    if !head(server, exchange, status, fields, kind, framing) {
        framing = Framing::Nothing;
    }
    end_own(exchange, 0);
    exchange.response.source = Some(Source::new(body, framing));
}

/// Writes the head of a response. Returns whether the body follows.
fn head(
    server: &Server,
    exchange: &mut Exchange,
    status: Status,
    fields: &[(&str, &str)],
    kind: &str,
    framing: Framing,
) -> bool {
    exchange.response.clear();
    begin(server, exchange, status);
    let with_body =
        exchange.head.is_none_or(|head| head.method != Method::Head) && status.has_body();
    let own = &mut exchange.response.own;
    let mut writer = HeadWriter::go_on(own);
    if let Some(name) = &server.config.server_header {
        let _ = writer.field("Server", name); // the configuration has checked it
    }
    for (name, value) in fields {
        let _ = writer.field(name, value); // an invalid field is left out
    }
    if status.has_body() {
        let _ = writer.field("Content-Type", kind);
        // An application may omit the body of a response to HEAD. The length of the body that GET
        // would have is then unknown (RFC 9110, section 8.6).
        match framing {
            Framing::Length(len) if with_body || len > 0 => writer.content_length(len),
            Framing::Chunked => writer.chunked(),
            Framing::Length(_) | Framing::UntilClose | Framing::Nothing => {}
        }
    }
    writer.end();
    exchange.response.head_len = own.len() as u64;
    with_body
}

/// Starts a response: status, date, and the fields about the connection.
#[inline]
fn begin(server: &Server, exchange: &mut Exchange, status: Status) {
    server.look();
    let keep_alive = exchange.keeps_alive() && !server.is_ending();
    let response = &mut exchange.response;
    response.status = status;
    response.keep_alive = keep_alive;
    server.clock.begin(status, &mut response.own);
    if !keep_alive {
        response.own.extend_from_slice(b"Connection: close\r\n");
    } else if exchange.is_old() {
        exchange
            .response
            .own
            .extend_from_slice(b"Connection: keep-alive\r\n");
    }
}

/// Marks all pieces so far as the head.
fn end_head(exchange: &mut Exchange) {
    exchange.response.head_len = exchange.response.len;
}

/// Adds a piece of the response's own bytes.
fn own(exchange: &mut Exchange, write: impl FnOnce(&mut Vec<u8>)) {
    let start = exchange.response.own.len();
    write(&mut exchange.response.own);
    end_own(exchange, start);
}

/// Ends a piece of the response's own bytes.
#[inline]
fn end_own(exchange: &mut Exchange, start: usize) {
    let end = exchange.response.own.len();
    exchange.response.push(Piece::Own(start..end));
}
