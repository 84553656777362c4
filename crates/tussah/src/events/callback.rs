//! Callbacks: closures that carry their color and can be called many times.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tussah_core::{AsColor, ColorRef, Handle, quietly};

use super::refused::{Parcel, Refused, unpack};

/// A closure with a color. Any OS thread can call the closure, any number of times; each call is an
/// event of that color.
///
/// The color and the priority are set when the callback is created. A function that takes a
/// callback therefore does not need to know in which color the callback runs. In libasync-mp,
/// `cwrap` and `cpwrap` serve the same purpose (Zeldovich 2002, section 3.2). Clones refer to the
/// same closure. The closure is freed when no clone and no queued call is left.
///
/// # Examples
/// ```
/// use tussah::{Callback, Color};
/// # let runtime = tussah::Runtime::builder().workers(2).build()?;
/// # runtime.block_on(async {
/// # let (done, wait) = std::sync::mpsc::channel();
/// let mut total = 0;
/// let add = Callback::new(Color(7), move |n: u64| {
///     total += n;
/// #   done.send(total).expect("the example listens");
/// });
/// add.fire(1)?;
/// add.fire(2)?;
/// # drop(add);
/// # assert_eq!(wait.iter().collect::<Vec<_>>(), [1, 3]);
/// # Ok::<(), tussah::Refused<u64>>(())
/// # }).expect("fired");
/// # std::io::Result::Ok(())
/// ```
pub struct Callback<A: 'static> {
    inner: Arc<Inner<dyn FnMut(A) + Send>>,
}

struct Inner<F: ?Sized> {
    handle: Handle,
    color: ColorRef,
    priority: Option<i8>,
    /// Never contended: only events of the color lock it. The lock tells the compiler what the
    /// color already guarantees.
    f: Mutex<F>,
}

impl<A> Inner<dyn FnMut(A) + Send> {
    fn run(&self, argument: A) {
        let mut f = self.f.lock().unwrap_or_else(PoisonError::into_inner);
        f(argument);
    }
}

impl<A: Send + 'static> Callback<A> {
    /// Creates a callback in the current runtime.
    ///
    /// # Panics
    /// Panics if called outside a runtime; use [`Callback::new_in`] there.
    #[track_caller]
    pub fn new(color: impl AsColor, f: impl FnMut(A) + Send + 'static) -> Self {
        Self::new_in(&Handle::current(), color, f)
    }

    /// Creates a callback in the given runtime.
    pub fn new_in(handle: &Handle, color: impl AsColor, f: impl FnMut(A) + Send + 'static) -> Self {
        Self::make(handle, color, None, f)
    }

    /// Creates a callback with a priority, in the current runtime.
    ///
    /// A priority influences the order among colors, never the order of events within a color.
    /// Whenever the callback is fired, its color gets this priority, and keeps it until another
    /// priority is set.
    ///
    /// # Panics
    /// Panics if called outside a runtime.
    #[track_caller]
    pub fn with_priority(
        color: impl AsColor,
        priority: i8,
        f: impl FnMut(A) + Send + 'static,
    ) -> Self {
        Self::make(&Handle::current(), color, Some(priority), f)
    }

    fn make(
        handle: &Handle,
        color: impl AsColor,
        priority: Option<i8>,
        f: impl FnMut(A) + Send + 'static,
    ) -> Self {
        let color = handle.color(color);
        Self {
            inner: Arc::new(Inner {
                handle: handle.clone(),
                color,
                priority,
                f: Mutex::new(f),
            }),
        }
    }

    /// Queues a call to the closure as an event of the callback's color. Calls run in the order in
    /// which they were fired.
    ///
    /// If the closure panics, only that call ends. Later calls see the closure's state as the panic
    /// left it.
    ///
    /// # Errors
    /// Returns the argument if the color's queue is full, or if the runtime is shutting down or has
    /// shut down.
    ///
    /// # Panics
    /// Panics if the callback's color does not belong to the callback's runtime.
    #[track_caller]
    pub fn fire(&self, argument: A) -> Result<(), Refused<A>> {
        let inner = &*self.inner;
        self.announce();
        let callback = self.inner.clone();
        let mut argument = Parcel::new(argument);
        let call = move || {
            let argument = argument.open().expect("a call runs once");
            callback.run(argument);
        };
        inner.handle.post_in(&inner.color, call).map_err(unpack)
    }

    /// Calls the closure inside the current event, which is of its color. A panic ends with the
    /// call; the panic hook has reported it.
    pub(super) fn call(&self, argument: A) {
        quietly(|| self.inner.run(argument));
    }

    /// Gives the color this callback's priority, for the event about to be queued.
    pub(super) fn announce(&self) {
        if let Some(priority) = self.inner.priority {
            self.inner.color.set_priority(priority);
        }
    }

    pub(super) fn handle(&self) -> &Handle {
        &self.inner.handle
    }

    /// Returns the color in which the closure runs.
    #[must_use]
    pub fn color(&self) -> &ColorRef {
        &self.inner.color
    }
}

impl<A> Clone for Callback<A> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
        }
    }
}

impl<A> fmt::Debug for Callback<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Callback")
            .field("color", &self.inner.color)
            .field("priority", &self.inner.priority)
            .finish_non_exhaustive()
    }
}
