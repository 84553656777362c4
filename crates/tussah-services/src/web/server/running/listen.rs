//! Listeners.

use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixStream as StdStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_lite::future;
use parking_lot::RwLock;
use tussah::JoinHandle;
use tussah::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tussah::sync::{Notify, oneshot};
use tussah::time::sleep;

use super::Instance;
use crate::web::config::ListenAddress;
use crate::web::connection::stream::{Stream, Tls};
use crate::web::server::port::explain;
use crate::web::server::serve::WebError;
use crate::web::server::tls::Reloadable;

/// Bound, in connections: the maximum number that the system keeps before they are accepted, so
/// that a burst of clients is not rejected. The system also has its own bound
/// (`net.core.somaxconn`).
const BACKLOG: u32 = 4096;

/// A listener, until it is closed or dropped.
pub(super) struct Listening {
    /// The configured address.
    asked: ListenAddress,
    /// The actual address, with the port.
    address: ListenAddress,
    thread: JoinHandle<()>,
    /// Dropping it closes the listener.
    closing: Option<oneshot::Sender<()>>,
}

type Current = Arc<RwLock<Arc<Instance>>>;

/// The number of working listeners.
#[derive(Default)]
pub(super) struct Accepting {
    count: AtomicUsize,
    /// Notified when the last listener ends.
    ended: Notify,
}

impl Accepting {
    /// Waits until no working listener is left.
    pub(super) async fn none(&self) {
        loop {
            let ended = self.ended.notified();
            // Acquire: pairs with the end of the last listener.
            if self.count.load(Ordering::Acquire) == 0 {
                return;
            }
            ended.await;
        }
    }
}

/// A working listener, until this value is dropped.
struct Accepts(Arc<Accepting>);

impl Accepts {
    fn new(accepting: &Arc<Accepting>) -> Self {
        accepting.count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(accepting))
    }
}

impl Drop for Accepts {
    fn drop(&mut self) {
        // Release: pairs with the load in `none`.
        self.0.count.fetch_sub(1, Ordering::Release);
        self.0.ended.notify_waiters();
    }
}

impl Listening {
    /// Begins to accept connections for the current network.
    pub(super) fn begin(
        asked: ListenAddress,
        current: &Current,
        accepting: &Arc<Accepting>,
    ) -> Result<Self, WebError> {
        let failed = |error| WebError::Listen(explain(&asked, &error));
        let current = Arc::clone(current);
        let (closing, told) = oneshot::async_channel();
        let (address, listener) = match &asked {
            ListenAddress::Tcp(address) => {
                // Each response is written in one piece, so the system need not wait for more data.
                let options = TcpListener::builder().backlog(BACKLOG).nodelay(true);
                let listener = options.bind(*address).map_err(failed)?;
                let address = listener.local_addr().map_err(failed)?;
                (ListenAddress::Tcp(address), Listener::Tcp(listener))
            }
            ListenAddress::Unix(path) => {
                let listener = bind_unix(path).map_err(failed)?;
                (asked.clone(), Listener::Unix(listener))
            }
        };
        let accepts = Accepts::new(accepting);
        let accepting = async move {
            accept(listener, current, told).await;
            drop(accepts);
        };
        Ok(Self {
            asked,
            address,
            thread: tussah::spawn(accepting),
            closing: Some(closing),
        })
    }

    /// Closes the listener, and serves the clients that have already connected.
    pub(super) async fn close(mut self) {
        drop(self.closing.take());
        let _ = (&mut self.thread).await; // it logs its errors
    }

    /// Returns whether the listener has failed and no longer accepts connections.
    pub(super) fn has_ended(&self) -> bool {
        self.thread.is_finished()
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
            // The file may already have been removed.
            drop(std::fs::remove_file(path));
        }
    }
}

/// Listens at a path, and replaces a stale socket there.
fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            // A connection to a file that is not a socket is also refused, and that file must stay.
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

