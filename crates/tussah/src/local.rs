//! Values that belong to a thread, or to a part of it, wherever it runs.
//!
//! A local is set for one future: whenever that is polled, the value is in place on the OS thread that polls it, and
//! out of the way afterwards. A thread that uses none pays nothing. Threads that are spawned inside do not inherit.

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

/// Declares locals of threads, each a [`LocalKey`](crate::local::LocalKey).
///
/// ```
/// tussah::task_local! {
///     /// Whom the thread serves.
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

/// The name of a local; declared with [`task_local!`](crate::task_local).
pub struct LocalKey<T: 'static> {
    /// The value of the scope that is being polled on this OS thread, the innermost one.
    slot: thread::LocalKey<RefCell<Option<T>>>,
}

impl<T: 'static> LocalKey<T> {
    /// Only for [`task_local!`](crate::task_local).
    #[doc(hidden)]
    #[must_use]
    pub const fn __new(slot: thread::LocalKey<RefCell<Option<T>>>) -> Self {
        Self { slot }
    }

    /// Sets the local to `value` as long as `future` runs; its destructor still sees it.
    ///
    /// Scopes nest: the inner one hides the outer one.
    ///
    /// # Panics
    ///
    /// Polling panics inside of [`with`](Self::with) of the same local. A panic of `future` is passed on, and the local
    /// is then as before.
    pub fn scope<F: Future>(&'static self, value: T, future: F) -> Scoped<T, F> {
        Scoped {
            key: self,
            value: Some(value),
            future: Some(future),
        }
    }

    /// Sets the local to `value` as long as `f` runs.
    ///
    /// # Panics
    ///
    /// Inside of [`with`](Self::with) of the same local. A panic of `f` is passed on, and the local is then as before.
    #[track_caller]
    pub fn sync_scope<R>(&'static self, value: T, f: impl FnOnce() -> R) -> R {
        let mut value = Some(value);
        let _entered = Entered::new(self, &mut value);
        f()
    }

    /// Calls `f` with the value.
    ///
    /// # Panics
    ///
    /// If the local is not set here.
    #[track_caller]
    pub fn with<R>(&'static self, f: impl FnOnce(&T) -> R) -> R {
        match self.try_with(f) {
            Ok(result) => result,
            Err(error) => panic!("{error}"),
        }
    }

    /// Calls `f` with the value, if the local is set here.
    ///
    /// # Errors
    ///
    /// If it is not set.
    pub fn try_with<R>(&'static self, f: impl FnOnce(&T) -> R) -> Result<R, AccessError> {
        self.slot
            .try_with(|slot| slot.borrow().as_ref().map(f))
            .ok()
            .flatten()
            .ok_or(AccessError(()))
    }

    /// A copy of the value.
    ///
    /// # Panics
    ///
    /// If the local is not set here.
    #[track_caller]
    #[must_use]
    pub fn get(&'static self) -> T
    where
        T: Clone,
    {
        self.with(T::clone)
    }

    /// Swaps `value` with what is in the slot; false if it is in use, or gone since the OS thread ends.
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

/// Has put a value in place, and takes it out again when it is dropped: also when the code in between panics.
struct Entered<'a, T: 'static> {
    key: &'static LocalKey<T>,
    /// The value of the scope around this one.
    outer: &'a mut Option<T>,
}

impl<'a, T: 'static> Entered<'a, T> {
    #[track_caller]
    fn new(key: &'static LocalKey<T>, value: &'a mut Option<T>) -> Self {
        assert!(
            key.swap(value),
            "a local was to be set inside of `with` of the same local"
        );
        Self { key, outer: value }
    }
}

impl<T: 'static> Drop for Entered<'_, T> {
    fn drop(&mut self) {
        // It succeeds: every `with` that began after this has ended before it.
        self.key.swap(self.outer);
    }
}

pin_project! {
    /// The future of [`LocalKey::scope`].
    #[must_use = "futures do nothing unless they are polled"]
    pub struct Scoped<T: 'static, F> {
        key: &'static LocalKey<T>,
        // While the future is polled: the value of the scope around this one.
        value: Option<T>,
        // `None` once it has completed.
        #[pin]
        future: Option<F>,
    }

    impl<T: 'static, F> PinnedDrop for Scoped<T, F> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            if this.future.is_none() {
                return;
            }
            // The future's destructor sees the local, unless that is in use just now: then it goes without.
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
                // A second panic would end the process while this one unwinds.
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
            .expect("a scope was polled after it had completed")
            .poll(context);
        if polled.is_ready() {
            // In the scope still, like all that the future does.
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

/// The local is not set here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessError(());

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a local was read outside of its scope")
    }
}

impl Error for AccessError {}
