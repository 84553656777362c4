//! A TCP connection.

use std::fmt;
use std::future::Future;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem;
use std::net::{Shutdown, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::OnceLock;

use super::accept::Freed;
use super::extra::Extra;
use super::transfer::{Transfer, Verb};
use crate::io_error::context;
use crate::net::socket::{Direction, Socket, internet};

/// A TCP connection: bytes in order, both ways.
///
/// Its operations take `&self`, so that threads may share it; each direction can be closed by itself. Bytes of one `write`
/// stay together only if no other thread writes at the same time. Dropping the stream closes the connection; what was written
/// is still delivered, as far as the peer takes it.
///
/// The futures of `read` and `write` have 64 bytes; those of the `poll_` functions of `futures_io` keep nothing.
///
/// # Examples
/// ```
/// use tussah::net::{Shutdown, TcpListener, TcpStream};
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(async {
/// let listener = TcpListener::bind("127.0.0.1:0")?;
/// let client = TcpStream::connect(listener.local_addr()?).await?;
/// let (server, _) = listener.accept().await?;
/// client.write_all(b"hello").await?;
/// client.shutdown(Shutdown::Write)?;
/// let mut buffer = [0; 16];
/// assert_eq!(server.read(&mut buffer).await?, 5);
/// assert_eq!(server.read(&mut buffer).await?, 0); // the end
/// # std::io::Result::Ok(())
/// # })?;
/// # std::io::Result::Ok(())
/// ```
pub struct TcpStream {
    socket: Socket,
    peer: Peer,
    extra: OnceLock<Box<Extra>>,
    /// Dropped after the socket, in the order of the fields.
    _freed: Freed,
}

/// The other end, remembered for errors: the system forgets it when a connection breaks.
#[derive(Clone)]
enum Peer {
    Unknown,
    V4(SocketAddrV4),
    /// Boxed, since most connections need only the other.
    V6(Box<SocketAddrV6>),
}

const _: () = assert!(mem::size_of::<TcpStream>() <= 56);

/// Making and taking apart.
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

    /// The same with something extra, before anybody else has it.
    pub(super) fn with_extra(self, extra: Extra) -> Self {
        let extra = OnceLock::from(Box::new(extra));
        Self { extra, ..self }
    }

    /// Takes a connection of the standard library's, and makes it non-blocking.
    ///
    /// # Errors
    /// What the system says.
    ///
    /// # Panics
    /// Outside of a runtime.
    #[track_caller]
    pub fn from_std(stream: std::net::TcpStream) -> io::Result<Self> {
        let peer = stream.peer_addr().ok();
        Ok(Self::new(Socket::from_fd(stream.into())?, peer))
    }

    /// Gives the connection to the standard library, in non-blocking mode as it is; set that as it is wanted. Time limits,
    /// rate limits and the place among the connections of a listener end here.
    ///
    /// # Examples
    /// ```
    /// # use tussah::net::{TcpListener, TcpStream};
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// # runtime.block_on(async {
    /// # let listener = TcpListener::bind("127.0.0.1:0")?;
    /// let stream = TcpStream::connect(listener.local_addr()?).await?.into_std();
    /// stream.set_nonblocking(false)?;
    /// let stream = TcpStream::from_std(stream)?;
    /// # std::io::Result::Ok(())
    /// # })?;
    /// # std::io::Result::Ok(())
    /// ```
    #[must_use]
    pub fn into_std(self) -> std::net::TcpStream {
        self.socket.into_fd().into()
    }

    /// The address of this end.
    ///
    /// # Errors
    /// What the system says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let address = self.socket.local_address().and_then(internet);
        address.map_err(|error| self.failed(Verb::Ask, error))
    }

    /// The address of the other end: that with which the connection was made, also when it is broken by now.
    ///
    /// # Errors
    /// What the system says, of a stream [from elsewhere](Self::from_std) that was not connected.
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
}

/// Reading.
impl TcpStream {
    /// Reads what is there into `buffer`, once there is anything; 0 is the end, or an empty buffer.
    ///
    /// # Cancellation
    /// Dropping the future reads nothing.
    ///
    /// # Errors
    /// `ConnectionReset` if the peer broke off; `TimedOut` after the [read timeout](Self::set_read_timeout), or when the system
    /// gave the peer up; what else the system says.
    pub fn read<'a>(
        &'a self,
        buffer: &'a mut [u8],
    ) -> impl Future<Output = io::Result<usize>> + Send + Unpin + use<'a> {
        self.transfer(Verb::Read, move || self.receive(buffer).map(Some))
    }

    /// Fills `buffer`.
    ///
    /// # Cancellation
    /// What was read before the future is dropped is in `buffer`, but not how much it is.
    ///
    /// # Errors
    /// `UnexpectedEof` if the end comes first; else as [`read`](Self::read).
    pub fn read_exact<'a>(
        &'a self,
        buffer: &'a mut [u8],
    ) -> impl Future<Output = io::Result<()>> + Send + Unpin + use<'a> {
        let mut rest = buffer;
        self.transfer(Verb::Read, move || {
            let len = self.receive(rest)?;
            if len == 0 && !rest.is_empty() {
                let text = format!("the end came {} bytes too early", rest.len());
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
            }
            rest = &mut mem::take(&mut rest)[len..];
            Ok(rest.is_empty().then_some(()))
        })
    }

    /// Reads into several buffers, one after the other; as [`read`](Self::read) otherwise.
    ///
    /// # Cancellation
    /// Dropping the future reads nothing.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_vectored<'a, 'b: 'a>(
        &'a self,
        buffers: &'a mut [IoSliceMut<'b>],
    ) -> impl Future<Output = io::Result<usize>> + Send + Unpin + use<'a, 'b> {
        self.transfer(Verb::Read, move || self.receive_vectored(buffers).map(Some))
    }

    /// Reads what is there, and leaves it there for the next to read.
    ///
    /// # Cancellation
    /// Dropping the future changes nothing.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn peek<'a>(
        &'a self,
        buffer: &'a mut [u8],
    ) -> impl Future<Output = io::Result<usize>> + Send + Unpin + use<'a> {
        self.transfer(Verb::Peek, move || match buffer.len() {
            0 => Ok(Some(0)),
            _ => self.socket.peek(buffer).map(Some),
        })
    }

    /// Reads what is there, without waiting.
    ///
    /// # Errors
    /// `WouldBlock` if nothing is there, or the rate limit allows nothing yet; else what the system says.
    pub fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.extra() {
            Some(extra) if extra.delay(Direction::Read).is_some() => {
                Err(io::ErrorKind::WouldBlock.into())
            }
            _ => self.receive(buffer),
        }
    }

    /// Waits until there is something to read, or the end, or an error.
    ///
    /// # Cancellation
    /// Dropping the future changes nothing.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    ///
    /// # Examples
    /// ```
    /// # use tussah::net::{TcpListener, TcpStream};
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// # runtime.block_on(async {
    /// # let listener = TcpListener::bind("127.0.0.1:0")?;
    /// # let client = TcpStream::connect(listener.local_addr()?).await?;
    /// # let (server, _) = listener.accept().await?;
    /// client.write_all(b"hello").await?;
    /// server.readable().await?;
    /// let mut buffer = [0; 1024]; // not there while it waits
    /// assert_eq!(server.try_read(&mut buffer)?, 5);
    /// # std::io::Result::Ok(())
    /// # })?;
    /// # std::io::Result::Ok(())
    /// ```
    pub fn readable(&self) -> impl Future<Output = io::Result<()>> + Send + Unpin + use<'_> {
        self.transfer(Verb::Read, || self.socket.ready(Direction::Read).map(Some))
    }
}

