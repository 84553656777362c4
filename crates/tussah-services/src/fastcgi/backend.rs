//! An application server with its pool of connections.

use std::fmt;
use std::num::NonZeroU16;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use futures_io::AsyncRead;
use parking_lot::Mutex;
use tussah::sync::{Limit, LimitPermit};
use tussah::time::{now, sleep, timeout};
use tussah::{Handle, JoinHandle};
use tussah_wire::cgi;

use super::address::Address;
use super::connection::Connection;
use super::exchange::Exchange;
use super::failure::Failure;
use super::params::Params;
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
    /// The time after which an idle connection is closed, so that its process of php-fpm can serve
    /// another server; 5 s by default.
    pub idle: Duration,
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
            idle: Duration::from_secs(5),
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
    idle: Mutex<Idle>,
}

/// The idle connections.
#[derive(Default)]
struct Idle {
    /// The connections, each with the time since which it has been idle, in the order of these
    /// times. The last one is used first, so that the others can time out.
    connections: Vec<(Instant, Connection)>,
    /// The thread that closes them, if there is one. It has not finished while there are
    /// connections, unless its runtime has shut down.
    closer: Option<JoinHandle<()>>,
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
        self.0.idle.lock().connections.len()
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
    pub async fn request<B: AsyncRead + Unpin>(
        &self,
        params: Params,
        body: B,
    ) -> Result<Response<B>, Failure> {
        let permit = self.0.permit().await?;
        let connection = match self.0.take_idle(params.may_repeat()) {
            Some(connection) => (connection, true),
            None => (self.0.connect(NonZeroU16::MIN).await?, false),
        };
        let (pool, is_head) = (Arc::clone(&self.0), params.is_head());
        let exchange = Exchange::new(pool, permit, connection, params, body);
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
        while let Some((_, mut connection)) = idle.connections.pop() {
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
        // In a box, because the futures around it would be much longer.
        let connected = Box::pin(timeout(time, Connection::open(&self.address, id))).await;
        let connected = connected.map_err(|_| Failure::ConnectTime(time))?;
        connected.map_err(Failure::Connect)
    }

    /// Keeps a connection whose request has ended. There are at most as many as permits, because
    /// the request still holds its permit.
    pub(super) fn keep(self: &Arc<Self>, connection: Connection) {
        let mut idle = self.idle.lock();
        idle.connections.push((now(), connection));
        let is_closing = |closer: &JoinHandle<()>| !closer.is_finished();
        if !idle.closer.as_ref().is_some_and(is_closing) {
            let closer = close_idle(Arc::downgrade(self));
            // Outside of a runtime, and after its shutdown, the end of the pool closes them.
            let handle = Handle::try_current().ok();
            idle.closer = handle.and_then(|handle| handle.try_spawn(closer).ok());
        }
    }

    /// Closes the connections that have been idle for too long. Returns the time until the next one
    /// will have been, or none if the pool needs no closer until it keeps another connection.
    fn close_idle(&self) -> Option<Duration> {
        let now = now();
        let mut idle = self.idle.lock();
        let left = |(since, _): &(Instant, _)| {
            let past = now.saturating_duration_since(*since);
            self.options.idle.saturating_sub(past)
        };
        let count = idle.connections.partition_point(|one| left(one).is_zero());
        let closed: Vec<_> = idle.connections.drain(..count).collect();
        let next = idle.connections.first().map(left);
        if next.is_none() {
            idle.closer = None;
        }
        drop(idle); // closing takes a system call for each
        drop(closed);
        next
    }
}

/// Closes idle connections of a pool in time, until there are none, or no pool.
async fn close_idle(pool: Weak<Pool>) {
    while let Some(time) = pool.upgrade().and_then(|pool| pool.close_idle()) {
        sleep(time).await;
    }
}

/// A place in the queue.
struct Place<'a>(&'a AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
