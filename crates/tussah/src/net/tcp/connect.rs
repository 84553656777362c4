//! Connecting TCP streams.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use rustix::net::{SocketType, ipproto};

use super::options::{KeepAlive, check_linger};
use super::stream::TcpStream;
use crate::io_error::context;
use crate::net::socket::{Direction, Socket, family};
use crate::net::{Addresses, Target, ToAddresses};
use crate::time::timeout;

/// Options for connecting, created by [`TcpStream::builder`].
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tussah::net::{TcpListener, TcpStream};
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// # let listener = TcpListener::bind("127.0.0.1:0")?;
/// # let address = listener.local_addr()?;
/// let stream = TcpStream::builder()
///     .bind("127.0.0.1:0".parse().expect("an address"))
///     .nodelay(true)
///     .timeout(Duration::from_secs(5))
///     .connect(address)
///     .await?;
/// assert!(stream.nodelay()?);
/// # std::io::Result::Ok(())
/// # })).expect("no panic")?;
/// # std::io::Result::Ok(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "options do nothing until `connect` is called"]
pub struct ConnectOptions {
    local: Option<SocketAddr>,
    pub(super) limit: Option<Duration>,
    #[cfg(feature = "dns")]
    pub(super) attempt_delay: Option<Duration>,
    #[cfg(feature = "dns")]
    pub(super) resolver: Option<crate::dns::Resolver>,
    nodelay: bool,
    keep_alive: Option<KeepAlive>,
    linger: Option<Duration>,
    ttl: Option<u32>,
    receive_buffer: Option<usize>,
    send_buffer: Option<usize>,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        DEFAULT.clone()
    }
}

/// The options of [`TcpStream::connect`].
static DEFAULT: ConnectOptions = ConnectOptions {
    local: None,
    limit: None,
    #[cfg(feature = "dns")]
    attempt_delay: None,
    #[cfg(feature = "dns")]
    resolver: None,
    nodelay: false,
    keep_alive: None,
    linger: None,
    ttl: None,
    receive_buffer: None,
    send_buffer: None,
};

impl TcpStream {
    /// Connects to an address, to the first reachable one of several addresses, or to a host name.
    ///
    /// [`Resolver::current`](crate::dns::Resolver::current) looks up the addresses of a host name,
    /// for IPv4 and IPv6 in parallel. The attempts to connect to these addresses overlap: each
    /// attempt starts 250 ms after the previous attempt, or earlier if the previous attempt fails.
    /// The first attempt that succeeds provides the connection (Happy Eyeballs: RFC 8305).
    /// Connecting by name takes at most two minutes.
    ///
    /// # Cancellation
    /// Dropping the future abandons the attempt, and closes any connection that has already been
    /// made.
    ///
    /// # Errors
    /// If every attempt fails, returns the operating system's error for the last attempt. For
    /// example, the error is `ConnectionRefused` if no process listens at the address, and
    /// `TimedOut` if the peer does not answer within about two minutes. If the target is a host
    /// name, the error contains a [`ConnectError`](crate::net::ConnectError) with the error for
    /// each address. Returns `InvalidInput` if the target is neither a valid socket address nor a
    /// host name with a port.
    ///
    /// # Panics
    /// Panics if polled outside a runtime.
    pub async fn connect(address: impl ToAddresses) -> io::Result<Self> {
        match address.to_target()? {
            Target::Addresses(addresses) => DEFAULT.connect_first(addresses).await,
            // Boxed, so that threads that connect to an address stay small.
            #[cfg(feature = "dns")]
            Target::Host { name, port } => Box::pin(DEFAULT.connect_host(&name, port)).await,
        }
    }

    /// Connects within a timeout that covers the whole operation.
    ///
    /// # Cancellation
    /// Same as [`connect`](Self::connect).
    ///
    /// # Errors
    /// Returns `TimedOut` if the timeout elapses, or any error from [`connect`](Self::connect).
    ///
    /// # Panics
    /// Panics if polled outside a runtime.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use tussah::net::{TcpListener, TcpStream};
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// # runtime.block_on(runtime.spawn(async move {
    /// # let listener = TcpListener::bind("127.0.0.1:0")?;
    /// # let address = listener.local_addr()?;
    /// let stream = TcpStream::connect_timeout(address, Duration::from_secs(5)).await?;
    /// # std::io::Result::Ok(())
    /// # })).expect("no panic")?;
    /// # std::io::Result::Ok(())
    /// ```
    pub async fn connect_timeout(address: impl ToAddresses, limit: Duration) -> io::Result<Self> {
        Self::builder().timeout(limit).connect(address).await
    }

    /// Creates options for connecting.
    pub fn builder() -> ConnectOptions {
        DEFAULT.clone()
    }
}

/// Connects to an address or to a host name, like [`TcpStream::connect`].
///
/// # Cancellation
/// Same as [`TcpStream::connect`].
///
/// # Errors
/// Same as [`TcpStream::connect`].
///
/// # Panics
/// Panics if polled outside a runtime.
///
/// # Examples
/// ```
/// use tussah::net::{TcpListener, connect};
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// let listener = TcpListener::bind("127.0.0.1:0")?;
/// let port = listener.local_addr()?.port();
/// let stream = connect(("127.0.0.1", port)).await?;
/// # #[cfg(feature = "dns")]
/// let stream = connect(("localhost", port)).await?;
/// # std::io::Result::Ok(())
/// # })).expect("no panic")?;
/// # std::io::Result::Ok(())
/// ```
pub async fn connect(target: impl ToAddresses) -> io::Result<TcpStream> {
    TcpStream::connect(target).await
}

