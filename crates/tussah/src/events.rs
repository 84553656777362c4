//! Events in the style of libasync: posted closures, timers and callbacks.
//!
//! | libasync, libasync-mp | here |
//! |---|---|
//! | `wrap`, `cwrap(.., color)`, `cpwrap(.., color, priority)` | [`Callback::new`], [`Callback::with_priority`] |
//! | `cpucb(callback)` | [`Callback::fire`], [`post_in`] |
//! | `fdcb(fd, READ, callback)`, `fdcb(fd, WRITE, callback)` | [`on_readable`], [`on_writable`] |
//! | `fdcb(fd, READ, NULL)` | `on_readable(&descriptor, None)` |
//! | `delaycb(time, callback)`, `timecb` | [`after`]; also [`every`] |
//! | `sigcb(signal, callback)`, `chldcb(pid, callback)` | [`on_signal`], [`on_child_exit`] |
//! | `tcpconnect(host, port, callback)`, `dns_hostbyname` | [`tcp_connect`], [`resolve`] |
//! | `amain()` | the workers of a [`Runtime`](crate::Runtime) |
//!
//! If all events of a program have the same color, [`Color::DEFAULT`](crate::Color::DEFAULT), they
//! run one at a time, as in a libasync program. You can then introduce more colors step by step.
//! Closures must not block their OS thread: use the `try_` functions of sockets.
//!
//! The functions of this module use the current runtime. The methods of [`Handle`] and
//! [`HandleExt`] work from any OS thread. The model follows Zeldovich, "Concurrency Control for
//! Multi-Processor Event-Driven Systems", MIT 2002, sections 2 and 3.

mod call;
mod callback;
mod child;
mod descriptor;
mod handle_ext;
mod idle;
mod options;
mod refused;
mod registry;
mod signal;
mod timer;

use std::time::Duration;

use tussah_core::{AsColor, Handle, PostError};

#[cfg(feature = "dns")]
pub use call::resolve;
pub use call::{CallHandle, tcp_connect, tcp_connect_with};
pub use callback::Callback;
pub use child::{ChildId, on_child_exit};
pub use descriptor::{Descriptor, on_readable, on_writable};
pub use handle_ext::HandleExt;
pub use idle::on_idle;
pub use options::PostOptions;
pub use refused::Refused;
pub use signal::on_signal;
pub use timer::TimerHandle;

/// Posts an event in the default color.
///
/// # Errors
/// Returns the closure if the color's queue is full, or if the runtime is shutting down or has shut
/// down.
///
/// # Panics
/// Panics if called outside a runtime.
#[inline]
#[track_caller]
pub fn post<F: FnOnce() + Send + 'static>(f: F) -> Result<(), PostError<F>> {
    tussah_core::post(f)
}

/// Posts an event in a color. Events of one color run one at a time, in the order in which they
/// were posted.
///
/// # Errors
/// Returns the closure if the color's queue is full, or if the runtime is shutting down or has shut
/// down.
///
/// # Panics
/// Panics if called outside a runtime, or if the color belongs to another runtime. If `f` panics,
/// only that event ends, and the panic is counted.
///
/// # Examples
/// This handler consists of two events with different colors. The second event belongs to the color
/// of a table, so it has exclusive access to this table:
/// ```
/// use tussah::{Color, post_in};
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # let (done, wait) = std::sync::mpsc::channel();
/// # runtime.block_on(async {
/// let connection = Color(17);
/// let table = Color(1);
/// post_in(connection, move || {
///     let request = "GET /".to_owned();
///     let stored = post_in(table, move || {
///         let _ = request;
/// #       done.send(()).expect("the example listens");
///     });
///     stored.expect("the table's color is not full");
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).expect("posted");
/// # wait.recv().expect("it ran");
/// # std::io::Result::Ok(())
/// ```
#[inline]
#[track_caller]
pub fn post_in<F: FnOnce() + Send + 'static>(
    color: impl AsColor,
    f: F,
) -> Result<(), PostError<F>> {
    tussah_core::post_in(color, f)
}

/// Posts an event with [`PostOptions`]: a deadline, a drop callback, a depth limit or a priority.
///
/// # Errors
/// Returns the closure if the color's queue is full, or if the runtime is shutting down or has shut
/// down. The drop callback of a rejected event is not called.
///
/// # Panics
/// Same as [`post_in`].
#[track_caller]
pub fn post_with<F: FnOnce() + Send + 'static>(
    color: impl AsColor,
    options: PostOptions,
    f: F,
) -> Result<(), Refused<F>> {
    options::post(&Handle::current(), color, options, f)
}

/// Posts an event in a color after a delay, measured from this call.
///
/// When the delay has elapsed, the event joins the end of the color's queue. The event never runs
/// early. If `f` panics, only that event ends. If the runtime is shut down or shutting down, the
/// closure is dropped without an error.
///
/// # Panics
/// Panics if called outside a runtime, or if the color belongs to another runtime.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tussah::{Color, after};
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// let retransmit = after(Duration::from_secs(5), Color(17), || println!("no reply: send again"));
/// retransmit.cancel(); // the reply came
/// # })).expect("no panic");
/// # std::io::Result::Ok(())
/// ```
#[track_caller]
pub fn after(
    delay: Duration,
    color: impl AsColor,
    f: impl FnOnce() + Send + 'static,
) -> TimerHandle {
    timer::after(&Handle::current(), delay, color, f)
}

/// Calls a closure in a color once per `period`; the first call comes after one period.
///
/// Each call is a separate event. If a call is delayed by one period or more, the missed calls are
/// skipped, and the next call comes one period after the delayed call. If `f` panics, only that
/// call ends, and the timer continues. After [`cancel`](TimerHandle::cancel), or when the runtime
/// ends, the closure is dropped in its color.
///
/// # Panics
/// Panics if `period` is zero, if called outside a runtime, or if the color belongs to another
/// runtime.
#[track_caller]
pub fn every(
    period: Duration,
    color: impl AsColor,
    f: impl FnMut() + Send + 'static,
) -> TimerHandle {
    timer::every(&Handle::current(), period, color, f)
}

/// Returns the runtime of the callback, or the current runtime if there is no callback.
#[track_caller]
fn handle_of<A: Send + 'static>(callback: &Option<Callback<A>>) -> Handle {
    match callback {
        Some(callback) => callback.handle().clone(),
        None => Handle::current(),
    }
}
