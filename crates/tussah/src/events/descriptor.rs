//! Callbacks for descriptors that are ready to read or write.

use std::future::Future;
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use tussah_core::io::Direction;
use tussah_core::{Handle, yield_now};

use super::Callback;
use super::registry::{Interest, Key, Registry};
use crate::net::{TcpListener, TcpStream, UdpSocket, UnixDatagram, UnixListener, UnixStream};
use crate::pipe::{Reader, Writer};
use crate::time;

/// Bound, in milliseconds: the polling interval for a descriptor that cannot be registered with
/// epoll (`fs.epoll.max_user_watches`).
const LOOK_MS: u64 = 20;

/// The types that [`on_readable`] and [`on_writable`] accept: [`TcpStream`], [`TcpListener`],
/// [`UdpSocket`], [`UnixStream`], [`UnixListener`], [`UnixDatagram`], and the ends of
/// [pipes](crate::pipe).
pub trait Descriptor: Sealed + Send + Sync + 'static {}

impl<S: Sealed + Send + Sync + 'static> Descriptor for S {}

/// A descriptor whose readiness this crate can await.
pub trait Sealed {
    /// Returns the descriptor's runtime and number, or `None` if the descriptor was closed.
    fn place(&self) -> Option<(Handle, RawFd)>;

    /// Waits until an operation in this direction would not block.
    fn ready(&self, direction: Direction) -> impl Future<Output = io::Result<()>> + Send;
}

macro_rules! sealed {
    ($($type:ty),*) => {
        $(impl Sealed for $type {
            fn place(&self) -> Option<(Handle, RawFd)> {
                Some((self.handle(), self.as_fd().as_raw_fd()))
            }

            fn ready(&self, direction: Direction) -> impl Future<Output = io::Result<()>> + Send {
                self.wait_ready(direction)
            }
        })*
    };
}

sealed!(TcpStream, TcpListener, UnixStream, UnixListener, Reader);

macro_rules! sealed_sockets {
    ($($type:ty),*) => {
        $(impl Sealed for $type {
            fn place(&self) -> Option<(Handle, RawFd)> {
                Some((self.socket().handle(), self.as_fd().as_raw_fd()))
            }

            fn ready(&self, direction: Direction) -> impl Future<Output = io::Result<()>> + Send {
                self.socket().wait_ready(direction)
            }
        })*
    };
}

sealed_sockets!(UdpSocket, UnixDatagram);

impl Sealed for Writer {
    fn place(&self) -> Option<(Handle, RawFd)> {
        self.place()
    }

    fn ready(&self, direction: Direction) -> impl Future<Output = io::Result<()>> + Send {
        self.wait_ready(direction)
    }
}

/// Calls a callback whenever a read would not block: when data, end-of-file or an error is pending.
/// For a listener, this means that a connection is waiting to be accepted.
///
/// This function corresponds to libasync's `fdcb` (Zeldovich 2002, table 2.1). The callback carries
/// its color and priority (Zeldovich 2002, section 3.2).
///
/// - The runtime calls the callback repeatedly while the descriptor is readable, even if the
///   callback does not read. Each call is a separate event, which joins the end of the color's
///   queue.
/// - The event itself checks for readiness before it calls the callback. If the data has been read
///   in the meantime, the callback is not called.
/// - Registering another callback for the same descriptor replaces the previous one; passing `None`
///   unregisters the callback. A descriptor can have one callback for reading and another for
///   writing.
/// - If code in the callback's own color unregisters or replaces the callback, the old callback is
///   not called again. If code outside this color unregisters or replaces the callback, a call in
///   progress completes and is the last call.
/// - If the callback panics, only that call ends.
/// - The descriptor stays open, and the callback stays alive, until the callback is unregistered or
///   the runtime ends. A callback that owns its descriptor must therefore unregister itself.
///
/// A registration costs one thread and one table entry. Each call costs a system call (poll(2)) and
/// one pass through the color's queue. Normally, nothing runs while the descriptor is not ready. If
/// the descriptor cannot be registered with epoll, the thread checks the descriptor every 20 ms.
/// Prefer `read().await` where you can: it is cheaper, because it waits only if no data is
/// available.
///
/// If the runtime is shut down or shutting down, the callback is dropped.
///
/// The function works inside and outside a runtime.
///
/// # Panics
/// Panics if the callback's color does not belong to the callback's runtime.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use tussah::events::on_readable;
/// use tussah::net::{TcpListener, TcpStream};
/// use tussah::{Callback, Color};
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # let (done, wait) = std::sync::mpsc::channel();
/// # let client = runtime.block_on(async {
/// let listener = TcpListener::bind("127.0.0.1:0")?;
/// let client = TcpStream::connect(listener.local_addr()?).await?;
/// let stream = Arc::new(listener.accept().await?.0);
/// let mut request = Vec::new();
/// let this = stream.clone();
/// let read = Callback::new(Color(7), move |()| {
///     let mut buffer = [0; 1024];
///     match this.try_read(&mut buffer) {
///         Ok(len @ 1..) => request.extend_from_slice(&buffer[..len]),
///         Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
///         _ => {
///             on_readable(&this, None); // the end
/// #           done.send(request.clone()).expect("the example listens");
///         }
///     }
/// });
/// on_readable(&stream, read);
/// client.write_all(b"GET /").await?;
/// # std::io::Result::Ok(client)
/// # })?;
/// # drop(client);
/// # assert_eq!(wait.recv().expect("it ends"), b"GET /");
/// # std::io::Result::Ok(())
/// ```
#[track_caller]
pub fn on_readable<S: Descriptor>(descriptor: &Arc<S>, callback: impl Into<Option<Callback<()>>>) {
    on_ready(descriptor, Direction::Read, callback.into());
}

