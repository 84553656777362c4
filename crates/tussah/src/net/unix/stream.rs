//! Unix stream sockets.

use std::fmt;
use std::io::{self, IoSlice};
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::net::SocketAddr;
use std::path::Path;
use std::sync::OnceLock;
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketType};
use tussah_core::Handle;

use super::address::{Shown, from_any, of_path, to_any};
use crate::io_error::context;
use crate::net::Hangup;
use crate::net::socket::{Direction, Socket};
use crate::net::tcp::{Extra, Freed, Limited, Pauses, Verb, time_limits, transfer};

/// A connection between Unix sockets: an ordered byte stream in both directions, which can also
/// carry descriptors.
///
/// The operations of a stream take `&self`, as in [`TcpStream`](crate::net::TcpStream). The stream
/// and references to it implement [`AsyncRead`](futures_io::AsyncRead) and
/// [`AsyncWrite`](futures_io::AsyncWrite), for use by one thread per direction.
///
/// # Examples
/// ```
/// use tussah::net::UnixStream;
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// let (a, b) = UnixStream::pair()?;
/// a.write_all(b"hello").await?;
/// let mut buffer = [0; 16];
/// assert_eq!(b.read(&mut buffer).await?, 5);
/// drop(a);
/// assert_eq!(b.read(&mut buffer).await?, 0); // the end
/// # std::io::Result::Ok(())
/// # })).expect("no panic")?;
/// # std::io::Result::Ok(())
/// ```
pub struct UnixStream {
    pub(super) socket: Socket,
    extra: OnceLock<Box<Extra>>,
    /// Dropped after the socket, in field order.
    _freed: Freed,
}

/// The credentials that the peer had when it called connect(2), listen(2) or socketpair(2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Credentials {
    /// The PID, or `None` if this process cannot see the PID, for example because the peer runs
    /// outside this process's container.
    pub pid: Option<u32>,
    /// The user ID.
    pub uid: u32,
    /// The group ID.
    pub gid: u32,
}

impl UnixStream {
    /// Used by callbacks.
    pub(crate) fn handle(&self) -> Handle {
        self.socket.handle()
    }

    /// Waits until an attempt would not block. Timeouts do not apply, since no operation is in
    /// progress.
    pub(crate) async fn wait_ready(&self, direction: Direction) -> io::Result<()> {
        self.socket.wait_ready(direction).await
    }

    pub(super) fn new(socket: Socket) -> Self {
        Self {
            socket,
            extra: OnceLock::new(),
            _freed: Freed,
        }
    }

    /// Connects to the listener at a path.
    ///
    /// The system does not report when a full listener queue has free space again. If the queue is
    /// full, `connect` therefore retries, first after 1 ms, then at intervals of up to one second.
    ///
    /// # Cancellation
    /// Dropping the future abandons the attempt.
    ///
    /// # Errors
    /// Returns `NotFound` if the file does not exist, and `ConnectionRefused` if no process is
    /// listening there. Otherwise, returns any error from the operating system.
    ///
    /// # Panics
    /// The first poll panics outside a runtime.
    ///
    /// # Examples
    /// See [`UnixListener`](super::UnixListener).
    pub async fn connect(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        let address = of_path(path);
        let address = address.map_err(|error| context(error, "connect to", path.display()))?;
        Self::connect_addr(&address).await
    }

    /// Connects to the listener at an address, which may be abstract. Otherwise works like
    /// [`connect`](Self::connect).
    ///
    /// # Cancellation
    /// Dropping the future abandons the attempt.
    ///
    /// # Errors
    /// Same as [`connect`](Self::connect).
    ///
    /// # Panics
    /// The first poll panics outside a runtime.
    ///
    /// # Examples
    /// ```
    /// use std::os::linux::net::SocketAddrExt;
    /// use tussah::net::{UnixListener, UnixStream, unix::SocketAddr};
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// # runtime.block_on(runtime.spawn(async move {
    /// let address = SocketAddr::from_abstract_name(format!("tussah-{}", std::process::id()))?;
    /// let listener = UnixListener::bind_addr(&address)?;
    /// let client = UnixStream::connect_addr(&address).await?;
    /// assert_eq!(client.peer_addr()?.as_abstract_name(), address.as_abstract_name());
    /// # std::io::Result::Ok(())
    /// # })).expect("no panic")?;
    /// # std::io::Result::Ok(())
    /// ```
    pub async fn connect_addr(address: &SocketAddr) -> io::Result<Self> {
        let connected = Self::connect_with(address).await;
        connected.map_err(|error| context(error, "connect to", Shown(address)))
    }

