//! Dynamic content: routes and requests.

mod answering;

use std::borrow::Cow;
use std::collections::HashMap;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tussah::sync::Limit;
use tussah_wire::http::head::Head;
use tussah_wire::http::{Method, target};

pub(crate) use self::answering::{Answer, Answering};
use super::reply::Reply;
use super::request_body::RequestBody;

/// A request, as passed to a handler. A clone has no [streamed](Route::streams) body, because only
/// one reader can take such a body.
#[derive(Debug)]
pub struct Request {
    pub(crate) head: Head,
    /// The bytes of the head.
    pub(crate) bytes: Vec<u8>,
    pub(crate) path: Vec<u8>,
    /// The body, unless it is in `stream`.
    pub(crate) body: Vec<u8>,
    pub(crate) stream: Option<Box<RequestBody>>,
    pub(crate) client: Option<IpAddr>,
    /// The addresses of the connection, if the route needs them and there are any.
    pub(crate) ends: Option<Ends>,
}

impl Clone for Request {
    fn clone(&self) -> Self {
        Self {
            head: self.head,
            bytes: self.bytes.clone(),
            path: self.path.clone(),
            body: self.body.clone(),
            stream: None,
            client: self.client,
            ends: self.ends,
        }
    }
}

/// The two ends of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    pub(crate) remote: SocketAddr,
    pub(crate) local: SocketAddr,
    pub(crate) is_https: bool,
}

impl Request {
    /// Returns the method.
    #[must_use]
    pub fn method(&self) -> Method {
        self.head.method
    }

    /// Returns the name of the method as the client sent it, even for [`Method::Other`].
    #[must_use]
    pub fn method_name(&self) -> &str {
        str::from_utf8(self.head.method_text(&self.bytes)).expect("a method is ASCII")
    }

    /// Returns the path as the client sent it, without decoding it or removing dot segments.
    #[must_use]
    pub fn raw_path(&self) -> &[u8] {
        self.head.path(&self.bytes)
    }

    /// Returns the segments of the path, omitting dot segments and, except at the end, empty
    /// segments. Each segment is decoded separately: the segments of `/users/a%2Fb` are `users` and
    /// `a/b`. If the path ends with a slash, the last segment is empty. Invalid UTF-8 is replaced.
    ///
    /// A segment can contain any characters, even `/../` and control characters, so never use a
    /// segment in a file path.
    pub fn segments(&self) -> impl Iterator<Item = String> {
        let segments = target::segments(self.raw_path());
        let segments = segments.into_iter().flatten();
        segments.map(|segment| String::from_utf8_lossy(&segment).into_owned())
    }

    /// Returns the decoded path, without dot segments. Invalid UTF-8 is replaced. Encoded slashes,
    /// backslashes and control characters stay encoded (`%2F`, `%5C`, `%0A`). In the result, a
    /// `%2F` and a `%252F` from the client look the same; [`segments`](Self::segments)
    /// distinguishes them.
    #[must_use]
    pub fn path(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.path)
    }

    /// Returns the decoded name-value pairs of the query.
    pub fn query(&self) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
        let raw = self.head.query(&self.bytes).unwrap_or_default();
        target::query(raw).map(|(name, value)| (text(name), text(value)))
    }

    /// Returns the value of the first header field with the given name. The comparison of names
    /// ignores case.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        let mut fields = self.head.fields(&self.bytes);
        let found = fields.find(|(other, _)| other.eq_ignore_ascii_case(name.as_bytes()));
        found.map(|(_, value)| value)
    }

    /// Returns the complete body, or an empty slice if the body is [streamed](Route::streams) or
    /// has been taken.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Takes the body out of the request, and returns it as a stream. A body that is not
    /// [streamed](Route::streams) is already in memory. Afterwards, the body of the request is
    /// empty. A clone of a request never contains a streamed body.
    pub fn take_body(&mut self) -> RequestBody {
        match self.stream.take() {
            Some(stream) => *stream,
            None => RequestBody::whole(std::mem::take(&mut self.body)),
        }
    }

    /// Returns the address of the client, if it is known. If the request came through a trusted
    /// proxy, the result is the address that the proxy specifies.
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

type Handler = Arc<dyn Fn(Request) -> Answering + Send + Sync>;

