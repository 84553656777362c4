//! Callbacks for idle workers.

use tussah_core::{Handle, yield_now};

use super::registry::{Key, Registry};
use super::{Callback, handle_of};

/// Calls a callback whenever a worker of its runtime is idle. A runtime has at most one idle
/// callback.
///
/// This function corresponds to libev's idle watcher (ev(3), `ev_idle`); libasync has no
/// equivalent. The callback is called repeatedly while nothing else needs to run, so **one worker
/// stays busy while the callback is registered**. Unregister the callback when its work is done. A
/// worker is idle if it has no event to run or steal, no timer is due, and none of its descriptors
/// is ready. Other workers may be busy when the callback is called. A new event waits for at most
/// one call to the callback. Each call is an event of the callback's color.
///
/// When the runtime is shutting down, the callback is no longer called. Registering another
/// callback replaces the previous one; passing `None` unregisters the callback, as with
/// [`on_readable`](super::on_readable).
///
/// # Panics
/// Panics if called with `None` outside a runtime; use
/// [`HandleExt::on_idle`](super::HandleExt::on_idle) there.
///
/// # Examples
/// ```
/// use tussah::events::on_idle;
/// use tussah::{Callback, Color};
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # let (done, wait) = std::sync::mpsc::channel::<()>();
/// let mut pages = vec![[0; 4096]; 100];
/// let tidy = Callback::new_in(&runtime, Color(7), move |()| {
/// #   let _done = &done;
///     pages.pop(); // a bit at a time
///     if pages.is_empty() {
///         on_idle(None);
///     }
/// });
/// on_idle(tidy);
/// # wait.recv().expect_err("the callback is dropped");
/// # std::io::Result::Ok(())
/// ```
#[track_caller]
pub fn on_idle(callback: impl Into<Option<Callback<()>>>) {
    let callback = callback.into();
    register(&handle_of(&callback), callback);
}

#[track_caller]
pub(super) fn register(handle: &Handle, callback: Option<Callback<()>>) {
    let registry = Registry::of(handle);
    let Some(callback) = callback else {
        return registry.unregister(Key::Idle);
    };
    callback.announce();
    let color = callback.color().clone();
    let of = handle.clone();
    registry.register(Key::Idle, handle, &color, |interest| async move {
        loop {
            of.idle().await;
            if !interest.call(&callback, ()) {
                return;
            }
            callback.announce();
            yield_now().await;
        }
    });
}
