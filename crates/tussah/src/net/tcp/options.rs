//! Options of TCP streams.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::limits::time_limits;
use super::stream::TcpStream;
use super::transfer::{Limited, Verb};
use crate::net::RateLimit;
use crate::net::socket::{Direction, Socket, packet_options};

/// Settings for detecting dead connections.
///
/// With the defaults of this type, the operating system detects a dead connection after about two
/// minutes. With the operating system's own defaults, detection takes about two hours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// Idle time before the first probe, in whole seconds from 1 to 32,767.
    pub idle: Duration,
    /// Time between two probes, in whole seconds from 1 to 32,767.
    pub interval: Duration,
    /// Bound, in probes: the maximum number of unanswered probes, from 1 to 127. When that many
    /// probes are unanswered, the system ends the connection, and operations return `TimedOut`.
    pub count: u32,
}

impl Default for KeepAlive {
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(60),
            interval: Duration::from_secs(15),
            count: 4,
        }
    }
}

/// Socket options. Errors are those of the system.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tussah::net::{KeepAlive, TcpListener, TcpStream};
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// # let listener = TcpListener::bind("127.0.0.1:0")?;
/// let stream = TcpStream::connect(listener.local_addr()?).await?;
/// stream.set_nodelay(true)?;
/// stream.set_keep_alive(Some(KeepAlive::default()))?;
/// stream.set_read_timeout(Some(Duration::from_millis(10)))?;
/// let error = stream.read(&mut [0; 16]).await.expect_err("the peer sends nothing");
/// assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
/// # std::io::Result::Ok(())
/// # })).expect("no panic")?;
/// # std::io::Result::Ok(())
/// ```
impl TcpStream {
    /// Sets whether the system sends all data immediately (`TCP_NODELAY`). By default, the system
    /// may hold back small amounts of data until earlier data is acknowledged (Nagle's algorithm,
    /// RFC 896).
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn set_nodelay(&self, on: bool) -> io::Result<()> {
        self.set(|socket| socket.set_nodelay(on))
    }

    /// Returns whether `TCP_NODELAY` is on; see [`set_nodelay`](Self::set_nodelay).
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn nodelay(&self) -> io::Result<bool> {
        self.ask(Socket::nodelay)
    }

    /// Sets whether and how the system probes an idle peer to detect a dead connection.
    ///
    /// # Errors
    /// Returns `InvalidInput` if a value is out of range; otherwise, any error from the operating
    /// system.
    pub fn set_keep_alive(&self, keep_alive: Option<KeepAlive>) -> io::Result<()> {
        self.set(|socket| socket.set_keep_alive(keep_alive))
    }

    /// Returns the keep-alive settings; see [`set_keep_alive`](Self::set_keep_alive).
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn keep_alive(&self) -> io::Result<Option<KeepAlive>> {
        self.ask(Socket::keep_alive)
    }

    /// Sets what happens to unsent bytes when the stream is dropped. With `None`, the default, the
    /// operating system continues to send unsent bytes. With a time of zero, the operating system
    /// discards unsent bytes and resets the connection.
    ///
    /// A linger time above zero is rejected, because dropping the stream would block the worker for
    /// that time.
    ///
    /// # Errors
    /// Returns `InvalidInput` for a time other than zero; otherwise, any error from the operating
    /// system.
    pub fn set_linger(&self, time: Option<Duration>) -> io::Result<()> {
        self.set(|socket| check_linger(time).and_then(|()| socket.set_linger(time)))
    }

    /// Returns the linger time; see [`set_linger`](Self::set_linger).
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        self.ask(Socket::linger)
    }

    packet_options!();

    /// Returns and clears the connection's pending error, if any. Later operations do not report
    /// the cleared error again.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.ask(Socket::take_error)
    }

    time_limits!();

    /// Sets or removes a limit on the read rate. The change applies from the next operation on.
    /// Several streams can share a limit.
    pub fn set_read_limit(&self, limit: Option<Arc<RateLimit>>) {
        if limit.is_some() || self.extra().is_some() {
            self.make_extra().set_limit(limit);
        }
    }

    /// Returns the limit on the read rate; see [`set_read_limit`](Self::set_read_limit).
    #[must_use]
    pub fn read_limit(&self) -> Option<Arc<RateLimit>> {
        self.extra()?.limit()
    }

    fn set(&self, set: impl FnOnce(&Socket) -> io::Result<()>) -> io::Result<()> {
        set(self.socket()).map_err(|error| self.failed(Verb::Set, error))
    }

    fn ask<T>(&self, ask: impl FnOnce(&Socket) -> io::Result<T>) -> io::Result<T> {
        ask(self.socket()).map_err(|error| self.failed(Verb::Ask, error))
    }
}

/// Rejects a linger time that would make the drop block.
pub(super) fn check_linger(time: Option<Duration>) -> io::Result<()> {
    if time.is_some_and(|time| !time.is_zero()) {
        let text = "expected a linger time of zero or none: any other would make the drop block";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    Ok(())
}
