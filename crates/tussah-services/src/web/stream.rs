//! What a connection's bytes go over.

mod tls;

use std::fs::File;
use std::future::poll_fn;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, Shutdown};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::pin::Pin;
use std::sync::LazyLock;
use std::task::{Context, Poll};
use std::time::Duration;
use std::time::Instant;

use futures_io::{AsyncRead, AsyncWrite};
use rustix::fs::sendfile;
use rustix::io::{Errno, ReadWriteFlags, preadv2, retry_on_intr};
use rustix::net::{RecvFlags, recv};
use tussah::net::{TcpStream, UnixStream};

pub(crate) use tls::Tls;

use super::diagnostics::Seldom;

/// Bound, in bytes: what is read of a file at once where the system can't send it by itself.
const COPY_BYTES: u64 = 64 * 1024;

/// Logs an error for which neither the peer nor the network is to blame, such as a lack of memory: the connection ends by it.
fn noted<T>(result: io::Result<T>) -> io::Result<T> {
    result.inspect_err(|error| {
        use io::ErrorKind as Kind;
        let is_ours = !matches!(
            error.kind(),
            Kind::WouldBlock
                | Kind::ConnectionReset
                | Kind::ConnectionAborted
                | Kind::BrokenPipe
                | Kind::NotConnected
                | Kind::UnexpectedEof
                | Kind::InvalidData
                | Kind::TimedOut
                | Kind::HostUnreachable
                | Kind::NetworkUnreachable
                | Kind::NetworkDown
        );
        if is_ours {
            tell(error);
        }
    })
}

#[cold]
fn tell(error: &io::Error) {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    static SELDOM: Seldom = Seldom::new();
    if let Some(more) = SELDOM.may_say(START.elapsed().as_secs()) {
        tracing::warn!(more, %error, "a connection is closed");
    }
}

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
        let done = match self {
            Self::Tcp(stream) => Pin::new(&mut &*stream).poll_read(cx, buffer),
            Self::Unix(stream) => Pin::new(&mut &*stream).poll_read(cx, buffer),
            Self::Tls(stream) => stream.with(|stream| stream.poll_read(cx, buffer)),
        };
        done.map(noted)
    }

    /// Waits until there may be something to read.
    #[inline]
    pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = match self {
            Self::Tcp(stream) => stream.poll_readable(cx),
            Self::Unix(stream) => stream.poll_readable(cx),
            // The thread writes the answer, and looks then.
            Self::Tls(_) => Poll::Pending,
        };
        done.map(noted)
    }

    /// Whether the system has something to read, reported or not. Something is, unless the stream has come to its end.
    pub(crate) fn has_come(&self) -> bool {
        let look = |socket: BorrowedFd<'_>| {
            let mut byte = [0];
            let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
            retry_on_intr(|| recv(socket, &mut byte, flags)).is_ok_and(|(len, _)| len > 0)
        };
        match self {
            Self::Tcp(stream) => look(stream.as_fd()),
            Self::Unix(stream) => look(stream.as_fd()),
            Self::Tls(stream) => stream.with_tcp(|tcp| look(tcp.as_fd())).unwrap_or(false),
        }
    }

    /// Writes what there is room for.
    pub(crate) fn poll_write(
        &self,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = match self {
            Self::Tcp(stream) => Pin::new(&mut &*stream).poll_write_vectored(cx, buffers),
            Self::Unix(stream) => Pin::new(&mut &*stream).poll_write_vectored(cx, buffers),
            Self::Tls(stream) => stream.with(|stream| stream.poll_write_vectored(cx, buffers)),
        };
        done.map(noted)
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

    /// Has the system forget what it still has to send when the connection is closed, and send a reset instead. Else it would keep
    /// that for minutes, megabytes perhaps, for a client that is gone.
    pub(crate) fn reset_when_closed(&self) {
        // It may have ended already.
        let _ = match self {
            Self::Tcp(stream) => stream.set_linger(Some(Duration::ZERO)),
            Self::Unix(_) => Ok(()),
            Self::Tls(stream) => stream.set_linger(Some(Duration::ZERO)),
        };
    }

    /// Writes without waiting, if that can be done anywhere; else only the connection's thread writes.
    #[inline]
    pub(crate) fn try_write(&self, buffer: &[u8]) -> io::Result<usize> {
        let done = match self {
            Self::Tcp(stream) => stream.try_write(buffer),
            Self::Unix(stream) => stream.try_write(buffer),
            Self::Tls(_) => Err(io::ErrorKind::WouldBlock.into()),
        };
        noted(done)
    }

    /// The same from several buffers.
    pub(crate) fn try_write_vectored(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        let done = match self {
            Self::Tcp(stream) => stream.try_write_vectored(buffers),
            Self::Unix(stream) => stream.try_write_vectored(buffers),
            Self::Tls(_) => Err(io::ErrorKind::WouldBlock.into()),
        };
        noted(done)
    }

    /// Sends what there is room for of a piece of a file, and waits until there is some; by the system, without copying it, where it can and the file is in memory.
    pub(crate) async fn send_file(&self, file: &File, offset: u64, len: u64) -> io::Result<u64> {
        if let Self::Tcp(stream) = self
            && is_in_memory(file, offset, len)
        {
            // The runtime does not count what is sent so; others have their turn.
            tussah::yield_now().await;
            loop {
                match self.try_send_file(file, offset, len) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        stream.writable().await?;
                    }
                    // The system can't send this file, or has no memory for it. What else is wrong, reading and writing say.
                    Err(error) if error.raw_os_error().is_some() => break,
                    sent => return sent,
                }
            }
        }
        let file = tussah::fs::File::from(noted(file.try_clone())?);
        let buffer = Vec::with_capacity(len.min(COPY_BYTES) as usize);
        let (read, mut buffer) = file.read_at(buffer, offset).await;
        if noted(read)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // As much as there is room for was read, which may be more than is wanted.
        buffer.truncate(len as usize);
        let sent = poll_fn(|cx| self.poll_write(cx, &[IoSlice::new(&buffer)])).await?;
        Ok(sent as u64)
    }

    /// The same without waiting, if the system can send it by itself; the disk may still be waited for.
    pub(crate) fn try_send_file(&self, file: &File, offset: u64, len: u64) -> io::Result<u64> {
        let Self::Tcp(stream) = self else {
            return Err(io::ErrorKind::WouldBlock.into());
        };
        let mut from = offset;
        match retry_on_intr(|| sendfile(stream, file, Some(&mut from), len as usize))? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            sent => Ok(sent as u64),
        }
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

    /// Whether the peer has no address because it needs none.
    pub(crate) fn is_unix(&self) -> bool {
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
            Self::Tls(stream) => noted(poll_fn(|cx| stream.poll_handshake(cx)).await),
        }
    }
}

/// Whether the ends of a piece of a file are in memory, and so most likely all of it. A file system that can't tell is taken for a fast one.
fn is_in_memory(file: &File, offset: u64, len: u64) -> bool {
    [offset, offset + len - 1].into_iter().all(|at| {
        let mut byte = [0];
        let into = &mut [IoSliceMut::new(&mut byte)];
        preadv2(file, into, at, ReadWriteFlags::NOWAIT) != Err(Errno::AGAIN)
    })
}
