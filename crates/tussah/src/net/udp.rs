//! UDP sockets.

mod batch;
mod options;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SocketType, ipproto};

use super::ToAddresses;
use super::socket::{Direction, Socket, family, internet};
use crate::io_error::context;
pub use batch::RecvSlot;

/// A UDP socket. A datagram arrives whole or not at all. Datagrams can arrive in any order.
///
/// If a datagram is longer than the buffer, it is truncated, and the rest is lost;
/// [`recv_batch`](Self::recv_batch) reports the truncation. If no process listens at the other end,
/// the network may report this with an ICMP message. A later operation on a
/// [connected](Self::connect) socket then fails with `ConnectionRefused`. The socket remains
/// usable.
///
/// # Examples
/// ```
/// use tussah::net::UdpSocket;
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// let (server, client) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
/// client.send_to(b"hello", server.local_addr()?).await?;
/// let mut buffer = [0; 1500];
/// let (len, from) = server.recv_from(&mut buffer).await?;
/// assert_eq!((&buffer[..len], from), (&b"hello"[..], client.local_addr()?));
/// # std::io::Result::Ok(())
/// # })).expect("no panic")?;
/// # std::io::Result::Ok(())
/// ```
pub struct UdpSocket {
    socket: Socket,
    /// The number of an error that the system reported in the middle of a batch; 0 means none.
    unreported: AtomicI32,
}

impl UdpSocket {
    /// Binds a socket to an address, or to the first usable one of several addresses. With port 0,
    /// the system chooses a port.
    ///
    /// # Errors
    /// Returns any error from the operating system, such as `AddrInUse`, `AddrNotAvailable` or
    /// `PermissionDenied`. Returns `InvalidInput` if `address` is not a valid socket address, such
    /// as `127.0.0.1:80`. Host names (`localhost:80`) are not accepted; only functions that connect
    /// a `TcpStream` look up host names.
    ///
    /// # Panics
    /// Panics if called outside a runtime.
    #[track_caller]
    pub fn bind(address: impl ToAddresses) -> io::Result<Self> {
        let mut last = None;
        for &address in address.to_addresses()?.as_slice() {
            match Self::bind_one(address) {
                Ok(socket) => return Ok(socket),
                Err(error) => last = Some(context(error, "bind to", address)),
            }
        }
        let none = || io::Error::new(io::ErrorKind::InvalidInput, "expected an address");
        Err(last.unwrap_or_else(none))
    }

    #[track_caller]
    fn bind_one(address: SocketAddr) -> io::Result<Self> {
        let socket = Socket::make(family(&address), SocketType::DGRAM, Some(ipproto::UDP))?;
        socket.bind(&address.into())?;
        Ok(Self::new(socket))
    }

