//! The transport of a connection: TCP, a Unix socket or TLS.

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
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, sendmsg};
use tussah::net::{Hangup, TcpStream, UnixStream};

pub(crate) use tls::Tls;

use crate::web::answer::route::Ends;
use crate::web::diagnostics::Seldom;

/// The maximum length, in bytes, of one read of a file if the system cannot send it directly.
const COPY_BYTES: u64 = 64 * 1024;

/// Logs an error that neither the peer nor the network caused, such as a lack of memory. It ends
/// the connection.
fn noted<T>(result: io::Result<T>) -> io::Result<T> {
    result.inspect_err(|error| match cause(error) {
        Cause::Peer => {}
        cause => tell(error, cause),
    })
}

/// The cause of a connection's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// The cause is the peer or the network.
    Peer,
    /// The cause is the system.
    System,
    /// The cause is TLS on this side.
    Tls,
}

fn cause(error: &io::Error) -> Cause {
    use io::ErrorKind as Kind;
    use rustls::Error::{FailedToGetRandomBytes, General};
    match error.kind() {
        Kind::InvalidData => {
            let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
            match inner {
                // Signatures also need random numbers, and such a failure is reported as a general
                // error.
                Some(FailedToGetRandomBytes | General(_)) => Cause::Tls,
                _ => Cause::Peer,
            }
        }
        Kind::WouldBlock
        | Kind::ConnectionReset
        | Kind::ConnectionAborted
        | Kind::BrokenPipe
        | Kind::NotConnected
        | Kind::UnexpectedEof
        | Kind::TimedOut
        | Kind::HostUnreachable
        | Kind::NetworkUnreachable
        | Kind::NetworkDown => Cause::Peer,
        _ => Cause::System,
    }
}

#[cold]
fn tell(error: &io::Error, cause: Cause) {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    static SELDOM: Seldom = Seldom::new();
    let Some(more) = SELDOM.may_say(START.elapsed().as_secs()) else {
        return;
    };
    if cause == Cause::Tls {
        tracing::error!(
            more,
            %error,
            "cannot encrypt a connection: TLS needs random numbers (let this process call getrandom)"
        );
    } else {
        tracing::warn!(more, %error, "closed a connection after a system error");
    }
}

/// An event from a client while its request is being answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum More {
    /// There may be data to read.
    Bytes,
    /// The client has hung up.
    Gone,
}

/// The two byte streams of a connection.
pub(crate) enum Stream {
    /// A connection over TCP.
    Tcp(TcpStream),
    /// A connection over a Unix socket.
    Unix(UnixStream),
    /// An encrypted connection over TCP.
    Tls(Box<Tls>),
}

impl Stream {
    /// Reads the available data; 0 means the end.
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

    /// Waits until there may be data to read, or the client has hung up at least as far as
    /// `gone_at`, and returns which of the two happened. After [`More::Bytes`], further data wakes
    /// the caller. The function makes no system call, except that TLS reads the available data.
    #[inline]
    pub(crate) fn poll_more(&self, cx: &mut Context<'_>, gone_at: Hangup) -> Poll<More> {
        match self {
            // Without anything to read, the client has not hung up.
            Self::Tcp(stream) if stream.poll_readable(cx).is_pending() => return Poll::Pending,
            Self::Unix(stream) if stream.poll_readable(cx).is_pending() => return Poll::Pending,
            // The thread that writes the response checks at that time.
            Self::Tls(_) | Self::Tcp(_) | Self::Unix(_) => {}
        }
        let hung_up = match self {
            Self::Tcp(stream) => stream.poll_hangup(cx, gone_at),
            Self::Unix(stream) => stream.poll_hangup(cx, gone_at),
            Self::Tls(stream) => return stream.poll_more(cx, gone_at),
        };
        match hung_up {
            Poll::Ready(Ok(())) => Poll::Ready(More::Gone),
            // If waiting fails, the end of the request reveals the error.
            Poll::Pending | Poll::Ready(Err(_)) => Poll::Ready(More::Bytes),
        }
    }

    /// Returns whether the client has hung up at least as far as `hangup`, as the system has
    /// reported.
    #[inline]
    pub(crate) fn has_hung_up(&self, hangup: Hangup) -> bool {
        match self {
            Self::Tcp(stream) => stream.has_hung_up(hangup),
            Self::Unix(stream) => stream.has_hung_up(hangup),
            Self::Tls(stream) => stream.has_hung_up(hangup),
        }
    }

    /// Returns whether the system has data to read, reported or not. At the end of the stream this
    /// is also true.
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

    /// Writes as much as there is room for.
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

