//! What accepts TCP connections.

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
/// When the process or the system has no more descriptors or memory for a connection, accepting waits until it has: for 1 ms
/// at first and for up to a second later, or until a stream is closed. What is wrong with one connection never ends
/// the accepting of others. So an error of [`accept`](Self::accept) is about the listener itself, and a loop may end with it.
///
/// # Examples
/// A thread for each connection, and no more than a thousand of them:
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
    /// Its connections go to all workers: there is no other listener for each of them.
    spreads: bool,
    /// `try_accept` has found no room in the system.
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

/// What a [`TcpListener`] has done since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AcceptStats {
    /// How often the system was asked for a connection.
    pub attempts: u64,
    /// Connections that were accepted.
    pub accepted: u64,
    /// Connections that broke before they were accepted, as far as the system told.
    pub failed: u64,
    /// How often accepting had to wait because the system had no descriptor or no memory.
    pub pauses: u64,
}

impl TcpListener {
    /// Listens at an address; of several, at the first that can be had. Port 0 has the system choose one.
    ///
    /// # Errors
    /// `AddrInUse`, `AddrNotAvailable`, `PermissionDenied`, what else the system says; `InvalidInput` if it is not an address. Names
    /// (`localhost:80`) are none: they are looked up only to connect.
    ///
    /// # Panics
    /// Outside of a runtime.
    #[track_caller]
    pub fn bind(address: impl ToAddresses) -> io::Result<Self> {
        Self::builder().bind(address)
    }

    /// Listens at an address once for each worker; see [`ListenOptions::bind_per_worker`].
    ///
    /// # Errors
    /// As [`bind`](Self::bind).
    ///
    /// # Panics
    /// Outside of a runtime.
    #[track_caller]
    pub fn bind_per_worker(address: impl ToAddresses) -> io::Result<Vec<Self>> {
        Self::builder().bind_per_worker(address)
    }

    /// Begins to say how a listener is to be made.
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

    /// Takes a listener of the standard library's, and makes it non-blocking.
    ///
    /// # Errors
    /// What the system says.
    ///
    /// # Panics
    /// Outside of a runtime.
    #[track_caller]
    pub fn from_std(listener: std::net::TcpListener) -> io::Result<Self> {
        Ok(Self::new(
            Socket::from_fd(listener.into())?,
            None,
            false,
            true,
        ))
    }

    /// Accepts a connection, once there is one; and a place for it, if their number is limited.
    ///
    /// Whichever thread waits for it, one worker after the other is told what comes by the connections of a listener; those of a listener for each worker
    /// ([`bind_per_worker`](Self::bind_per_worker)) stay with the worker that waits first.
    ///
    /// # Cancellation
    /// Dropping the future accepts nothing.
    ///
    /// # Errors
    /// What the system says, if it is neither about one connection nor about room.
    ///
    /// # Panics
    /// Outside of a runtime, when the system has no room and a timer is needed.
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

    /// Accepts a connection, and starts a thread for it in a color: what the connection does between two awaits is an event
    /// of that color, wherever that is at the time.
    ///
    /// # Cancellation
    /// Dropping the future accepts nothing.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    ///
    /// # Panics
    /// As [`accept`](Self::accept), and as [`spawn_in`](crate::spawn_in).
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

    /// The connections, one after the other, as a stream that never ends.
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

    /// The address that it listens at.
    ///
    /// # Errors
    /// What the system says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_address().and_then(internet)
    }

    /// Sets how many routers the packets of its connections may pass.
    ///
    /// # Errors
    /// `InvalidInput` outside of 1 to 255; what the system says.
    pub fn set_ttl(&self, hops: u32) -> io::Result<()> {
        let set = self.socket.set_ttl(hops);
        set.map_err(|error| self.failed("set an option of the listener at", error))
    }

    /// How many routers the packets of its connections may pass.
    ///
    /// # Errors
    /// What the system says.
    pub fn ttl(&self) -> io::Result<u32> {
        let ttl = self.socket.ttl();
        ttl.map_err(|error| self.failed("ask about the listener at", error))
    }

    /// What it has done so far.
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

    /// Accepts a connection in its place, or says what is wrong with it. Who only waits holds no place: of several listeners
    /// that share the places, others may have the connections.
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
                // Another has taken it meanwhile.
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

/// Gives a connection its place among those of the listener.
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
