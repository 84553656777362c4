//! A file with a position.

use std::fmt;
use std::future::Future;
use std::io::{self, SeekFrom};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_io::{AsyncRead, AsyncSeek, AsyncWrite};

use super::file::File;

/// Bound, in bytes: the largest single read or write of a cursor, and therefore the size of its
/// buffer.
const CHUNK: usize = 64 * 1024;

/// A file with a position that each read and write advances. Use it with code that requires
/// `AsyncRead`, `AsyncWrite` or `AsyncSeek` from `futures_io`.
///
/// A cursor reads ahead by at most the size of the caller's buffer. Writes are delayed:
/// `poll_write` accepts up to 64 KiB and returns before the data has been written. If a delayed
/// write fails, the next operation on the cursor returns the error. Flush or close the cursor
/// before you drop it; otherwise, the last write may be lost.
///
/// # Panics
/// An operation that has to wait panics if it is polled outside a runtime.
///
/// # Examples
/// ```
/// use futures_lite::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};
/// use std::io::SeekFrom;
/// use tussah::fs::{Cursor, File};
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("poem");
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// let file = File::options().read(true).write(true).create(true).open(&path).await?;
/// let mut cursor = Cursor::new(file);
/// cursor.write_all(b"a rose is a rose").await?;
/// cursor.seek(SeekFrom::Start(2)).await?;
/// let mut word = [0; 4];
/// cursor.read_exact(&mut word).await?;
/// assert_eq!(&word, b"rose");
/// # std::io::Result::Ok(())
/// # })).expect("no panic")?;
/// # std::io::Result::Ok(())
/// ```
pub struct Cursor {
    file: File,
    /// The offset of the next byte to read or write.
    position: u64,
    /// Bytes that were read ahead; some of them may have been taken already.
    ahead: Vec<u8>,
    /// The number of bytes taken from `ahead`.
    taken: usize,
    operation: Operation,
}

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The operation in progress.
enum Operation {
    Nothing,
    Read(Boxed<(io::Result<usize>, Vec<u8>)>),
    Write(Boxed<io::Result<()>>),
    Len(Boxed<io::Result<u64>>),
}

impl Cursor {
    /// Creates a cursor at the start of the file.
    #[must_use]
    pub fn new(file: File) -> Self {
        Self {
            file,
            position: 0,
            ahead: Vec::new(),
            taken: 0,
            operation: Operation::Nothing,
        }
    }

    /// Returns the offset of the next byte to read or write.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns the file.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    fn forget_ahead(&mut self) {
        self.ahead.clear();
        self.taken = 0;
    }

    /// Waits for a pending write, and drops any other pending operation.
    fn poll_settled(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Operation::Write(write) = &mut self.operation {
            let written = ready!(write.as_mut().poll(context));
            self.operation = Operation::Nothing;
            return Poll::Ready(written);
        }
        self.operation = Operation::Nothing;
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Cursor {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if buffer.is_empty() {
            return Poll::Ready(Ok(0));
        }
        loop {
            let ahead = &this.ahead[this.taken..];
            if !ahead.is_empty() {
                let len = ahead.len().min(buffer.len());
                buffer[..len].copy_from_slice(&ahead[..len]);
                this.taken += len;
                this.position += len as u64;
                return Poll::Ready(Ok(len));
            }
            if let Operation::Read(read) = &mut this.operation {
                let (read, ahead) = ready!(read.as_mut().poll(context));
                this.operation = Operation::Nothing;
                (this.ahead, this.taken) = (ahead, 0);
                if read? == 0 {
                    this.forget_ahead();
                    return Poll::Ready(Ok(0));
                }
                continue;
            }
            ready!(this.poll_settled(context))?;
            let mut ahead = std::mem::take(&mut this.ahead);
            ahead.clear();
            let room = buffer.len().min(CHUNK);
            if ahead.capacity() < room || ahead.capacity() > 2 * room {
                ahead = Vec::with_capacity(room);
            }
            let (file, position) = (this.file.clone(), this.position);
            let read = async move { file.read_at(ahead, position).await };
            this.operation = Operation::Read(Box::pin(read));
            this.forget_ahead();
        }
    }
}

impl AsyncWrite for Cursor {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        ready!(this.poll_settled(context))?;
        this.forget_ahead();
        let bytes = &bytes[..bytes.len().min(CHUNK)];
        let (file, position, owned) = (this.file.clone(), this.position, bytes.to_vec());
        let mut write: Boxed<_> =
            Box::pin(async move { file.write_all_at(owned, position).await.0 });
        // Poll once, so that the write starts now and not with the next operation.
        if let Poll::Ready(written) = write.as_mut().poll(context) {
            written?;
        } else {
            this.operation = Operation::Write(write);
        }
        this.position += bytes.len() as u64;
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if matches!(self.operation, Operation::Write(_)) {
            return self.poll_settled(context);
        }
        Poll::Ready(Ok(()))
    }

    /// Flushes. The file itself is closed when the cursor and all clones of the file are dropped.
    fn poll_close(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(context)
    }
}

impl AsyncSeek for Cursor {
    fn poll_seek(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        to: SeekFrom,
    ) -> Poll<io::Result<u64>> {
        let this = &mut *self;
        let position = match to {
            SeekFrom::Start(position) => {
                ready!(this.poll_settled(context))?;
                Some(position)
            }
            SeekFrom::Current(by) => {
                ready!(this.poll_settled(context))?;
                this.position.checked_add_signed(by)
            }
            SeekFrom::End(by) => {
                if !matches!(this.operation, Operation::Len(_)) {
                    ready!(this.poll_settled(context))?;
                    let file = this.file.clone();
                    this.operation = Operation::Len(Box::pin(async move { file.len().await }));
                }
                let Operation::Len(len) = &mut this.operation else {
                    unreachable!("it was set above");
                };
                let len = ready!(len.as_mut().poll(context));
                this.operation = Operation::Nothing;
                len?.checked_add_signed(by)
            }
        };
        let position = position.filter(|position| i64::try_from(*position).is_ok());
        let Some(position) = position else {
            let text = format!("expected a position from 0 to {}, got {to:?}", i64::MAX);
            let error = io::Error::new(io::ErrorKind::InvalidInput, text);
            let path = this.file.path().display();
            return Poll::Ready(Err(crate::io_error::context(error, "seek in", path)));
        };
        this.forget_ahead();
        this.position = position;
        Poll::Ready(Ok(position))
    }
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor")
            .field("file", &self.file)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}
