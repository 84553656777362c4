//! The writing end of a pipe.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_io::AsyncWrite;
use tussah_core::Handle;
use tussah_core::io::Direction;

use super::End;
use crate::io_error::context;

/// The writing end of a pipe. Dropping the writer closes this end. Once the last writer is closed
/// and the reader has read all bytes, reads return 0.
///
/// The writer also implements `AsyncWrite` of `futures_io`, for use by one thread at a time.
/// `AsyncWrite::poll_close` closes this end.
#[derive(Debug)]
pub struct Writer {
    /// `None` once closed.
    pub(super) end: Option<End>,
}

impl Writer {
    /// Creates a writer on the current runtime from a writable descriptor that epoll supports (a
    /// pipe, a FIFO, a terminal), and takes ownership of the descriptor.
    ///
    /// The call puts the descriptor into non-blocking mode, which affects all processes that share
    /// its open file description.
    ///
    /// # Errors
    /// Returns the system's error.
    ///
    /// # Panics
    /// Panics if called outside a runtime.
    ///
    /// # Examples
    /// ```
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// # runtime.block_on(runtime.spawn(async move {
    /// let (mut reader, writer) = std::io::pipe()?;
    /// let writer = tussah::pipe::Writer::from_fd(writer.into())?;
    /// writer.write_all(b"hello").await?;
    /// drop(writer);
    /// assert_eq!(std::io::read_to_string(&mut reader)?, "hello");
    /// # std::io::Result::Ok(())
    /// # })).expect("no panic")?;
    /// # std::io::Result::Ok(())
    /// ```
    #[track_caller]
    pub fn from_fd(fd: OwnedFd) -> io::Result<Self> {
        Self::from_fd_in(&Handle::current(), fd, "a pipe")
    }

    pub(crate) fn from_fd_in(handle: &Handle, fd: OwnedFd, name: &'static str) -> io::Result<Self> {
        let end = End::from_fd(handle, fd, name)?;
        Ok(Self { end: Some(end) })
    }

    /// Puts the descriptor into blocking mode and returns it.
    ///
    /// # Errors
    /// Returns the system's error; the descriptor is then closed. Returns `NotConnected` if
    /// `poll_close` of `AsyncWrite` has already closed this end.
    pub fn into_fd(self) -> io::Result<OwnedFd> {
        self.end.ok_or_else(closed)?.into_blocking_fd()
    }

    /// Returns the descriptor, or `None` after `poll_close` of `AsyncWrite` has closed it.
    #[must_use]
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.end.as_ref().map(|end| end.source.as_fd())
    }

    /// Waits until the pipe has free space, and writes some or all of `data`. Returns the number of
    /// bytes written, which is 0 only if `data` is empty.
    ///
    /// # Errors
    /// Returns `BrokenPipe` if all readers have closed the pipe, and `Other` if the runtime ends.
    /// Otherwise, returns any error from the operating system.
    ///
    /// # Cancellation
    /// If the future is dropped before it completes, nothing has been written.
    ///
    /// # Examples
    /// ```
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// # runtime.block_on(runtime.spawn(async move {
    /// let (reader, writer) = tussah::pipe::pipe()?;
    /// assert_eq!(writer.write(b"hello").await?, 5);
    /// drop(reader);
    /// let error = writer.write(b"hello").await.expect_err("the reader is gone");
    /// assert_eq!(error.to_string(), "write to a pipe: Broken pipe (os error 32)");
    /// # std::io::Result::Ok(())
    /// # })).expect("no panic")?;
    /// # std::io::Result::Ok(())
    /// ```
    pub async fn write(&self, data: &[u8]) -> io::Result<usize> {
        let end = self.end()?;
        let write = end
            .source
            .io(Direction::Write, |fd| end.write_now(fd, data));
        write.await.map_err(|error| end.write_error(error))
    }

    /// Writes as many bytes as fit, without waiting. Returns `None` if the pipe is full.
    ///
    /// # Errors
    /// Same as [`write`](Self::write).
    pub fn try_write(&self, data: &[u8]) -> io::Result<Option<usize>> {
        let end = self.end()?;
        match end.write_now(end.source.as_fd(), data) {
            Ok(len) => Ok(Some(len)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(end.write_error(error)),
        }
    }

    /// Writes all of `data`.
    ///
    /// # Errors
    /// Returns any error from [`write`](Self::write). After an error, some bytes may have been
    /// written.
    ///
    /// # Cancellation
    /// If the future is dropped, some bytes may have been written, but their number is lost. To
    /// keep track of the number of bytes written, call [`write`](Self::write) in a loop instead.
    ///
    /// # Examples
    /// See [`pipe`](super::pipe()).
    pub async fn write_all(&self, mut data: &[u8]) -> io::Result<()> {
        while !data.is_empty() {
            let len = self.write(data).await?;
            data = &data[len..];
        }
        Ok(())
    }

    /// Returns the runtime and the descriptor's number, or `None` if it was closed.
    pub(crate) fn place(&self) -> Option<(Handle, RawFd)> {
        let source = &self.end.as_ref()?.source;
        Some((source.handle(), source.as_fd().as_raw_fd()))
    }

    /// Used by callbacks.
    pub(crate) async fn wait_ready(&self, direction: Direction) -> io::Result<()> {
        self.end()?.wait_ready(direction).await
    }

    fn end(&self) -> io::Result<&End> {
        self.end.as_ref().ok_or_else(closed)
    }
}

impl AsyncWrite for Writer {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let end = self.end()?;
        let write = |fd: BorrowedFd<'_>| end.write_now(fd, data);
        let poll = end.source.poll_io(context, Direction::Write, write);
        poll.map_err(|error| end.write_error(error))
    }

    /// Does nothing, because writes are not buffered.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.end = None;
        Poll::Ready(Ok(()))
    }
}

fn closed() -> io::Error {
    let error = io::Error::new(io::ErrorKind::NotConnected, "this end is already closed");
    context(error, "use", "a pipe")
}
