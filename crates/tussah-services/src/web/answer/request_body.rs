//! Bodies of requests, as streams.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_io::AsyncRead;
use futures_lite::io;
use tussah::fs::Cursor;

use crate::web::connection::pipe::Reader;

/// The body of a request as a stream; see [`Request::take_body`](super::route::Request::take_body).
///
/// The server reads from the client only when the handler reads from the stream, so a slow handler
/// slows the client down. If the handler drops the stream before the server has received the whole
/// body, the server closes the connection after the response.
///
/// # Errors
/// A read fails if the rest of the body cannot be received:
///
/// | kind of the error | reason |
/// |---|---|
/// | `UnexpectedEof` | the client has disconnected |
/// | `TimedOut` | the client sends too slowly ([`Timeouts::body`](crate::web::config::Timeouts::body)) |
/// | `FileTooLarge` | the body without an announced length exceeds [`Limits::body_bytes`](crate::web::config::Limits::body_bytes) |
/// | `InvalidData` | the body breaks the rules of its transfer coding |
pub struct RequestBody {
    kind: Kind,
    len: Option<u64>,
}

enum Kind {
    Whole(io::Cursor<Vec<u8>>),
    Piped(Reader),
    InFile(Cursor),
}

impl RequestBody {
    pub(crate) fn whole(bytes: Vec<u8>) -> Self {
        let len = Some(bytes.len() as u64);
        let kind = Kind::Whole(io::Cursor::new(bytes));
        Self { kind, len }
    }

    pub(crate) fn piped(reader: Reader, len: Option<u64>) -> Self {
        let kind = Kind::Piped(reader);
        Self { kind, len }
    }

    /// Creates a body from a file at its beginning.
    pub(crate) fn in_file(file: Cursor, len: u64) -> Self {
        let (kind, len) = (Kind::InFile(file), Some(len));
        Self { kind, len }
    }

    /// Returns true if the client may not have sent the whole body yet.
    pub(crate) fn is_arriving(&self) -> bool {
        matches!(self.kind, Kind::Piped(_))
    }

    #[cfg(test)]
    pub(super) fn is_in_file(&self) -> bool {
        matches!(self.kind, Kind::InFile(_))
    }

    /// Returns the length of the whole body, in bytes, if the client has announced it.
    #[must_use]
    pub fn announced_len(&self) -> Option<u64> {
        self.len
    }
}

impl AsyncRead for RequestBody {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.kind {
            Kind::Whole(bytes) => Pin::new(bytes).poll_read(cx, buffer),
            Kind::Piped(reader) => reader.poll_read(cx, buffer),
            Kind::InFile(file) => Pin::new(file).poll_read(cx, buffer),
        }
    }
}

impl fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestBody")
            .field("announced_len", &self.len)
            .finish_non_exhaustive()
    }
}
