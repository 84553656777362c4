//! An encrypted connection.

use std::future::Future as _;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Shutdown};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_rustls::rustls::ServerConfig;
use futures_rustls::server::TlsStream;
use futures_rustls::{Accept, TlsAcceptor};
use parking_lot::Mutex;
use tussah::net::TcpStream;

/// A connection by TLS. Only its thread uses it; the lock is for the compiler.
pub(crate) struct Tls {
    state: Mutex<State>,
    peer: IpAddr,
}

enum State {
    Shaking(Accept<TcpStream>),
    Open(TlsStream<TcpStream>),
    /// The handshake has failed.
    Failed,
}

impl Tls {
    /// A connection that has not been agreed on.
    pub(crate) fn new(stream: TcpStream, config: Arc<ServerConfig>) -> Self {
        let peer = stream.peer_addr();
        let peer = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.ip());
        let accept = TlsAcceptor::from(config).accept(stream);
        Self {
            state: Mutex::new(State::Shaking(accept)),
            peer,
        }
    }

    pub(super) fn peer(&self) -> IpAddr {
        self.peer
    }

    /// Agrees with the peer.
    pub(super) fn poll_handshake(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.state.lock();
        let State::Shaking(accept) = &mut *state else {
            return Poll::Ready(Ok(()));
        };
        let shaken = ready!(Pin::new(accept).poll(cx));
        let (next, result) = match shaken {
            Ok(stream) => (State::Open(stream), Ok(())),
            Err(error) => (State::Failed, Err(error)),
        };
        *state = next;
        Poll::Ready(result)
    }

    /// Ends both directions at once; not a handshake, which has its own time limit.
    pub(super) fn cut(&self) -> io::Result<()> {
        let cut = self.with_tcp(|stream| stream.shutdown(Shutdown::Both));
        cut.unwrap_or(Ok(()))
    }

    /// Has the connection reset when it is closed.
    pub(super) fn set_linger(&self, time: Option<Duration>) -> io::Result<()> {
        let set = self.with_tcp(|stream| stream.set_linger(time));
        set.unwrap_or(Ok(()))
    }

    /// What a function says of the stream beneath; `None` if it has not been agreed on how that is encrypted.
    pub(super) fn with_tcp<R>(&self, f: impl FnOnce(&TcpStream) -> R) -> Option<R> {
        match &*self.state.lock() {
            State::Open(stream) => Some(f(stream.get_ref().0)),
            State::Shaking(_) | State::Failed => None,
        }
    }

    pub(super) fn with<R>(
        &self,
        f: impl FnOnce(Pin<&mut TlsStream<TcpStream>>) -> Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        match &mut *self.state.lock() {
            State::Open(stream) => f(Pin::new(stream)),
            State::Shaking(_) | State::Failed => {
                Poll::Ready(Err(io::ErrorKind::NotConnected.into()))
            }
        }
    }
}
