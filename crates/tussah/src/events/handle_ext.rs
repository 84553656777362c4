//! Event functions as methods of a runtime's handle, for callers outside the runtime.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use tussah_core::{AsColor, Handle};

use super::{Callback, ChildId, PostOptions, Refused, TimerHandle};
use super::{child, idle, options, signal, timer};
use crate::signal::Signal;

/// Methods that this crate adds to [`Handle`].
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tussah::{Color, HandleExt};
/// let runtime = tussah::Runtime::builder().workers(1).build()?;
/// let tick = runtime.every(Duration::from_secs(1), Color(3), || println!("tick"));
/// tick.cancel();
/// # std::io::Result::Ok(())
/// ```
pub trait HandleExt: sealed::Sealed {
    /// Posts an event with options; see [`post_with`](super::post_with).
    ///
    /// # Errors
    /// Same as [`post_with`](super::post_with).
    fn post_with<F: FnOnce() + Send + 'static>(
        &self,
        color: impl AsColor,
        options: PostOptions,
        f: F,
    ) -> Result<(), Refused<F>>;

    /// Posts an event after a delay; see [`after`](super::after).
    fn after(
        &self,
        delay: Duration,
        color: impl AsColor,
        f: impl FnOnce() + Send + 'static,
    ) -> TimerHandle;

    /// Calls a closure periodically; see [`every`](super::every).
    fn every(
        &self,
        period: Duration,
        color: impl AsColor,
        f: impl FnMut() + Send + 'static,
    ) -> TimerHandle;

    /// Registers a callback for a signal; see [`on_signal`](super::on_signal).
    ///
    /// # Errors
    /// Same as [`on_signal`](super::on_signal).
    ///
    /// # Panics
    /// Panics if the callback belongs to another runtime.
    fn on_signal(
        &self,
        signal: Signal,
        callback: impl Into<Option<Callback<()>>>,
    ) -> io::Result<()>;

    /// Registers a callback for the exit of a child; see [`on_child_exit`](super::on_child_exit).
    ///
    /// # Panics
    /// Panics if the callback belongs to another runtime.
    fn on_child_exit(
        &self,
        child: impl Into<ChildId>,
        callback: impl Into<Option<Callback<io::Result<ExitStatus>>>>,
    );

    /// Registers a callback for idle workers; see [`on_idle`](super::on_idle).
    ///
    /// # Panics
    /// Panics if the callback belongs to another runtime.
    fn on_idle(&self, callback: impl Into<Option<Callback<()>>>);
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for tussah_core::Handle {}
}

impl HandleExt for Handle {
    #[track_caller]
    fn post_with<F: FnOnce() + Send + 'static>(
        &self,
        color: impl AsColor,
        options: PostOptions,
        f: F,
    ) -> Result<(), Refused<F>> {
        options::post(self, color, options, f)
    }

    #[track_caller]
    fn after(
        &self,
        delay: Duration,
        color: impl AsColor,
        f: impl FnOnce() + Send + 'static,
    ) -> TimerHandle {
        timer::after(self, delay, color, f)
    }

    #[track_caller]
    fn every(
        &self,
        period: Duration,
        color: impl AsColor,
        f: impl FnMut() + Send + 'static,
    ) -> TimerHandle {
        timer::every(self, period, color, f)
    }

    #[track_caller]
    fn on_signal(
        &self,
        signal: Signal,
        callback: impl Into<Option<Callback<()>>>,
    ) -> io::Result<()> {
        signal::register(self, signal, callback.into())
    }

    #[track_caller]
    fn on_child_exit(
        &self,
        child: impl Into<ChildId>,
        callback: impl Into<Option<Callback<io::Result<ExitStatus>>>>,
    ) {
        child::register(self, child.into(), callback.into());
    }

    #[track_caller]
    fn on_idle(&self, callback: impl Into<Option<Callback<()>>>) {
        idle::register(self, callback.into());
    }
}
