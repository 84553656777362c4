//! What a connection's bytes go over.

use std::io::{self, IoSlice};
use std::net::Shutdown;
use std::os::fd::BorrowedFd;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_io::{AsyncRead as _, AsyncWrite as _};
use tussah::net::{TcpStream, UnixStream};

/// A connection's two streams of bytes.
pub(crate) enum Stream {
    /// Over the internet.
    Tcp(TcpStream),
    /// On this machine.
    Unix(UnixStream),
}

/// Calls a method of whichever stream it is.
macro_rules! either {
    ($this:expr, $stream:ident => $call:expr) => {
        match $this {
            Stream::Tcp($stream) => $call,
            Stream::Unix($stream) => $call,
        }
    };
}

impl Stream {
    /// Reads what is there; 0 is the end.
    #[inline]
    pub(crate) fn poll_read(
        &self,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        either!(self, stream => Pin::new(&mut &*stream).poll_read(context, buffer))
    }

    /// Waits until there may be something to read.
    #[inline]
    pub(crate) fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_readable(context))
    }

    /// Writes what there is room for.
    pub(crate) fn poll_write(
        &self,
        context: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        either!(self, stream => Pin::new(&mut &*stream).poll_write_vectored(context, buffers))
    }

    /// The same without waiting.
    #[inline]
    pub(crate) fn try_write(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.try_write_vectored(buffers),
            Self::Unix(stream) => stream.try_write(&buffers[0]),
        }
    }

    /// Sends a piece of a file.
    pub(crate) async fn send_file(
        &self,
        file: BorrowedFd<'_>,
        offset: u64,
        len: u64,
    ) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.send_file(file, offset, len).await,
            Self::Unix(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Says that nothing more will be written.
    pub(crate) fn finish(&self) -> io::Result<()> {
        either!(self, stream => stream.shutdown(Shutdown::Write))
    }
}
