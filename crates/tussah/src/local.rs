//! Values that belong to one thread, or to one future inside a thread, and move with the thread
//! between workers.
//!
//! A local is set for one future. While an OS thread polls the future, code on that OS thread sees
//! the value. Between polls, no code sees the value. Locals add no overhead to threads that do not
//! use them. A spawned thread does not inherit the locals of its parent.

use std::{
    cell::RefCell,
    error::Error,
    fmt,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::Pin,
    task::{Context, Poll},
    thread,
};

use pin_project_lite::pin_project;
use tussah_core::quietly;

/// Declares one or more thread-local values, each of them a [`LocalKey`](crate::local::LocalKey).
///
/// ```
/// tussah::task_local! {
///     /// The client that the thread serves.
///     static CLIENT: String;
///     pub static DEPTH: u32;
/// }
///
/// # futures_lite::future::block_on(async {
/// let greeting = CLIENT.scope("Ada".to_owned(), async {
///     futures_lite::future::yield_now().await;
///     CLIENT.with(|client| format!("hello {client}"))
/// });
/// assert_eq!(greeting.await, "hello Ada");
/// assert!(CLIENT.try_with(|_| ()).is_err());
/// assert_eq!(DEPTH.sync_scope(1, || DEPTH.get()), 1);
/// # });
/// ```
#[macro_export]
macro_rules! task_local {
    ($($(#[$attribute:meta])* $visibility:vis static $name:ident: $type:ty);+ $(;)?) => {
        $(
            $(#[$attribute])*
            $visibility static $name: $crate::local::LocalKey<$type> = {
                ::std::thread_local! {
                    static SLOT: ::std::cell::RefCell<::std::option::Option<$type>> =
                        const { ::std::cell::RefCell::new(::std::option::Option::None) };
                }
                $crate::local::LocalKey::__new(SLOT)
            };
        )+
    };
}

/// A thread-local value, declared with [`task_local!`](crate::task_local).
pub struct LocalKey<T: 'static> {
    /// The value of the innermost scope that this OS thread is polling.
    slot: thread::LocalKey<RefCell<Option<T>>>,
}

impl<T: 'static> LocalKey<T> {
    /// Used by [`task_local!`](crate::task_local) only.
    #[doc(hidden)]
    #[must_use]
    pub const fn __new(slot: thread::LocalKey<RefCell<Option<T>>>) -> Self {
        Self { slot }
    }

    /// Returns a future that sets the local to `value` while `future` runs, and while `future` is
    /// being dropped.
    ///
    /// Scopes nest: an inner scope hides the outer one.
    ///
    /// # Panics
    ///
    /// The returned future panics if it is polled inside a call to [`with`](Self::with) on the same
    /// local. If `future` panics, the local's previous value is restored, and the panic propagates.
    pub fn scope<F: Future>(&'static self, value: T, future: F) -> Scoped<T, F> {
        Scoped {
            key: self,
            value: Some(value),
            future: Some(future),
        }
    }

    /// Sets the local to `value` while `f` runs.
    ///
    /// # Panics
    ///
    /// Panics if called inside a call to [`with`](Self::with) on the same local. If `f` panics, the
    /// local's previous value is restored, and the panic propagates.
    #[track_caller]
    pub fn sync_scope<R>(&'static self, value: T, f: impl FnOnce() -> R) -> R {
        let mut value = Some(value);
        let _entered = Entered::new(self, &mut value);
        f()
    }

    /// Calls `f` with a reference to the local's value.
    ///
    /// # Panics
    ///
    /// Panics if the local is not set.
    #[track_caller]
    pub fn with<R>(&'static self, f: impl FnOnce(&T) -> R) -> R {
        match self.try_with(f) {
            Ok(result) => result,
            Err(error) => panic!("{error}"),
        }
    }

    /// Calls `f` with a reference to the local's value, if the local is set.
    ///
    /// # Errors
    ///
    /// Returns [`AccessError`] if the local is not set.
    pub fn try_with<R>(&'static self, f: impl FnOnce(&T) -> R) -> Result<R, AccessError> {
        self.slot
            .try_with(|slot| slot.borrow().as_ref().map(f))
            .ok()
            .flatten()
            .ok_or(AccessError(()))
    }

    /// Returns a copy of the local's value.
    ///
    /// # Panics
    ///
    /// Panics if the local is not set.
    #[track_caller]
    #[must_use]
    pub fn get(&'static self) -> T
    where
        T: Clone,
    {
        self.with(T::clone)
    }

    /// Swaps `value` with the slot. Returns false if the slot is borrowed, or already destroyed
    /// because the OS thread is ending.
    fn swap(&'static self, value: &mut Option<T>) -> bool {
        self.slot
            .try_with(|slot| {
                slot.try_borrow_mut()
                    .map(|mut slot| std::mem::swap(&mut *slot, value))
                    .is_ok()
            })
            .unwrap_or(false)
    }
}

impl<T: 'static> fmt::Debug for LocalKey<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalKey").finish_non_exhaustive()
    }
}

/// Guard that has set a local, and restores the previous value when dropped, also during a panic.
struct Entered<'a, T: 'static> {
    key: &'static LocalKey<T>,
    /// The value of the enclosing scope.
    outer: &'a mut Option<T>,
}

impl<'a, T: 'static> Entered<'a, T> {
    #[track_caller]
    fn new(key: &'static LocalKey<T>, value: &'a mut Option<T>) -> Self {
        assert!(
            key.swap(value),
            "cannot set a thread local inside `with` of the same local"
        );
        Self { key, outer: value }
    }
}

impl<T: 'static> Drop for Entered<'_, T> {
    fn drop(&mut self) {
        // This succeeds: every `with` that began after the guard was made has ended.
        self.key.swap(self.outer);
    }
}

pin_project! {
    /// The future of [`LocalKey::scope`].
    #[must_use = "futures do nothing unless they are polled"]
    pub struct Scoped<T: 'static, F> {
        key: &'static LocalKey<T>,
        // While the future is being polled: the value of the enclosing scope.
        value: Option<T>,
        // `None` after completion.
        #[pin]
        future: Option<F>,
    }

    impl<T: 'static, F> PinnedDrop for Scoped<T, F> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            if this.future.is_none() {
                return;
            }
            // The future's destructor sees the local, unless `with` is borrowing the slot right
            // now.
            let key: &'static LocalKey<T> = this.key;
            let dropped = catch_unwind(AssertUnwindSafe(|| {
                if key.swap(this.value) {
                    let _entered = Entered { key, outer: this.value };
                    this.future.set(None);
                } else {
                    this.future.set(None);
                }
            }));
            if let Err(payload) = dropped {
                // A second panic during unwinding would abort the process.
                quietly(|| drop(this.value.take()));
                resume_unwind(payload);
            }
        }
    }
}

impl<T: 'static, F: Future> Future for Scoped<T, F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let mut this = self.project();
        let _entered = Entered::new(this.key, this.value);
        let future = this.future.as_mut().as_pin_mut();
        let polled = future
            .expect("a `Scoped` future was polled after completion")
            .poll(context);
        if polled.is_ready() {
            // Drop the future while the local is still set.
            this.future.set(None);
        }
        polled
    }
}

impl<T: 'static, F> fmt::Debug for Scoped<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scoped")
            .field("completed", &self.future.is_none())
            .finish_non_exhaustive()
    }
}

/// The error returned when code accesses a local that is not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessError(());

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the thread local is not set: it was read outside its scope")
    }
}

impl Error for AccessError {}
