//! Unix socket listeners.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::stream::{self, Stream};
use rustix::net::{AddressFamily, SocketType};
use tussah_core::Handle;

use super::address::{Shown, from_any, in_use, of_path, to_any};
use super::stream::UnixStream;
use crate::io_error::context;
use crate::net::socket::{Direction, Socket};
use crate::net::tcp::{Pauses, Verdict};

/// Bound, in connections: the maximum length of the queue of pending connections. The system's own
/// limit (`net.core.somaxconn`) also applies.
const BACKLOG: i32 = 4096;

/// A Unix socket that accepts connections.
///
/// The socket's file still exists after the listener is dropped; see the [module
/// documentation](super). If no descriptors are left, [`accept`](Self::accept) waits until it can
/// open one, as [`TcpListener::accept`](crate::net::TcpListener::accept) does.
///
/// # Examples
/// ```
/// use tussah::net::{UnixListener, UnixStream};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("socket");
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// let listener = UnixListener::bind(&path)?;
/// let client = UnixStream::connect(&path).await?;
/// let (server, _) = listener.accept().await?;
/// client.write_all(b"hello").await?;
/// let mut buffer = [0; 5];
/// server.read_exact(&mut buffer).await?;
/// assert_eq!(&buffer, b"hello");
/// assert_eq!(server.peer_credentials()?.pid, Some(std::process::id()));
///
/// let error = UnixListener::bind(&path).expect_err("the file is there");
/// assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
/// # std::io::Result::Ok(())
/// # })).expect("no panic")?;
/// # std::io::Result::Ok(())
/// ```
pub struct UnixListener {
    socket: Socket,
    /// True if the system had no descriptor or memory left when a callback tried to accept.
    exhausted: AtomicBool,
}

impl UnixListener {
    /// Listens on a path, and creates a file there.
    ///
    /// # Errors
    /// Returns `AddrInUse` if the file already exists, even if the process that created it has
    /// ended. Returns `InvalidInput` if the path is too long; otherwise, any error from the
    /// operating system.
    ///
    /// # Panics
    /// Panics if called outside a runtime.
    #[track_caller]
    pub fn bind(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        let address = of_path(path);
        Self::bind_addr(&address.map_err(|error| context(error, "listen at", path.display()))?)
    }

    /// Listens on an address, which may be abstract.
    ///
    /// # Errors
    /// Same as [`bind`](Self::bind).
    ///
    /// # Panics
    /// Panics if called outside a runtime.
    #[track_caller]
    pub fn bind_addr(address: &SocketAddr) -> io::Result<Self> {
        let socket = Socket::make(AddressFamily::UNIX, SocketType::STREAM, None);
        let bind = |socket: Socket| {
            socket.bind(&to_any(address)?)?;
            socket.listen(BACKLOG)?;
            Ok(Self::new(socket))
        };
        socket
            .and_then(bind)
            .map_err(|error| context(in_use(error, address), "listen at", Shown(address)))
    }

    /// Takes ownership of a standard library listener, and makes it non-blocking.
    ///
    /// # Errors
    /// Returns the system's error.
    ///
    /// # Panics
    /// Panics if called outside a runtime.
    #[track_caller]
    pub fn from_std(listener: std::os::unix::net::UnixListener) -> io::Result<Self> {
        Ok(Self::new(Socket::from_fd(listener.into())?))
    }

    fn new(socket: Socket) -> Self {
        let exhausted = AtomicBool::new(false);
        Self { socket, exhausted }
    }

    /// Converts the listener to a standard library listener, which remains in non-blocking mode.
    #[must_use]
    pub fn into_std(self) -> std::os::unix::net::UnixListener {
        self.socket.into_fd().into()
    }

    /// Waits for a connection and accepts it.
    ///
    /// The runtime distributes the listener's connections, and thus their events, over the workers
    /// in rotation, no matter which thread accepts a connection.
    ///
    /// # Cancellation
    /// If the future is dropped before it completes, no connection has been accepted.
    ///
    /// # Errors
    /// Returns any error from the operating system that concerns the listener itself. Does not
    /// return errors that concern a single connection, or that report exhausted resources.
    ///
    /// # Panics
    /// Panics if polled outside a runtime while resources are exhausted, because the pause before
    /// the next attempt needs a timer.
    pub async fn accept(&self) -> io::Result<(UnixStream, SocketAddr)> {
        let mut pauses = Pauses::new();
        loop {
            let attempt = || self.socket.accept(true);
            let error = match self.socket.operate(Direction::Read, attempt).await {
                Ok((socket, peer)) => return Ok((UnixStream::new(socket), from_any(peer)?)),
                Err(error) => error,
            };
            match Verdict::of(&error) {
                Verdict::Again => {}
                Verdict::Pause => pauses.wait_for_room(&error).await,
                Verdict::Fail => return Err(self.failed("accept at", error)),
            }
        }
    }

    /// Accepts a pending connection without waiting, like
    /// [`TcpListener::try_accept`](crate::net::TcpListener::try_accept).
    ///
    /// # Errors
    /// Returns `WouldBlock` if no connection is pending. Returns the operating system's error if no
    /// descriptors or memory are left; a callback for the listener is then called again after a
    /// millisecond, or when a stream is closed. Otherwise, returns any error from the operating
    /// system.
    pub fn try_accept(&self) -> io::Result<(UnixStream, SocketAddr)> {
        loop {
            let error = match self.socket.accept(true) {
                Ok((socket, peer)) => return Ok((UnixStream::new(socket), from_any(peer)?)),
                Err(error) => error,
            };
            match (error.kind(), Verdict::of(&error)) {
                (io::ErrorKind::WouldBlock, _) => return Err(error),
                (io::ErrorKind::Interrupted, _) | (_, Verdict::Again) => {}
                (_, Verdict::Pause) => {
                    self.exhausted.store(true, Ordering::Relaxed);
                    return Err(self.failed("accept at", error));
                }
                (_, Verdict::Fail) => return Err(self.failed("accept at", error)),
            }
        }
    }

    /// Used by callbacks.
    pub(crate) fn handle(&self) -> Handle {
        self.socket.handle()
    }

    /// Waits until [`try_accept`](Self::try_accept) would not return `WouldBlock`. Pauses first if
    /// resources were exhausted.
    pub(crate) async fn wait_ready(&self, direction: Direction) -> io::Result<()> {
        if self.exhausted.swap(false, Ordering::Relaxed) {
            Box::pin(Pauses::new().wait()).await;
        }
        self.socket.wait_ready(direction).await
    }

    /// Returns an endless stream of accepted connections.
    pub fn incoming(&self) -> impl Stream<Item = io::Result<UnixStream>> + Send + use<'_> {
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
        from_any(Some(self.socket.local_address()?))
    }

    #[cold]
    fn failed(&self, operation: &'static str, error: io::Error) -> io::Error {
        match self.local_addr() {
            Ok(local) => context(error, operation, Shown(&local)),
            Err(_) => context(error, operation, "an unknown address"),
        }
    }
}

impl AsFd for UnixListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for UnixListener {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl fmt::Debug for UnixListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnixListener")
            .field("local", &self.local_addr().ok())
            .field("fd", &self.as_raw_fd())
            .finish()
    }
}
