//! The sockets, timers and threads for the resolver library.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_io::{AsyncRead, AsyncWrite};
use hickory_resolver::net::runtime::{DnsTcpStream, DnsUdpSocket, RuntimeProvider, Spawn, Time};
use rustix::net::{RecvFlags, SocketType, ipproto};

use crate::net::TcpStream;
use crate::net::socket::{Direction, Socket, family, internet};
use crate::time;

/// The default timeout for connecting to a server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The environment of the library. It names no runtime: sockets, timers and threads belong to the
/// runtime in which a lookup is polled, and `Resolver` ensures that this is the resolver's runtime.
#[derive(Clone, Copy, Debug)]
pub(super) struct Provider;

type Boxed<T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send>>;

impl RuntimeProvider for Provider {
    type Handle = Threads;
    type Timer = Timer;
    type Udp = Udp;
    type Tcp = Tcp;

    fn create_handle(&self) -> Threads {
        Threads
    }

    fn connect_tcp(
        &self,
        server: SocketAddr,
        _: Option<SocketAddr>,
        timeout: Option<Duration>,
    ) -> Boxed<Tcp> {
        let limit = timeout.unwrap_or(CONNECT_TIMEOUT);
        let connect = TcpStream::connect_timeout(server, limit);
        Box::pin(async { Ok(Tcp(connect.await?)) })
    }

    fn bind_udp(&self, local: SocketAddr, server: SocketAddr) -> Boxed<Udp> {
        Box::pin(async move { Udp::new(local, server) })
    }
}

/// Starts threads in the current runtime.
#[derive(Clone, Copy, Debug)]
pub(super) struct Threads;

impl Spawn for Threads {
    fn spawn_bg(&mut self, future: impl Future<Output = ()> + Send + 'static) {
        crate::spawn(future);
    }
}

/// The timers of the current runtime.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timer;

// The signatures follow `async_trait`. The time is measured from the call, not from the first poll.
impl Time for Timer {
    fn delay_for<'a>(duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(time::sleep(duration))
    }

    fn timeout<'a, F>(
        duration: Duration,
        future: F,
    ) -> Pin<Box<dyn Future<Output = io::Result<F::Output>> + Send + 'a>>
    where
        F: Future + Send + 'static + 'a,
    {
        let timeout = time::timeout(duration, future);
        Box::pin(async { Ok(timeout.await?) })
    }
}

/// A socket for one question to one server.
///
/// It is connected, so the system drops datagrams from other addresses and ports, and reports
/// immediately if no process listens on the port.
#[derive(Debug)]
pub(super) struct Udp(Socket);

impl Udp {
    fn new(local: SocketAddr, server: SocketAddr) -> io::Result<Self> {
        let socket = Socket::make(family(&server), SocketType::DGRAM, Some(ipproto::UDP))?;
        socket.bind(&local.into())?;
        socket.connect(&server.into())?;
        Ok(Self(socket))
    }
}

impl DnsUdpSocket for Udp {
    type Time = Timer;

    fn poll_recv_from(
        &self,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<(usize, SocketAddr)>> {
        self.0.poll_operate(context, Direction::Read, || {
            let (len, from) = self.0.receive_from(&mut *buffer, RecvFlags::empty())?;
            let from = from.ok_or_else(|| io::Error::other("a datagram without a sender"))?;
            Ok((len, internet(from)?))
        })
    }

    fn poll_send_to(
        &self,
        context: &mut Context<'_>,
        datagram: &[u8],
        _: SocketAddr,
    ) -> Poll<io::Result<usize>> {
        self.0
            .poll_operate(context, Direction::Write, || self.0.send_to(datagram, None))
    }
}

/// A connection to a server, for one answer that is too long for a datagram.
#[derive(Debug)]
pub(super) struct Tcp(TcpStream);

impl AsyncRead for Tcp {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Tcp {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_close(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_close(context)
    }
}

impl DnsTcpStream for Tcp {
    type Time = Timer;
}
