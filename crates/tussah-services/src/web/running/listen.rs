//! Listeners.

use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixStream as StdStream;
use std::path::Path;
use std::sync::Arc;

use parking_lot::RwLock;
use tussah::JoinHandle;
use tussah::net::{TcpListener, UnixListener};

use super::Instance;
use crate::web::config::ListenAddress;
use crate::web::port::explain;
use crate::web::serve::WebError;
use crate::web::stream::{Stream, Tls};

/// Bound, in connections: how many the system keeps that have not been accepted, so that a burst of clients is not turned away. The system has a bound of its own besides
/// (`net.core.somaxconn`).
const BACKLOG: u32 = 4096;

/// An address that is listened at, until this is dropped.
pub(super) struct Listening {
    /// As it was asked for.
    asked: ListenAddress,
    /// As it is: with the port.
    address: ListenAddress,
    thread: JoinHandle<()>,
}

type Current = Arc<RwLock<Arc<Instance>>>;

impl Listening {
    /// Begins to accept connections for whatever network is the current one.
    pub(super) fn begin(asked: ListenAddress, current: &Current) -> Result<Self, WebError> {
        let failed = |error| WebError::Listen(explain(&asked, &error));
        let current = Arc::clone(current);
        let (address, thread) = match &asked {
            ListenAddress::Tcp(address) => {
                let listener = TcpListener::builder().backlog(BACKLOG).bind(*address);
                let listener = listener.map_err(failed)?;
                let address = listener.local_addr().map_err(failed)?;
                let thread = tussah::spawn(accept_tcp(listener, current));
                (ListenAddress::Tcp(address), thread)
            }
            ListenAddress::Unix(path) => {
                let listener = bind_unix(path).map_err(failed)?;
                (asked.clone(), tussah::spawn(accept_unix(listener, current)))
            }
        };
        Ok(Self {
            asked,
            address,
            thread,
        })
    }

    pub(super) fn address(&self) -> &ListenAddress {
        &self.address
    }

    pub(super) fn is_for(&self, asked: &ListenAddress) -> bool {
        self.asked == *asked
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.thread.abort();
        if let ListenAddress::Unix(path) = &self.address {
            // Somebody may have removed it.
            drop(std::fs::remove_file(path));
        }
    }
}

/// Listens at a path; at one that is left over from somebody who is gone, too.
fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            // A connection to what is no socket is refused, too, and that is not ours to remove.
            if !std::fs::symlink_metadata(path)?.file_type().is_socket() {
                return Err(error);
            }
            let gone = StdStream::connect(path);
            if !matches!(gone, Err(gone) if gone.kind() == io::ErrorKind::ConnectionRefused) {
                return Err(error);
            }
            std::fs::remove_file(path)?;
            UnixListener::bind(path)
        }
        bound => bound,
    }
}

async fn accept_tcp(listener: TcpListener, current: Current) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // Answers are written whole; the system need not wait for more.
                drop(stream.set_nodelay(true));
                let current = Arc::clone(&current.read());
                let stream = match &current.tls {
                    None => Stream::Tcp(stream),
                    Some(tls) => Stream::Tls(Box::new(Tls::new(stream, tls.current()))),
                };
                drop(current.accept.send(stream).await);
            }
            Err(error) => return tracing::error!(%error, "a listener has ended"),
        }
    }
}

async fn accept_unix(listener: UnixListener, current: Current) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let accept = current.read().accept.clone();
                drop(accept.send(Stream::Unix(stream)).await);
            }
            Err(error) => return tracing::error!(%error, "a listener has ended"),
        }
    }
}
