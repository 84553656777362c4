//! The `poll_` functions of Unix streams, for the traits of `futures_io`.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::Shutdown;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_io::{AsyncRead, AsyncWrite};

use super::stream::UnixStream;
use crate::net::tcp::{Verb, poll_transfer};

impl AsyncRead for &UnixStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let read = || self.socket.receive_some(buffer);
        poll_transfer(*self, context, Verb::Read, read)
    }

    fn poll_read_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        let read = || self.socket.receive_some_vectored(buffers);
        poll_transfer(*self, context, Verb::Read, read)
    }
}

/// Writes are not buffered, so flushing does nothing. Closing shuts down the writing direction.
impl AsyncWrite for &UnixStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let write = || self.socket.send(data);
        poll_transfer(*self, context, Verb::Write, write)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let write = || self.socket.send_vectored(buffers);
        poll_transfer(*self, context, Verb::Write, write)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.shutdown(Shutdown::Write))
    }
}
