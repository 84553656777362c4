//! The options of TCP streams.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::limits::time_limits;
use super::stream::TcpStream;
use super::transfer::{Limited, Verb};
use crate::net::RateLimit;
use crate::net::socket::{Direction, Socket, packet_options};

/// When a connection over which nothing comes is taken for dead.
///
/// The default is found after about two minutes; the system's own would take two hours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// How long nothing has come when the peer is asked for the first time; the system counts in seconds, from 1 to 32,767.
    pub idle: Duration,
    /// The time between two questions; as above.
    pub interval: Duration,
    /// Bound, in questions: after so many without an answer the connection is broken, and operations say `TimedOut`; 1 to 127.
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

/// Options. Each says in an error what the system says.
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
/// let error = stream.read(&mut [0; 16]).await.expect_err("nobody writes");
/// assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
/// # std::io::Result::Ok(())
/// # })).expect("no panic")?;
/// # std::io::Result::Ok(())
/// ```
impl TcpStream {
    /// Sends what is written at once, instead of waiting for more as long as an answer is due (Nagle's algorithm, RFC 896).
    ///
    /// # Errors
    /// What the system says.
    pub fn set_nodelay(&self, on: bool) -> io::Result<()> {
        self.set(|socket| socket.set_nodelay(on))
    }

    /// What [`set_nodelay`](Self::set_nodelay) has set.
    ///
    /// # Errors
    /// What the system says.
    pub fn nodelay(&self) -> io::Result<bool> {
        self.ask(Socket::nodelay)
    }

    /// Has the system ask a peer that sends nothing whether it is still there.
    ///
    /// # Errors
    /// `InvalidInput` outside of the ranges; what the system says.
    pub fn set_keep_alive(&self, keep_alive: Option<KeepAlive>) -> io::Result<()> {
        self.set(|socket| socket.set_keep_alive(keep_alive))
    }

    /// What [`set_keep_alive`](Self::set_keep_alive) has set.
    ///
    /// # Errors
    /// What the system says.
    pub fn keep_alive(&self) -> io::Result<Option<KeepAlive>> {
        self.ask(Socket::keep_alive)
    }

    /// What happens to bytes that are still on their way when the stream is dropped: by default (`None`) the system goes on
    /// sending them. With zero they are thrown away, and the peer sees that the connection was reset.
    ///
    /// A longer time makes the drop block its worker for so long, and is refused.
    ///
    /// # Errors
    /// `InvalidInput` for a time other than zero; what the system says.
    pub fn set_linger(&self, time: Option<Duration>) -> io::Result<()> {
        self.set(|socket| check_linger(time).and_then(|()| socket.set_linger(time)))
    }

    /// What [`set_linger`](Self::set_linger) has set.
    ///
    /// # Errors
    /// What the system says.
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        self.ask(Socket::linger)
    }

    packet_options!();

    /// Takes the error that the system has noted for the connection, if any. The next operation doesn't report it then.
    ///
    /// # Errors
    /// What the system says.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.ask(Socket::take_error)
    }

    time_limits!();

    /// Limits the rate at which the stream is read, from the next operation on; several streams may share a limit.
    pub fn set_read_limit(&self, limit: Option<Arc<RateLimit>>) {
        if limit.is_some() || self.extra().is_some() {
            self.make_extra().set_limit(limit);
        }
    }

    /// What [`set_read_limit`](Self::set_read_limit) has set.
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

/// Refuses what would block.
pub(super) fn check_linger(time: Option<Duration>) -> io::Result<()> {
    if time.is_some_and(|time| !time.is_zero()) {
        let text = "expected to linger for no time, or without a limit: else the drop would block";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    Ok(())
}
