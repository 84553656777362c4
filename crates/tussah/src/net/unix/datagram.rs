//! Unix datagram sockets.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::net::SocketAddr;
use std::path::Path;

use rustix::net::{AddressFamily, RecvFlags, SocketAddrAny, SocketType};
use tussah_core::consume_budget;

use super::address::{Shown, from_any, in_use, of_path, to_any};
use super::descriptors::{self, ReceivedFds};
use crate::io_error::context;
use crate::net::socket::{Direction, Socket};
use crate::net::tcp::Pauses;

/// A Unix datagram socket. Unlike UDP datagrams, Unix datagrams arrive in order, and none is lost,
/// because the sender waits if the queue is full.
///
/// If a datagram is longer than the buffer, it is truncated, and the rest is lost;
/// [`recv_fds`](Self::recv_fds) reports the truncation.
///
/// # Examples
/// ```
/// use tussah::net::UnixDatagram;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("socket");
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// let server = UnixDatagram::bind(&path)?;
/// let client = UnixDatagram::unbound()?;
/// client.send_to(b"hello", &path).await?;
/// let mut buffer = [0; 16];
/// let (len, from) = server.recv_from(&mut buffer).await?;
/// assert_eq!((len, from.is_unnamed()), (5, true));
/// # std::io::Result::Ok(())
/// # })).expect("no panic")?;
/// # std::io::Result::Ok(())
/// ```
pub struct UnixDatagram {
    socket: Socket,
}

impl UnixDatagram {
    /// Used by callbacks.
    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Binds a socket to a path, and creates a file there.
    ///
    /// # Errors
    /// Returns `AddrInUse` if the file already exists, even if the process that created it has
    /// ended. Returns `InvalidInput` if the path is too long; otherwise, the system's error.
    ///
    /// # Panics
    /// Panics if called outside a runtime.
    #[track_caller]
    pub fn bind(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        let address = of_path(path);
        Self::bind_addr(&address.map_err(|error| context(error, "bind to", path.display()))?)
    }

    /// Binds a socket to an address, which may be abstract.
    ///
    /// # Errors
    /// Same as [`bind`](Self::bind).
    ///
    /// # Panics
    /// Panics if called outside a runtime.
    #[track_caller]
    pub fn bind_addr(address: &SocketAddr) -> io::Result<Self> {
        let this = Self::unbound()?;
        let bound = to_any(address).and_then(|any| this.socket.bind(&any));
        match bound {
            Ok(()) => Ok(this),
            Err(error) => Err(context(in_use(error, address), "bind to", Shown(address))),
        }
    }

    /// Creates an unnamed socket, which can send but not receive: no other socket can address it.
    ///
    /// # Errors
    /// Returns the system's error.
    ///
    /// # Panics
    /// Panics if called outside a runtime.
    #[track_caller]
    pub fn unbound() -> io::Result<Self> {
        let socket = Socket::make(AddressFamily::UNIX, SocketType::DGRAM, None);
        let socket = socket.map_err(|error| context(error, "make", "a Unix socket"))?;
        Ok(Self { socket })
    }

    /// Creates two sockets connected to each other.
    ///
    /// # Errors
    /// Returns the system's error.
    ///
    /// # Panics
    /// Panics if called outside a runtime.
    #[track_caller]
    pub fn pair() -> io::Result<(Self, Self)> {
        let (a, b) = std::os::unix::net::UnixDatagram::pair()
            .map_err(|error| context(error, "make", "a pair of sockets"))?;
        Ok((Self::from_std(a)?, Self::from_std(b)?))
    }

    /// Takes ownership of a standard library socket, and makes it non-blocking.
    ///
    /// # Errors
    /// Returns the system's error.
    ///
    /// # Panics
    /// Panics if called outside a runtime.
    #[track_caller]
    pub fn from_std(socket: std::os::unix::net::UnixDatagram) -> io::Result<Self> {
        let socket = Socket::from_fd(socket.into())?;
        Ok(Self { socket })
    }

    /// Converts the socket to a standard library socket, which remains in non-blocking mode.
    #[must_use]
    pub fn into_std(self) -> std::os::unix::net::UnixDatagram {
        self.socket.into_fd().into()
    }

    /// Sets the peer. Once a peer is set, [`send`](Self::send) sends to this peer, and the socket
    /// receives only datagrams from it.
    ///
    /// # Errors
    /// Returns `NotFound` if the file does not exist, and `ConnectionRefused` if no socket is bound
    /// to the file any longer. Otherwise, returns any error from the operating system.
    pub fn connect(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        let address = of_path(path);
        self.connect_addr(&address.map_err(|error| context(error, "connect to", path.display()))?)
    }

