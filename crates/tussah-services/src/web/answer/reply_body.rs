//! Bodies of replies, in memory or as streams.

use std::fmt;
use std::io;
use std::pin::Pin;

use futures_lite::Stream;

/// The body of a reply.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReplyBody {
    /// Bytes in memory.
    Bytes(Vec<u8>),
    /// A body that is made while it is sent.
    Stream(ReplyStream),
}

/// A body that is made while it is sent.
///
/// The server polls the stream only when the client has accepted the chunks before, so a slow
/// client slows the stream down. The handler has returned by then: the admission of the route no
/// longer counts the request. [`Config::drain`](crate::web::config::Config::drain) limits the
/// stream during a shutdown.
///
/// Without a [length](Self::with_len), the server sends each chunk as a chunk of HTTP/1.1, and
/// closes the connection after the response to a client of HTTP/1.0. A response to HEAD, or with a
/// status such as 204, has no body. The server then polls the stream until its end or its first
/// byte.
///
/// # Cancellation
/// If the client disconnects, the stream is dropped, whatever the method of the request.
///
/// # Errors
/// After an error of the stream, or if the stream has another length than announced, the server
/// closes the connection, so that the client notices that the body is incomplete. The server does
/// not log the error.
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
    pub(crate) chunks: Pin<Box<dyn Stream<Item = io::Result<Vec<u8>>> + Send>>,
    pub(crate) len: Option<u64>,
}

impl ReplyStream {
    /// Creates a body from a stream of its chunks. Empty chunks have no effect.
    pub fn new(chunks: impl Stream<Item = io::Result<Vec<u8>>> + Send + 'static) -> Self {
        Self {
            chunks: Box::pin(chunks),
            len: None,
        }
    }

    /// Announces the total length, in bytes, as `Content-Length`.
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
