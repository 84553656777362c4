//! The source of a body that is made while it is sent.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use crate::web::answer::reply::{Chunk, ReplyStream};

/// The maximum total length, in bytes, of the ready chunks that are sent together. A longer chunk
/// is sent alone.
const TOGETHER_BYTES: usize = 64 * 1024;

/// The maximum number of chunks taken in one poll. A stream of endless empty chunks may not hold
/// its worker.
const TOGETHER_CHUNKS: usize = 1024;

/// The part of a body that has not been made.
pub(crate) struct Source {
    stream: ReplyStream,
    framing: Framing,
    /// The error that ended the stream, until it is returned.
    failed: Option<io::Error>,
    /// The part of a file that follows the bytes, until it is taken.
    file: Option<(Arc<File>, Range<u64>)>,
}

/// The way in which the client finds the end of the body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Framing {
    /// This many bytes are left.
    Length(u64),
    /// Each chunk has its length.
    Chunked,
    /// The connection ends.
    UntilClose,
    /// The response has no body.
    Nothing,
}

impl Source {
    pub(crate) fn new(stream: ReplyStream, framing: Framing) -> Self {
        Self {
            stream,
            framing,
            failed: None,
            file: None,
        }
    }

    /// Returns whether only the end of the connection shows the client that a body is complete.
    pub(crate) fn is_until_close(&self) -> bool {
        self.framing == Framing::UntilClose
    }

    /// Takes the part of a file that follows the bytes of the last
    /// [`poll_fill`](Self::poll_fill).
    pub(crate) fn take_file(&mut self) -> Option<(Arc<File>, Range<u64>)> {
        self.file.take()
    }

    /// Appends the next bytes for the client. A part of a file may follow them. Returns false at
    /// the end.
    pub(crate) fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Vec<u8>,
    ) -> Poll<io::Result<bool>> {
        if let Some(error) = self.failed.take() {
            return Poll::Ready(Err(error));
        }
        for _ in 0..TOGETHER_CHUNKS {
            match self.poll_chunk(cx, out) {
                Poll::Pending if !out.is_empty() => return Poll::Ready(Ok(true)),
                // The bytes before the error are sent first.
                Poll::Ready(Err(error)) if !out.is_empty() => {
                    self.failed = Some(error);
                    return Poll::Ready(Ok(true));
                }
                Poll::Ready(Ok(true)) if out.len() < TOGETHER_BYTES && self.file.is_none() => {}
                done => return done,
            }
        }
        if out.is_empty() {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Ok(true))
    }

    /// Appends the next chunk.
    fn poll_chunk(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Poll<io::Result<bool>> {
        let chunk = ready!(self.stream.chunks.as_mut().poll_next(cx)).transpose()?;
        Poll::Ready(match (&mut self.framing, chunk) {
            (_, Some(chunk)) if chunk.len() == 0 => Ok(true),
            (Framing::Nothing, _) | (Framing::Length(0) | Framing::UntilClose, None) => Ok(false),
            (framing, Some(Chunk::Bytes(chunk))) => framing.append(&chunk, out).map(|()| true),
            (Framing::Length(left), Some(Chunk::File(file, range))) => {
                *left = left
                    .checked_sub(range.end - range.start)
                    .ok_or_else(other_length)?;
                self.file = Some((file, range));
                Ok(true)
            }
            // Only a body of a known length has parts of files.
            (_, Some(Chunk::File(..))) => Err(other_length()),
            (Framing::Length(_), None) => Err(other_length()),
            (Framing::Chunked, None) => {
                out.extend_from_slice(b"0\r\n\r\n");
                Ok(false)
            }
        })
    }
}

impl Framing {
    fn append(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::Length(left) => {
                let rest = left.checked_sub(chunk.len() as u64);
                *left = rest.ok_or_else(other_length)?;
                out.extend_from_slice(chunk);
            }
            Self::Chunked => {
                out.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                out.extend_from_slice(chunk);
                out.extend_from_slice(b"\r\n");
            }
            Self::UntilClose | Self::Nothing => out.extend_from_slice(chunk),
        }
        Ok(())
    }
}

fn other_length() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the body has another length than announced",
    )
}
