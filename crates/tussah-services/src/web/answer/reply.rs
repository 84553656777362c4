//! The response of a handler, with a body in memory or as a stream.

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;

use futures_lite::{Stream, StreamExt as _};
use tussah_wire::http::Status;

/// The response that a handler returns.
#[derive(Debug)]
pub struct Reply {
    /// The status. A status below 200 is not final, so the server sends 500 instead.
    pub status: Status,
    /// The value of `Content-Type`.
    pub media_type: String,
    /// Additional header fields. The server itself sets `Server`, `Date`, `Connection`,
    /// `Content-Type`, `Content-Length` and `Transfer-Encoding`. If a handler adds one of these
    /// fields, or a field with invalid bytes, the server ignores that field.
    pub fields: Vec<(String, String)>,
    /// The body.
    pub body: ReplyBody,
}

impl Reply {
    /// Creates a plain-text response with status 200.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new("text/plain; charset=utf-8", text.into())
    }

    /// Creates an HTML page with status 200.
    pub fn html(page: impl Into<String>) -> Self {
        Self::new("text/html; charset=utf-8", page.into())
    }

    /// Creates a response with status 200 and the given media type and body.
    pub fn new(media_type: impl Into<String>, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status: Status::OK,
            media_type: media_type.into(),
            fields: Vec::new(),
            body: ReplyBody::Bytes(body.into()),
        }
    }

    /// Creates a response with status 200 and a body that is generated while it is sent (see
    /// [`ReplyStream`]).
    pub fn stream(
        media_type: impl Into<String>,
        chunks: impl Stream<Item = io::Result<Vec<u8>>> + Send + 'static,
    ) -> Self {
        Self {
            body: ReplyBody::Stream(ReplyStream::new(chunks)),
            ..Self::new(media_type, [])
        }
    }

    /// Creates a plain-text response with the given status. The body consists of the status code
    /// and its reason phrase.
    #[must_use]
    pub fn status(status: Status) -> Self {
        Self {
            status,
            ..Self::text(format!("{} {}\n", status.code(), status.reason()))
        }
    }

    /// Adds a header field.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.fields.push((name.into(), value.into()));
        self
    }
}

/// The body of a reply.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReplyBody {
    /// Bytes in memory.
    Bytes(Vec<u8>),
    /// A body that is generated while it is sent.
    Stream(ReplyStream),
}

/// A body that is generated while it is sent.
///
/// The server polls the stream for another chunk only when the client has accepted the previous
/// chunks, so a slow client slows the stream down. The handler returns before the body is sent, so
/// the route's admission control does not count the request while the server sends the body. During
/// a shutdown, [`Config::drain`](crate::web::config::Config::drain) limits how long the stream may
/// continue.
///
/// If no [length](Self::with_len) is announced, the server sends the body in the chunked transfer
/// coding of HTTP/1.1. For an HTTP/1.0 client, the server marks the end of the body by closing the
/// connection. A response to a HEAD request has no body, nor does a response with a status such as
/// 204. For a response without a body, the server polls the stream only until the stream ends or
/// yields its first byte.
///
/// # Cancellation
/// If the client disconnects, the server drops the stream, whatever the request's method.
///
/// # Errors
/// If the stream fails, or its length differs from the announced length, the server closes the
/// connection. The client can thus detect that the body is incomplete. The server does not log the
/// error.
///
/// ```
/// use futures_lite::stream;
/// use tussah_services::web::{Reply, Web, config::Config};
///
/// let count = async |_| {
///     let lines = (1..=1_000_000).map(|n| Ok(format!("{n}\n").into_bytes()));
///     Reply::stream("text/plain", stream::iter(lines))
/// };
/// let web = Web::new(Config::default()).route("/count", count);
/// ```
pub struct ReplyStream {
    pub(crate) chunks: Pin<Box<dyn Stream<Item = io::Result<Chunk>> + Send>>,
    pub(crate) len: Option<u64>,
}

/// A part of a body that is made while it is sent.
pub(crate) enum Chunk {
    Bytes(Vec<u8>),
    /// A part of a file. The body must have a length.
    File(Arc<File>, Range<u64>),
}

impl Chunk {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File(_, range) => range.end - range.start,
        }
    }
}

impl ReplyStream {
    /// Creates a body from a stream of chunks. Empty chunks have no effect.
    pub fn new(chunks: impl Stream<Item = io::Result<Vec<u8>>> + Send + 'static) -> Self {
        Self {
            chunks: Box::pin(chunks.map(|chunk| chunk.map(Chunk::Bytes))),
            len: None,
        }
    }

    /// Creates a body of `len` bytes from its chunks, some of which may be parts of files.
    pub(crate) fn of_chunks(
        len: u64,
        chunks: impl Stream<Item = io::Result<Chunk>> + Send + 'static,
    ) -> Self {
        Self {
            chunks: Box::pin(chunks),
            len: Some(len),
        }
    }

    /// Sets the total length of the body, in bytes, which the server announces as `Content-Length`.
    #[must_use]
    pub fn with_len(mut self, len: u64) -> Self {
        self.len = Some(len);
        self
    }
}

impl fmt::Debug for ReplyStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplyStream")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}
