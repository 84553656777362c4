//! TCP connections.

use std::fmt;
use std::future::Future;
use std::io;
use std::mem;
use std::net::{Shutdown, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::OnceLock;

use tussah_core::Handle;

use super::accept::Freed;
use super::extra::Extra;
use super::transfer::{Limited, Transfer, Verb, transfer};
use crate::io_error::context;
use crate::net::socket::{Direction, Socket, internet};
use crate::time::sleep;

/// A TCP connection: an ordered byte stream in both directions.
///
/// All operations take `&self`, so several threads can share a stream. Each direction can be shut
/// down separately. The bytes of one `write` stay together only if no other thread writes at the
/// same time. Dropping the stream closes the connection; the system still delivers the bytes that
/// were already written, if the peer accepts them.
///
/// Each future returned by `read` or `write` occupies 64 bytes. The `poll_` functions of
/// `futures_io` keep no state between calls.
///
/// # Examples
/// ```
/// use tussah::net::{Shutdown, TcpListener, TcpStream};
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// let listener = TcpListener::bind("127.0.0.1:0")?;
/// let client = TcpStream::connect(listener.local_addr()?).await?;
/// let (server, _) = listener.accept().await?;
/// client.write_all(b"hello").await?;
/// client.shutdown(Shutdown::Write)?;
/// let mut buffer = [0; 16];
/// assert_eq!(server.read(&mut buffer).await?, 5);
/// assert_eq!(server.read(&mut buffer).await?, 0); // the end
/// # std::io::Result::Ok(())
/// # })).expect("no panic")?;
/// # std::io::Result::Ok(())
/// ```
pub struct TcpStream {
    socket: Socket,
    peer: Peer,
    extra: OnceLock<Box<Extra>>,
    /// Dropped after the socket, in field order.
    _freed: Freed,
}

/// The peer's address, kept for error messages: the system forgets it when the connection breaks.
#[derive(Clone)]
enum Peer {
    Unknown,
    V4(SocketAddrV4),
    /// Boxed, since most connections use IPv4.
    V6(Box<SocketAddrV6>),
}

const _: () = assert!(mem::size_of::<TcpStream>() <= 56);

/// Construction and conversion.
impl TcpStream {
    pub(super) fn new(socket: Socket, peer: Option<SocketAddr>) -> Self {
        let peer = match peer {
            None => Peer::Unknown,
            Some(SocketAddr::V4(address)) => Peer::V4(address),
            Some(SocketAddr::V6(address)) => Peer::V6(Box::new(address)),
        };
        Self {
            socket,
            peer,
            extra: OnceLock::new(),
            _freed: Freed,
        }
    }

    /// Adds an extra part before the stream is shared.
    pub(super) fn with_extra(self, extra: Extra) -> Self {
        let extra = OnceLock::from(Box::new(extra));
        Self { extra, ..self }
    }

    /// Takes ownership of a standard library stream, and makes it non-blocking.
    ///
    /// # Errors
    /// Returns the system's error.
    ///
    /// # Panics
    /// Panics if called outside a runtime.
    #[track_caller]
    pub fn from_std(stream: std::net::TcpStream) -> io::Result<Self> {
        let peer = stream.peer_addr().ok();
        Ok(Self::new(Socket::from_fd(stream.into())?, peer))
    }

    /// Converts the stream to a standard library stream, which remains in non-blocking mode. The
    /// result has none of the stream's timeouts or rate limits, and no longer counts toward a
    /// listener's connection limit.
    ///
    /// # Examples
    /// ```
    /// # use tussah::net::{TcpListener, TcpStream};
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// # runtime.block_on(runtime.spawn(async move {
    /// # let listener = TcpListener::bind("127.0.0.1:0")?;
    /// let stream = TcpStream::connect(listener.local_addr()?).await?.into_std();
    /// stream.set_nonblocking(false)?;
    /// let stream = TcpStream::from_std(stream)?;
    /// # std::io::Result::Ok(())
    /// # })).expect("no panic")?;
    /// # std::io::Result::Ok(())
    /// ```
    #[must_use]
    pub fn into_std(self) -> std::net::TcpStream {
        self.socket.into_fd().into()
    }

    /// Returns the local address.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let address = self.socket.local_address().and_then(internet);
        address.map_err(|error| self.failed(Verb::Ask, error))
    }

    /// Returns the peer's address, even after the connection has broken.
    ///
    /// # Errors
    /// Returns the system's error if the stream was created [from a standard library
    /// stream](Self::from_std) that was not connected.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        match &self.peer {
            Peer::V4(address) => Ok(SocketAddr::V4(*address)),
            Peer::V6(address) => Ok(SocketAddr::V6(**address)),
            Peer::Unknown => {
                let address = self.socket.peer_address()?;
                internet(address.ok_or(io::ErrorKind::NotConnected)?)
            }
        }
    }

    /// Shuts down one direction or both. After the writing direction is shut down, the system still
    /// delivers the bytes written earlier, and the peer then sees end-of-file. Threads that are
    /// reading from the stream or writing to it are woken.
    ///
    /// # Errors
    /// Returns `NotConnected` if the connection is already broken; otherwise, any error from the
    /// operating system.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        let how = match how {
            Shutdown::Read => rustix::net::Shutdown::Read,
            Shutdown::Write => rustix::net::Shutdown::Write,
            Shutdown::Both => rustix::net::Shutdown::Both,
        };
        let done = self.socket.shutdown(how);
        done.map_err(|error| self.failed(Verb::Shutdown, error))
    }
}

