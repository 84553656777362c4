//! Writing to a TCP stream.

use std::future::Future;
use std::io::{self, IoSlice};

use super::stream::TcpStream;
use super::transfer::{Limited as _, Verb};
use crate::net::socket::Direction;

/// Operations that write.
impl TcpStream {
    /// Waits until the send buffer has free space, and writes as much of `buffer` as fits. Returns
    /// the number of bytes written.
    ///
    /// # Cancellation
    /// If the future is dropped before it completes, nothing has been written.
    ///
    /// # Errors
    /// Returns `BrokenPipe` or `ConnectionReset` if the peer has closed the connection, or if this
    /// end was shut down. Returns `TimedOut` after the [write timeout](Self::set_write_timeout), or
    /// when the operating system has given up on the peer. Otherwise, returns any error from the
    /// operating system.
    pub fn write<'a>(
        &'a self,
        buffer: &'a [u8],
    ) -> impl Future<Output = io::Result<usize>> + Send + Unpin + use<'a> {
        self.transfer(Verb::Write, || self.socket().send(buffer).map(Some))
    }

    /// Writes all of `buffer`.
    ///
    /// # Cancellation
    /// If the future is dropped, part of `buffer` may have been written.
    ///
    /// # Errors
    /// Same as [`write`](Self::write). After an error, part of `buffer` may have been written.
    pub fn write_all<'a>(
        &'a self,
        buffer: &'a [u8],
    ) -> impl Future<Output = io::Result<()>> + Send + Unpin + use<'a> {
        let mut rest = buffer;
        self.transfer(Verb::Write, move || {
            rest = &rest[self.socket().send(rest)?..];
            Ok(rest.is_empty().then_some(()))
        })
    }

    /// Writes from several buffers, one after the other. Otherwise works like
    /// [`write`](Self::write).
    ///
    /// # Cancellation
    /// If the future is dropped before it completes, nothing has been written.
    ///
    /// # Errors
    /// Same as [`write`](Self::write).
    pub fn write_vectored<'a, 'b: 'a>(
        &'a self,
        buffers: &'a [IoSlice<'b>],
    ) -> impl Future<Output = io::Result<usize>> + Send + Unpin + use<'a, 'b> {
        self.transfer(Verb::Write, || {
            self.socket().send_vectored(buffers).map(Some)
        })
    }

    /// Writes several buffers completely, one after the other. As with
    /// `std::io::Write::write_all_vectored`, the contents of `buffers` are unspecified afterwards.
    ///
    /// # Cancellation
    /// Same as [`write_all`](Self::write_all).
    ///
    /// # Errors
    /// Same as [`write`](Self::write).
    pub fn write_all_vectored<'a, 'b: 'a>(
        &'a self,
        buffers: &'a mut [IoSlice<'b>],
    ) -> impl Future<Output = io::Result<()>> + Send + Unpin + use<'a, 'b> {
        let mut rest = buffers;
        IoSlice::advance_slices(&mut rest, 0); // drops empty ones in front
        self.transfer(Verb::Write, move || {
            if !rest.is_empty() {
                let len = self.socket().send_vectored(rest)?;
                IoSlice::advance_slices(&mut rest, len);
            }
            Ok(rest.is_empty().then_some(()))
        })
    }

    /// Writes as much of `buffer` as fits, without waiting.
    ///
    /// # Errors
    /// Returns `WouldBlock` if the send buffer is full; otherwise, any error from the operating
    /// system.
    pub fn try_write(&self, buffer: &[u8]) -> io::Result<usize> {
        self.socket().send(buffer)
    }

    /// Writes as much of the contents of several buffers as fits, without waiting.
    ///
    /// # Errors
    /// Same as [`try_write`](Self::try_write).
    pub fn try_write_vectored(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        self.socket().send_vectored(buffers)
    }

    /// Waits until the stream is writable or an error is pending.
    ///
    /// # Cancellation
    /// Dropping the future has no effect on the stream.
    ///
    /// # Errors
    /// Same as [`write`](Self::write).
    pub fn writable(&self) -> impl Future<Output = io::Result<()>> + Send + Unpin + use<'_> {
        self.transfer(Verb::Write, || {
            self.socket().ready(Direction::Write).map(Some)
        })
    }

    /// Writes as much of an owned buffer as fits. Otherwise works like [`write`](Self::write).
    ///
    /// # Cancellation
    /// If the future is dropped before it completes, nothing has been written, and the buffer is
    /// dropped.
    ///
    /// # Errors
    /// Same as [`write`](Self::write). The buffer is returned even after an error.
    pub async fn write_owned<B>(&self, buffer: B) -> (io::Result<usize>, B)
    where
        B: AsRef<[u8]> + Send + 'static,
    {
        let written = self.write(buffer.as_ref()).await;
        (written, buffer)
    }

    /// Writes all of an owned buffer. Otherwise works like [`write_all`](Self::write_all).
    ///
    /// # Cancellation
    /// If the future is dropped, part of the buffer may have been written. The buffer is dropped.
    ///
    /// # Errors
    /// Same as [`write`](Self::write). The buffer is returned even after an error.
    pub async fn write_all_owned<B>(&self, buffer: B) -> (io::Result<()>, B)
    where
        B: AsRef<[u8]> + Send + 'static,
    {
        let written = self.write_all(buffer.as_ref()).await;
        (written, buffer)
    }
}
