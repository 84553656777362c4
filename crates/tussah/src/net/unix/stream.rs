//! A connection between Unix sockets.

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
use crate::net::socket::{Direction, Socket};
use crate::net::tcp::{Extra, Freed, Limited, Pauses, Verb, time_limits, transfer};

/// A connection between Unix sockets: bytes in order, both ways, and descriptors with them.
///
/// As with a [`TcpStream`](crate::net::TcpStream), its operations take `&self`. It also implements [`AsyncRead`](futures_io::AsyncRead)
/// and [`AsyncWrite`](futures_io::AsyncWrite), as does a reference to it, for one thread a direction.
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
    /// Dropped after the socket, in the order of the fields.
    _freed: Freed,
}

/// Who is at the other end, as it was when the two were connected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Credentials {
    /// The number of the process; `None` if it has none here, as one outside of this container.
    pub pid: Option<u32>,
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
}

impl UnixStream {
    /// For callbacks.
    pub(crate) fn handle(&self) -> Handle {
        self.socket.handle()
    }

    /// Waits until an attempt would not block. There is no time limit: nothing is under way.
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

    /// Connects with whoever listens at a path.
    ///
    /// A listener whose queue is full is tried again, after 1 ms at first and up to a second later, since the system reports
    /// nothing of it.
    ///
    /// # Cancellation
    /// Dropping the future connects nothing.
    ///
    /// # Errors
    /// `NotFound` if there is no such file; `ConnectionRefused` if nobody listens there (any more); what else the system says.
    ///
    /// # Panics
    /// The first poll panics outside of a runtime.
    ///
    /// # Examples
    /// See [`UnixListener`](super::UnixListener).
    pub async fn connect(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        let address = of_path(path);
        let address = address.map_err(|error| context(error, "connect to", path.display()))?;
        Self::connect_addr(&address).await
    }

    /// Connects with whoever listens at an address, such as an abstract one; as [`connect`](Self::connect) otherwise.
    ///
    /// # Cancellation
    /// Dropping the future connects nothing.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    ///
    /// # Panics
    /// The first poll panics outside of a runtime.
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

    /// Two streams that are connected with each other.
    ///
    /// # Errors
    /// What the system says.
    ///
    /// # Panics
    /// Outside of a runtime.
    #[track_caller]
    pub fn pair() -> io::Result<(Self, Self)> {
        let (a, b) = std::os::unix::net::UnixStream::pair()
            .map_err(|error| context(error, "make", "a pair of sockets"))?;
        Ok((Self::from_std(a)?, Self::from_std(b)?))
    }

    /// Takes a connection of the standard library's, and makes it non-blocking.
    ///
    /// # Errors
    /// What the system says.
    ///
    /// # Panics
    /// Outside of a runtime.
    #[track_caller]
    pub fn from_std(stream: std::os::unix::net::UnixStream) -> io::Result<Self> {
        Ok(Self::new(Socket::from_fd(stream.into())?))
    }

    /// Gives the connection to the standard library, in non-blocking mode as it is.
    #[must_use]
    pub fn into_std(self) -> std::os::unix::net::UnixStream {
        self.socket.into_fd().into()
    }

    /// The address of this end.
    ///
    /// # Errors
    /// What the system says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        from_any(Some(self.socket.local_address()?))
    }

    /// The address of the other end.
    ///
    /// # Errors
    /// What the system says.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        from_any(self.socket.peer_address()?)
    }

    /// Who is at the other end.
    ///
    /// # Errors
    /// What the system says.
    pub fn peer_credentials(&self) -> io::Result<Credentials> {
        let credentials = self.socket.peer_credentials();
        let (pid, uid, gid) = credentials.map_err(|error| self.failed(Verb::Ask, error))?;
        let pid = u32::try_from(pid).ok().filter(|&pid| pid != 0);
        Ok(Credentials { pid, uid, gid })
    }

    /// Closes one direction or both; as [`TcpStream::shutdown`](crate::net::TcpStream::shutdown).
    ///
    /// # Errors
    /// What the system says.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        let how = match how {
            Shutdown::Read => rustix::net::Shutdown::Read,
            Shutdown::Write => rustix::net::Shutdown::Write,
            Shutdown::Both => rustix::net::Shutdown::Both,
        };
        let done = self.socket.shutdown(how);
        done.map_err(|error| self.failed(Verb::Shutdown, error))
    }

    /// Reads what is there into `buffer`, once there is anything; 0 is the end, or an empty buffer. Descriptors that come
    /// with it are closed.
    ///
    /// # Cancellation
    /// Dropping the future reads nothing.
    ///
    /// # Errors
    /// `ConnectionReset` if the peer closed with bytes unread; `TimedOut` after the [read timeout](Self::set_read_timeout); what
    /// else the system says.
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
    /// What was read before the future is dropped is in `buffer`, but not how much it is.
    ///
    /// # Errors
    /// `UnexpectedEof` if the end comes first; else as [`read`](Self::read).
    pub async fn read_exact(&self, mut buffer: &mut [u8]) -> io::Result<()> {
        while !buffer.is_empty() {
            let len = self.read(buffer).await?;
            if len == 0 {
                let text = format!("the end came {} bytes too early", buffer.len());
                let error = io::Error::new(io::ErrorKind::UnexpectedEof, text);
                return Err(self.failed(Verb::Read, error));
            }
            buffer = &mut buffer[len..];
        }
        Ok(())
    }

    /// Writes as much of `data` as there is room for, once there is any, and says how much.
    ///
    /// # Cancellation
    /// Dropping the future writes nothing.
    ///
    /// # Errors
    /// `BrokenPipe` or `ConnectionReset` if the peer is gone, or this end was shut down; `TimedOut` after the
    /// [write timeout](Self::set_write_timeout); what else the system says.
    pub async fn write(&self, data: &[u8]) -> io::Result<usize> {
        let write = || self.socket.send(data).map(Some);
        transfer(self, Verb::Write, write).await
    }

    /// Writes all of `data`.
    ///
    /// # Cancellation
    /// Part of it may have been written when the future is dropped.
    ///
    /// # Errors
    /// As [`write`](Self::write); part of it may have been written.
    pub async fn write_all(&self, mut data: &[u8]) -> io::Result<()> {
        while !data.is_empty() {
            let len = self.write(data).await?;
            data = &data[len..];
        }
        Ok(())
    }

    /// Reads without waiting.
    ///
    /// # Errors
    /// `WouldBlock` if nothing is there; else what the system says.
    pub fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.socket
            .attempt(Direction::Read, || self.socket.receive_some(buffer))
    }

    /// Waits until a read may find something; as [`TcpStream::poll_readable`](crate::net::TcpStream::poll_readable).
    ///
    /// # Errors
    /// As there.
    pub fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = self.socket.poll_hint(context, Direction::Read);
        done.map_err(|error| self.failed(Verb::Read, error))
    }

    /// Writes without waiting.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room; else what the system says.
    pub fn try_write(&self, data: &[u8]) -> io::Result<usize> {
        self.socket.send(data)
    }

    /// The same from several buffers.
    ///
    /// # Errors
    /// As [`try_write`](Self::try_write).
    pub fn try_write_vectored(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        self.socket.send_vectored(buffers)
    }

    time_limits!();

    /// Two halves for two futures of one thread.
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
