//! What a connection's bytes go over.

mod tls;

use std::io::{self, IoSlice};
use std::net::{IpAddr, Shutdown};
use std::os::fd::BorrowedFd;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_io::{AsyncRead, AsyncWrite};
use tussah::net::{TcpStream, UnixStream};

pub(crate) use tls::Tls;

/// Bound, in bytes: what is read of a file at once where the system can't send it by itself.
const COPY_BYTES: u64 = 64 * 1024;

/// A connection's two streams of bytes.
pub(crate) enum Stream {
    /// Over the internet.
    Tcp(TcpStream),
    /// On this machine.
    Unix(UnixStream),
    /// Over the internet, encrypted.
    Tls(Box<Tls>),
}

impl Stream {
    /// Reads what is there; 0 is the end.
    #[inline]
    pub(crate) fn poll_read(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Tcp(stream) => Pin::new(&mut &*stream).poll_read(cx, buffer),
            Self::Unix(stream) => Pin::new(&mut &*stream).poll_read(cx, buffer),
            Self::Tls(stream) => stream.with(|stream| stream.poll_read(cx, buffer)),
        }
    }

    /// Waits until there may be something to read.
    #[inline]
    pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => stream.poll_readable(cx),
            Self::Unix(stream) => stream.poll_readable(cx),
            // The thread writes the answer, and looks then.
            Self::Tls(_) => Poll::Pending,
        }
    }

    /// Writes what there is room for.
    pub(crate) fn poll_write(
        &self,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Tcp(stream) => Pin::new(&mut &*stream).poll_write_vectored(cx, buffers),
            Self::Unix(stream) => Pin::new(&mut &*stream).poll_write_vectored(cx, buffers),
            Self::Tls(stream) => stream.with(|stream| stream.poll_write_vectored(cx, buffers)),
        }
    }

    /// Sees to it that what was written is on its way.
    pub(crate) fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(_) | Self::Unix(_) => Poll::Ready(Ok(())),
            Self::Tls(stream) => stream.with(|stream| stream.poll_flush(cx)),
        }
    }

    /// Says that nothing more will be written.
    pub(crate) fn poll_finish(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => Pin::new(&mut &*stream).poll_close(cx),
            Self::Unix(stream) => Pin::new(&mut &*stream).poll_close(cx),
            Self::Tls(stream) => stream.with(|stream| stream.poll_close(cx)),
        }
    }

    /// Ends both directions at once: whoever reads or writes is told so.
    pub(crate) fn cut(&self) {
        // It may have ended already.
        let _ = match self {
            Self::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Self::Unix(stream) => stream.shutdown(Shutdown::Both),
            Self::Tls(stream) => stream.cut(),
        };
    }

    /// Writes without waiting, if that can be done anywhere; else only the connection's thread writes.
    #[inline]
    pub(crate) fn try_write(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.try_write_vectored(buffers),
            Self::Unix(stream) => stream.try_write(&buffers[0]),
            Self::Tls(_) => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Sends a piece of a file; by the system, without copying it, where it can.
    pub(crate) async fn send_file(
        &self,
        file: BorrowedFd<'_>,
        offset: u64,
        len: u64,
    ) -> io::Result<()> {
        if let Self::Tcp(stream) = self {
            return stream.send_file(file, offset, len).await;
        }
        let file = tussah::fs::File::from(std::fs::File::from(file.try_clone_to_owned()?));
        let mut buffer = Vec::with_capacity(len.min(COPY_BYTES) as usize);
        let (mut at, end) = (offset, offset + len);
        while at < end {
            let read;
            // As much as there is room for, which is more than is wanted at the end.
            (read, buffer) = file.read_at(buffer, at).await;
            if read? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            buffer.truncate((end - at) as usize);
            let mut rest = &*buffer;
            while !rest.is_empty() {
                let slices = [IoSlice::new(rest)];
                let sent = std::future::poll_fn(|cx| self.poll_write(cx, &slices)).await?;
                rest = &rest[sent..];
            }
            at += buffer.len() as u64;
        }
        Ok(())
    }

    /// The peer's address, if it has one. One of IPv4 is one even if the listener is for both.
    pub(crate) fn peer(&self) -> Option<IpAddr> {
        let peer = match self {
            Self::Tcp(stream) => stream.peer_addr().ok()?.ip(),
            Self::Unix(_) => return None,
            Self::Tls(stream) => stream.peer(),
        };
        Some(peer.to_canonical())
    }

    /// Whether it is on this machine for sure.
    pub(crate) fn is_local(&self) -> bool {
        matches!(self, Self::Unix(_))
    }

    /// Whether it has to be agreed on how it is encrypted.
    pub(crate) fn is_tls(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// Agrees with the peer on how it is encrypted.
    pub(crate) async fn handshake(&self) -> io::Result<()> {
        match self {
            Self::Tcp(_) | Self::Unix(_) => Ok(()),
            Self::Tls(stream) => std::future::poll_fn(|cx| stream.poll_handshake(cx)).await,
        }
    }
}