    async fn connect_with(address: &SocketAddr) -> io::Result<Self> {
        let socket = Socket::make(AddressFamily::UNIX, SocketType::STREAM, None)?;
        let any = to_any(address)?;
        let mut pauses = Pauses::new();
        loop {
            match socket.connect(&any) {
                Ok(true) => return Ok(Self::new(socket)),
                Ok(false) => {
                    let done = socket.operate(Direction::Write, || socket.connected());
                    done.await?;
                    return Ok(Self::new(socket));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => pauses.wait().await,
                Err(error) => return Err(error),
            }
        }
    }

    /// Creates two streams connected to each other.
    ///
    /// # Errors
    /// Returns the system's error.
    ///
    /// # Panics
    /// Panics if called outside a runtime.
    #[track_caller]
    pub fn pair() -> io::Result<(Self, Self)> {
        let (a, b) = std::os::unix::net::UnixStream::pair()
            .map_err(|error| context(error, "make", "a pair of sockets"))?;
        Ok((Self::from_std(a)?, Self::from_std(b)?))
    }

    /// Takes ownership of a standard library stream, and makes it non-blocking.
    ///
    /// # Errors
    /// Returns the system's error.
    ///
    /// # Panics
    /// Panics if called outside a runtime.
    #[track_caller]
    pub fn from_std(stream: std::os::unix::net::UnixStream) -> io::Result<Self> {
        Ok(Self::new(Socket::from_fd(stream.into())?))
    }

    /// Converts the stream to a standard library stream, which remains in non-blocking mode.
    #[must_use]
    pub fn into_std(self) -> std::os::unix::net::UnixStream {
        self.socket.into_fd().into()
    }

    /// Returns the local address.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        from_any(Some(self.socket.local_address()?))
    }

