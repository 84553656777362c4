//! Streams and listeners of both socket families, for the sockets of stages.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_io::AsyncWrite;

use super::address::Address;
use crate::net::socket::Direction;
use crate::net::{BreakOff, TcpListener, TcpStream, UnixListener, UnixStream};

/// A connected TCP or Unix stream.
#[derive(Debug)]
pub enum Stream {
    /// A TCP connection.
    Tcp(TcpStream),
    /// A connection between Unix sockets.
    Unix(UnixStream),
}

/// A TCP or Unix listener.
#[derive(Debug)]
pub enum Listener {
    /// A listener for TCP connections.
    Tcp(TcpListener),
    /// A listener for connections to a Unix socket.
    Unix(UnixListener),
}

impl From<TcpStream> for Stream {
    fn from(stream: TcpStream) -> Self {
        Self::Tcp(stream)
    }
}

impl From<UnixStream> for Stream {
    fn from(stream: UnixStream) -> Self {
        Self::Unix(stream)
    }
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        Self::Tcp(listener)
    }
}

impl From<UnixListener> for Listener {
    fn from(listener: UnixListener) -> Self {
        Self::Unix(listener)
    }
}

impl Stream {
    pub(super) fn local(&self) -> Address {
        match self {
            Self::Tcp(stream) => stream.local_addr().map(Address::Tcp),
            Self::Unix(stream) => stream.local_addr().map(Address::Unix),
        }
        .unwrap_or(Address::Unknown)
    }

    pub(super) fn peer(&self) -> Address {
        match self {
            Self::Tcp(stream) => stream.peer_addr().map(Address::Tcp),
            Self::Unix(stream) => stream.peer_addr().map(Address::Unix),
        }
        .unwrap_or(Address::Unknown)
    }

    /// Sets `TCP_NODELAY`; a Unix socket has no such delay.
    pub(super) fn set_nodelay(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_nodelay(true),
            Self::Unix(_) => Ok(()),
        }
    }

    /// Waits until there is something to read.
    pub(super) async fn readable(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.wait_ready(Direction::Read).await,
            Self::Unix(stream) => stream.wait_ready(Direction::Read).await,
        }
    }

    /// Reads a packet; an empty packet means the end of the stream. Dropping the future loses no
    /// bytes.
    pub(super) async fn read(&self, len_max: usize) -> io::Result<Vec<u8>> {
        match self {
            Self::Tcp(stream) => stream.read_packet(len_max).await,
            Self::Unix(stream) => stream.read_packet(len_max).await,
        }
    }
}

impl Listener {
    pub(super) fn local(&self) -> Address {
        match self {
            Self::Tcp(listener) => listener.local_addr().map(Address::Tcp),
            Self::Unix(listener) => listener.local_addr().map(Address::Unix),
        }
        .unwrap_or(Address::Unknown)
    }

    /// Waits until a connection may be pending. If the system had no room for the last connection,
    /// this pauses first.
    pub(super) async fn ready(&self) -> io::Result<()> {
        match self {
            Self::Tcp(listener) => listener.wait_ready(Direction::Read).await,
            Self::Unix(listener) => listener.wait_ready(Direction::Read).await,
        }
    }

    /// Accepts a connection that is waiting.
    pub(super) fn try_accept(&self) -> io::Result<Stream> {
        match self {
            Self::Tcp(listener) => listener.try_accept().map(|(stream, _)| stream.into()),
            Self::Unix(listener) => listener.try_accept().map(|(stream, _)| stream.into()),
        }
    }
}

/// The writing half, which is used at the same time as the reading half.
pub(super) struct Writer(pub(super) Arc<Stream>);

impl BreakOff for Writer {
    fn break_off(&self) {
        match &*self.0 {
            Stream::Tcp(stream) => stream.break_off(),
            Stream::Unix(stream) => stream.break_off(),
        }
    }
}

macro_rules! forward {
    ($self:ident, $stream:ident => $call:expr) => {
        match &*$self.0 {
            Stream::Tcp(stream) => {
                let mut $stream = stream;
                $call
            }
            Stream::Unix(stream) => {
                let mut $stream = stream;
                $call
            }
        }
    };
}

impl AsyncWrite for Writer {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        forward!(self, stream => Pin::new(&mut stream).poll_write(context, buffer))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        forward!(self, stream => Pin::new(&mut stream).poll_write_vectored(context, buffers))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        forward!(self, stream => Pin::new(&mut stream).poll_flush(context))
    }

    fn poll_close(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        forward!(self, stream => Pin::new(&mut stream).poll_close(context))
    }
}