    /// Makes the socket with this address the peer. The address may be abstract. Otherwise works
    /// like [`connect`](Self::connect).
    ///
    /// # Errors
    /// Same as [`connect`](Self::connect).
    pub fn connect_addr(&self, address: &SocketAddr) -> io::Result<()> {
        let connected = to_any(address).and_then(|any| self.socket.connect(&any));
        match connected {
            Ok(_) => Ok(()),
            Err(error) => Err(context(error, "connect to", Shown(address))),
        }
    }

    /// Waits while the peer's queue is full, then sends a datagram to the peer.
    ///
    /// # Cancellation
    /// If the future is dropped before it completes, nothing has been sent.
    ///
    /// # Errors
    /// Returns `NotConnected` if no peer is set, and `ConnectionRefused` if the peer no longer
    /// exists. Otherwise, returns any error from the operating system.
    pub async fn send(&self, data: &[u8]) -> io::Result<usize> {
        let send = self
            .socket
            .operate(Direction::Write, || self.socket.send_to(data, None));
        send.await.map_err(|error| self.failed("send from", error))
    }

    /// Waits while the receiver's queue is full, then sends a datagram to the socket at a path.
    ///
    /// The system does not report when the queue of a socket other than the peer has free space
    /// again. `send_to` therefore retries, first after 1 ms, then at intervals of up to one second.
    /// If the retries are too slow, use a [connected](Self::connect) socket.
    ///
    /// # Cancellation
    /// If the future is dropped before it completes, nothing has been sent.
    ///
    /// # Errors
    /// Returns `NotFound` if the file does not exist, or any error from [`send`](Self::send).
    ///
    /// # Panics
    /// Panics if polled outside a runtime while the receiver's queue is full: retries need a timer.
    pub async fn send_to(&self, data: &[u8], path: impl AsRef<Path>) -> io::Result<usize> {
        let path = path.as_ref();
        let address = of_path(path);
        let address = address.map_err(|error| context(error, "send to", path.display()))?;
        self.send_to_addr(data, &address).await
    }

    /// Sends a datagram to an address, which may be abstract. Otherwise works like
    /// [`send_to`](Self::send_to).
    ///
    /// # Cancellation
    /// If the future is dropped before it completes, nothing has been sent.
    ///
    /// # Errors
    /// Same as [`send_to`](Self::send_to).
    ///
    /// # Panics
    /// Panics if polled outside a runtime while the receiver's queue is full: retries need a timer.
    pub async fn send_to_addr(&self, data: &[u8], address: &SocketAddr) -> io::Result<usize> {
        let sent = match to_any(address) {
            Ok(any) => self.send_any(data, &any).await,
            Err(error) => Err(error),
        };
        sent.map_err(|error| context(error, "send to", Shown(address)))
    }

