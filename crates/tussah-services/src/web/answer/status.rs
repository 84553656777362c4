//! The status page of a server for people, programs and Prometheus (Haboob's statistics page; SEDA,
//! SOSP 2001, section 5.1.1).

mod html;
mod json;
mod prometheus;
mod report;
#[cfg(test)]
mod tests;

pub(crate) use html::whole as html_page;
pub(crate) use json::stage as json_stage;
use tussah_wire::http::Status;

use crate::web::answer;
use crate::web::connection::exchange::Exchange;
use crate::web::server::Server;
use report::Report;

/// Returns whether a path is the path of the status page and the peer may see the page.
pub(crate) fn is_asked_for(server: &Server, exchange: &Exchange) -> bool {
    let status = &server.config.status;
    let path = status.path.as_ref().map(String::as_bytes);
    path == Some(&exchange.key) && is_allowed(server, exchange)
}

#[cold]
fn is_allowed(server: &Server, exchange: &Exchange) -> bool {
    let Some(connection) = &exchange.connection else {
        return false;
    };
    let from = &server.config.status.from;
    let client = server.known_client(&connection.stream, exchange);
    client.is_some_and(|client| from.iter().any(|peers| peers.contains(client)))
}

/// The format of the page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    Html,
    Json,
    Prometheus,
}

impl Format {
    /// Returns the requested format: by `?format=`, else by the accepted media types.
    pub(crate) fn of(query: Option<&[u8]>, accept: Option<&[u8]>) -> Option<Self> {
        let query = query.unwrap_or_default();
        let mut pairs = query.split(|&byte| byte == b'&');
        if let Some(format) = pairs.find_map(|pair| pair.strip_prefix(b"format=")) {
            return match format {
                b"html" => Some(Self::Html),
                b"json" => Some(Self::Json),
                b"prometheus" => Some(Self::Prometheus),
                _ => None,
            };
        }
        if query == b"json" {
            return Some(Self::Json);
        }
        let accept = str::from_utf8(accept.unwrap_or_default()).unwrap_or_default();
        let accepts = |kind| accept.contains(kind);
        Some(if accepts("text/html") {
            Self::Html
        } else if accepts("openmetrics-text") || accepts("version=0.0.4") {
            Self::Prometheus
        } else if accepts("application/json") {
            Self::Json
        } else {
            Self::Html
        })
    }
}

/// Answers with the page.
pub(crate) fn answer(server: &Server, exchange: &mut Exchange) {
    let (head, bytes) = (*exchange.head(), exchange.input.filled());
    let mut fields = head.fields(bytes);
    let accept = fields.find(|(name, _)| name.eq_ignore_ascii_case(b"accept"));
    let format = Format::of(head.query(bytes), accept.map(|(_, value)| value));
    let fields = [("Cache-Control", "no-store"), ("Vary", "Accept")];
    let Some(format) = format else {
        return answer::text(server, exchange, Status::BAD_REQUEST, &fields);
    };
    let report = Report::of(server);
    let (kind, page) = match format {
        Format::Html => ("text/html; charset=utf-8", html::page(&report)),
        Format::Json => ("application/json", json::page(&report)),
        Format::Prometheus => ("text/plain; version=0.0.4", prometheus::page(&report)),
    };
    answer::body(server, exchange, Status::OK, &fields, kind, page.as_bytes());
}