/// A handler with its options. The handler is an async function that answers requests.
///
/// Each route is a stage with its own queue, latency target and admission control. An overloaded
/// route therefore rejects only its own requests. All routes share the CPUs.
///
/// # Cancellation
/// If a client disconnects before it has received the response, its request is cancelled.
///
/// - A request that is still queued leaves the queue as soon as its client disconnects.
/// - If the handler is already running for the request, the server drops the handler's future at
///   the next `.await`. A running handler is cancelled for GET and HEAD, which are safe to cancel
///   (RFC 9110, section 9.2.1), and for other methods if the route is
///   [`cancellable`](Self::cancellable).
/// - Work that a handler has spawned, or passed to [`tussah::spawn_blocking`], continues. Work that
///   must run to completion should therefore be spawned.
///
/// ```
/// use tussah_services::web::{Reply, Request, Route, Web, config::Config};
///
/// let search = async |request: Request| Reply::text(request.body().to_vec().escape_ascii().to_string());
/// let web = Web::new(Config::default()).route_with("/search", Route::new(search).cancellable());
/// ```
#[derive(Clone)]
pub struct Route {
    pub(crate) handler: Handler,
    pub(crate) is_cancellable: bool,
    pub(crate) target: Option<Duration>,
    pub(crate) waits: bool,
    /// True if a long body is passed on while it arrives.
    pub(crate) streams: bool,
    /// True for the paths of a FastCGI application. Its requests come with the addresses of their
    /// connections, which costs system calls.
    pub(crate) is_application: bool,
}

impl Route {
    /// Creates a route with default options, like the routes that
    /// [`Web::route`](crate::web::Web::route) adds.
    pub fn new<F, A>(handler: F) -> Self
    where
        F: Fn(Request) -> A + Send + Sync + 'static,
        A: Future<Output = Reply> + Send + 'static,
    {
        Self::with(move |request| Answering::Reply(Box::pin(handler(request))))
    }

    /// Creates a route whose handler may let a request wait for its body.
    pub(crate) fn with_answer<F, A>(handler: F) -> Self
    where
        F: Fn(Request) -> A + Send + Sync + 'static,
        A: Future<Output = Answer> + Send + 'static,
    {
        Self::with(move |request| Answering::Answer(Box::pin(handler(request))))
    }

    fn with(handler: impl Fn(Request) -> Answering + Send + Sync + 'static) -> Self {
        Self {
            handler: Arc::new(handler),
            is_cancellable: false,
            target: None,
            waits: false,
            streams: false,
            is_application: false,
        }
    }

    /// Cancels requests of any method when their clients disconnect, even while the handler is
    /// running. Use this option for handlers that can safely stop at any `.await`, such as a
    /// handler for searches sent with POST.
    #[must_use]
    pub fn cancellable(mut self) -> Self {
        self.is_cancellable = true;
        self
    }

    /// Sets the latency target of this route, which overrides
    /// [`Config::target`](crate::web::config::Config::target).
    #[must_use]
    pub fn target(mut self, target: Duration) -> Self {
        self.target = Some(target);
        self
    }

    /// Declares that the handler may wait for any length of time, as in a long poll. The route then
    /// has no latency target: long response times do not count as overload, and the server passes
    /// each request to the handler immediately. Only the limit on connections bounds the number of
    /// requests that such a route serves.
    #[must_use]
    pub fn waits(mut self) -> Self {
        self.waits = true;
        self
    }

    /// Passes a long body to the handler as it arrives, instead of buffering it whole. The handler
    /// reads such a body with [`Request::take_body`]. A body is long if it exceeds 64 KiB, or if
    /// the client does not announce its length.
    ///
    /// The server admits a request before it reads a long body. If the client waits for
    /// `100 Continue`, the server sends that response when the handler first reads from the body.
    /// The duration of a request with a long body depends on the client, so the route's response
    /// times do not include such requests.
    ///
    /// ```
    /// use futures_lite::AsyncReadExt as _;
    /// use tussah_services::web::{Reply, Request, Route, Web, config::Config};
    ///
    /// let count = async |mut request: Request| {
    ///     let (mut body, mut buffer, mut sum) = (request.take_body(), [0; 8192], 0);
    ///     while let Ok(len @ 1..) = body.read(&mut buffer).await {
    ///         sum += len;
    ///     }
    ///     Reply::text(format!("{sum} bytes\n"))
    /// };
    /// let web = Web::new(Config::default()).route_with("/count", Route::new(count).streams());
    /// ```
    #[must_use]
    pub fn streams(mut self) -> Self {
        self.streams = true;
        self
    }

