//! Dynamic content: an async function for a path.

use std::borrow::Cow;
use std::collections::HashMap;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use tussah_wire::http::head::Head;
use tussah_wire::http::{Method, Status, target};

/// A request, as a handler is given it.
#[derive(Clone, Debug)]
pub struct Request {
    pub(crate) head: Head,
    /// The bytes of the head.
    pub(crate) bytes: Vec<u8>,
    pub(crate) path: Vec<u8>,
    pub(crate) body: Vec<u8>,
    pub(crate) client: Option<IpAddr>,
}

impl Request {
    /// The method.
    #[must_use]
    pub fn method(&self) -> Method {
        self.head.method
    }

    /// The name of the method as it was sent, for those that are [`Method::Other`] too.
    #[must_use]
    pub fn method_name(&self) -> &str {
        str::from_utf8(self.head.method_text(&self.bytes)).expect("a method is ASCII")
    }

    /// The path as it was sent: not decoded, with all dot segments.
    #[must_use]
    pub fn raw_path(&self) -> &[u8] {
        self.head.path(&self.bytes)
    }

    /// The segments of the path, without dot segments and empty ones, each decoded by itself: `/users/a%2Fb` has `users` and
    /// `a/b`. The last one is empty if the path ends with a slash. What is no UTF-8 is replaced.
    ///
    /// A segment may hold anything, slashes, `..` and control characters included: never make a part of a file's path of it.
    pub fn segments(&self) -> impl Iterator<Item = String> {
        let segments = target::segments(self.raw_path());
        let segments = segments.into_iter().flatten();
        segments.map(|segment| String::from_utf8_lossy(&segment).into_owned())
    }

    /// The path, decoded, without dot segments; what is no UTF-8 in it is replaced. Encoded slashes, backslashes and control
    /// characters stay as they are (`%2F`, `%5C`, `%0A`); who has to tell them from `%252F` looks at
    /// [`segments`](Self::segments).
    #[must_use]
    pub fn path(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.path)
    }

    /// The pairs of the query, decoded.
    pub fn query(&self) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
        let raw = self.head.query(&self.bytes).unwrap_or_default();
        target::query(raw).map(|(name, value)| (text(name), text(value)))
    }

    /// The value of the first field of this name, in either case.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        let mut fields = self.head.fields(&self.bytes);
        let found = fields.find(|(other, _)| other.eq_ignore_ascii_case(name.as_bytes()));
        found.map(|(_, value)| value)
    }

    /// The body, whole.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Who asks, if it is known; behind a proxy that is trusted, whom that names.
    #[must_use]
    pub fn client(&self) -> Option<IpAddr> {
        self.client
    }
}

fn text(bytes: Cow<'_, [u8]>) -> Cow<'_, str> {
    match bytes {
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

/// What a handler answers.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The status; one below 200 is no answer, and 500 is sent for it.
    pub status: Status,
    /// `Content-Type`.
    pub media_type: String,
    /// Fields beside those that the server adds: its name, the type and the length of the body, the date, and what becomes of the connection. One of these, or with bytes that
    /// can't be sent, is left out.
    pub fields: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Reply {
    /// Plain text, with status 200.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new("text/plain; charset=utf-8", text.into())
    }

    /// A page of HTML, with status 200.
    pub fn html(page: impl Into<String>) -> Self {
        Self::new("text/html; charset=utf-8", page.into())
    }

    /// A body of some type, with status 200.
    pub fn new(media_type: impl Into<String>, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status: Status::OK,
            media_type: media_type.into(),
            fields: Vec::new(),
            body: body.into(),
        }
    }

    /// A status, with its name as the text.
    #[must_use]
    pub fn status(status: Status) -> Self {
        Self {
            status,
            ..Self::text(format!("{} {}\n", status.code(), status.reason()))
        }
    }

    /// The same with one more field.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.fields.push((name.into(), value.into()));
        self
    }
}

type Answering = Pin<Box<dyn Future<Output = Reply> + Send>>;
pub(crate) type Route = Arc<dyn Fn(Request) -> Answering + Send + Sync>;

/// Which function answers for which path.
#[derive(Clone, Default)]
pub struct Routes {
    exact: HashMap<Vec<u8>, Route>,
    /// By what the path begins with, the longest first.
    beneath: Vec<(Vec<u8>, Route)>,
}

impl Routes {
    /// Has a function answer for a path, whatever the method; for all paths that begin so, if it ends in `/*`. The latter of two for the same path counts.
    #[must_use]
    pub fn route<F, A>(mut self, path: &str, handler: F) -> Self
    where
        F: Fn(Request) -> A + Send + Sync + 'static,
        A: Future<Output = Reply> + Send + 'static,
    {
        let route: Route = Arc::new(move |request| Box::pin(handler(request)));
        match path.strip_suffix('*') {
            Some(start) if start.ends_with('/') => {
                self.beneath.retain(|(other, _)| other != start.as_bytes());
                self.beneath.push((start.into(), route));
                self.beneath
                    .sort_by_key(|(start, _)| std::cmp::Reverse(start.len()));
            }
            _ => drop(self.exact.insert(path.into(), route)),
        }
        self
    }

    #[inline]
    pub(crate) fn find(&self, path: &[u8]) -> Option<&Route> {
        if self.exact.is_empty() && self.beneath.is_empty() {
            return None;
        }
        let beneath = || {
            self.beneath
                .iter()
                .find(|(start, _)| path.starts_with(start))
        };
        self.exact.get(path).or_else(|| Some(&beneath()?.1))
    }
}

impl std::fmt::Debug for Routes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let exact = self.exact.keys();
        let paths = exact.chain(self.beneath.iter().map(|(start, _)| start));
        f.debug_list()
            .entries(paths.map(|path| String::from_utf8_lossy(path)))
            .finish()
    }
}