/// A listener of either kind.
enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Self::Tcp(listener) => listener.accept().await.map(|(tcp, _)| Accepted::Tcp(tcp)),
            Self::Unix(listener) => listener
                .accept()
                .await
                .map(|(unix, _)| Accepted::Unix(unix)),
        }
    }

    fn try_accept(&self) -> io::Result<Accepted> {
        match self {
            Self::Tcp(listener) => listener.try_accept().map(|(tcp, _)| Accepted::Tcp(tcp)),
            Self::Unix(listener) => listener.try_accept().map(|(unix, _)| Accepted::Unix(unix)),
        }
    }
}

/// A connection on which no data has arrived yet.
enum Accepted {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Accepted {
    fn stream(self, tls: Option<&Reloadable>) -> Stream {
        match self {
            Self::Tcp(tcp) => match tls {
                None => Stream::Tcp(tcp),
                Some(tls) => Stream::Tls(Box::new(Tls::new(tcp, tls.current()))),
            },
            Self::Unix(unix) => Stream::Unix(unix),
        }
    }
}

/// Accepts connections until it is told to close, and then the pending connections.
async fn accept(listener: Listener, current: Current, mut closing: oneshot::AsyncReceiver<()>) {
    loop {
        let accepted = async { Some(listener.accept().await) };
        let closed = async {
            let _ = (&mut closing).await; // the sender was dropped
            None
        };
        match future::or(accepted, closed).await {
            Some(Ok(accepted)) => {
                take_in(accepted, &current).await;
                let waits = current.read().server.budget.accepts_after();
                if let Some(wait) = waits {
                    // In the meantime, connections wait in the kernel.
                    let closed = async {
                        let _ = (&mut closing).await;
                        true
                    };
                    let waited = async {
                        sleep(wait).await;
                        false
                    };
                    if future::or(waited, closed).await {
                        break;
                    }
                }
            }
            Some(Err(error)) => {
                return tracing::error!(
                    "a listener failed and accepts no more connections: {error}"
                );
            }
            None => break,
        }
    }
    // Otherwise the system would reset them.
    for _ in 0..=BACKLOG {
        match listener.try_accept() {
            Ok(accepted) => take_in(accepted, &current).await,
            Err(_) => return,
        }
    }
}

async fn take_in(accepted: Accepted, current: &Current) {
    let instance = Arc::clone(&current.read());
    let stream = accepted.stream(instance.tls.as_ref());
    hand_over(stream, instance, current).await;
}

/// Hands a connection to a network, or to the network's successor if it accepts no more
/// connections.
///
/// No connection is lost. A network ends only after another network has become the current one. Its
/// end begins with its accept stage, which handles the connections that it has admitted and returns
/// the others. The network counts the former among its connections, and waits for them.
async fn hand_over(mut stream: Stream, mut instance: Arc<Instance>, current: &Current) {
    while let Err(refused) = instance.accept.sender().send(stream).await {
        let next = Arc::clone(&current.read());
        if Arc::ptr_eq(&instance, &next) {
            return; // the server ends
        }
        stream = refused.event.into_inner();
        instance = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    use crate::web::answer::route::Routes;
    use crate::web::config::Config;
    use crate::web::server::Shared;
    use crate::web::site::Site;
    use crate::web::stages::graph::wire;

    #[test]
    fn a_connection_that_is_accepted_during_a_reload_is_not_lost() {
        let runtime = tussah::Runtime::builder().workers(1).build();
        runtime.expect("a runtime").block_on(async {
            let shared = Shared::new(1, &Routes::default(), 1);
            let instance = || {
                let (site, config) = (Site::empty(), Config::default());
                let instance = Instance::new(
                    site,
                    config,
                    &Routes::default(),
                    &shared,
                    None,
                    &Vec::new(),
                    &wire,
                );
                Arc::new(instance.expect("nothing can fail"))
            };
            let (before, after) = (instance(), instance());
            let current = Arc::new(RwLock::new(Arc::clone(&after)));
            let (_peer, stream) = UnixStream::pair().expect("there are descriptors");
            // Between the look at the current network and this point, the old network has ended.
            before.end(Duration::ZERO).await;
            hand_over(Stream::Unix(stream), before, &current).await;
            after.accept.drain().await;
            assert_eq!(after.server.connections.count(), 1);
        });
    }
}
