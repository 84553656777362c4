//! Threads: `async` computations that the workers run, one event between two awaits.
//!
//! The functions here use the runtime that the caller runs in; the methods of [`Handle`] of the same names work from
//! anywhere.

use std::future::Future;
use std::sync::Arc;

use tussah_core::{AsColor, BlockingHandle, Handle, JoinHandle, SubmitError};

use crate::local::Scoped;

/// Starts a thread. It is a color of its own, unless the runtime was built with
/// [`one_color`](crate::Builder::one_color): then it is one of the default color.
///
/// # Cancellation
/// Dropping the handle detaches the thread. [`JoinHandle::abort`] ends it at an await.
///
/// # Panics
/// Outside of a runtime, and if the runtime is shut down.
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

/// Starts a thread in a color: what it does between two awaits is an event of that color.
///
/// A thread that awaits has left its color, so others of the color run meanwhile. Colors are not inherited: what the
/// thread spawns or posts has the color that it names there.
///
/// # Panics
/// Outside of a runtime, if the runtime is shut down, and if the color is of another runtime.
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

/// Runs a closure that may block on the blocking pool; the handle is a future of its result.
///
/// Inside of a blocking job, [`BlockingHandle::join`] waits for another one without a deadlock.
///
/// # Cancellation
/// Dropping the handle detaches the job: it still runs. [`BlockingHandle::abort`] removes one that has not begun.
///
/// # Panics
/// Outside of a runtime, and where [`try_spawn_blocking`] gives the closure back.
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

/// As [`spawn_blocking`], for those who can do something else if the pool is full.
///
/// # Errors
/// Gives the closure back if the pool is full or shut down, or has no OS thread and can start none.
///
/// # Panics
/// Outside of a runtime.
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

/// Gives a thread, or a part of it, a name, which [`thread_name`] reads.
///
/// It is a wrapper around the future: threads without a name don't pay for it.
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

/// The name that [`named`] gave to the code that runs here.
#[must_use]
pub fn thread_name() -> Option<Arc<str>> {
    NAME.try_with(Arc::clone).ok()
}
