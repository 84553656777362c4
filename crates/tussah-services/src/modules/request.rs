//! Requests, as items of a graph.

use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

use tussah::flow::{Fields, Value};
use tussah_wire::http::head;
use tussah_wire::http::{Status, target};

use super::answer::Answer;
use super::response::{Body, Response};
use crate::web;

/// A request, which gets exactly one answer: the first [`Response`] that reaches
/// [`HttpReply`](super::HttpReply).
///
/// When all clones of a request and of its responses have been dropped without an answer, the
/// client gets 503, or 500 if the last one was dropped during a panic. So the client also gets an
/// answer if an edge sheds the request, if the request expires, or if no edge takes it.
///
/// Graphs can refer to the fields `path`, `method` and `host`, which are strings. Cloning a request
/// copies its head and body.
#[derive(Clone)]
pub struct Request {
    request: web::Request,
    pub(super) answer: Answer,
}

impl Request {
    pub(super) fn new(request: web::Request, answer: Answer) -> Self {
        Self { request, answer }
    }

    /// Returns the host to which the request is addressed, including the port if the client
    /// specifies one. Returns an empty string if the host is not valid UTF-8.
    #[must_use]
    pub fn host(&self) -> &str {
        let host = self.request.head.host(&self.request.bytes);
        str::from_utf8(host.unwrap_or_default()).unwrap_or_default()
    }

    /// Returns whether the request no longer needs an answer: the client has disconnected, or has
    /// received an answer.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.answer.is_over()
    }

    /// Creates a response with status 200 and the given body. The type of the body is plain text;
    /// [`Response::with_type`] sets another type.
    #[must_use]
    pub fn respond(self, body: impl Into<Body>) -> Response {
        Response::new(Status::OK, body.into(), self.answer)
    }

    /// Creates a response with the given status. The body consists of the status code and its name.
    #[must_use]
    pub fn status(self, status: Status) -> Response {
        Response::of_status(status, self.answer)
    }
}

impl Deref for Request {
    type Target = web::Request;

    fn deref(&self) -> &web::Request {
        &self.request
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Request").field(&self.to_string()).finish()
    }
}

/// Writes the method and the path, as in `GET /a`.
impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method_name(), self.path())
    }
}

/// Makes a request for a test of a graph from a string such as `GET /a`. No client waits for the
/// answer.
impl FromStr for Request {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bytes = format!("{text} HTTP/1.1\r\nHost: localhost\r\n\r\n").into_bytes();
        let refused = |refusal: tussah_wire::http::Refusal| refusal.to_string();
        let head = head::parse(&bytes, &head::Limits::default()).map_err(refused)?;
        let head = head.ok_or("expected a method and a path, as in GET /a")?;
        let request = web::Request {
            path: target::path_with_escapes(head.path(&bytes)).map_err(refused)?,
            bytes: bytes[..head.len()].to_vec(),
            head,
            body: Vec::new(),
            stream: None,
            client: None,
            ends: None,
        };
        Ok(Self::new(request, Answer::nobody()))
    }
}

impl Fields for Request {
    const NAMES: &'static [&'static str] = &["path", "method", "host"];

    fn field(&self, name: &str) -> Option<Value> {
        match name {
            "path" => Some(Value::Text(self.path().into_owned())),
            "method" => Some(Value::Text(self.method_name().to_owned())),
            "host" => Some(Value::Text(self.host().to_owned())),
            _ => None,
        }
    }
}
