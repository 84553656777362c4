//! Connecting to the server.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_io::{AsyncRead, AsyncWrite};
use futures_rustls::TlsConnector;
use futures_rustls::client::TlsStream;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::IpBindAddressNoPort;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, ipproto};
use rustls::pki_types::ServerName;
use tussah::net::{TcpStream, UnixStream};
use tussah::time::timeout;

use super::fault::Fault;

/// The way to reach the server.
#[derive(Clone)]
pub(in crate::load) struct Dial {
    pub(in crate::load) peer: Peer,
    pub(in crate::load) tls: Option<(TlsConnector, ServerName<'static>)>,
    /// The addresses from which clients connect, in rotation. If there are none, the system chooses
    /// the address.
    pub(in crate::load) sources: Vec<IpAddr>,
    pub(in crate::load) limit: Duration,
}

/// The address of the server.
#[derive(Clone, Debug)]
pub(in crate::load) enum Peer {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// The reason why there is no connection, or no longer one.
#[derive(Debug)]
pub(in crate::load) struct Failure {
    pub(in crate::load) fault: Fault,
    /// The error of the system or of TLS.
    pub(in crate::load) error: Option<io::Error>,
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self { fault, error: None }
    }
}

impl Dial {
    /// Connects for a client, within the time limit.
    pub(in crate::load) async fn connect(&self, client: usize) -> Result<Stream, Failure> {
        match timeout(self.limit, self.connect_unlimited(client)).await {
            Ok(result) => result,
            Err(_) => Err(Fault::ConnectTimeout.into()),
        }
    }

    async fn connect_unlimited(&self, client: usize) -> Result<Stream, Failure> {
        let failed = |error| Failure {
            fault: Fault::of_connect(&error),
            error: Some(error),
        };
        let stream = match &self.peer {
            Peer::Unix(path) => {
                let stream = UnixStream::connect(path).await.map_err(failed)?;
                return Ok(Stream::Unix(stream));
            }
            Peer::Tcp(address) if self.sources.is_empty() => {
                let options = TcpStream::builder().nodelay(true);
                options.connect(*address).await.map_err(failed)?
            }
            Peer::Tcp(address) => {
                let source = self.sources[client % self.sources.len()];
                let connected = connect_from(source, *address).await;
                connected.map_err(|error| {
                    let text = format!("connect to {address} from {source}: {error}");
                    Failure {
                        fault: Fault::of_connect(&error),
                        error: Some(io::Error::other(text)),
                    }
                })?
            }
        };
        let Some((connector, name)) = &self.tls else {
            return Ok(Stream::Tcp(stream));
        };
        let handshake = connector.connect(name.clone(), stream).await;
        let stream = handshake.map_err(|error| Failure {
            fault: Fault::Tls,
            error: Some(error),
        })?;
        Ok(Stream::Tls(Box::new(stream)))
    }
}

/// Connects from an address of this machine. With `IP_BIND_ADDRESS_NO_PORT` the system chooses the
/// port last. The port then only needs to differ from the ports of connections to the same server,
/// and ports in TIME_WAIT on this machine are available.
async fn connect_from(source: IpAddr, address: SocketAddr) -> io::Result<TcpStream> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = net::socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    // A system without the option chooses the port immediately.
    let _ = setsockopt(&socket, IpBindAddressNoPort, &true);
    net::bind(&socket, &SocketAddr::new(source, 0))?;
    match net::connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => {}
        Err(error) => return Err(error.into()),
    }
    let stream = TcpStream::from_std(socket.into())?;
    stream.writable().await?;
    if let Some(error) = stream.take_error()? {
        return Err(error);
    }
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// A connection to the server.
pub(in crate::load) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    pub(in crate::load) fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Unix(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_read(context, buffer),
        }
    }

    /// Writes. TLS may hold back some of the data until [`poll_flush`](Self::poll_flush).
    pub(in crate::load) fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(context, buffers),
            Self::Unix(stream) => Pin::new(stream).poll_write_vectored(context, buffers),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_write_vectored(context, buffers),
        }
    }

    /// Sends the data that TLS holds back.
    pub(in crate::load) fn poll_flush(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(_) | Self::Unix(_) => Poll::Ready(Ok(())),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_flush(context),
        }
    }

    /// Makes dropping the connection reset it instead of closing it.
    pub(in crate::load) fn reset_on_drop(&self) {
        let set = |stream: &TcpStream| stream.set_linger(Some(Duration::ZERO));
        // If the option cannot be set, the connection is closed like any other.
        let _ = match self {
            Self::Tcp(stream) => set(stream),
            Self::Tls(stream) => set(stream.get_ref().0),
            Self::Unix(_) => Ok(()),
        };
    }
}
