//! The `poll_` functions of TCP streams, for the traits of `futures_io`.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::Shutdown;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_io::{AsyncRead, AsyncWrite};

use super::stream::TcpStream;
use super::transfer::{Limited as _, Verb, poll_transfer};

impl TcpStream {
    pub(super) fn poll_receive(
        &self,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        poll_transfer(self, context, Verb::Read, || self.receive(buffer))
    }

    pub(super) fn poll_receive_vectored(
        &self,
        context: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        poll_transfer(self, context, Verb::Read, || self.receive_vectored(buffers))
    }

    pub(super) fn poll_send(
        &self,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        poll_transfer(self, context, Verb::Write, || self.socket().send(buffer))
    }

    pub(super) fn poll_send_vectored(
        &self,
        context: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        poll_transfer(self, context, Verb::Write, || {
            self.socket().send_vectored(buffers)
        })
    }

    /// Shuts down the writing direction. Succeeds if the connection is already broken.
    pub(super) fn finish(&self) -> io::Result<()> {
        match self.shutdown(Shutdown::Write) {
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
            other => other,
        }
    }
}

macro_rules! async_read {
    ($($type:ty),*) => {
        $(impl AsyncRead for $type {
            fn poll_read(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
                buffer: &mut [u8],
            ) -> Poll<io::Result<usize>> {
                AsRef::<TcpStream>::as_ref(&*self).poll_receive(context, buffer)
            }

            fn poll_read_vectored(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
                buffers: &mut [IoSliceMut<'_>],
            ) -> Poll<io::Result<usize>> {
                AsRef::<TcpStream>::as_ref(&*self).poll_receive_vectored(context, buffers)
            }
        })*
    };
}

macro_rules! async_write {
    ($($type:ty),*) => {
        $(
            /// Writes are not buffered, so flushing does nothing. Closing shuts down the writing
            /// direction.
            impl AsyncWrite for $type {
                fn poll_write(
                    self: Pin<&mut Self>,
                    context: &mut Context<'_>,
                    buffer: &[u8],
                ) -> Poll<io::Result<usize>> {
                    AsRef::<TcpStream>::as_ref(&*self).poll_send(context, buffer)
                }

                fn poll_write_vectored(
                    self: Pin<&mut Self>,
                    context: &mut Context<'_>,
                    buffers: &[IoSlice<'_>],
                ) -> Poll<io::Result<usize>> {
                    AsRef::<TcpStream>::as_ref(&*self).poll_send_vectored(context, buffers)
                }

                fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                    Poll::Ready(Ok(()))
                }

                fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                    Poll::Ready(AsRef::<TcpStream>::as_ref(&*self).finish())
                }
            }
        )*
    };
}

async_read!(
    TcpStream,
    &TcpStream,
    super::ReadHalf<'_>,
    super::OwnedReadHalf
);
async_write!(
    TcpStream,
    &TcpStream,
    super::WriteHalf<'_>,
    super::OwnedWriteHalf
);
