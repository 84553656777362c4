//! What accepts connections of Unix sockets.

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

/// Bound, in connections: what waits to be accepted, unless the system's own limit (`net.core.somaxconn`) is lower.
const BACKLOG: i32 = 4096;

/// A Unix socket that accepts connections.
///
/// Its file stays when it is dropped: see [the module](super). When there are no more descriptors, accepting waits as
/// that of a [`TcpListener`](crate::net::TcpListener) does.
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
    /// Whether the system had no room when a callback tried.
    exhausted: AtomicBool,
}

impl UnixListener {
    /// Listens at a path, where it makes a file.
    ///
    /// # Errors
    /// `AddrInUse` if there is a file already, also one that a process has left behind; `InvalidInput` if the path is too
    /// long; what else the system says.
    ///
    /// # Panics
    /// Outside of a runtime.
    #[track_caller]
    pub fn bind(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        let address = of_path(path);
        Self::bind_addr(&address.map_err(|error| context(error, "listen at", path.display()))?)
    }

    /// Listens at an address, such as an abstract one.
    ///
    /// # Errors
    /// As [`bind`](Self::bind).
    ///
    /// # Panics
    /// Outside of a runtime.
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

    /// Takes a listener of the standard library's, and makes it non-blocking.
    ///
    /// # Errors
    /// What the system says.
    ///
    /// # Panics
    /// Outside of a runtime.
    #[track_caller]
    pub fn from_std(listener: std::os::unix::net::UnixListener) -> io::Result<Self> {
        Ok(Self::new(Socket::from_fd(listener.into())?))
    }

    fn new(socket: Socket) -> Self {
        let exhausted = AtomicBool::new(false);
        Self { socket, exhausted }
    }

    /// Gives the listener to the standard library, in non-blocking mode as it is.
    #[must_use]
    pub fn into_std(self) -> std::os::unix::net::UnixListener {
        self.socket.into_fd().into()
    }

    /// Accepts a connection, once there is one.
    ///
    /// Whichever thread waits for it, one worker after the other is told what comes by the connections.
    ///
    /// # Cancellation
    /// Dropping the future accepts nothing.
    ///
    /// # Errors
    /// What the system says, if it is neither about one connection nor about room.
    ///
    /// # Panics
    /// Outside of a runtime, when the system has no room and a timer is needed.
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

    /// Accepts a connection that is there, without waiting; as [`TcpListener::try_accept`](crate::net::TcpListener::try_accept).
    ///
    /// # Errors
    /// `WouldBlock` if there is none. When the system has no descriptor or no memory for it, what it says; a callback for the listener
    /// is then called again after a millisecond, or when a stream is closed. Else what the system says.
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

    /// For callbacks.
    pub(crate) fn handle(&self) -> Handle {
        self.socket.handle()
    }

    /// Waits until [`try_accept`](Self::try_accept) would not say `WouldBlock`; for a while if the system had no room.
    pub(crate) async fn wait_ready(&self, direction: Direction) -> io::Result<()> {
        if self.exhausted.swap(false, Ordering::Relaxed) {
            Box::pin(Pauses::new().wait()).await;
        }
        self.socket.wait_ready(direction).await
    }

    /// The connections, one after the other, as a stream that never ends.
    pub fn incoming(&self) -> impl Stream<Item = io::Result<UnixStream>> + Send + use<'_> {
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
