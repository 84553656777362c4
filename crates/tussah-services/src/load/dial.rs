//! Connecting to the server.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_io::{AsyncRead, AsyncWrite};
use futures_rustls::TlsConnector;
use futures_rustls::client::TlsStream;
use rustls::pki_types::ServerName;
use tussah::net::{TcpStream, UnixStream};
use tussah::time::timeout;

use super::fault::Fault;

/// How the server is reached.
#[derive(Clone)]
pub(super) struct Dial {
    pub(super) peer: Peer,
    pub(super) tls: Option<(TlsConnector, ServerName<'static>)>,
    /// The addresses that clients connect from, in turn; none: the system chooses.
    pub(super) sources: Vec<IpAddr>,
    pub(super) limit: Duration,
}

/// Where the server listens.
#[derive(Clone, Debug)]
pub(super) enum Peer {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// Why there is no connection, or no more.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) fault: Fault,
    /// What the system, or TLS, said.
    pub(super) error: Option<io::Error>,
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self { fault, error: None }
    }
}

impl Dial {
    /// Connects for a client, within the time limit.
    pub(super) async fn connect(&self, client: usize) -> Result<Stream, Failure> {
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
            Peer::Tcp(address) => {
                let mut options = TcpStream::builder().nodelay(true);
                if !self.sources.is_empty() {
                    let source = self.sources[client % self.sources.len()];
                    options = options.bind(SocketAddr::new(source, 0));
                }
                options.connect(*address).await.map_err(failed)?
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

/// A connection to the server.
pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    pub(super) fn poll_read(
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

    /// Writes, and hands over what TLS has kept back.
    pub(super) fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(context, buffers),
            Self::Unix(stream) => Pin::new(stream).poll_write_vectored(context, buffers),
            Self::Tls(stream) => {
                let mut stream = Pin::new(&mut **stream);
                let written = ready!(stream.as_mut().poll_write_vectored(context, buffers));
                // What it can't hand over now, it does with the next write or read.
                let _ = stream.poll_flush(context)?;
                Poll::Ready(written)
            }
        }
    }

    /// Resets the connection when it is dropped, instead of closing it.
    pub(super) fn reset_on_drop(&self) {
        let set = |stream: &TcpStream| stream.set_linger(Some(Duration::ZERO));
        // If it can't be set, the connection is closed as any other.
        let _ = match self {
            Self::Tcp(stream) => set(stream),
            Self::Tls(stream) => set(stream.get_ref().0),
            Self::Unix(_) => Ok(()),
        };
    }
}
