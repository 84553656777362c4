//! Signals: what the system and other processes tell this one, as streams.
//!
//! [`signal`] gives a stream of one signal, for as long as it lives. Any number of streams, in any number of runtimes, may
//! listen for the same signal: each gets every delivery.
//!
//! # What is not lost
//!
//! A signal that is delivered after [`signal`] has returned is received: by the call that waits, or by the next one. But
//! signals carry no count. Those that are delivered between two receives may come as one, in the kernel already; there
//! is one receive at least after the last of them.
//!
//! # The default action
//!
//! The first stream for a signal replaces what the signal did until then, such as ending the process, for the rest of the
//! process's life: when the last stream is dropped, the signal does nothing. Handlers that were installed before, by
//! a library, are called too.

mod number;

use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::Stream;
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use signal_hook::SigId;
use signal_hook::low_level;
use tussah_core::io::{Direction, Source};
use tussah_core::{AbortHandle, Handle};

use crate::io_error::context;
pub use number::Signal;

/// Bound, in deliveries: a handler writes one byte for each into a pipe of a page; with so many unread, the next are part of these.
const PENDING_MAX: usize = 4096;

/// Listens for a signal in the current runtime, from this call on.
///
/// # Errors
/// `InvalidInput` for signals that can't be listened for: `KILL` and `STOP`, which the kernel keeps for itself, and `ILL`, `FPE` and
/// `SEGV`, whose handlers could not return. What the system said: there are no more descriptors.
///
/// # Panics
/// Outside of a runtime.
///
/// # Examples
/// ```
/// use tussah::signal::{Signal, signal};
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// let hangups = signal(Signal::HUP)?;
/// # rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::HUP)?;
/// hangups.recv().await?; // somebody said: `kill -HUP`
/// let error = signal(Signal::KILL).expect_err("nobody can");
/// assert_eq!(error.to_string(), "listen for SIGKILL: the kernel lets nobody handle it");
/// # std::io::Result::Ok(())
/// # })).expect("no panic")?;
/// # std::io::Result::Ok(())
/// ```
#[track_caller]
pub fn signal(signal: Signal) -> io::Result<Signals> {
    Signals::new_in(&Handle::current(), signal)
}

/// Waits for the next Ctrl-C (`INT`) that comes after the first poll.
///
/// The first poll takes away the default action, which is to end the process, for the rest of the process's life: see [the module](self).
/// So while a program that was told to end still finishes its work, a second Ctrl-C does nothing by itself, even if that work hangs. Wait
/// for it too, as in the [server that ends in order](crate::net#a-server-that-ends-in-order). Who waits again and again makes
/// one stream with [`signal`], so that nothing is missed between two calls.
///
/// # Errors
/// As [`signal`] and [`Signals::recv`].
///
/// # Panics
/// The first poll panics outside of a runtime.
///
/// # Cancellation
/// Dropping the future ends the listening.
///
/// # Examples
/// ```no_run
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// tussah::signal::ctrl_c().await?;
/// println!("good bye");
/// # std::io::Result::Ok(())
/// # })).expect("no panic")?;
/// # std::io::Result::Ok(())
/// ```
pub async fn ctrl_c() -> io::Result<()> {
    signal(Signal::INT)?.recv().await
}

/// The deliveries of one signal; made by [`signal`]. Dropping it ends the listening.
///
/// It is also a `Stream`, without end, for one thread at a time.
pub struct Signals {
    signal: Signal,
    /// The end of a pipe into which the handler writes.
    source: Source,
    handler: SigId,
}

impl Signals {
    pub(crate) fn new_in(handle: &Handle, signal: Signal) -> io::Result<Self> {
        let make = || {
            if let Some(reason) = signal.is_forbidden() {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
            }
            let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
            // Where the system gives no smaller pipe, there are more deliveries that may wait.
            let _ = fcntl_setpipe_size(&write, PENDING_MAX);
            Ok(Self {
                signal,
                source: Source::new_in(handle, read),
                handler: low_level::pipe::register(signal.as_raw(), write)?,
            })
        };
        make().map_err(|error| context(error, "listen for", signal))
    }

    /// The signal that is listened for.
    #[must_use]
    pub fn signal(&self) -> Signal {
        self.signal
    }

    /// Waits until the signal has been delivered since the last receive, or since the stream was made.
    ///
    /// Of several threads that wait on one stream, one gets a delivery.
    ///
    /// # Errors
    /// `Other` when the runtime ends; what the system said when there are no descriptors left to wait with.
    ///
    /// # Cancellation
    /// Dropping the future has received nothing.
    ///
    /// # Examples
    /// See [`signal`](signal()).
    pub async fn recv(&self) -> io::Result<()> {
        let received = self.source.io(Direction::Read, take_all);
        received.await.map_err(|error| self.error(error))
    }

    fn error(&self, error: io::Error) -> io::Error {
        context(error, "receive", self.signal)
    }
}

/// Takes what the handler has written until now: one receive stands for all of it.
fn take_all(pipe: BorrowedFd<'_>) -> io::Result<()> {
    let mut buffer = [0; PENDING_MAX];
    rustix::io::read(pipe, &mut buffer)?;
    Ok(())
}

impl Stream for Signals {
    type Item = io::Result<()>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let result = ready!(self.source.poll_io(context, Direction::Read, take_all));
        Poll::Ready(Some(result.map_err(|error| self.error(error))))
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // It was registered until now, so nothing can be missing.
        low_level::unregister(self.handler);
    }
}

impl fmt::Debug for Signals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signals")
            .field("signal", &self.signal)
            .finish_non_exhaustive()
    }
}

/// Calls a closure, in a thread of its own, for each receive of a signal, until the listener is dropped.
///
/// The closure is dropped when the runtime ends. A call that runs when the listener is dropped goes on to its end.
///
/// # Panics
/// If the runtime is shut down.
#[allow(dead_code)]
#[track_caller]
pub(crate) fn on_delivery(
    handle: &Handle,
    signal: Signal,
    mut f: impl FnMut() + Send + 'static,
) -> io::Result<Listener> {
    let signals = Signals::new_in(handle, signal)?;
    let thread = handle.spawn(async move {
        while signals.recv().await.is_ok() {
            f();
        }
    });
    Ok(Listener(thread.abort_handle()))
}

/// Listens for a signal; dropping it ends that.
#[derive(Debug)]
pub(crate) struct Listener(AbortHandle);

impl Drop for Listener {
    fn drop(&mut self) {
        self.0.abort();
    }
}