/// For callbacks and outgoing queues.
impl TcpStream {
    /// Resets the connection; see [`Socket::reset`].
    pub(crate) fn reset(&self) -> io::Result<()> {
        self.socket.reset()
    }

    pub(crate) fn handle(&self) -> Handle {
        self.socket.handle()
    }

    /// Waits until an attempt would not block and the rate limit allows it. Timeouts do not apply,
    /// since no operation is in progress.
    ///
    /// # Errors
    /// Returns the system's bare error if the descriptor cannot be registered, and `Other` when the
    /// runtime ends.
    pub(crate) async fn wait_ready(&self, direction: Direction) -> io::Result<()> {
        let mut again = false;
        loop {
            self.socket.wait_ready(direction).await?;
            match self.extra().and_then(|extra| extra.delay(direction, again)) {
                // Boxed because it is rare: futures of streams without a limit stay small.
                Some(delay) => Box::pin(sleep(delay)).await,
                None => return Ok(()),
            }
            again = true;
        }
    }
}

/// Helpers for the other files of this directory.
impl TcpStream {
    pub(super) fn transfer<'a, R, F>(
        &'a self,
        verb: Verb,
        attempt: F,
    ) -> Transfer<'a, Self, impl Future<Output = io::Result<Option<R>>> + Unpin + use<'a, R, F>>
    where
        F: FnMut() -> io::Result<Option<R>> + Unpin,
    {
        transfer(self, verb, attempt)
    }
}

impl Limited for TcpStream {
    fn socket(&self) -> &Socket {
        &self.socket
    }

    #[inline]
    fn extra_place(&self) -> &OnceLock<Box<Extra>> {
        &self.extra
    }

    #[cold]
    fn failed(&self, verb: Verb, error: io::Error) -> io::Error {
        match self.peer_addr() {
            Ok(peer) => context(error, verb.text(), peer),
            Err(_) => context(error, verb.text(), "an unknown peer"),
        }
    }
}

impl AsFd for TcpStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for TcpStream {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl fmt::Debug for TcpStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpStream")
            .field("local", &self.local_addr().ok())
            .field("peer", &self.peer_addr().ok())
            .field("fd", &self.as_raw_fd())
            .finish()
    }
}
