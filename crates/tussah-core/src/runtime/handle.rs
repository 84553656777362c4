//! The public types of a runtime: spawning, posting, changing the number of workers.

use std::fmt;
use std::future::Future;
use std::io;
use std::panic::Location;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use super::block_on::entered;
use super::builder::Builder;
use super::post::{AsColor, PostError, Sealed};
use super::shared::Shared;
use super::shutdown::{self, ShutdownReport};
use crate::color::cell::ColorCell;
use crate::color::{Color, ColorRef};
#[cfg(not(loom))]
use crate::driver::DriverReport;
use crate::event::Body;
use crate::loom::atomic::Ordering;
use crate::stats::Stats;
use crate::thread::{self, JoinHandle};
use crate::worker::Worker;
use crate::world::Network;
/// A runtime with its workers, colors, timers and blocking pool. Dropping the runtime calls
/// [`Runtime::shutdown`] with a `drain` of zero. If code that must not block drops the runtime
/// during a panic, a new OS thread performs this shutdown.
pub struct Runtime {
    handle: Handle,
}

/// A handle to a runtime, usable on any OS thread. A handle is cheap to clone, and does not keep
/// the runtime running.
#[derive(Clone)]
pub struct Handle {
    pub(crate) shared: Arc<Shared>,
}

/// The error returned by an operation that needs a runtime but is called outside of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoRuntime;

impl fmt::Display for NoRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no runtime here: expected a call from an event, a thread or `Runtime::block_on`, or below `#[tussah::main]`; elsewhere use a `Handle`")
    }
}

impl std::error::Error for NoRuntime {}

/// A closure that needs no arguments.
struct Plain<F>(F);

impl<F: FnOnce() + Send + 'static> Body for Plain<F> {
    #[inline]
    fn call(self, _: &Worker) {
        (self.0)();
    }
}

impl Handle {
    /// Returns a handle to the current runtime.
    ///
    /// # Errors
    /// Returns [`NoRuntime`] if called outside of events, threads and `block_on`.
    pub fn try_current() -> Result<Handle, NoRuntime> {
        Worker::with(|worker| worker.map(|worker| worker.handle.clone()))
            .or_else(entered::current)
            .ok_or(NoRuntime)
    }

    /// Returns a handle to the current runtime.
    ///
    /// # Panics
    /// Panics if called outside of events, threads and `block_on`.
    #[track_caller]
    pub fn current() -> Handle {
        match Self::try_current() {
            Ok(handle) => handle,
            Err(error) => panic!("{error}"),
        }
    }

    /// Calls `f` with a handle to the current runtime. On a worker, this avoids cloning the handle,
    /// whose reference count all workers share.
    ///
    /// # Panics
    /// Panics if called outside of events, threads and `block_on`.
    #[inline]
    #[track_caller]
    pub fn with_current<R>(f: impl FnOnce(&Handle) -> R) -> R {
        let called = Worker::with(|worker| match worker {
            Some(worker) => Ok(f(&worker.handle)),
            None => Err(f),
        });
        match called {
            Ok(result) => result,
            // Outside of the closure, which would not know the caller's location.
            Err(f) => f(&Self::current()),
        }
    }

