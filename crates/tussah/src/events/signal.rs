//! Callbacks for signals.

use std::io;
use std::time::Duration;

use tussah_core::{Handle, yield_now};

use super::registry::{Key, Registry};
use super::{Callback, handle_of};
use crate::signal::{Signal, Signals};
use crate::time;

/// Bound, in milliseconds: how often a signal is looked for that the system has no room to report on.
const LOOK_MS: u64 = 20;

/// Has a callback called when a signal was delivered; a runtime has one for each signal.
///
/// This is libasync's `sigcb` (Zeldovich 2002, table 2.1). The call is an event of the callback's color, so it may do what other code may,
/// unlike a handler of the system's. Deliveries that come faster than calls may be one: see [`crate::signal`], also for the default
/// action, which does not come back when the callback is un-registered.
///
/// Another callback takes the place of this one, `None` un-registers; both as [`on_readable`](super::on_readable). The callback of
/// another runtime stays: each gets every delivery.
///
/// A registration costs a pipe, a thread and an entry in a table; nothing runs between signals.
///
/// # Errors
/// As [`signal`](crate::signal::signal()); what was registered before stays.
///
/// # Panics
/// `None` panics outside of a runtime: use [`HandleExt::on_signal`](super::HandleExt::on_signal) there.
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
    // Before the other one ends, so that no delivery falls between them.
    let signals = Signals::new_in(handle, signal)?;
    callback.announce();
    let color = callback.color().clone();
    registry.register(key, handle, &color, |interest| async move {
        loop {
            match signals.recv().await {
                Ok(()) if !interest.call(&callback, ()) => return,
                Ok(()) => {}
                // The system has no room, or the runtime ends, and this thread with it.
                Err(_) => time::sleep(Duration::from_millis(LOOK_MS)).await,
            }
            callback.announce();
            yield_now().await;
        }
    });
    Ok(())
}