/// Writing.
impl TcpStream {
    /// Writes as much of `buffer` as there is room for, once there is any, and says how much.
    ///
    /// # Cancellation
    /// Dropping the future writes nothing.
    ///
    /// # Errors
    /// `BrokenPipe` or `ConnectionReset` if the peer does not listen any more, or this end was shut down; `TimedOut` after the
    /// [write timeout](Self::set_write_timeout), or when the system gave the peer up; what else the system says.
    pub fn write<'a>(
        &'a self,
        buffer: &'a [u8],
    ) -> impl Future<Output = io::Result<usize>> + Send + Unpin + use<'a> {
        self.transfer(Verb::Write, || self.socket.send(buffer).map(Some))
    }

    /// Writes all of `buffer`.
    ///
    /// # Cancellation
    /// Part of it may have been written when the future is dropped.
    ///
    /// # Errors
    /// As [`write`](Self::write); part of it may have been written.
    pub fn write_all<'a>(
        &'a self,
        buffer: &'a [u8],
    ) -> impl Future<Output = io::Result<()>> + Send + Unpin + use<'a> {
        let mut rest = buffer;
        self.transfer(Verb::Write, move || {
            rest = &rest[self.socket.send(rest)?..];
            Ok(rest.is_empty().then_some(()))
        })
    }

    /// Writes from several buffers, one after the other; as [`write`](Self::write) otherwise.
    ///
    /// # Cancellation
    /// Dropping the future writes nothing.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_vectored<'a, 'b: 'a>(
        &'a self,
        buffers: &'a [IoSlice<'b>],
    ) -> impl Future<Output = io::Result<usize>> + Send + Unpin + use<'a, 'b> {
        self.transfer(Verb::Write, || self.socket.send_vectored(buffers).map(Some))
    }

    /// Writes all of several buffers, one after the other. The slices are used up on the way.
    ///
    /// # Cancellation
    /// As [`write_all`](Self::write_all); the slices show what has not been written.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_all_vectored<'a, 'b: 'a>(
        &'a self,
        buffers: &'a mut [IoSlice<'b>],
    ) -> impl Future<Output = io::Result<()>> + Send + Unpin + use<'a, 'b> {
        let mut rest = buffers;
        IoSlice::advance_slices(&mut rest, 0); // drops empty ones in front
        self.transfer(Verb::Write, move || {
            if !rest.is_empty() {
                let len = self.socket.send_vectored(rest)?;
                IoSlice::advance_slices(&mut rest, len);
            }
            Ok(rest.is_empty().then_some(()))
        })
    }

    /// Writes as much as there is room for, without waiting.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room; else what the system says.
    pub fn try_write(&self, buffer: &[u8]) -> io::Result<usize> {
        self.socket.send(buffer)
    }

    /// The same from several buffers.
    ///
    /// # Errors
    /// As [`try_write`](Self::try_write).
    pub fn try_write_vectored(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        self.socket.send_vectored(buffers)
    }

    /// Waits until there is room to write, or an error.
    ///
    /// # Cancellation
    /// Dropping the future changes nothing.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn writable(&self) -> impl Future<Output = io::Result<()>> + Send + Unpin + use<'_> {
        self.transfer(Verb::Write, || {
            self.socket.ready(Direction::Write).map(Some)
        })
    }

    /// Closes one direction or both. What was written before is still delivered, and the peer then reads the end; who reads or
    /// writes here at that moment is woken.
    ///
    /// # Errors
    /// `NotConnected` if the connection is broken already; what else the system says.
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