    /// Used by callbacks.
    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }

    fn new(socket: Socket) -> Self {
        let unreported = AtomicI32::new(0);
        Self { socket, unreported }
    }

    /// Takes ownership of a standard library socket, and makes it non-blocking. The program can
    /// therefore set any socket option beforehand.
    ///
    /// # Errors
    /// Returns the system's error.
    ///
    /// # Panics
    /// Panics if called outside a runtime.
    #[track_caller]
    pub fn from_std(socket: std::net::UdpSocket) -> io::Result<Self> {
        Ok(Self::new(Socket::from_fd(socket.into())?))
    }

    /// Converts the socket to a standard library socket, which remains in non-blocking mode.
    #[must_use]
    pub fn into_std(self) -> std::net::UdpSocket {
        self.socket.into_fd().into()
    }

    /// Sets the peer. Once a peer is set, [`send`](Self::send) sends to this peer, and the socket
    /// receives only datagrams from it. No packet is exchanged.
    ///
    /// If `address` yields several addresses, the first one that the operating system accepts
    /// becomes the peer.
    ///
    /// # Errors
    /// Returns any error from the operating system, for example if there is no route. Returns
    /// `InvalidInput` if `address` is not a valid socket address, such as `127.0.0.1:80`.
    pub fn connect(&self, address: impl ToAddresses) -> io::Result<()> {
        let mut last = None;
        for &address in address.to_addresses()?.as_slice() {
            match self.socket.connect(&address.into()) {
                Ok(_) => return Ok(()),
                Err(error) => last = Some(context(error, "connect to", address)),
            }
        }
        let none = || io::Error::new(io::ErrorKind::InvalidInput, "expected an address");
        Err(last.unwrap_or_else(none))
    }

    /// Returns the local address.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_address().and_then(internet)
    }

    /// Returns the peer's address.
    ///
    /// # Errors
    /// Returns `NotConnected` if no peer was [set](Self::connect).
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        let address = self.socket.peer_address()?;
        internet(address.ok_or(io::ErrorKind::NotConnected)?)
    }

    /// Sends a datagram to the peer.
    ///
    /// # Cancellation
    /// If the future is dropped before it completes, nothing has been sent.
    ///
    /// # Errors
    /// If no peer is set, returns `NotConnected` or `DestinationAddressRequired`, depending on the
    /// operating system. Returns `ConnectionRefused` if the network has reported that no process
    /// listens at the peer's address. Otherwise, returns any error from the operating system, for
    /// example if the datagram is too long.
    pub async fn send(&self, data: &[u8]) -> io::Result<usize> {
        let send = self
            .socket
            .operate(Direction::Write, || self.socket.send_to(data, None));
        send.await.map_err(|error| self.failed("send from", error))
    }

    /// Sends a datagram to an address. If `address` yields several addresses, uses the first one.
    ///
    /// # Cancellation
    /// If the future is dropped before it completes, nothing has been sent.
    ///
    /// # Errors
    /// Returns `InvalidInput` if `address` is not a valid socket address, such as `127.0.0.1:80`,
    /// or any error from [`send`](Self::send).
    pub async fn send_to(&self, data: &[u8], address: impl ToAddresses) -> io::Result<usize> {
        let addresses = address.to_addresses()?;
        let none = || io::Error::new(io::ErrorKind::InvalidInput, "expected an address");
        let address = *addresses.as_slice().first().ok_or_else(none)?;
        let any = address.into();
        let send = self
            .socket
            .operate(Direction::Write, || self.socket.send_to(data, Some(&any)));
        send.await
            .map_err(|error| context(error, "send to", address))
    }

    /// Receives a datagram from the peer, or from any sender if no peer is set. Returns its length.
    /// Bytes that do not fit into the buffer are lost; to detect this, use
    /// [`recv_batch`](Self::recv_batch) with one slot.
    ///
    /// # Cancellation
    /// If the future is dropped before it completes, nothing has been received.
    ///
    /// # Errors
    /// Returns `ConnectionRefused` if the network has reported that no process listens at the
    /// peer's address. Otherwise, returns any error from the operating system.
    ///
    /// # Examples
    /// ```
    /// use tussah::net::UdpSocket;
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// # runtime.block_on(runtime.spawn(async move {
    /// let (a, b) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
    /// a.connect(b.local_addr()?)?;
    /// b.connect(a.local_addr()?)?;
    /// a.send(b"hello").await?;
    /// let mut buffer = [0; 16];
    /// assert_eq!(b.peek(&mut buffer).await?, 5);
    /// assert_eq!(b.recv(&mut buffer).await?, 5);
    /// # std::io::Result::Ok(())
    /// # })).expect("no panic")?;
    /// # std::io::Result::Ok(())
    /// ```
    pub async fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(self.receive(buffer, RecvFlags::empty()).await?.0)
    }

    /// Receives a datagram, and returns its length and its sender. Otherwise works like
    /// [`recv`](Self::recv).
    ///
    /// # Cancellation
    /// If the future is dropped before it completes, nothing has been received.
    ///
    /// # Errors
    /// Same as [`recv`](Self::recv).
    pub async fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.receive(buffer, RecvFlags::empty()).await
    }

    /// Receives a datagram without removing it from the queue.
    ///
    /// # Cancellation
    /// Dropping the future has no effect on the socket.
    ///
    /// # Errors
    /// Same as [`recv`](Self::recv).
    pub async fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(self.receive(buffer, RecvFlags::PEEK).await?.0)
    }

    /// Receives a datagram without removing it from the queue, and returns its length and its
    /// sender.
    ///
    /// # Cancellation
    /// Dropping the future has no effect on the socket.
    ///
    /// # Errors
    /// Same as [`recv`](Self::recv).
    pub async fn peek_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.receive(buffer, RecvFlags::PEEK).await
    }

    /// Sends a datagram to the peer, or to an address, without waiting.
    ///
    /// # Errors
    /// Returns `WouldBlock` if the send buffer is full; otherwise, any error from the operating
    /// system.
    pub fn try_send(&self, data: &[u8], address: Option<SocketAddr>) -> io::Result<usize> {
        let address = address.map(Into::into);
        self.socket.send_to(data, address.as_ref())
    }

    /// Receives a datagram without waiting. Otherwise works like [`recv_from`](Self::recv_from).
    ///
    /// # Errors
    /// Returns `WouldBlock` if no datagram is queued; otherwise, any error from the operating
    /// system.
    pub fn try_recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let (len, _, peer) = self.attempt(buffer, RecvFlags::empty())?;
        Ok((len, peer))
    }

    async fn receive(
        &self,
        buffer: &mut [u8],
        flags: RecvFlags,
    ) -> io::Result<(usize, SocketAddr)> {
        let received = self
            .socket
            .operate(Direction::Read, || self.attempt(buffer, flags));
        match received.await {
            Ok((len, _, peer)) => Ok((len, peer)),
            Err(error) => Err(self.failed("receive at", error)),
        }
    }

    /// Receives a datagram. Returns its length in the buffer, whether it was truncated, and its
    /// sender.
    fn attempt(
        &self,
        buffer: &mut [u8],
        flags: RecvFlags,
    ) -> io::Result<(usize, bool, SocketAddr)> {
        if let Some(error) = self.take_unreported() {
            return Err(error);
        }
        let room = buffer.len();
        let (len, peer) = self.socket.receive_datagram(buffer, flags)?;
        let peer = internet(peer.ok_or(io::ErrorKind::NotConnected)?)?;
        Ok((len.min(room), len > room, peer))
    }

    fn take_unreported(&self) -> Option<io::Error> {
        if self.unreported.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let number = self.unreported.swap(0, Ordering::Relaxed);
        (number != 0).then(|| io::Error::from_raw_os_error(number))
    }

    /// Stores an error for the next operation.
    fn keep(&self, error: &io::Error) {
        if let Some(errno) = Errno::from_io_error(error) {
            self.unreported
                .store(errno.raw_os_error(), Ordering::Relaxed);
        }
    }

    #[cold]
    fn failed(&self, operation: &'static str, error: io::Error) -> io::Error {
        match self.local_addr() {
            Ok(local) => context(error, operation, local),
            Err(_) => context(error, operation, "an unknown address"),
        }
    }
}

impl AsFd for UdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for UdpSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl fmt::Debug for UdpSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UdpSocket")
            .field("local", &self.local_addr().ok())
            .field("peer", &self.peer_addr().ok())
            .field("fd", &self.as_raw_fd())
            .finish_non_exhaustive()
    }
}
