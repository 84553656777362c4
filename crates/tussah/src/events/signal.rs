//! Callbacks for signals.

use std::io;
use std::time::Duration;

use tussah_core::{Handle, yield_now};

use super::registry::{Key, Registry};
use super::{Callback, handle_of};
use crate::signal::{Signal, Signals};
use crate::time;

/// Bound, in milliseconds: the polling interval for a signal whose pipe cannot be registered with
/// epoll.
const LOOK_MS: u64 = 20;

/// Calls a callback when a signal is delivered. A runtime has at most one callback for each signal.
///
/// This function corresponds to libasync's `sigcb` (Zeldovich 2002, table 2.1). Each call is an
/// ordinary event of the callback's color, so the restrictions on signal handlers do not apply. If
/// signals are delivered faster than the callback is called, several deliveries may be merged into
/// one call. Unregistering a callback does not restore the signal's default action.
/// [`crate::signal`] describes both behaviors.
///
/// Registering another callback for the same signal replaces the previous one; passing `None`
/// unregisters the callback, as with [`on_readable`](super::on_readable). Callbacks of other
/// runtimes are not affected: each runtime gets every delivery.
///
/// A registration costs one pipe, one thread and one table entry. Normally, nothing runs between
/// signals. If the pipe cannot be registered with epoll, the thread checks the pipe every 20 ms.
///
/// # Errors
/// Same as [`signal`](crate::signal::signal()). After an error, the previous callback remains
/// registered.
///
/// # Panics
/// Panics if called with `None` outside a runtime; use
/// [`HandleExt::on_signal`](super::HandleExt::on_signal) there.
///
/// # Examples
/// ```
/// use tussah::events::on_signal;
/// use tussah::signal::Signal;
/// use tussah::{Callback, Color};
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # let (done, wait) = std::sync::mpsc::channel();
/// # runtime.block_on(async {
/// let reload = Callback::new(Color::DEFAULT, move |()| {
///     println!("reading the configuration again");
/// #   done.send(()).expect("the example listens");
/// });
/// on_signal(Signal::HUP, reload)?;
/// # rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::HUP)?;
/// # wait.recv().expect("it is called");
/// on_signal(Signal::HUP, None)?;
/// # std::io::Result::Ok(())
/// # })?;
/// # std::io::Result::Ok(())
/// ```
#[track_caller]
pub fn on_signal(signal: Signal, callback: impl Into<Option<Callback<()>>>) -> io::Result<()> {
    let callback = callback.into();
    register(&handle_of(&callback), signal, callback)
}

#[track_caller]
pub(super) fn register(
    handle: &Handle,
    signal: Signal,
    callback: Option<Callback<()>>,
) -> io::Result<()> {
    let registry = Registry::of(handle);
    let key = Key::Signal(signal.as_raw());
    let Some(callback) = callback else {
        registry.unregister(key);
        return Ok(());
    };
    // Listen before the previous registration ends, so that no delivery is lost in between.
    let signals = Signals::new_in(handle, signal)?;
    callback.announce();
    let color = callback.color().clone();
    registry.register(key, handle, &color, |interest| async move {
        loop {
            match signals.recv().await {
                Ok(()) if !interest.call(&callback, ()) => return,
                Ok(()) => {}
                // epoll has no room, or the runtime is ending and drops this thread soon.
                Err(_) => time::sleep(Duration::from_millis(LOOK_MS)).await,
            }
            callback.announce();
            yield_now().await;
        }
    });
    Ok(())
}
