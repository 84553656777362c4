//! The modules that answer HTTP requests: for files, and for queries of the operator.

use std::sync::Arc;
use std::time::Duration;

use futures_lite::future;
use serde_json::json;
use tussah::flow::{AsyncOut, Out, module};
use tussah::sync::mpsc::channel;
use tussah::time::sleep;
use tussah_wire::http::condition::Validators;
use tussah_wire::http::range::{ByteRange, ContentRange, Ranges};
use tussah_wire::http::{Method, Status, date};

use super::node::Node;
use super::router::{Hit, OwnQuery};
use crate::graph_status::is_allowed;
use crate::modules::{Body, BodySender, Request, Response};
use crate::web::site::{Missing, Opened, is_exhausted, percent_encode};

/// Bound, in hits: the maximum number that one query of the operator collects. Its parameter `hits`
/// cannot be larger.
const HITS_MAX: usize = 1_000;
/// Bound, in seconds: the maximum time for which a query of the operator waits. Its parameter
/// `wait` cannot be larger.
const WAIT_S_MAX: u64 = 60;
/// The time for which such a query waits, if the request does not say.
const WAIT_S: u64 = 2;

/// Answers requests for files, and passes on those for the status and for queries. Only this
/// machine may ask for those.
pub(super) struct Pages {
    node: Arc<Node>,
}

#[module(blocking)]
impl Pages {
    fn init(node: Arc<Node>) -> Self {
        Self { node }
    }

    fn run(
        &self,
        request: Request,
        out: &impl Out<Response>,
        status: &impl Out<Request>,
        ask: &impl Out<Request>,
    ) {
        let is_local = is_allowed(&request);
        let path = request.path().into_owned();
        match &*path {
            "/status" if is_local => status.send(request),
            "/search" if is_local => ask.send(request),
            _ => out.send(self.file(request)),
        }
    }
}

impl Pages {
    /// Answers `GET /get/NUMBER/NAME`, which is the address that query hits imply.
    fn file(&self, request: Request) -> Response {
        if !matches!(request.method(), Method::Get | Method::Head) {
            let refused = request.status(Status::METHOD_NOT_ALLOWED);
            return refused.with("Allow", "GET, HEAD");
        }
        let segments: Vec<_> = request.segments().collect();
        let opened = match &segments[..] {
            [get, number, name] if get == "get" => match number.parse() {
                Ok(number) => self.node.share.open_file(number, name),
                Err(_) => Err(Missing::NotFound),
            },
            _ => Err(Missing::NotFound),
        };
        match opened {
            Ok(opened) => send(request, opened),
            Err(missing) => {
                let status = match missing {
                    Missing::NotFound => Status::NOT_FOUND,
                    Missing::Forbidden | Missing::NotAFile => Status::FORBIDDEN,
                    Missing::Io(error) if !is_exhausted(&error) => Status::INTERNAL_SERVER_ERROR,
                    Missing::WouldBlock | Missing::Io(_) => Status::SERVICE_UNAVAILABLE,
                };
                request.status(status)
            }
        }
    }
}

/// Answers with a file, or with the range of it that the request asks for.
fn send(request: Request, opened: Opened) -> Response {
    let Opened { file, meta } = opened;
    let validators = Validators {
        etag: Some(meta.etag.as_str()),
        modified: Some(date::unix_seconds(meta.modified)),
    };
    let ranges = Ranges::of(&request.head, &request.bytes, &validators, meta.len);
    let response = match ranges {
        Ranges::Whole | Ranges::Several(_) => match Body::file(file) {
            Ok(body) => request.respond(body),
            Err(_) => return request.status(Status::INTERNAL_SERVER_ERROR),
        },
        Ranges::Single(range @ ByteRange { first, last }) => {
            let (sender, body) = BodySender::new(last + 1 - first, ());
            sender.send(&Arc::new(file), first..last + 1);
            let part = request.respond(body).with_status(Status::PARTIAL_CONTENT);
            part.with(
                "Content-Range",
                ContentRange::of(range, meta.len).to_string(),
            )
        }
        Ranges::Unsatisfiable => {
            let none = ContentRange::none(meta.len).to_string();
            let status = request.status(Status::RANGE_NOT_SATISFIABLE);
            return status.with("Content-Range", none);
        }
    };
    let response = response
        .with("Accept-Ranges", "bytes")
        .with("ETag", meta.etag.as_str());
    response.with_type("application/octet-stream")
}

