//! The status page of a server that is a graph.

use tussah_wire::http::Status;

use crate::modules::{Request, Response};
use crate::web::answer::status::Format;

/// Returns whether a client may see the page: only this machine may.
pub(crate) fn is_allowed(request: &Request) -> bool {
    request.client().is_some_and(|client| client.is_loopback())
}

/// Returns the drawing of the first graph in source text, as SVG.
pub(crate) fn figure(text: &str) -> String {
    let parsed = tussah_weave::parse(text);
    let graphs = tussah_weave::check(&parsed.file, None).graphs;
    let first = graphs.first();
    first.map_or_else(String::new, |graph| tussah_weave::draw::svg(graph, None))
}

/// Adds the drawing to a page. It does not change, so it is outside of the part that does.
pub(crate) fn with_figure(page: &str, figure: &str) -> String {
    page.replacen("<details>", &format!("{figure}<details>"), 1)
}

/// Answers with the page in the format that the client wants.
pub(crate) fn respond(
    request: Request,
    html: impl FnOnce() -> String,
    json: impl FnOnce() -> String,
) -> Response {
    let query = request.head.query(&request.bytes);
    let response = match Format::of(query, request.field("accept")) {
        Some(Format::Html) => request
            .respond(html())
            .with_type("text/html; charset=utf-8"),
        Some(Format::Json) => request.respond(json()).with_type("application/json"),
        Some(Format::Prometheus) | None => request
            .respond("expected the format html or json\n")
            .with_status(Status::BAD_REQUEST),
    };
    let response = response.with("Cache-Control", "no-store");
    response.with("Vary", "Accept")
}
