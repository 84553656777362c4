//! Signals as streams.
//!
//! [`signal`] returns a stream of the deliveries of one signal. Any number of streams, in any
//! number of runtimes, can listen for the same signal. Each stream receives every delivery of its
//! signal.
//!
//! # Delivery
//!
//! If a signal is delivered after [`signal`] has returned, a pending or later call to
//! [`recv`](Signals::recv) reports the delivery. Signals are not counted: if a signal is delivered
//! several times between two receives, the second receive can report all these deliveries as one.
//! After every delivery, at least one receive succeeds.
//!
//! # The default action
//!
//! When the first stream for a signal is created, tussah replaces the signal's previous action,
//! such as ending the process. The signal's previous action is never restored. After the last
//! stream is dropped, tussah ignores the signal. Handlers that were installed earlier, for example
//! by a library, are still called.

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

/// Bound, in deliveries: the maximum number that are pending. For each of them, the handler has
/// written one byte into a pipe of one page. When the pipe is full, further deliveries are merged
/// with the pending ones.
const PENDING_MAX: usize = 4096;

/// Starts listening for a signal in the current runtime.
///
/// # Errors
/// Returns `InvalidInput` for a signal that cannot be handled: `KILL` and `STOP`, which the kernel
/// reserves, and `ILL`, `FPE` and `SEGV`, whose handlers could not return. Otherwise, returns any
/// error from the operating system, for example if the process has no descriptors left.
///
/// # Panics
/// Panics if called outside a runtime.
///
/// # Examples
/// ```
/// use tussah::signal::{Signal, signal};
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// let hangups = signal(Signal::HUP)?;
/// # rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::HUP)?;
/// hangups.recv().await?; // after `kill -HUP`
/// let error = signal(Signal::KILL).expect_err("it cannot be handled");
/// assert_eq!(error.to_string(), "listen for SIGKILL: the kernel does not allow handling it");
/// # std::io::Result::Ok(())
/// # })).expect("no panic")?;
/// # std::io::Result::Ok(())
/// ```
#[track_caller]
pub fn signal(signal: Signal) -> io::Result<Signals> {
    Signals::new_in(&Handle::current(), signal)
}

/// Waits for the first Ctrl-C (`INT`) that arrives after the first poll.
///
/// By default, Ctrl-C ends the process. The first poll permanently disables this default action;
/// see the [module documentation](self). A second Ctrl-C then does nothing, even if the program
/// hangs while shutting down. Programs should therefore also wait for a second Ctrl-C, as the
/// example of a [server with graceful shutdown](crate::net#a-server-with-graceful-shutdown) does.
/// To wait repeatedly, create one stream with [`signal`], which misses no signal between two
/// receives.
///
/// # Errors
/// Returns any error from [`signal`] and [`Signals::recv`].
///
/// # Panics
/// The first poll panics outside a runtime.
///
/// # Cancellation
/// Dropping the future ends the wait. If the future has been polled, the default action stays
/// disabled.
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

/// A stream of the deliveries of one signal, created by [`signal`]. Dropping it stops listening.
///
/// `Signals` also implements `Stream`, for use by one thread at a time. The stream never ends.
pub struct Signals {
    signal: Signal,
    /// The reading end of the pipe into which the handler writes.
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
            // If the system cannot make the pipe smaller, more deliveries may be pending.
            let _ = fcntl_setpipe_size(&write, PENDING_MAX);
            Ok(Self {
                signal,
                source: Source::new_in(handle, read),
                handler: low_level::pipe::register(signal.as_raw(), write)?,
            })
        };
        make().map_err(|error| context(error, "listen for", signal))
    }

    /// Returns the signal.
    #[must_use]
    pub fn signal(&self) -> Signal {
        self.signal
    }

    /// Waits until the signal has been delivered at least once since the last receive or, for the
    /// first receive, since the stream was created.
    ///
    /// If several threads wait on the same stream, each delivery reaches only one of them.
    ///
    /// # Errors
    /// Returns `Other` if the runtime ends, or the system's error if epoll cannot watch another
    /// descriptor.
    ///
    /// # Cancellation
    /// If the future is dropped before it completes, nothing has been received.
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

/// Reads everything the handler has written so far: one receive stands for all of it.
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
        // The call succeeds, because the handler was registered until now.
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

/// Calls a closure, in a separate thread, for each receive of a signal, until the listener is
/// dropped.
///
/// The closure is dropped when the runtime ends. Dropping the listener does not interrupt a call in
/// progress.
///
/// # Panics
/// Panics if the runtime is shut down.
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

/// A guard that listens for a signal until it is dropped.
#[derive(Debug)]
pub(crate) struct Listener(AbortHandle);

impl Drop for Listener {
    fn drop(&mut self) {
        self.0.abort();
    }
}