impl ConnectOptions {
    /// Sets the local address. By default, the operating system chooses the local address.
    pub fn bind(self, local: SocketAddr) -> Self {
        let local = Some(local);
        Self { local, ..self }
    }

    /// Sets a timeout for connecting, which includes the lookup of a host name.
    pub fn timeout(self, limit: Duration) -> Self {
        let limit = Some(limit);
        Self { limit, ..self }
    }

    /// Sets `TCP_NODELAY`; see [`TcpStream::set_nodelay`].
    pub fn nodelay(self, on: bool) -> Self {
        Self {
            nodelay: on,
            ..self
        }
    }

    /// Enables keep-alive probes; see [`TcpStream::set_keep_alive`].
    pub fn keep_alive(self, keep_alive: KeepAlive) -> Self {
        let keep_alive = Some(keep_alive);
        Self { keep_alive, ..self }
    }

    /// Sets the linger time; see [`TcpStream::set_linger`].
    pub fn linger(self, time: Duration) -> Self {
        let linger = Some(time);
        Self { linger, ..self }
    }

    /// Sets the TTL; see [`TcpStream::set_ttl`].
    pub fn ttl(self, hops: u32) -> Self {
        let ttl = Some(hops);
        Self { ttl, ..self }
    }

    /// Sets the size of the receive buffer; see [`TcpStream::set_receive_buffer`]. The size is set
    /// before connecting, so that the system can take it into account when it advertises a receive
    /// window to the peer.
    pub fn receive_buffer(self, bytes: usize) -> Self {
        let receive_buffer = Some(bytes);
        Self {
            receive_buffer,
            ..self
        }
    }

    /// Sets the size of the send buffer; see [`TcpStream::set_send_buffer`].
    pub fn send_buffer(self, bytes: usize) -> Self {
        let send_buffer = Some(bytes);
        Self {
            send_buffer,
            ..self
        }
    }

    /// Connects with these options; see [`TcpStream::connect`].
    ///
    /// # Cancellation
    /// Dropping the future abandons the attempt, and closes any connection that has already been
    /// made.
    ///
    /// # Errors
    /// Returns `TimedOut` if the timeout elapses, or any error from [`TcpStream::connect`].
    ///
    /// # Panics
    /// Panics if polled outside a runtime.
    pub async fn connect(&self, address: impl ToAddresses) -> io::Result<TcpStream> {
        #[cfg_attr(
            not(feature = "dns"),
            expect(
                clippy::infallible_destructuring_match,
                reason = "with names there are two"
            )
        )]
        let addresses = match address.to_target()? {
            Target::Addresses(addresses) => addresses,
            // Boxed, so that threads that connect to an address stay small.
            #[cfg(feature = "dns")]
            Target::Host { name, port } => {
                return Box::pin(self.connect_host(&name, port)).await;
            }
        };
        let Some(limit) = self.limit else {
            return self.connect_first(addresses).await;
        };
        let names = addresses.clone();
        // Boxed, so that threads that connect without a timeout stay small.
        match Box::pin(timeout(limit, self.connect_first(addresses))).await {
            Ok(result) => result,
            Err(elapsed) => Err(context(elapsed.into(), "connect to", names)),
        }
    }

    async fn connect_first(&self, addresses: Addresses) -> io::Result<TcpStream> {
        let mut last = None;
        for &address in addresses.as_slice() {
            match self.connect_one(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = Some(context(error, "connect to", address)),
            }
        }
        let none = || io::Error::new(io::ErrorKind::InvalidInput, "expected an address");
        Err(last.unwrap_or_else(none))
    }

    pub(super) async fn connect_one(&self, address: SocketAddr) -> io::Result<TcpStream> {
        let socket = Socket::make(family(&address), SocketType::STREAM, Some(ipproto::TCP))?;
        self.set(&socket)?;
        if let Some(local) = self.local {
            let bound = socket.set_reuse_address(true);
            let bound = bound.and_then(|()| socket.bind(&local.into()));
            bound.map_err(|error| context(error, "bind to", local))?;
        }
        if !socket.connect(&address.into())? {
            socket
                .operate(Direction::Write, || socket.connected())
                .await?;
        }
        Ok(TcpStream::new(socket, Some(address)))
    }

    fn set(&self, socket: &Socket) -> io::Result<()> {
        if self.nodelay {
            socket.set_nodelay(true)?;
        }
        if self.keep_alive.is_some() {
            socket.set_keep_alive(self.keep_alive)?;
        }
        if self.linger.is_some() {
            check_linger(self.linger)?;
            socket.set_linger(self.linger)?;
        }
        if let Some(hops) = self.ttl {
            socket.set_ttl(hops)?;
        }
        if let Some(bytes) = self.receive_buffer {
            socket.set_receive_buffer(bytes)?;
        }
        if let Some(bytes) = self.send_buffer {
            socket.set_send_buffer(bytes)?;
        }
        Ok(())
    }
}