/// Calls a callback whenever a write would not block: when the descriptor's buffer has free space
/// or an error is pending. In all other respects, this function behaves like [`on_readable`].
///
/// A connection is writable nearly all the time, so register this callback only while data is
/// waiting to be written.
///
/// # Panics
/// Same as [`on_readable`].
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use tussah::events::on_writable;
/// use tussah::net::{TcpListener, TcpStream};
/// use tussah::{Callback, Color};
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// let listener = TcpListener::bind("127.0.0.1:0")?;
/// let client = TcpStream::connect(listener.local_addr()?).await?;
/// let stream = Arc::new(listener.accept().await?.0);
/// let this = stream.clone();
/// let mut rest = vec![b'x'; 1_000_000];
/// let write = Callback::new(Color(7), move |()| {
///     match this.try_write(&rest) {
///         Ok(len) => drop(rest.drain(..len)),
///         Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
///         Err(_) => rest.clear(),
///     }
///     if rest.is_empty() {
///         on_writable(&this, None);
///     }
/// });
/// on_writable(&stream, write);
/// let mut buffer = vec![0; 1_000_000];
/// client.read_exact(&mut buffer).await?;
/// # std::io::Result::Ok(())
/// # })).expect("no panic")?;
/// # std::io::Result::Ok(())
/// ```
#[track_caller]
pub fn on_writable<S: Descriptor>(descriptor: &Arc<S>, callback: impl Into<Option<Callback<()>>>) {
    on_ready(descriptor, Direction::Write, callback.into());
}

#[track_caller]
fn on_ready<S: Descriptor>(
    descriptor: &Arc<S>,
    direction: Direction,
    callback: Option<Callback<()>>,
) {
    let Some((handle, number)) = descriptor.place() else {
        return;
    };
    let key = match direction {
        Direction::Read => Key::Readable(number),
        Direction::Write => Key::Writable(number),
    };
    let registry = Registry::of(&handle);
    let Some(callback) = callback else {
        return registry.unregister(key);
    };
    callback.announce();
    let handle = callback.handle().clone();
    let color = callback.color().clone();
    let descriptor = descriptor.clone();
    registry.register(key, &handle, &color, |interest| {
        call_when_ready(descriptor, direction, callback, interest)
    });
}

async fn call_when_ready<S: Descriptor>(
    descriptor: Arc<S>,
    direction: Direction,
    callback: Callback<()>,
    interest: Interest,
) {
    loop {
        match descriptor.ready(direction).await {
            Ok(()) if !interest.call(&callback, ()) => return,
            Ok(()) => {}
            // epoll has no room for the descriptor. Try again later.
            Err(error) if error.raw_os_error().is_some() => {
                time::sleep(Duration::from_millis(LOOK_MS)).await;
            }
            // The runtime has ended.
            Err(_) => return,
        }
        callback.announce();
        // This makes the next call a separate event.
        yield_now().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Color, Runtime};

    #[test]
    fn a_registration_is_as_small_as_it_says() {
        let runtime = Runtime::builder().workers(1).build().expect("it starts");
        runtime.block_on(async {
            let listener = Arc::new(TcpListener::bind("127.0.0.1:0").expect("it can listen"));
            let callback = Callback::new(Color(1), |()| ());
            let interest = Interest::new();
            let thread = call_when_ready(listener, Direction::Read, callback, interest);
            assert!(size_of_val(&thread) <= 300, "{}", size_of_val(&thread));
        });
    }

    #[test]
    fn the_table_is_left_empty() {
        let runtime = Runtime::builder().workers(2).build().expect("it starts");
        let handle = runtime.handle().clone();
        let registry = Registry::of(&handle);
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").expect("it can listen");
            let listener = Arc::new(listener);
            for n in 0..100 {
                on_readable(&listener, Callback::new(Color(n), |()| ()));
                assert_eq!(registry.len(), 1);
            }
            on_readable(&listener, None);
            assert_eq!(registry.len(), 0);
            on_writable(&listener, Callback::new(Color(1), |()| ()));
            assert_eq!(registry.len(), 1);
        });
        drop(runtime);
        assert_eq!(registry.len(), 0, "the end of the runtime ends it");
    }
}
