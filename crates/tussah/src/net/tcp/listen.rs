//! Options of TCP listeners.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use async_lock::Semaphore;
use rustix::net::{SocketType, ipproto};
use tussah_core::Handle;

use super::listener::TcpListener;
use crate::io_error::context;
use crate::net::ToAddresses;
use crate::net::socket::{Socket, family};

/// Bound, in connections: the default maximum length of the system's queue of pending
/// connections. The queue is long enough for a burst of clients while the acceptor is busy. The
/// system's own limit (`net.core.somaxconn`) also applies.
const BACKLOG: u32 = 1024;

/// Options for listening, created by [`TcpListener::builder`].
#[derive(Clone, Debug)]
#[must_use = "options do nothing until `bind` is called"]
pub struct ListenOptions {
    backlog: u32,
    reuse_address: bool,
    reuse_port: bool,
    v6only: Option<bool>,
    ttl: Option<u32>,
    nodelay: bool,
    connections_max: Option<usize>,
    exhaustion_fails: bool,
}

impl Default for ListenOptions {
    fn default() -> Self {
        Self {
            backlog: BACKLOG,
            reuse_address: true,
            reuse_port: false,
            v6only: None,
            ttl: None,
            nodelay: false,
            connections_max: None,
            exhaustion_fails: false,
        }
    }
}

impl ListenOptions {
    /// Bound, in connections: sets the maximum length of the system's queue of pending
    /// connections. Default: 1024. When the queue is full, the operating system makes further
    /// clients wait, or refuses them.
    pub fn backlog(self, connections: u32) -> Self {
        Self {
            backlog: connections,
            ..self
        }
    }

    /// Sets whether the port can be bound while connections of an earlier listener are still
    /// closing. Default: true.
    pub fn reuse_address(self, on: bool) -> Self {
        Self {
            reuse_address: on,
            ..self
        }
    }

    /// Sets whether several listeners of the same user can share the port. The system distributes
    /// the connections among these listeners. Default: false.
    pub fn reuse_port(self, on: bool) -> Self {
        Self {
            reuse_port: on,
            ..self
        }
    }

    /// Sets whether an IPv6 listener refuses IPv4 connections. The default is determined by a
    /// setting of the operating system (`net.ipv6.bindv6only`).
    pub fn v6only(self, on: bool) -> Self {
        Self {
            v6only: Some(on),
            ..self
        }
    }

    /// Sets the TTL (maximum hops) of packets sent on the listener's connections.
    pub fn ttl(self, hops: u32) -> Self {
        Self {
            ttl: Some(hops),
            ..self
        }
    }

    /// Sets [`TCP_NODELAY`](super::TcpStream::set_nodelay) on accepted connections. The connections
    /// inherit the option from the listener, which saves a system call for each connection.
    /// Default: false.
    pub fn nodelay(self, on: bool) -> Self {
        Self {
            nodelay: on,
            ..self
        }
    }

    /// Bound, in connections: sets the maximum number of accepted streams that are open at the same
    /// time. When the maximum is reached, `accept` waits until the number falls, and further
    /// clients stay in the system's queue. A split stream counts as open until both of its halves
    /// are dropped. The listeners that [`bind_per_worker`](Self::bind_per_worker) creates share one
    /// limit. Default: no limit.
    ///
    /// # Panics
    /// Panics if the number is 0.
    #[track_caller]
    pub fn connections_max(self, connections: usize) -> Self {
        assert!(
            connections > 0,
            "a listener must allow at least one connection"
        );
        Self {
            connections_max: Some(connections),
            ..self
        }
    }

    /// Sets whether [`accept`](TcpListener::accept) returns an error instead of waiting when the
    /// process or the operating system has run out of descriptors or memory. Default: false.
    pub fn exhaustion_fails(self, on: bool) -> Self {
        Self {
            exhaustion_fails: on,
            ..self
        }
    }