    /// Flushes the written data.
    pub(crate) fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(_) | Self::Unix(_) => Poll::Ready(Ok(())),
            Self::Tls(stream) => stream.with(|stream| stream.poll_flush(cx)),
        }
    }

    /// Closes the sending direction.
    pub(crate) fn poll_finish(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => Pin::new(&mut &*stream).poll_close(cx),
            Self::Unix(stream) => Pin::new(&mut &*stream).poll_close(cx),
            Self::Tls(stream) => stream.with(|stream| stream.poll_close(cx)),
        }
    }

    /// Ends both directions immediately, so that pending reads and writes fail.
    pub(crate) fn cut(&self) {
        // The connection may already have ended.
        let _ = match self {
            Self::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Self::Unix(stream) => stream.shutdown(Shutdown::Both),
            Self::Tls(stream) => stream.cut(),
        };
    }

    /// Makes closing discard unsent data and reset the connection. Otherwise the system would keep
    /// the data, perhaps megabytes, for minutes for a client that has disconnected.
    pub(crate) fn reset_when_closed(&self) {
        // The connection may already have ended.
        let _ = match self {
            Self::Tcp(stream) => stream.set_linger(Some(Duration::ZERO)),
            Self::Unix(_) => Ok(()),
            Self::Tls(stream) => stream.set_linger(Some(Duration::ZERO)),
        };
    }

    /// Writes without waiting if any thread may do so; with TLS only the connection's thread
    /// writes.
    #[inline]
    pub(crate) fn try_write(&self, buffer: &[u8]) -> io::Result<usize> {
        let done = match self {
            Self::Tcp(stream) => stream.try_write(buffer),
            Self::Unix(stream) => stream.try_write(buffer),
            Self::Tls(_) => Err(io::ErrorKind::WouldBlock.into()),
        };
        noted(done)
    }

    /// Does the same as [`try_write`](Self::try_write) with several buffers. If `more` follows, TCP
    /// puts the beginning of it into the same packet.
    pub(crate) fn try_write_vectored(
        &self,
        buffers: &[IoSlice<'_>],
        more: bool,
    ) -> io::Result<usize> {
        let done = match self {
            Self::Tcp(stream) if more => {
                let mut control = SendAncillaryBuffer::default();
                let flags = SendFlags::MORE | SendFlags::NOSIGNAL;
                retry_on_intr(|| sendmsg(stream, buffers, &mut control, flags)).map_err(Into::into)
            }
            Self::Tcp(stream) => stream.try_write_vectored(buffers),
            Self::Unix(stream) => stream.try_write_vectored(buffers),
            Self::Tls(_) => Err(io::ErrorKind::WouldBlock.into()),
        };
        noted(done)
    }

    /// Returns whether the system may be able to send the data of a file without a copy.
    pub(crate) fn sends_files(&self) -> bool {
        matches!(self, Self::Tcp(_))
    }

    /// Sends as much of a piece of a file as there is room for, and waits until there is some room.
    pub(crate) async fn send_file(&self, file: &File, offset: u64, len: u64) -> io::Result<u64> {
        loop {
            match (self.try_send_file(file, offset, len), self) {
                (Err(error), Self::Tcp(stream)) if error.kind() == io::ErrorKind::WouldBlock => {
                    stream.writable().await?;
                }
                (sent, _) => return sent,
            }
        }
    }

    /// Does the same without waiting for room. It may wait for a disk.
    pub(crate) fn try_send_file(&self, file: &File, offset: u64, len: u64) -> io::Result<u64> {
        let Self::Tcp(stream) = self else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        let mut from = offset;
        match retry_on_intr(|| sendfile(stream, file, Some(&mut from), len as usize))? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            sent => Ok(sent as u64),
        }
    }

    /// Returns the peer's address, if it has one. An IPv4 address is returned as such even if the
    /// listener serves both families.
    pub(crate) fn peer(&self) -> Option<IpAddr> {
        let peer = match self {
            Self::Tcp(stream) => stream.peer_addr().ok()?.ip(),
            Self::Unix(_) => return None,
            Self::Tls(stream) => stream.peer(),
        };
        Some(peer.to_canonical())
    }

    /// Returns the addresses of both ends, if they have any.
    pub(crate) fn ends(&self) -> Option<Ends> {
        let of = |stream: &TcpStream, is_https| {
            Some(Ends {
                remote: stream.peer_addr().ok()?,
                local: stream.local_addr().ok()?,
                is_https,
            })
        };
        match self {
            Self::Tcp(stream) => of(stream, false),
            Self::Unix(_) => None,
            Self::Tls(stream) => stream.with_tcp(|stream| of(stream, true))?,
        }
    }

    /// Returns whether the peer is on a Unix socket, and so has no address.
    pub(crate) fn is_unix(&self) -> bool {
        matches!(self, Self::Unix(_))
    }

    /// Returns whether the connection needs a TLS handshake.
    pub(crate) fn is_tls(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// Performs the TLS handshake.
    pub(crate) async fn handshake(&self) -> io::Result<()> {
        match self {
            Self::Tcp(_) | Self::Unix(_) => Ok(()),
            Self::Tls(stream) => noted(poll_fn(|cx| stream.poll_handshake(cx)).await),
        }
    }
}

/// Reads the beginning of a piece of a file.
pub(crate) async fn read_file(file: &File, offset: u64, len: u64) -> io::Result<Vec<u8>> {
    let file = tussah::fs::File::from(noted(file.try_clone())?);
    let buffer = Vec::with_capacity(len.min(COPY_BYTES) as usize);
    let (read, mut buffer) = file.read_at(buffer, offset).await;
    if noted(read)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    // The read filled the room, which may be larger than requested.
    buffer.truncate(len as usize);
    Ok(buffer)
}

/// Returns whether both ends of a piece of a file are in memory, and therefore most likely all of
/// it. A file system that cannot tell counts as fast.
pub(crate) fn is_in_memory(file: &File, offset: u64, len: u64) -> bool {
    [offset, offset + len - 1].into_iter().all(|at| {
        let mut byte = [0];
        let into = &mut [IoSliceMut::new(&mut byte)];
        preadv2(file, into, at, ReadWriteFlags::NOWAIT) != Err(Errno::AGAIN)
    })
}

#[cfg(test)]
mod tests;