    /// Returns the peer's address.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        from_any(self.socket.peer_address()?)
    }

    /// Returns the credentials of the peer.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn peer_credentials(&self) -> io::Result<Credentials> {
        let credentials = self.socket.peer_credentials();
        let (pid, uid, gid) = credentials.map_err(|error| self.failed(Verb::Ask, error))?;
        let pid = u32::try_from(pid).ok().filter(|&pid| pid != 0);
        Ok(Credentials { pid, uid, gid })
    }

    /// Shuts down one direction or both, like
    /// [`TcpStream::shutdown`](crate::net::TcpStream::shutdown).
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        let how = match how {
            Shutdown::Read => rustix::net::Shutdown::Read,
            Shutdown::Write => rustix::net::Shutdown::Write,
            Shutdown::Both => rustix::net::Shutdown::Both,
        };
        let done = self.socket.shutdown(how);
        done.map_err(|error| self.failed(Verb::Shutdown, error))
    }

    /// Waits for data and reads it into `buffer`. Returns 0 at the end of the stream, or if
    /// `buffer` is empty. Descriptors that arrive with the data are closed.
    ///
    /// # Cancellation
    /// If the future is dropped before it completes, nothing has been read.
    ///
    /// # Errors
    /// Returns `ConnectionReset` if the peer closed the connection without reading everything, and
    /// `TimedOut` after the [read timeout](Self::set_read_timeout). Otherwise, returns any error
    /// from the operating system.
    pub async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let read = || self.socket.receive_some(buffer).map(Some);
        transfer(self, Verb::Read, read).await
    }

    /// Fills `buffer`.
    ///
    /// # Cancellation
    /// If the future is dropped, the bytes read so far are in `buffer`, but their number is lost.
    ///
    /// # Errors
    /// Returns `UnexpectedEof` if the stream ends before `buffer` is full, or any error from
    /// [`read`](Self::read).
    pub async fn read_exact(&self, mut buffer: &mut [u8]) -> io::Result<()> {
        while !buffer.is_empty() {
            let len = self.read(buffer).await?;
            if len == 0 {
                let text = format!("the stream ended {} bytes early", buffer.len());
                let error = io::Error::new(io::ErrorKind::UnexpectedEof, text);
                return Err(self.failed(Verb::Read, error));
            }
            buffer = &mut buffer[len..];
        }
        Ok(())
    }

    /// Waits for free space in the send buffer, and writes as much of `data` as fits. Returns the
    /// number of bytes written.
    ///
    /// # Cancellation
    /// If the future is dropped before it completes, nothing has been written.
    ///
    /// # Errors
    /// Returns `BrokenPipe` or `ConnectionReset` if the peer has closed the connection, or if this
    /// end was shut down. Returns `TimedOut` after the [write timeout](Self::set_write_timeout).
    /// Otherwise, returns any error from the operating system.
    pub async fn write(&self, data: &[u8]) -> io::Result<usize> {
        let write = || self.socket.send(data).map(Some);
        transfer(self, Verb::Write, write).await
    }

    /// Writes all of `data`.
    ///
    /// # Cancellation
    /// If the future is dropped, part of `data` may have been written.
    ///
    /// # Errors
    /// Same as [`write`](Self::write). After an error, part of `data` may have been written.
    pub async fn write_all(&self, mut data: &[u8]) -> io::Result<()> {
        while !data.is_empty() {
            let len = self.write(data).await?;
            data = &data[len..];
        }
        Ok(())
    }

    /// Reads the available data into `buffer` without waiting.
    ///
    /// # Errors
    /// Returns `WouldBlock` if no data is available; otherwise, any error from the operating
    /// system.
    pub fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.socket
            .attempt(Direction::Read, || self.socket.receive_some(buffer))
    }

    /// Waits until the stream is readable, like
    /// [`TcpStream::poll_readable`](crate::net::TcpStream::poll_readable).
    ///
    /// # Errors
    /// Same as [`TcpStream::poll_readable`](crate::net::TcpStream::poll_readable).
    pub fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = self.socket.poll_hint(context, Direction::Read);
        done.map_err(|error| self.failed(Verb::Read, error))
    }

    /// Waits until the peer has hung up, like
    /// [`TcpStream::poll_hangup`](crate::net::TcpStream::poll_hangup).
    ///
    /// # Errors
    /// Same as [`TcpStream::poll_hangup`](crate::net::TcpStream::poll_hangup).
    pub fn poll_hangup(&self, context: &mut Context<'_>, hangup: Hangup) -> Poll<io::Result<()>> {
        let done = self.socket.poll_hangup(context, hangup);
        done.map_err(|error| self.failed(Verb::Read, error))
    }

    /// Returns whether the peer has hung up, like
    /// [`TcpStream::has_hung_up`](crate::net::TcpStream::has_hung_up).
    #[must_use]
    #[inline]
    pub fn has_hung_up(&self, hangup: Hangup) -> bool {
        self.socket.has_hung_up(hangup)
    }

    /// Writes as much of `data` as fits, without waiting.
    ///
    /// # Errors
    /// Returns `WouldBlock` if writing would block; otherwise, any error from the operating system.
    pub fn try_write(&self, data: &[u8]) -> io::Result<usize> {
        self.socket.send(data)
    }

    /// Writes as much of the contents of several buffers as fits, without waiting.
    ///
    /// # Errors
    /// Same as [`try_write`](Self::try_write).
    pub fn try_write_vectored(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        self.socket.send_vectored(buffers)
    }

    time_limits!();

    /// Returns two references to the stream, which two futures of one thread can use.
    pub fn split(&mut self) -> (&Self, &Self) {
        (self, self)
    }
}

impl Limited for UnixStream {
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
            Ok(peer) => context(error, verb.text(), Shown(&peer)),
            Err(_) => context(error, verb.text(), "a Unix socket"),
        }
    }
}

impl AsFd for UnixStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for UnixStream {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl fmt::Debug for UnixStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnixStream")
            .field("local", &self.local_addr().ok())
            .field("peer", &self.peer_addr().ok())
            .field("fd", &self.as_raw_fd())
            .finish()
    }
}