/// Sends a query of the operator to all peers, and answers with the hits: `/search?q=WORDS`. The
/// answer comes after `wait` seconds, as soon as there are `hits` hits, or when the router shuts
/// down.
pub(super) struct Ask {
    node: Arc<Node>,
}

#[module]
impl Ask {
    fn init(node: Arc<Node>) -> Self {
        Self { node }
    }

    async fn run(
        &self,
        request: Request,
        query: &impl AsyncOut<OwnQuery>,
        out: &impl AsyncOut<Response>,
    ) {
        let Some(wanted) = Wanted::of(&request) else {
            let help = "expected /search?q=WORDS, and optionally &wait=SECONDS (1 to 60) and &hits=N (1 to 1000)\n";
            let bad = request.respond(help).with_status(Status::BAD_REQUEST);
            return out.send(bad).await;
        };
        let (hits, mut found) = channel(HITS_MAX);
        let words = wanted.words;
        query.send(OwnQuery { words, hits }).await;
        let mut all = Vec::new();
        let collect = async {
            while all.len() < wanted.hits {
                match found.recv().await {
                    Ok(hit) => all.push(show(&hit)),
                    Err(_) => return,
                }
            }
        };
        let waited = async {
            sleep(wanted.wait).await;
        };
        future::or(future::or(collect, waited), self.node.closed()).await;
        let page = format!("{:#}\n", json!({ "hits": all }));
        let response = request.respond(page).with_type("application/json");
        out.send(response.with("Cache-Control", "no-store")).await;
    }
}

/// A query of the operator.
struct Wanted {
    words: String,
    wait: Duration,
    hits: usize,
}

impl Wanted {
    fn of(request: &Request) -> Option<Self> {
        let (mut words, mut wait, mut hits) = (String::new(), WAIT_S, HITS_MAX);
        for (name, value) in request.query() {
            match &*name {
                "q" => words = value.into_owned(),
                "wait" => wait = value.parse().ok()?,
                "hits" => hits = value.parse().ok()?,
                _ => return None,
            }
        }
        let is_valid = !words.trim().is_empty()
            && !words.contains('\0')
            && (1..=WAIT_S_MAX).contains(&wait)
            && (1..=HITS_MAX).contains(&hits);
        let wait = Duration::from_secs(wait);
        is_valid.then_some(Self { words, wait, hits })
    }
}

fn show(hit: &Hit) -> serde_json::Value {
    let Hit {
        address,
        index,
        size,
        name,
    } = hit;
    let mut path = String::new();
    percent_encode(name.as_bytes(), false, &mut path);
    json!({
        "name": name,
        "bytes": size,
        "url": format!("http://{address}/get/{index}/{path}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_of_the_operator() {
        let check = |query: &str, expected: Option<(&str, u64, usize)>| {
            let request = format!("GET /search?{query}").parse();
            let wanted = Wanted::of(&request.expect("it is valid"));
            let wanted = wanted.as_ref();
            let found = wanted.map(|it| (&*it.words, it.wait.as_secs(), it.hits));
            assert_eq!(found, expected, "{query}");
        };
        check("q=wild+silk", Some(("wild silk", 2, 1000)));
        check("q=a&wait=60&hits=1", Some(("a", 60, 1)));
        for bad in [
            "",
            "q=",
            "q=+",
            "q=%00",
            "q=a&wait=0",
            "q=a&wait=61",
            "q=a&wait=x",
            "q=a&hits=0",
            "q=a&hits=1001",
            "q=a&b=c",
        ] {
            check(bad, None);
        }
    }
}
