//! Responses, as items of a graph.

use std::fmt;
use std::fs::File;
use std::io;
use std::sync::Arc;

use tussah_wire::http::Status;

use super::answer::Answer;
use super::parts::Parts;
use crate::web::answer;
use crate::web::connection::response::Piece;

/// A response to a [`Request`](super::Request), on its way to [`HttpReply`](super::HttpReply).
///
/// If several responses to a request reach `HttpReply`, only the first one is sent. Clones share
/// the body.
#[derive(Clone)]
pub struct Response {
    status: Status,
    media_type: String,
    fields: Vec<(String, String)>,
    body: Body,
    answer: Answer,
}

/// The body of a response.
#[derive(Clone, Debug)]
pub enum Body {
    /// Bytes in memory.
    Bytes(Arc<[u8]>),
    /// The first bytes of a file; the second field is the number of bytes. If the file has become
    /// shorter by the time it is sent, the connection is closed.
    File(Arc<File>, u64),
    /// Parts of files; a [`BodySender`](super::BodySender) adds them while the response is sent.
    Parts(Parts),
}

impl Body {
    /// Creates a body from a regular file. Where possible, the kernel sends the file without
    /// copying it into this process.
    ///
    /// # Errors
    /// Returns an error of the kind `InvalidInput` if the file is not a regular file. Returns the
    /// error from the operating system if the length of the file cannot be read.
    pub fn file(file: File) -> io::Result<Self> {
        let meta = file.metadata()?;
        if !meta.is_file() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "expected a regular file",
            ));
        }
        Ok(Self::File(Arc::new(file), meta.len()))
    }

    /// Returns the length of the body, in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File(_, len) => *len,
            Self::Parts(parts) => parts.len(),
        }
    }

    /// Returns whether the body is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl From<Arc<[u8]>> for Body {
    fn from(bytes: Arc<[u8]>) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes.into())
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        text.into_bytes().into()
    }
}

impl From<&str> for Body {
    fn from(text: &str) -> Self {
        Self::Bytes(text.as_bytes().into())
    }
}

impl Response {
    pub(super) fn new(status: Status, body: Body, answer: Answer) -> Self {
        Self {
            status,
            media_type: "text/plain; charset=utf-8".to_owned(),
            fields: Vec::new(),
            body,
            answer,
        }
    }

    pub(super) fn of_status(status: Status, answer: Answer) -> Self {
        let text = format!("{} {}\n", status.code(), status.reason());
        Self::new(status, text.into(), answer)
    }

    /// Returns the status.
    #[must_use]
    pub fn status(&self) -> Status {
        self.status
    }

    /// Returns the body.
    #[must_use]
    pub fn body(&self) -> &Body {
        &self.body
    }

    /// Sets the status. A status below 200 is not final, so the client gets 500 instead.
    #[must_use]
    pub fn with_status(mut self, status: Status) -> Self {
        self.status = status;
        self
    }

    /// Sets the value of `Content-Type`.
    #[must_use]
    pub fn with_type(mut self, media_type: impl Into<String>) -> Self {
        self.media_type = media_type.into();
        self
    }

    /// Adds a header field. The server itself adds the date, its name, the type and length of the
    /// body, and the fields about the connection. If a response contains a field that the server
    /// adds itself, or a field with invalid bytes, the server ignores that field.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.fields.push((name.into(), value.into()));
        self
    }

    /// Sends the response.
    pub(super) fn send(self) {
        if self.status.code() < 200 {
            tracing::error!(target: "tussah::modules", status = %self.status, "a response has a status below 200; answered 500 instead");
            return self.answer.send_status(Status::INTERNAL_SERVER_ERROR);
        }
        let fields = self.fields.iter();
        let fields = fields.filter(|(name, _)| !answer::is_own(name));
        let fields: Vec<_> = fields.map(|(name, value)| (&**name, &**value)).collect();
        let body = match self.body {
            Body::Bytes(bytes) => Piece::Bytes(bytes),
            Body::File(file, len) => Piece::Open(file, 0..len),
            Body::Parts(parts) => {
                return self.answer.send(|server, exchange| {
                    let (body, kind) = (parts.take(), &self.media_type);
                    answer::stream(server, exchange, self.status, &fields, kind, body);
                });
            }
        };
        self.answer.send(|server, exchange| {
            let kind = &self.media_type;
            answer::piece(server, exchange, self.status, &fields, kind, body);
        });
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.status)
            .field("media_type", &self.media_type)
            .field("fields", &self.fields)
            .field("bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// Writes the status, as in `404 Not Found`.
impl fmt::Display for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.status.fmt(f)
    }
}