    /// Starts a thread. The thread gets its own color, unless the runtime was built with
    /// [`one_color`](Builder::one_color).
    ///
    /// # Panics
    /// Panics if the runtime has shut down.
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.spawn_at(Location::caller(), future)
    }

    #[track_caller]
    pub(super) fn spawn_at<F>(
        &self,
        location: &'static Location<'static>,
        future: F,
    ) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.assert_open();
        self.start(location, future)
    }

    pub(super) fn start<F>(
        &self,
        location: &'static Location<'static>,
        future: F,
    ) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        if self.shared.one_color {
            return thread::spawn(
                &self.shared,
                Color::DEFAULT.reference(&self.shared),
                location,
                future,
            );
        }
        thread::spawn(&self.shared, (), location, future)
    }

    /// Starts a thread in a color: each poll of the thread is an event of that color.
    ///
    /// # Panics
    /// Panics if the runtime has shut down, or if the color belongs to another runtime.
    #[track_caller]
    pub fn spawn_in<F>(&self, color: impl AsColor, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.spawn_in_at(Location::caller(), color, future)
    }

    #[track_caller]
    pub(super) fn spawn_in_at<F>(
        &self,
        location: &'static Location<'static>,
        color: impl AsColor,
        future: F,
    ) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.assert_open();
        let color = color.reference(&self.shared);
        self.assert_mine(color.cell());
        thread::spawn(&self.shared, color, location, future)
    }

    /// Posts an event in the default color.
    ///
    /// # Errors
    /// Returns the closure if the color is full or the runtime has shut down.
    #[inline(always)]
    #[track_caller]
    pub fn post<F: FnOnce() + Send + 'static>(&self, f: F) -> Result<(), PostError<F>> {
        self.post_in_at(Location::caller(), Color::DEFAULT, f)
    }

    /// Posts an event in a color. Events of one color run one at a time, in the order in which they
    /// were posted.
    ///
    /// # Errors
    /// Returns the closure if the color is full or the runtime has shut down.
    ///
    /// # Panics
    /// Panics if the color belongs to another runtime. If `f` panics, the panic is caught and
    /// counted.
    #[inline(always)]
    #[track_caller]
    pub fn post_in<F: FnOnce() + Send + 'static>(
        &self,
        color: impl AsColor,
        f: F,
    ) -> Result<(), PostError<F>> {
        self.post_in_at(Location::caller(), color, f)
    }

    #[inline(always)]
    #[track_caller]
    pub(super) fn post_in_at<F: FnOnce() + Send + 'static>(
        &self,
        location: &'static Location<'static>,
        color: impl AsColor,
        f: F,
    ) -> Result<(), PostError<F>> {
        if !self.shared.is_open() {
            return Err(PostError::shut_down(f));
        }
        match color.post(self, location, Plain(f)) {
            Ok(()) => Ok(()),
            Err(full) => Err(PostError::full(full.body.0, full.depth_max)),
        }
    }

    /// Returns a reference to a color. Posting events through this reference avoids lookups.
    pub fn color(&self, color: impl AsColor) -> ColorRef {
        color.reference(&self.shared)
    }

    /// Returns the runtime's pool for blocking calls.
    #[track_caller]
    pub fn blocking(&self) -> &crate::blocking::BlockingPool {
        &self.shared.blocking
    }

    /// Returns the transport of the runtime's sockets.
    #[doc(hidden)]
    pub fn network(&self) -> Network {
        self.shared.world.network
    }

    /// Returns a report on the runtime's drivers and its file operations.
    #[cfg(not(loom))]
    pub fn driver(&self) -> DriverReport {
        DriverReport::new(&self.shared)
    }

    /// Returns the runtime's statistics, including the maximum speed-up that more CPUs can give.
    pub fn stats(&self) -> Stats {
        Stats::of(&self.shared)
    }

    /// Returns the number of workers that accept events.
    pub fn workers(&self) -> usize {
        self.shared.workers.load(Ordering::Relaxed)
    }

    /// Returns the number of the current worker, counted from 0, or `None` if the caller is not on
    /// a worker of this runtime. No two workers of a runtime have the same number at the same time.
    ///
    /// # Examples
    /// ```
    /// let runtime = tussah_core::Runtime::builder().workers(1).build()?;
    /// let handle = runtime.handle().clone();
    /// assert_eq!(handle.worker_here(), None);
    /// assert_eq!(runtime.block_on_spawned(async move { handle.worker_here() }), Some(0));
    /// # std::io::Result::Ok(())
    /// ```
    #[inline]
    pub fn worker_here(&self) -> Option<usize> {
        // SAFETY: the reference ends before this function returns.
        let worker = unsafe { Worker::here() }?;
        worker.is_of(&self.shared).then_some(worker.index)
    }

    /// Changes the number of workers while the runtime is running. A removed worker finishes its
    /// current event, and hands its colors and timers to the other workers.
    ///
    /// # Errors
    /// Returns `InvalidInput` if the number is not between 1 and 1,024, and `Other` if the runtime
    /// has shut down. Returns the system's error if an OS thread could not be started or no
    /// descriptors are left (each worker needs two); workers already added remain. The call may
    /// wait until earlier changes are complete and removed workers have ended. In an event, or in a
    /// closure that has entered a color, the call returns `WouldBlock` instead of waiting.
    pub fn set_workers(&self, workers: usize) -> io::Result<()> {
        shutdown::set_workers(&self.shared, workers)
    }

    #[track_caller]
    fn assert_open(&self) {
        assert!(
            self.shared.is_open(),
            "a thread was spawned on a runtime that is shut down"
        );
    }

    #[inline]
    #[track_caller]
    pub(super) fn assert_mine(&self, cell: NonNull<ColorCell>) {
        // SAFETY: the caller keeps the cell alive.
        let shared = unsafe { cell.as_ref() }.shared();
        assert!(
            std::ptr::eq(shared, &*self.shared),
            "a color of one runtime was used with another"
        );
    }
}

/// Two handles are equal if they belong to the same runtime.
impl PartialEq for Handle {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl Eq for Handle {}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("name", &self.shared.name)
            .field("workers", &self.workers())
            .finish()
    }
}

impl Runtime {
    /// Creates a builder with default settings.
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            handle: Handle { shared },
        }
    }

    /// Returns a handle, which may outlive the runtime, but does not keep it running.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Runs a future as a thread, waits for it on this OS thread, and then shuts the runtime down,
    /// which drops all other threads. `#[tussah::main]` runs the body of `main` in this way.
    ///
    /// # Panics
    /// Panics in the same cases as [`block_on`](Handle::block_on). If the future panics, the panic
    /// resumes in the caller with its payload.
    #[track_caller]
    pub fn block_on_spawned<F>(self, future: F) -> F::Output
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let thread = self.spawn(future);
        match self.block_on(thread) {
            Ok(output) => output,
            Err(error) => error.resume(),
        }
    }

    /// Rejects new events, and runs queued events for up to `drain`. Then drops each remaining
    /// event in its color, calls the drop callbacks, and drops all waiting futures.
    ///
    /// Before dropping anything, the call waits up to one second for running events to end. A
    /// worker that does not finish in time is left behind; see [`ShutdownReport::workers_stuck`].
    ///
    /// # Panics
    /// Panics if called in an event or in a closure that has entered a color, as
    /// [`block_on`](Handle::block_on) does.
    #[track_caller]
    pub fn shutdown(self, drain: Duration) -> ShutdownReport {
        shutdown::shutdown(&self.handle.shared, drain)
    }
}

impl std::ops::Deref for Runtime {
    type Target = Handle;
    fn deref(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        shutdown::drop_runtime(&self.handle.shared);
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("handle", &self.handle)
            .finish()
    }
}
