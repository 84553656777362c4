//! The body of a response, which its client may take more slowly than the application makes it.

use std::ops::Range;
use std::sync::Arc;

use futures_lite::{Stream, future, stream};
use tussah::AbortHandle;
use tussah::fs::File;
use tussah::sync::mpsc::{self, Receiver, SendError, Sender};

use super::super::request_body::RequestBody;
use super::temporary;
use crate::fastcgi::{Failure, Response};

/// The maximum number of parts that wait for the client. A chunk has at most 32 KiB.
const PARTS: usize = 8;

/// Bound, in bytes: the maximum length of the temporary file of a response. Beyond it, the
/// application waits for the client. It is the default of nginx's `fastcgi_max_temp_file_size`.
const FILE_BYTES: u64 = 1 << 30;

/// The maximum length of one read of the file, in bytes.
const READ_BYTES: u64 = 64 * 1024;

/// A part of the body, or its end.
enum Part {
    Chunk(Vec<u8>),
    InFile(Arc<File>, Range<u64>),
    End,
    Failed(Failure),
}

/// The side of the client.
pub(crate) struct Output {
    parts: Receiver<Part>,
    in_file: Option<(Arc<File>, Range<u64>)>,
    keeper: AbortHandle,
}

impl Output {
    /// Takes the rest of a response from the application as fast as that makes it. If the client is
    /// slower, the rest goes to a temporary file.
    pub(crate) fn new(response: Response<RequestBody>) -> Self {
        let (sender, parts) = mpsc::channel(PARTS);
        let keeper = Keeper {
            parts: sender,
            file: None,
            file_bytes_max: FILE_BYTES,
            waiting: 0..0,
        };
        // If the client leaves, nobody takes the parts.
        let keeper = tussah::spawn(async move { drop(keeper.keep(response).await) }).abort_handle();
        Self {
            parts,
            in_file: None,
            keeper,
        }
    }

    /// Returns the chunks of the body. If the client leaves, and the stream is dropped, the
    /// connection to the application is closed.
    pub(crate) fn chunks(self) -> impl Stream<Item = Result<Vec<u8>, Failure>> {
        stream::try_unfold(self, async |mut output| {
            let chunk = output.chunk().await?;
            Ok(chunk.map(|chunk| (chunk, output)))
        })
    }

    async fn chunk(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        loop {
            if let Some((file, range)) =
                self.in_file.as_mut().filter(|(_, range)| !range.is_empty())
            {
                let len = READ_BYTES.min(range.end - range.start);
                let (read, bytes) = file.read_exact_at(vec![0; len as usize], range.start).await;
                read.map_err(Failure::Spool)?;
                range.start += len;
                return Ok(Some(bytes));
            }
            match self.parts.recv().await {
                Ok(Part::Chunk(chunk)) => return Ok(Some(chunk)),
                Ok(Part::InFile(file, range)) => self.in_file = Some((file, range)),
                Ok(Part::End) => return Ok(None),
                Ok(Part::Failed(failure)) => return Err(failure),
                Err(_) => return Err(Failure::Closed), // the server is ending
            }
        }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

/// The side of the application.
struct Keeper {
    parts: Sender<Part>,
    file: Option<Arc<File>>,
    /// The length that the file may have; zero after an error.
    file_bytes_max: u64,
    /// The end of the file that the client has not been given yet.
    waiting: Range<u64>,
}

impl Keeper {
    async fn keep(mut self, mut response: Response<RequestBody>) -> Result<(), SendError<Part>> {
        let end = loop {
            let next = if self.waiting.is_empty() {
                Some(response.chunk().await)
            } else {
                let give = async { self.give_waiting().await.map(|()| None) };
                let read = async { Ok(Some(response.chunk().await)) };
                future::or(give, read).await?
            };
            match next {
                Some(Ok(Some(chunk))) => self.add(chunk).await?,
                Some(Ok(None)) => break Part::End,
                Some(Err(failure)) => break Part::Failed(failure),
                None => {}
            }
        };
        drop(response);
        self.give_waiting().await?;
        self.parts.send(end).await
    }

    /// Gives the client a chunk, or appends it to the file.
    async fn add(&mut self, chunk: Vec<u8>) -> Result<(), SendError<Part>> {
        let has_room = self.waiting.is_empty() && self.parts.len() < PARTS;
        let chunk = match has_room {
            true => chunk,
            false => match self.write(chunk).await {
                Ok(()) => return Ok(()),
                Err(chunk) => chunk,
            },
        };
        self.give_waiting().await?;
        self.parts.send(Part::Chunk(chunk)).await
    }

    async fn give_waiting(&mut self) -> Result<(), SendError<Part>> {
        if let Some(file) = &self.file
            && !self.waiting.is_empty()
        {
            let part = Part::InFile(Arc::clone(file), self.waiting.clone());
            self.parts.send(part).await?;
            self.waiting.start = self.waiting.end;
        }
        Ok(())
    }

    /// Appends a chunk to the file, or returns it if the file can take no more.
    async fn write(&mut self, chunk: Vec<u8>) -> Result<(), Vec<u8>> {
        let (start, len) = (self.waiting.end, chunk.len() as u64);
        if start + len > self.file_bytes_max {
            return Err(chunk);
        }
        let opened = match &self.file {
            Some(file) => Ok(Arc::clone(file)),
            None => temporary().await.map(Arc::new),
        };
        let (written, chunk) = match opened {
            Ok(file) => {
                self.file = Some(Arc::clone(&file));
                file.write_all_at(chunk, start).await
            }
            Err(error) => (Err(error), chunk),
        };
        match written {
            Ok(()) => {
                self.waiting.end += len;
                Ok(())
            }
            Err(error) => {
                tracing::warn!("cannot keep a response for a slow client: {error}");
                self.file_bytes_max = 0;
                Err(chunk)
            }
        }
    }
}
