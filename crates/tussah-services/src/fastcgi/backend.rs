//! An application server with its pool of connections.

use std::fmt;
use std::num::NonZeroU16;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_io::AsyncRead;
use parking_lot::Mutex;
use tussah::sync::{Limit, LimitPermit};
use tussah::time::timeout;
use tussah_wire::cgi;

use super::address::Address;
use super::connection::Connection;
use super::exchange::Exchange;
use super::failure::Failure;
use super::response::Response;

/// The limits of a [`Backend`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Bound, in connections: at most this many may be open at the same time; 5 by default. Even an
    /// idle connection occupies a process of php-fpm. The number of connections must therefore not
    /// exceed `pm.max_children` in the configuration of php-fpm, which is 5 on Debian.
    pub connections: usize,
    /// Bound, in requests: at most this many may wait for a connection at the same time; 1024 by
    /// default. A further request fails immediately.
    pub waiting: usize,
    /// The maximum time that a request waits for a free connection; 10 s by default.
    pub queue: Duration,
    /// The time limit for connecting to the application server; 5 s by default.
    pub connect: Duration,
    /// The time after which a request fails if the application neither reads nor sends a byte; 60 s
    /// by default.
    pub silence: Duration,
    /// The limits on the head of a response.
    pub head: cgi::Limits,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            connections: 5,
            waiting: 1024,
            queue: Duration::from_secs(10),
            connect: Duration::from_secs(5),
            silence: Duration::from_secs(60),
            head: cgi::Limits::default(),
        }
    }
}

/// An application server with its pool of connections. Clones share the pool.
#[derive(Clone)]
pub struct Backend(Arc<Pool>);

pub(super) struct Pool {
    pub(super) address: Address,
    pub(super) options: Options,
    limit: Limit,
    waiting: AtomicUsize,
    /// The idle connections. The last one is used first, so that the others can time out.
    idle: Mutex<Vec<Connection>>,
}

impl Backend {
    /// Creates a backend without connections; the first requests open them.
    #[must_use]
    pub fn new(address: Address, options: Options) -> Self {
        Self(Arc::new(Pool {
            limit: Limit::new(format!("fastcgi {address}"), options.connections),
            waiting: AtomicUsize::new(0),
            idle: Mutex::default(),
            address,
            options,
        }))
    }

    /// Returns the address.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.0.address
    }

    /// Returns the limit on the number of connections. Each request in service holds a permit of
    /// this limit.
    #[must_use]
    pub fn limit(&self) -> &Limit {
        &self.0.limit
    }

    /// Returns the number of idle connections.
    #[must_use]
    pub fn idle(&self) -> usize {
        self.0.idle.lock().len()
    }

    /// Sends a request with the given variables and body, and waits for the head of the response.
    /// If the body is not empty, the variables must include its length, `CONTENT_LENGTH`.
    ///
    /// If a reused connection breaks before any byte of the request has been sent, the method sends
    /// the request on a new connection. A GET or HEAD request without a body is sent a second time
    /// if a reused connection breaks before any byte of the response has arrived (RFC 9110, section
    /// 9.2.2).
    ///
    /// # Cancellation
    /// Dropping the future or the response closes the connection, unless the response is complete.
    /// The application notices the closed connection when it next writes.
    ///
    /// # Errors
    /// Returns the reason why no response was received.
    pub async fn request<N: AsRef<str>, V: AsRef<[u8]>, B: AsyncRead + Unpin>(
        &self,
        variables: &[(N, V)],
        body: B,
    ) -> Result<Response<B>, Failure> {
        let permit = self.0.permit().await?;
        let is = |name: &str, value: &[u8]| {
            let mut variables = variables.iter();
            variables.any(|one| (one.0.as_ref(), one.1.as_ref()) == (name, value))
        };
        let is_head = is("REQUEST_METHOD", b"HEAD");
        let is_safe = is_head || is("REQUEST_METHOD", b"GET");
        let may_repeat = is_safe && is("CONTENT_LENGTH", b"");
        let connection = match self.0.take_idle(may_repeat) {
            Some(connection) => (connection, true),
            None => (self.0.connect(NonZeroU16::MIN).await?, false),
        };
        let pool = Arc::clone(&self.0);
        let exchange = Exchange::new(pool, permit, connection, variables, is_safe, body);
        Response::begin(exchange, is_head).await
    }
}

impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backend")
            .field("address", &self.0.address)
            .field("limit", &self.0.limit)
            .finish_non_exhaustive()
    }
}

impl Pool {
    /// Waits for a permit in the bounded queue.
    async fn permit(&self) -> Result<LimitPermit, Failure> {
        if let Some(permit) = self.limit.try_acquire() {
            return Ok(permit);
        }
        // Relaxed: the counter orders nothing else.
        let waiting = self.waiting.fetch_add(1, Ordering::Relaxed);
        let _place = Place(&self.waiting);
        if waiting >= self.options.waiting {
            return Err(Failure::Busy(waiting));
        }
        let time = self.options.queue;
        let permit = timeout(time, self.limit.acquire()).await;
        permit.map_err(|_| Failure::Queue(time))
    }

    /// Takes an idle connection that the peer has not closed. If the request may be repeated, a
    /// connection whose end the driver has not reported yet is good enough.
    fn take_idle(&self, may_repeat: bool) -> Option<Connection> {
        let mut idle = self.idle.lock();
        while let Some(mut connection) = idle.pop() {
            if connection.is_fresh(may_repeat) {
                connection.next_request();
                return Some(connection);
            }
        }
        None
    }

    /// Opens a connection for a request with this number.
    pub(super) async fn connect(&self, id: NonZeroU16) -> Result<Connection, Failure> {
        let time = self.options.connect;
        let connected = timeout(time, Connection::open(&self.address, id)).await;
        let connected = connected.map_err(|_| Failure::ConnectTime(time))?;
        connected.map_err(Failure::Connect)
    }

    /// Keeps a connection whose request has ended. There are at most as many as permits, because
    /// the request still holds its permit.
    pub(super) fn keep(&self, connection: Option<Connection>) {
        self.idle.lock().extend(connection);
    }
}

/// A place in the queue.
struct Place<'a>(&'a AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