/// For the other files of this folder.
impl TcpStream {
    pub(super) fn socket(&self) -> &Socket {
        &self.socket
    }

    #[inline]
    pub(super) fn extra(&self) -> Option<&Extra> {
        self.extra.get().map(|extra| &**extra)
    }

    /// The extra part, made if there is none.
    pub(super) fn make_extra(&self) -> &Extra {
        self.extra.get_or_init(Box::default)
    }

    /// An error as it reaches users.
    #[cold]
    pub(super) fn failed(&self, verb: Verb, error: io::Error) -> io::Error {
        match self.peer_addr() {
            Ok(peer) => context(error, verb.text(), peer),
            Err(_) => context(error, verb.text(), "an unknown peer"),
        }
    }

    pub(super) fn transfer<'a, R, F>(
        &'a self,
        verb: Verb,
        attempt: F,
    ) -> Transfer<'a, impl Future<Output = io::Result<Option<R>>> + Unpin + use<'a, R, F>>
    where
        F: FnMut() -> io::Result<Option<R>> + Unpin,
    {
        Transfer::new(self, verb, self.socket.operate(verb.direction(), attempt))
    }

    #[inline]
    pub(super) fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let Some(extra) = self.extra() else {
            return self.socket.receive(buffer);
        };
        let len = extra.allowed(buffer.len());
        let received = self.socket.receive(&mut buffer[..len]);
        extra.count(&received);
        received
    }

    pub(super) fn receive_vectored(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        if buffers.iter().all(|buffer| buffer.is_empty()) {
            return Ok(0);
        }
        let received = self.socket.receive_vectored(buffers);
        if let Some(extra) = self.extra() {
            extra.count(&received);
        }
        received
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
