//! An encrypted connection.

use std::future::Future as _;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Shutdown};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_rustls::rustls::{ServerConfig, ServerConnection};
use futures_rustls::server::TlsStream;
use futures_rustls::{Accept, TlsAcceptor};
use parking_lot::Mutex;
use tussah::net::{Hangup, TcpStream};

use super::More;

/// A TLS connection. Only its thread uses it; the lock only satisfies the compiler.
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
    /// Creates a connection before its handshake.
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

    /// Performs the handshake.
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

    /// Ends both directions immediately, except during a handshake, which has its own time limit.
    pub(super) fn cut(&self) -> io::Result<()> {
        let cut = self.with_tcp(|stream| stream.shutdown(Shutdown::Both));
        cut.unwrap_or(Ok(()))
    }

    /// Makes closing reset the connection.
    pub(super) fn set_linger(&self, time: Option<Duration>) -> io::Result<()> {
        let set = self.with_tcp(|stream| stream.set_linger(time));
        set.unwrap_or(Ok(()))
    }

    /// Does what [`Stream::poll_more`](super::Stream::poll_more) does. A `close_notify` may follow
    /// other records, so these are read as far as the session has room (16 KiB of plaintext). The
    /// thread reads them after the request is answered.
    pub(super) fn poll_more(&self, cx: &mut Context<'_>, gone_at: Hangup) -> Poll<More> {
        let mut state = self.state.lock();
        let State::Open(stream) = &mut *state else {
            return Poll::Pending;
        };
        let (tcp, session) = stream.get_mut();
        while !has_closed(session, gone_at) {
            // Without anything to read, the client has not hung up.
            if tcp.poll_readable(cx).is_pending() {
                return Poll::Pending;
            }
            match session.read_tls(&mut Incoming(tcp)) {
                Ok(1..) if session.process_new_packets().is_ok() => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // This is the end, a full session, or data that TLS rejects.
                _ => {
                    return match tcp.poll_hangup(cx, gone_at) {
                        Poll::Ready(Ok(())) => Poll::Ready(More::Gone),
                        Poll::Pending | Poll::Ready(Err(_)) => Poll::Ready(More::Bytes),
                    };
                }
            }
        }
        Poll::Ready(More::Gone)
    }

    /// Returns whether the client is known to have hung up at least as far as `hangup`.
    pub(super) fn has_hung_up(&self, hangup: Hangup) -> bool {
        match &mut *self.state.lock() {
            State::Open(stream) => {
                let (tcp, session) = stream.get_mut();
                tcp.has_hung_up(hangup) || has_closed(session, hangup)
            }
            State::Shaking(_) | State::Failed => false,
        }
    }

    /// Calls a function with the TCP stream; returns `None` before the handshake is complete.
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

/// Returns whether the client has announced the end of its data, which is half of a hang-up.
fn has_closed(session: &mut ServerConnection, hangup: Hangup) -> bool {
    let state = session.process_new_packets(); // there are none: it only checks
    hangup == Hangup::Half && state.is_ok_and(|state| state.peer_has_closed())
}

/// The available TCP data, without waiting.
struct Incoming<'a>(&'a TcpStream);

impl io::Read for Incoming<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(buffer)
    }
}
