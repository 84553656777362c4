//! TCP listeners.

mod try_accept;

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use async_lock::{Semaphore, SemaphoreGuardArc};
use futures_util::stream::{self, Stream};
use tussah_core::{AsColor, JoinHandle};

use super::accept::{Pauses, Verdict};
use super::extra::Extra;
use super::listen::ListenOptions;
use super::stream::TcpStream;
use crate::io_error::context;
use crate::net::ToAddresses;
use crate::net::socket::{Direction, Socket, internet};

/// A TCP socket that accepts connections.
///
/// If the process or the system has no descriptors or memory left for a connection, the listener
/// pauses and then tries again. The first pause lasts 1 ms, and later pauses last up to one second.
/// A pause ends early if a stream of this process is closed. A faulty connection never prevents the
/// listener from accepting others. An error from [`accept`](Self::accept) therefore concerns the
/// listener itself, and an accept loop can treat it as final.
///
/// # Examples
/// This server starts a thread for each connection, and keeps at most a thousand connections open
/// at a time:
/// ```
/// use tussah::net::{TcpListener, TcpStream};
///
/// async fn serve(listener: TcpListener) -> std::io::Result<()> {
///     loop {
///         let (stream, _peer) = listener.accept().await?;
///         tussah::spawn(async move { stream.write_all(b"hello").await });
///     }
/// }
///
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// let listener = TcpListener::builder().connections_max(1000).bind("127.0.0.1:0")?;
/// let address = listener.local_addr()?;
/// tussah::spawn(serve(listener));
/// let mut buffer = [0; 5];
/// TcpStream::connect(address).await?.read_exact(&mut buffer).await?;
/// assert_eq!(&buffer, b"hello");
/// # std::io::Result::Ok(())
/// # })).expect("no panic")?;
/// # std::io::Result::Ok(())
/// ```
pub struct TcpListener {
    socket: Socket,
    connections: Option<Arc<Semaphore>>,
    exhaustion_fails: bool,
    /// True if its connections are spread over all workers, because there is not one listener per
    /// worker.
    spreads: bool,
    /// True if `try_accept` has found no descriptor or memory left.
    exhausted: AtomicBool,
    counts: Counts,
}

#[derive(Default)]
struct Counts {
    attempts: AtomicU64,
    accepted: AtomicU64,
    failed: AtomicU64,
    pauses: AtomicU64,
}

/// Counters of a [`TcpListener`] since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AcceptStats {
    /// Number of attempts to accept a connection.
    pub attempts: u64,
    /// Number of accepted connections.
    pub accepted: u64,
    /// Number of connections that failed before they were accepted, if the operating system reports
    /// such failures.
    pub failed: u64,
    /// Number of times that the listener paused because descriptors or memory had run out.
    pub pauses: u64,
}