    /// Listens with these options; see [`TcpListener::bind`].
    ///
    /// # Errors
    /// Same as [`TcpListener::bind`].
    ///
    /// # Panics
    /// Panics if called outside a runtime.
    ///
    /// # Examples
    /// ```
    /// use tussah::net::TcpListener;
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// # runtime.block_on(runtime.spawn(async move {
    /// let listener = TcpListener::builder().backlog(4096).bind("127.0.0.1:0")?;
    /// let error = TcpListener::bind(listener.local_addr()?).expect_err("it is in use");
    /// assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    /// # std::io::Result::Ok(())
    /// # })).expect("no panic")?;
    /// # std::io::Result::Ok(())
    /// ```
    #[track_caller]
    pub fn bind(&self, address: impl ToAddresses) -> io::Result<TcpListener> {
        self.bind_with(address, &self.semaphore())
    }

    /// Creates one listener for each worker of the runtime, all on the same port. For each
    /// listener, start a thread that accepts its connections. The system distributes the
    /// connections among the listeners, each of which has its own queue.
    ///
    /// The operating system does not consider how busy each listener is. As long as a listener
    /// exists, a thread must therefore accept its connections. A connection queued for one listener
    /// never moves to another one, and is reset when its listener is dropped.
    ///
    /// # Errors
    /// Same as [`TcpListener::bind`].
    ///
    /// # Panics
    /// Panics if called outside a runtime.
    ///
    /// # Examples
    /// ```
    /// use tussah::net::TcpListener;
    /// # let runtime = tussah::Runtime::builder().workers(2).build()?;
    /// # runtime.block_on(runtime.spawn(async move {
    /// let listeners = TcpListener::builder().bind_per_worker("127.0.0.1:0")?;
    /// assert_eq!(listeners.len(), 2);
    /// for listener in listeners {
    ///     tussah::spawn(async move {
    ///         while let Ok((stream, _peer)) = listener.accept().await {
    ///             tussah::spawn(async move { stream.write_all(b"hello").await });
    ///         }
    ///     });
    /// }
    /// # std::io::Result::Ok(())
    /// # })).expect("no panic")?;
    /// # std::io::Result::Ok(())
    /// ```
    #[track_caller]
    pub fn bind_per_worker(&self, address: impl ToAddresses) -> io::Result<Vec<TcpListener>> {
        let options = self.clone().reuse_port(true);
        let connections = options.semaphore();
        let first = options.bind_with(address, &connections)?;
        // If the system chose the port, use it for all listeners.
        let local = first.local_addr()?;
        let mut all = vec![first];
        while all.len() < Handle::with_current(Handle::workers) {
            all.push(options.bind_with(local, &connections)?);
        }
        Ok(all)
    }

    fn semaphore(&self) -> Option<Arc<Semaphore>> {
        let connections = self.connections_max?;
        Some(Arc::new(Semaphore::new(connections)))
    }

    #[track_caller]
    fn bind_with(
        &self,
        address: impl ToAddresses,
        connections: &Option<Arc<Semaphore>>,
    ) -> io::Result<TcpListener> {
        let mut last = None;
        for &address in address.to_addresses()?.as_slice() {
            match self.listen_at(address) {
                Ok(socket) => {
                    let connections = connections.clone();
                    return Ok(TcpListener::new(
                        socket,
                        connections,
                        self.exhaustion_fails,
                        !self.reuse_port,
                    ));
                }
                Err(error) => last = Some(context(error, "listen at", address)),
            }
        }
        let none = || io::Error::new(io::ErrorKind::InvalidInput, "expected an address");
        Err(last.unwrap_or_else(none))
    }

    #[track_caller]
    fn listen_at(&self, address: SocketAddr) -> io::Result<Socket> {
        let socket = Socket::make(family(&address), SocketType::STREAM, Some(ipproto::TCP))?;
        if self.reuse_address {
            socket.set_reuse_address(true)?;
        }
        if self.reuse_port {
            socket.set_reuse_port(true)?;
        }
        if let Some(on) = self.v6only
            && address.is_ipv6()
        {
            socket.set_v6only(on)?;
        }
        if let Some(hops) = self.ttl {
            socket.set_ttl(hops)?;
        }
        if self.nodelay {
            socket.set_nodelay(true)?;
        }
        socket.bind(&address.into())?;
        socket.listen(self.backlog.try_into().unwrap_or(i32::MAX))?;
        Ok(socket)
    }
}
