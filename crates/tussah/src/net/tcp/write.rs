//! Writing to a TCP stream.

use std::future::Future;
use std::io::{self, IoSlice};

use super::stream::TcpStream;
use super::transfer::{Limited as _, Verb};
use crate::net::socket::Direction;

/// Writing.
impl TcpStream {
    /// Writes as much of `buffer` as there is room for, once there is any, and says how much.
    ///
    /// # Cancellation
    /// Dropping the future writes nothing.
    ///
    /// # Errors
    /// `BrokenPipe` or `ConnectionReset` if the peer does not listen any more, or this end was shut down; `TimedOut` after the
    /// [write timeout](Self::set_write_timeout), or when the system gave the peer up; what else the system says.
    pub fn write<'a>(
        &'a self,
        buffer: &'a [u8],
    ) -> impl Future<Output = io::Result<usize>> + Send + Unpin + use<'a> {
        self.transfer(Verb::Write, || self.socket().send(buffer).map(Some))
    }

    /// Writes all of `buffer`.
    ///
    /// # Cancellation
    /// Part of it may have been written when the future is dropped.
    ///
    /// # Errors
    /// As [`write`](Self::write); part of it may have been written.
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

    /// Writes from several buffers, one after the other; as [`write`](Self::write) otherwise.
    ///
    /// # Cancellation
    /// Dropping the future writes nothing.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_vectored<'a, 'b: 'a>(
        &'a self,
        buffers: &'a [IoSlice<'b>],
    ) -> impl Future<Output = io::Result<usize>> + Send + Unpin + use<'a, 'b> {
        self.transfer(Verb::Write, || {
            self.socket().send_vectored(buffers).map(Some)
        })
    }

    /// Writes all of several buffers, one after the other. The slices are used up on the way.
    ///
    /// # Cancellation
    /// As [`write_all`](Self::write_all); the slices show what has not been written.
    ///
    /// # Errors
    /// As [`write`](Self::write).
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

    /// Writes as much as there is room for, without waiting.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room; else what the system says.
    pub fn try_write(&self, buffer: &[u8]) -> io::Result<usize> {
        self.socket().send(buffer)
    }

    /// The same from several buffers.
    ///
    /// # Errors
    /// As [`try_write`](Self::try_write).
    pub fn try_write_vectored(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        self.socket().send_vectored(buffers)
    }

    /// Waits until there is room to write, or an error.
    ///
    /// # Cancellation
    /// Dropping the future changes nothing.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn writable(&self) -> impl Future<Output = io::Result<()>> + Send + Unpin + use<'_> {
        self.transfer(Verb::Write, || {
            self.socket().ready(Direction::Write).map(Some)
        })
    }

    /// Writes as much of a buffer as there is room for; as [`write`](Self::write) otherwise.
    ///
    /// # Cancellation
    /// Dropping the future writes nothing, and drops the buffer.
    ///
    /// # Errors
    /// As [`write`](Self::write); the buffer comes back in any case.
    pub async fn write_owned<B>(&self, buffer: B) -> (io::Result<usize>, B)
    where
        B: AsRef<[u8]> + Send + 'static,
    {
        let written = self.write(buffer.as_ref()).await;
        (written, buffer)
    }

    /// Writes all of a buffer; as [`write_all`](Self::write_all) otherwise.
    ///
    /// # Cancellation
    /// Part of it may have been written when the future is dropped; the buffer is dropped with it.
    ///
    /// # Errors
    /// As [`write`](Self::write); the buffer comes back in any case.
    pub async fn write_all_owned<B>(&self, buffer: B) -> (io::Result<()>, B)
    where
        B: AsRef<[u8]> + Send + 'static,
    {
        let written = self.write_all(buffer.as_ref()).await;
        (written, buffer)
    }
}