impl TcpListener {
    /// Listens on an address, or on the first usable one of several addresses. With port 0, the
    /// system chooses a port.
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
        Self::builder().bind(address)
    }

    /// Listens on an address with one listener for each worker; see
    /// [`ListenOptions::bind_per_worker`].
    ///
    /// # Errors
    /// Same as [`bind`](Self::bind).
    ///
    /// # Panics
    /// Panics if called outside a runtime.
    #[track_caller]
    pub fn bind_per_worker(address: impl ToAddresses) -> io::Result<Vec<Self>> {
        Self::builder().bind_per_worker(address)
    }

    /// Creates options for listening.
    pub fn builder() -> ListenOptions {
        ListenOptions::default()
    }

    pub(super) fn new(
        socket: Socket,
        connections: Option<Arc<Semaphore>>,
        exhaustion_fails: bool,
        spreads: bool,
    ) -> Self {
        Self {
            socket,
            connections,
            exhaustion_fails,
            spreads,
            exhausted: AtomicBool::new(false),
            counts: Counts::default(),
        }
    }

    /// Takes ownership of a standard library listener, and makes it non-blocking.
    ///
    /// # Errors
    /// Returns the system's error.
    ///
    /// # Panics
    /// Panics if called outside a runtime.
    #[track_caller]
    pub fn from_std(listener: std::net::TcpListener) -> io::Result<Self> {
        Ok(Self::new(
            Socket::from_fd(listener.into())?,
            None,
            false,
            true,
        ))
    }

    /// Waits for a connection and accepts it. If the number of connections is limited, also waits
    /// until the number is below the limit.
    ///
    /// The runtime distributes the listener's connections, and thus their events, over the workers
    /// in rotation, no matter which thread accepts a connection. If each worker has a separate
    /// listener ([`bind_per_worker`](Self::bind_per_worker)), the events of a connection stay on
    /// the worker on which a thread first waits for them.
    ///
    /// # Cancellation
    /// If the future is dropped before it completes, no connection has been accepted.
    ///
    /// # Errors
    /// Returns any error from the operating system that concerns the listener itself rather than a
    /// single connection. With [`exhaustion_fails`](ListenOptions::exhaustion_fails), also returns
    /// an error when descriptors or memory run out.
    ///
    /// # Panics
    /// Panics if polled outside a runtime while resources are exhausted, because the pause before
    /// the next attempt needs a timer.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let mut pauses = Pauses::new();
        loop {
            let error = match self.accept_one().await {
                Ok(accepted) => {
                    add(&self.counts.accepted);
                    return Ok(accepted);
                }
                Err(error) => error,
            };
            match Verdict::of(&error) {
                Verdict::Again => add(&self.counts.failed),
                Verdict::Pause if !self.exhaustion_fails => {
                    add(&self.counts.pauses);
                    pauses.wait_for_room(&error).await;
                }
                Verdict::Pause | Verdict::Fail => return Err(self.failed("accept at", error)),
            }
        }
    }

    /// Accepts a connection, and starts a thread for it in the given color. Each part of the thread
    /// between two awaits is an event of that color, and runs on the color's current worker.
    ///
    /// # Cancellation
    /// If the future is dropped before it completes, no connection has been accepted.
    ///
    /// # Errors
    /// Same as [`accept`](Self::accept).
    ///
    /// # Panics
    /// Panics if [`accept`](Self::accept) or [`spawn_in`](crate::spawn_in) panics.
    ///
    /// # Examples
    /// ```
    /// use tussah::Color;
    /// use tussah::net::{TcpListener, TcpStream};
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// # runtime.block_on(runtime.spawn(async move {
    /// let listener = TcpListener::bind("127.0.0.1:0")?;
    /// let client = TcpStream::connect(listener.local_addr()?).await?;
    /// let thread = listener
    ///     .accept_in(Color(7), async |stream, _peer| stream.write_all(b"hello").await)
    ///     .await?;
    /// client.read_exact(&mut [0; 5]).await?;
    /// thread.await.expect("it does not panic")?;
    /// # std::io::Result::Ok(())
    /// # })).expect("no panic")?;
    /// # std::io::Result::Ok(())
    /// ```
    pub async fn accept_in<F>(
        &self,
        color: impl AsColor,
        serve: impl FnOnce(TcpStream, SocketAddr) -> F,
    ) -> io::Result<JoinHandle<F::Output>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let (stream, peer) = self.accept().await?;
        Ok(crate::spawn_in(color, serve(stream, peer)))
    }

    /// Returns an endless stream of accepted connections.
    ///
    /// # Examples
    /// ```
    /// use futures_lite::StreamExt;
    /// use tussah::net::{TcpListener, TcpStream};
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// # runtime.block_on(runtime.spawn(async move {
    /// let listener = TcpListener::bind("127.0.0.1:0")?;
    /// let client = TcpStream::connect(listener.local_addr()?).await?;
    /// let mut incoming = std::pin::pin!(listener.incoming());
    /// let server = incoming.next().await.expect("it never ends")?;
    /// assert_eq!(server.peer_addr()?, client.local_addr()?);
    /// # std::io::Result::Ok(())
    /// # })).expect("no panic")?;
    /// # std::io::Result::Ok(())
    /// ```
    pub fn incoming(&self) -> impl Stream<Item = io::Result<TcpStream>> + Send + use<'_> {
        stream::unfold(self, |listener| async move {
            let accepted = listener.accept().await;
            Some((accepted.map(|(stream, _)| stream), listener))
        })
    }

    /// Returns the local address.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_address().and_then(internet)
    }

    /// Sets the TTL (maximum hops) of packets sent on the listener's connections.
    ///
    /// # Errors
    /// Returns `InvalidInput` for values other than 1 to 255; otherwise, any error from the
    /// operating system.
    pub fn set_ttl(&self, hops: u32) -> io::Result<()> {
        let set = self.socket.set_ttl(hops);
        set.map_err(|error| self.failed("set an option of the listener at", error))
    }

    /// Returns the TTL (maximum hops) of packets sent on the listener's connections.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn ttl(&self) -> io::Result<u32> {
        let ttl = self.socket.ttl();
        ttl.map_err(|error| self.failed("ask about the listener at", error))
    }

    /// Returns the listener's counters.
    #[must_use]
    pub fn stats(&self) -> AcceptStats {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        AcceptStats {
            attempts: count(&self.counts.attempts),
            accepted: count(&self.counts.accepted),
            failed: count(&self.counts.failed),
            pauses: count(&self.counts.pauses),
        }
    }

    /// Accepts a connection, with a place for it, or returns its error. A caller that is waiting
    /// for a connection holds no place, because other listeners may share the limit.
    async fn accept_one(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let Some(connections) = &self.connections else {
            return self
                .socket
                .operate(Direction::Read, || self.attempt())
                .await;
        };
        loop {
            self.socket.wait_ready(Direction::Read).await?;
            let permit = connections.acquire_arc().await;
            match self.attempt() {
                Ok(accepted) => return Ok(with_permit(accepted, Some(permit))),
                // Another thread has accepted the connection in the meantime.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn attempt(&self) -> io::Result<(TcpStream, SocketAddr)> {
        add(&self.counts.attempts);
        let (socket, peer) = self.socket.accept(self.spreads)?;
        let peer = internet(peer.ok_or(io::ErrorKind::ConnectionAborted)?)?;
        Ok((TcpStream::new(socket, Some(peer)), peer))
    }

    #[cold]
    fn failed(&self, operation: &'static str, error: io::Error) -> io::Error {
        match self.local_addr() {
            Ok(local) => context(error, operation, local),
            Err(_) => context(error, operation, "an unknown address"),
        }
    }
}

/// Attaches a connection to its place within the listener's limit.
fn with_permit(
    (stream, peer): (TcpStream, SocketAddr),
    permit: Option<SemaphoreGuardArc>,
) -> (TcpStream, SocketAddr) {
    match permit {
        Some(permit) => (stream.with_extra(Extra::with_permit(permit)), peer),
        None => (stream, peer),
    }
}

fn add(count: &AtomicU64) {
    count.fetch_add(1, Ordering::Relaxed);
}

impl AsFd for TcpListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for TcpListener {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl fmt::Debug for TcpListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpListener")
            .field("local", &self.local_addr().ok())
            .field("fd", &self.as_raw_fd())
            .finish_non_exhaustive()
    }
}