    async fn send_any(&self, data: &[u8], address: &SocketAddrAny) -> io::Result<usize> {
        let mut pauses = Pauses::new();
        loop {
            let attempt = || self.socket.send_to(data, Some(address));
            // For a socket with another peer, the system reports that peer's room and not the
            // destination's.
            let peer = self.socket.peer_address();
            if peer.is_ok_and(|peer| peer.as_ref() != Some(address)) {
                consume_budget().await;
                match attempt() {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => pauses.wait().await,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    sent => return sent,
                }
                continue;
            }
            // Either the local socket is full, which the system reports, or the destination, which
            // it does not. In the second case the local socket is reported as ready after each
            // attempt, and waiting for it would spin.
            let mut full_there = false;
            let send = || match attempt() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    full_there = self.socket.ready(Direction::Write).is_ok();
                    if full_there { Ok(0) } else { Err(error) }
                }
                other => other,
            };
            let sent = self.socket.operate(Direction::Write, send).await?;
            if !full_there {
                return Ok(sent);
            }
            pauses.wait().await;
        }
    }

    /// Receives a datagram and returns its length. Bytes that do not fit into the buffer are lost,
    /// and so are any descriptors in the datagram. To find out whether a datagram was truncated,
    /// use [`recv_fds`](Self::recv_fds) with `fds_max` 0.
    ///
    /// # Cancellation
    /// If the future is dropped before it completes, nothing has been received.
    ///
    /// # Errors
    /// Returns the system's error.
    pub async fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let received = self.receive(buffer, RecvFlags::empty()).await;
        received.map(|(len, _)| len)
    }

    /// Receives a datagram and also returns its sender. Otherwise works like [`recv`](Self::recv).
    ///
    /// # Cancellation
    /// If the future is dropped before it completes, nothing has been received.
    ///
    /// # Errors
    /// Same as [`recv`](Self::recv).
    pub async fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let (len, peer) = self.receive(buffer, RecvFlags::empty()).await?;
        Ok((len, from_any(peer)?))
    }

    /// Receives a datagram without removing it from the queue.
    ///
    /// # Cancellation
    /// Dropping the future has no effect on the socket.
    ///
    /// # Errors
    /// Same as [`recv`](Self::recv).
    pub async fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let received = self.receive(buffer, RecvFlags::PEEK).await;
        received.map(|(len, _)| len)
    }

    /// Sends a datagram to the peer, or to an address, without waiting.
    ///
    /// # Errors
    /// Returns `WouldBlock` if sending would block; otherwise, any error from the operating system.
    pub fn try_send(&self, data: &[u8], address: Option<&SocketAddr>) -> io::Result<usize> {
        let address = address.map(to_any).transpose()?;
        self.socket.send_to(data, address.as_ref())
    }

    /// Receives a datagram without waiting. Otherwise works like [`recv_from`](Self::recv_from).
    ///
    /// # Errors
    /// Returns `WouldBlock` if the queue is empty; otherwise, any error from the operating system.
    pub fn try_recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let (len, peer) = self.socket.receive_from(buffer, RecvFlags::empty())?;
        Ok((len, from_any(peer)?))
    }

    async fn receive(
        &self,
        buffer: &mut [u8],
        flags: RecvFlags,
    ) -> io::Result<(usize, Option<SocketAddrAny>)> {
        let received = self
            .socket
            .operate(Direction::Read, || self.socket.receive_from(buffer, flags));
        received
            .await
            .map_err(|error| self.failed("receive at", error))
    }

    /// Sends a datagram with descriptors to the peer. The descriptors stay open in this process.
    ///
    /// # Cancellation
    /// If the future is dropped before it completes, nothing has been sent.
    ///
    /// # Errors
    /// Returns `InvalidInput` if there are more than 253 descriptors, or any error from
    /// [`send`](Self::send).
    pub async fn send_fds(&self, data: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<usize> {
        let sent = descriptors::send(&self.socket, data, fds).await;
        sent.map_err(|error| self.failed("send descriptors from", error))
    }

    /// Receives a datagram and up to `fds_max` descriptors. The system closes any additional
    /// descriptors, and [`ReceivedFds::fds_lost`] is then true.
    ///
    /// # Cancellation
    /// If the future is dropped before it completes, nothing has been received.
    ///
    /// # Errors
    /// Same as [`recv`](Self::recv).
    ///
    /// # Examples
    /// ```
    /// use std::os::fd::AsFd;
    /// use tussah::net::UnixDatagram;
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// # runtime.block_on(runtime.spawn(async move {
    /// let (a, b) = UnixDatagram::pair()?;
    /// a.send_fds(b"itself", &[a.as_fd()]).await?;
    /// let received = b.recv_fds(&mut [0; 3], 1).await?;
    /// assert_eq!((received.len, received.is_truncated, received.fds.len()), (3, true, 1));
    /// # std::io::Result::Ok(())
    /// # })).expect("no panic")?;
    /// # std::io::Result::Ok(())
    /// ```
    pub async fn recv_fds(&self, buffer: &mut [u8], fds_max: usize) -> io::Result<ReceivedFds> {
        let received = descriptors::receive(&self.socket, buffer, fds_max).await;
        received.map_err(|error| self.failed("receive descriptors at", error))
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
    /// Returns `NotConnected` if no peer is set; otherwise, any error from the operating system.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        from_any(self.socket.peer_address()?)
    }

    #[cold]
    fn failed(&self, operation: &'static str, error: io::Error) -> io::Error {
        match self.local_addr() {
            Ok(local) => context(error, operation, Shown(&local)),
            Err(_) => context(error, operation, "a Unix socket"),
        }
    }
}

impl AsFd for UnixDatagram {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for UnixDatagram {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl fmt::Debug for UnixDatagram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnixDatagram")
            .field("local", &self.local_addr().ok())
            .field("peer", &self.peer_addr().ok())
            .field("fd", &self.as_raw_fd())
            .finish()
    }
}
