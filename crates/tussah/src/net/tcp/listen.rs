//! How a TCP listener is made.

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

/// Bound, in connections: how many the system keeps that have not been accepted, unless it is set otherwise; enough for a
/// burst of clients while the acceptor is busy. The system has a bound of its own besides (`net.core.somaxconn`).
const BACKLOG: u32 = 1024;

/// How a listener is to be made; begins with [`TcpListener::builder`].
#[derive(Clone, Debug)]
#[must_use = "it does nothing before `bind`"]
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
    /// Bound, in connections: how many the system keeps that have not been accepted; 1024 by default. Clients beyond that wait
    /// or are refused.
    pub fn backlog(self, connections: u32) -> Self {
        Self {
            backlog: connections,
            ..self
        }
    }

    /// Whether the port may be had while connections of a former listener are still ending; on by default.
    pub fn reuse_address(self, on: bool) -> Self {
        Self {
            reuse_address: on,
            ..self
        }
    }

    /// Whether several listeners of one user may have the port; the system spreads the connections over them.
    pub fn reuse_port(self, on: bool) -> Self {
        Self {
            reuse_port: on,
            ..self
        }
    }

    /// Whether an IPv6 listener refuses connections by IPv4; the system decides by default.
    pub fn v6only(self, on: bool) -> Self {
        Self {
            v6only: Some(on),
            ..self
        }
    }

    /// How many routers the packets of its connections may pass.
    pub fn ttl(self, hops: u32) -> Self {
        Self {
            ttl: Some(hops),
            ..self
        }
    }

    /// Whether its connections begin with [`TcpStream::set_nodelay`](super::TcpStream::set_nodelay) on; off by default. It costs no system call of theirs.
    pub fn nodelay(self, on: bool) -> Self {
        Self {
            nodelay: on,
            ..self
        }
    }

    /// Bound, in connections: accepting waits while so many accepted streams live, so that clients wait in the system's queue.
    /// A stream that was split counts until both halves are gone. The listeners of
    /// [`bind_per_worker`](Self::bind_per_worker) share it.
    ///
    /// # Panics
    /// If that is none.
    #[track_caller]
    pub fn connections_max(self, connections: usize) -> Self {
        assert!(connections > 0, "a listener is for one connection at least");
        Self {
            connections_max: Some(connections),
            ..self
        }
    }

    /// Whether accepting fails, instead of waiting, when the process or the system has no descriptor or memory left.
    pub fn exhaustion_fails(self, on: bool) -> Self {
        Self {
            exhaustion_fails: on,
            ..self
        }
    }

    /// Listens; see [`TcpListener::bind`].
    ///
    /// # Errors
    /// As [`TcpListener::bind`].
    ///
    /// # Panics
    /// Outside of a runtime.
    ///
    /// # Examples
    /// ```
    /// use tussah::net::TcpListener;
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// # runtime.block_on(runtime.spawn(async move {
    /// let listener = TcpListener::builder().backlog(4096).bind("127.0.0.1:0")?;
    /// let error = TcpListener::bind(listener.local_addr()?).expect_err("it is taken");
    /// assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    /// # std::io::Result::Ok(())
    /// # })).expect("no panic")?;
    /// # std::io::Result::Ok(())
    /// ```
    #[track_caller]
    pub fn bind(&self, address: impl ToAddresses) -> io::Result<TcpListener> {
        self.bind_with(address, &self.semaphore())
    }

    /// Makes one listener for each worker of the runtime, all at the same port, for a thread each that accepts: the system spreads
    /// the connections over them, and no queue is shared.
    ///
    /// The system does so without asking who is busy. So accept from all of them as long as they exist: what it has
    /// queued for one goes to no other, and is refused when that one is dropped.
    ///
    /// # Errors
    /// As [`TcpListener::bind`].
    ///
    /// # Panics
    /// Outside of a runtime.
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
        // If the system chose the port, it is the same for all.
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