    /// Declares that a FastCGI application answers. Each request has the addresses of its
    /// connection.
    #[must_use]
    pub(crate) fn of_application(mut self) -> Self {
        self.is_application = true;
        self
    }
}

impl std::fmt::Debug for Route {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Route")
            .field("is_cancellable", &self.is_cancellable)
            .field("target", &self.target)
            .field("waits", &self.waits)
            .finish_non_exhaustive()
    }
}

/// The routes by path.
#[derive(Clone, Default)]
pub struct Routes {
    /// The routes with their paths, in the order in which they were added.
    all: Vec<(String, Route)>,
    /// The indices of routes by their exact paths.
    exact: HashMap<Vec<u8>, usize>,
    /// The indices of routes by path prefix, the longest prefix first.
    beneath: Vec<(Vec<u8>, usize)>,
    /// The extensions of scripts, such as `.php`, and the indices of their routes.
    scripts: Vec<(Vec<u8>, usize)>,
    /// The limits that the status page lists.
    limits: Vec<Limit>,
}

impl Routes {
    /// Adds a route that handles requests of any method for a path. A path that ends in `/*`
    /// matches all paths with that prefix. A path such as `*.php` matches the paths of scripts with
    /// this extension, even if more segments follow the name of the script. Routes for exact paths
    /// and for prefixes take precedence over routes for extensions. A later route for the same path
    /// replaces an earlier one.
    #[must_use]
    pub fn route<F, A>(self, path: &str, handler: F) -> Self
    where
        F: Fn(Request) -> A + Send + Sync + 'static,
        A: Future<Output = Reply> + Send + 'static,
    {
        self.route_with(path, Route::new(handler))
    }

    /// Adds a configured [`Route`] for a path.
    #[must_use]
    pub fn route_with(mut self, path: &str, route: Route) -> Self {
        if let Some((_, same)) = self.all.iter_mut().find(|(other, _)| other == path) {
            *same = route;
            return self;
        }
        let index = self.all.len();
        self.all.push((path.into(), route));
        if let Some(extension) = path.strip_prefix('*') {
            self.scripts.push((extension.into(), index));
            return self;
        }
        match path.strip_suffix('*') {
            Some(start) if start.ends_with('/') => {
                self.beneath.push((start.into(), index));
                self.beneath
                    .sort_by_key(|(start, _)| std::cmp::Reverse(start.len()));
            }
            _ => drop(self.exact.insert(path.into(), index)),
        }
        self
    }

    /// Lists a limit on the status page. Of two limits with the same name, the later one is listed.
    #[must_use]
    pub(crate) fn limit(mut self, limit: &Limit) -> Self {
        self.limits.retain(|other| other.name() != limit.name());
        self.limits.push(limit.clone());
        self
    }

    pub(crate) fn limits(&self) -> &[Limit] {
        &self.limits
    }

    /// Returns all routes with their paths; [`find`](Self::find) returns the index of one of these.
    pub(crate) fn all(&self) -> &[(String, Route)] {
        &self.all
    }

    /// Returns the index of the route for a path.
    #[inline]
    pub(crate) fn find(&self, path: &[u8]) -> Option<usize> {
        if self.all.is_empty() {
            return None;
        }
        let beneath = || {
            self.beneath
                .iter()
                .find(|(start, _)| path.starts_with(start))
        };
        let exact = self.exact.get(path).copied();
        let script = || {
            let is_script = |extension: &[u8]| {
                let mut ends = path.windows(extension.len()).enumerate();
                ends.any(|(at, end)| {
                    end == extension && matches!(path.get(at + extension.len()), None | Some(b'/'))
                })
            };
            let mut scripts = self.scripts.iter();
            scripts.find(|(extension, _)| is_script(extension))
        };
        let other = || beneath().or_else(script);
        exact.or_else(|| other().map(|(_, index)| *index))
    }
}

impl std::fmt::Debug for Routes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let paths = self.all.iter().map(|(path, _)| path);
        f.debug_list().entries(paths).finish()
    }
}
