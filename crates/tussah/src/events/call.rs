//! Operations that report their result to a callback.

use std::fmt;
use std::future::Future;
use std::io;

use tussah_core::AbortHandle;

use super::Callback;
use crate::net::{ConnectOptions, TcpStream, ToAddresses};

/// A handle that cancels an operation started by [`tcp_connect`] or [`resolve`].
///
/// Dropping the handle does not cancel the operation. Handles can be cloned.
#[derive(Clone)]
pub struct CallHandle {
    /// `None` if the runtime was already shut down.
    thread: Option<AbortHandle>,
}

impl CallHandle {
    /// Cancels the operation: an event of the callback's color drops the callback. If the operation
    /// has ended, `cancel` has no effect.
    ///
    /// If `cancel` is called in the callback's color, the callback is not called afterwards.
    pub fn cancel(&self) {
        if let Some(thread) = &self.thread {
            thread.abort();
        }
    }

    /// Returns whether the operation has ended: its callback was called or dropped.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(AbortHandle::is_finished)
    }
}

impl fmt::Debug for CallHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallHandle")
            .field("finished", &self.is_finished())
            .finish_non_exhaustive()
    }
}

/// Runs the operation as a thread of the callback's color, so that cancelling it in that color is
/// exact.
#[track_caller]
fn call_with<R, F>(callback: Callback<R>, operation: F) -> CallHandle
where
    R: Send + 'static,
    F: Future<Output = R> + Send + 'static,
{
    callback.announce();
    let handle = callback.handle().clone();
    let color = callback.color().clone();
    let thread = handle.try_spawn_in(&color, async move {
        callback.call(operation.await);
    });
    let thread = thread.ok().map(|thread| thread.abort_handle());
    CallHandle { thread }
}

/// Connects to an address or a host name, and passes the connection or the error to a callback.
///
/// This function corresponds to libasync's `tcpconnect` (Zeldovich 2002, section 2.2). The name
/// lookup and the connection attempt are asynchronous, as in [`TcpStream::connect`]. The callback
/// is called once, by an event of its color. The function works inside and outside a runtime.
///
/// If the runtime is shut down or shutting down, the callback is dropped.
///
/// # Errors
/// The callback receives the errors of [`TcpStream::connect`].
///
/// # Cancellation
/// See [`CallHandle::cancel`]. A cancelled operation closes its connection, or abandons its attempt
/// to connect.
///
/// # Examples
/// ```
/// use std::io;
/// use tussah::events::tcp_connect;
/// use tussah::net::{TcpListener, TcpStream};
/// use tussah::{Callback, Color};
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # let (done, wait) = std::sync::mpsc::channel();
/// # let _listener = runtime.block_on(async {
/// let listener = TcpListener::bind("127.0.0.1:0")?;
/// let connected = Callback::new(Color(7), move |stream: io::Result<TcpStream>| {
/// #   let stream = stream.map(std::sync::Arc::new);
/// #   done.send(stream.as_ref().map(|_| ()).map_err(|error| error.to_string())).expect("the example listens");
///     match stream {
///         Ok(stream) => println!("connected: {stream:?}"),
///         Err(error) => println!("502: {error}"),
///     }
/// });
/// tcp_connect(listener.local_addr()?, connected);
/// # std::io::Result::Ok(listener)
/// # })?;
/// # assert_eq!(wait.recv().expect("it is called"), Ok(()));
/// # std::io::Result::Ok(())
/// ```
#[track_caller]
pub fn tcp_connect(
    address: impl ToAddresses + Send + 'static,
    callback: Callback<io::Result<TcpStream>>,
) -> CallHandle {
    tcp_connect_with(TcpStream::builder(), address, callback)
}

/// Connects like [`tcp_connect`], with options such as a timeout.
///
/// # Errors
/// The callback receives the errors of [`ConnectOptions::connect`].
///
/// # Cancellation
/// Same as [`tcp_connect`].
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tussah::events::tcp_connect_with;
/// use tussah::net::{TcpListener, TcpStream};
/// use tussah::{Callback, Color};
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # let (done, wait) = std::sync::mpsc::channel();
/// # let _listener = runtime.block_on(async {
/// # let listener = TcpListener::bind("127.0.0.1:0")?;
/// # let address = listener.local_addr()?;
/// let connected = Callback::new(Color(7), move |stream: std::io::Result<TcpStream>| {
/// #   done.send(stream.is_ok()).expect("the example listens");
/// });
/// let options = TcpStream::builder().nodelay(true).timeout(Duration::from_secs(5));
/// tcp_connect_with(options, address, connected);
/// # std::io::Result::Ok(listener)
/// # })?;
/// # assert!(wait.recv().expect("it is called"));
/// # std::io::Result::Ok(())
/// ```
#[track_caller]
pub fn tcp_connect_with(
    options: ConnectOptions,
    address: impl ToAddresses + Send + 'static,
    callback: Callback<io::Result<TcpStream>>,
) -> CallHandle {
    call_with(callback, async move { options.connect(address).await })
}

/// Looks up the addresses of a host, and passes the addresses or the error to a callback.
///
/// This function corresponds to libasync's `dns_hostbyname`, and calls
/// [`lookup_ip`](crate::dns::Resolver::lookup_ip) on the resolver that
/// [`Resolver::current`](crate::dns::Resolver::current) returns. In all other respects, this
/// function behaves like [`tcp_connect`].
///
/// # Errors
/// The callback receives the errors of the lookup.
///
/// # Cancellation
/// See [`CallHandle::cancel`].
///
/// # Examples
/// ```
/// use tussah::events::resolve;
/// use tussah::{Callback, Color, dns};
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # let (done, wait) = std::sync::mpsc::channel();
/// let resolved = Callback::new_in(&runtime, Color(7), move |found: Result<dns::IpAddresses, dns::Error>| {
/// #   done.send(found.is_ok_and(|found| found.iter().any(|address| address.is_loopback()))).expect("the example listens");
/// });
/// resolve("localhost", resolved);
/// # assert!(wait.recv().expect("it is called"));
/// # std::io::Result::Ok(())
/// ```
#[cfg(feature = "dns")]
#[track_caller]
pub fn resolve(
    host: impl Into<String>,
    callback: Callback<Result<crate::dns::IpAddresses, crate::dns::Error>>,
) -> CallHandle {
    let host = host.into();
    call_with(callback, async move {
        crate::dns::Resolver::current().lookup_ip(&host).await
    })
}
