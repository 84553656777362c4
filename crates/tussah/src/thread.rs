//! Threads: `async` computations that workers run. The code between two awaits runs as one event.
//!
//! The functions of this module use the current runtime. The [`Handle`] methods with the same names
//! work on any OS thread.

use std::future::Future;
use std::sync::Arc;

use tussah_core::{AsColor, BlockingHandle, Handle, JoinHandle, SubmitError};

use crate::local::Scoped;

/// Starts a thread.
///
/// The thread gets its own color. If the runtime was built with
/// [`one_color`](crate::Builder::one_color), the thread gets the default color instead.
///
/// # Cancellation
/// Dropping the handle detaches the thread. [`JoinHandle::abort`] stops the thread at its next
/// await.
///
/// # Panics
/// Panics if called outside a runtime, or if the runtime is shut down.
///
/// # Examples
/// ```
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// let thread = tussah::spawn(async { 6 * 7 });
/// assert_eq!(thread.await.expect("it does not panic"), 42);
/// # })).expect("no panic");
/// # std::io::Result::Ok(())
/// ```
#[inline]
#[track_caller]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    tussah_core::spawn(future)
}

/// Starts a thread in a color: the code between two awaits runs as one event of that color.
///
/// While the thread awaits, other events of the color can run. Threads that the new thread spawns,
/// and events that it posts, do not inherit its color.
///
/// # Panics
/// Panics if called outside a runtime, if the runtime is shut down, or if the color belongs to
/// another runtime.
///
/// # Examples
/// ```
/// use tussah::{Color, spawn_in};
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// let connection = Color(17);
/// let reader = spawn_in(connection, async { "request" });
/// assert_eq!(reader.await.expect("it does not panic"), "request");
/// # })).expect("no panic");
/// # std::io::Result::Ok(())
/// ```
#[inline]
#[track_caller]
pub fn spawn_in<F>(color: impl AsColor, future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    tussah_core::spawn_in(color, future)
}

/// Runs a closure on the blocking pool, where it may block. The returned handle is a future that
/// resolves to the closure's result.
///
/// A blocking job can wait for another job with [`BlockingHandle::join`], even if every OS thread
/// of the pool is busy: if the other job is still queued, `join` runs it.
///
/// # Cancellation
/// Dropping the handle detaches the job, which still runs. [`BlockingHandle::abort`] cancels a job
/// that has not started.
///
/// # Panics
/// Panics if called outside a runtime, or if the pool rejects the closure; see
/// [`try_spawn_blocking`].
///
/// # Examples
/// ```
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// let text = tussah::spawn_blocking(|| std::fs::read_to_string("Cargo.toml"));
/// assert!(text.await.expect("it does not panic").is_ok());
/// # })).expect("no panic");
/// # std::io::Result::Ok(())
/// ```
#[track_caller]
pub fn spawn_blocking<F, T>(f: F) -> BlockingHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    match try_spawn_blocking(f) {
        Ok(handle) => handle,
        Err(error) => panic!("{error}"),
    }
}

/// Runs a closure on the blocking pool as [`spawn_blocking`] does, but returns an error instead of
/// panicking if the pool rejects the closure.
///
/// # Errors
/// Returns the closure if the pool is full or shut down, or if the pool has no OS thread and cannot
/// start one.
///
/// # Panics
/// Panics if called outside a runtime.
#[track_caller]
pub fn try_spawn_blocking<F, T>(f: F) -> Result<BlockingHandle<T>, SubmitError<F>>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    Handle::current().blocking().submit(f)
}

crate::task_local! {
    static NAME: Arc<str>;
}

/// Names a future, which can be a whole thread or a part of one. While the future runs,
/// [`thread_name`] returns the name.
///
/// The name is stored in a wrapper around the future, so unnamed threads have no overhead.
///
/// # Examples
/// ```
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// let thread = tussah::spawn(tussah::named("janitor", async { tussah::thread_name() }));
/// assert_eq!(thread.await.expect("it does not panic").as_deref(), Some("janitor"));
/// assert_eq!(tussah::thread_name(), None);
/// # })).expect("no panic");
/// # std::io::Result::Ok(())
/// ```
pub fn named<F: Future>(name: impl Into<Arc<str>>, future: F) -> Scoped<Arc<str>, F> {
    NAME.scope(name.into(), future)
}

/// Returns the name that [`named`] gave to the current thread, if any.
#[must_use]
pub fn thread_name() -> Option<Arc<str>> {
    NAME.try_with(Arc::clone).ok()
}
