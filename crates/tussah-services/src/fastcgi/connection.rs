//! A connection to an application server.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_io::{AsyncRead, AsyncWrite};
use tussah::net::{TcpStream, UnixStream};

use super::address::Address;

/// A connection over TCP or a Unix socket.
pub(super) enum Connection {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Connection {
    pub(super) async fn open(address: &Address) -> io::Result<Self> {
        Ok(match address {
            Address::Tcp(address) => Self::Tcp(TcpStream::connect(*address).await?),
            Address::Unix(path) => Self::Unix(UnixStream::connect(path).await?),
        })
    }

    /// Returns whether a connection that has been idle can be used: the peer has neither closed it
    /// nor sent anything.
    pub(super) fn is_fresh(&self) -> bool {
        let mut byte = [0];
        let read = match self {
            Self::Tcp(stream) => stream.try_read(&mut byte),
            Self::Unix(stream) => stream.try_read(&mut byte),
        };
        matches!(read, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    pub(super) fn poll_read(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Tcp(stream) => Pin::new(&mut &*stream).poll_read(cx, buffer),
            Self::Unix(stream) => Pin::new(&mut &*stream).poll_read(cx, buffer),
        }
    }

    pub(super) fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Self::Tcp(stream) => Pin::new(&mut &*stream).poll_write(cx, bytes),
            Self::Unix(stream) => Pin::new(&mut &*stream).poll_write(cx, bytes),
        }
    }
}
