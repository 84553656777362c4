//! The status page: the counters of every stage, for a person or a program (Haboob's statistics page; SEDA, SOSP 2001, section 5.1.1).

use std::fmt::Write as _;

use serde_json::json;
use tussah_wire::http::Status;

use super::answer;
use super::exchange::Exchange;
use super::server::Server;

/// Whether a path is the status page, and the peer may see it.
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

/// Answers with the page: as JSON for `?json`, else as HTML.
pub(crate) fn answer(server: &Server, exchange: &mut Exchange) {
    let query = exchange.head().query(exchange.input.filled());
    let (kind, page) = if query == Some(b"json") {
        ("application/json", json(server))
    } else {
        ("text/html; charset=utf-8", html(server))
    };
    let fields = [("Cache-Control", "no-store")];
    answer::body(server, exchange, Status::OK, &fields, kind, page.as_bytes());
}

fn json(server: &Server) -> String {
    let stages: Vec<_> = server
        .totals
        .stages()
        .iter()
        .map(|stage| {
            json!({
                "name": &*stage.name,
                "state": stage.gate,
                "closed": stage.closed.as_deref(),
                "arrived": stage.arrived,
                "called": stage.called,
                "finished": stage.finished,
                "refused": stage.refused,
                "shed": stage.shed,
                "panicked": stage.panicked,
                "queued": stage.queued,
                "queue_max": stage.queue_max,
                "in_service": stage.in_service,
                "batch_max": stage.batch_max,
            })
        })
        .collect();
    let page = json!({
        "up_s": server.clock.passed_s(),
        "connections": server.connections.all().count(),
        "stages": stages,
    });
    format!("{page:#}\n")
}

fn html(server: &Server) -> String {
    let mut page = String::from(TOP);
    let up_s = server.clock.passed_s();
    let connections = server.connections.all().count();
    let _ = write!(
        page,
        "<p>Up for {up_s} s, {connections} connections open.</p>{HEAD}"
    );
    for stage in server.totals.stages() {
        let numbers = [
            stage.arrived + stage.called,
            stage.finished + stage.called,
            stage.refused,
            stage.shed,
            stage.queued,
            stage.in_service,
        ];
        let _ = write!(page, "<tr><th scope=row>{}", stage.name);
        if let Some(why) = &stage.closed {
            let why = why.replace('&', "&amp;").replace('<', "&lt;");
            let _ = write!(page, "<br><strong>closed: {why}</strong>");
        }
        for number in numbers {
            let _ = write!(page, "<td>{number}");
        }
    }
    page.push_str("</table><p><a href=\"?json\">as JSON</a></p>\n");
    page
}

const TOP: &str = "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\"><title>Status</title><style>\
:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:50rem;padding:0 1rem}\
table{border-collapse:collapse;width:100%}th,td{padding:.2rem .6rem;text-align:right;border-bottom:1px solid #8884;font-variant-numeric:tabular-nums}\
th:first-child{text-align:left}</style><h1>Status</h1>";
const HEAD: &str =
    "<table><tr><th>stage<th>came<th>finished<th>refused<th>shed<th>queued<th>in service";
