//! Callbacks for when there is nothing else to do.

use tussah_core::{Handle, yield_now};

use super::registry::{Key, Registry};
use super::{Callback, handle_of};

/// Has a callback called whenever a worker of its runtime has nothing else to run; a runtime has one such callback.
///
/// libasync has none; it is libev's idle watcher (ev(3), `ev_idle`). It is called again and again as long as nothing else is to be
/// run, so that **one worker stays busy while it is registered**: un-register it when there is nothing left to tidy up. Nothing else means:
/// no event that the worker could run or steal, no timer that is due, nothing to report from descriptors. Other workers may be
/// at work; events that come meanwhile wait for one call at most. Each call is an event of the callback's color.
///
/// It is not called any more when the runtime is being shut down. Another callback takes the place of this one, `None` un-registers; both
/// as [`on_readable`](super::on_readable).
///
/// # Panics
/// `None` panics outside of a runtime: use [`HandleExt::on_idle`](super::HandleExt::on_idle) there.
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
