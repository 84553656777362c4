//! The only switch between the standard library and loom's model of it.
//!
//! Code with a model takes its atomics, cells, locks and OS threads only from here.
#![allow(unused_imports, dead_code)]

#[cfg(loom)]
pub(crate) use loom::{
    hint,
    sync::{Arc, Condvar, Mutex, MutexGuard},
};
#[cfg(not(loom))]
pub(crate) use std::{hint, sync::Arc, thread};

/// OS threads.
#[cfg(loom)]
pub(crate) mod thread {
    pub(crate) use loom::thread::*;

    /// An OS thread that can be unparked. Loom's own `unpark` would also release a thread that
    /// waits for a lock.
    #[derive(Clone)]
    pub(crate) struct Thread(std::sync::Arc<Place>);

    struct Place {
        notified: super::Mutex<bool>,
        changed: super::Condvar,
    }

    loom::thread_local! {
        static HERE: Thread = Thread(std::sync::Arc::new(Place {
            notified: super::Mutex::new(false),
            changed: super::Condvar::new(),
        }));
    }

    impl Thread {
        pub(crate) fn unpark(&self) {
            *super::lock(&self.0.notified) = true;
            self.0.changed.notify_one();
        }
    }

    pub(crate) fn current() -> Thread {
        HERE.with(Clone::clone)
    }

    pub(crate) fn park() {
        let here = current().0;
        let mut notified = super::lock(&here.notified);
        while !std::mem::take(&mut *notified) {
            notified = here
                .changed
                .wait(notified)
                .expect("a model does not go on after a panic");
        }
    }

    /// Yields: a model has no time, so the limit expires as soon as another of the model's threads
    /// has had a chance to run.
    pub(crate) fn park_timeout(_limit: std::time::Duration) {
        yield_now();
    }
}

/// Returns whether an OS thread has ended.
#[cfg(not(loom))]
pub(crate) fn is_finished<T>(os_thread: &thread::JoinHandle<T>) -> bool {
    os_thread.is_finished()
}

/// Returns true: a model has no time, so the caller then joins the OS thread.
#[cfg(loom)]
pub(crate) fn is_finished<T>(_: &thread::JoinHandle<T>) -> bool {
    true
}

/// Variables of an OS thread. In a model, each of its threads has its own variables, although all
/// run on one OS thread.
#[cfg(loom)]
macro_rules! model_local {
    ($(#[$attribute:meta])* static $name:ident: $type:ty = const $init:block $(;)?) => {
        loom::thread_local! { $(#[$attribute])* static $name: $type = $init; }
    };
}
#[cfg(loom)]
pub(crate) use model_local as thread_local;
#[cfg(not(loom))]
pub(crate) use std::thread_local;

/// A static lock. In a model, each execution has its own lock.
#[cfg(loom)]
macro_rules! model_lock {
    ($(#[$attribute:meta])* static $name:ident: Mutex<$type:ty> = Mutex::new($value:expr) $(;)?) => {
        loom::lazy_static! {
            $(#[$attribute])* static ref $name: loom::sync::Mutex<$type> = loom::sync::Mutex::new($value);
        }
    };
}
#[cfg(loom)]
pub(crate) use model_lock as static_lock;

/// A static lock.
#[cfg(not(loom))]
macro_rules! plain_lock {
    ($(#[$attribute:meta])* static $name:ident: Mutex<$type:ty> = Mutex::new($value:expr) $(;)?) => {
        $(#[$attribute])* static $name: parking_lot::Mutex<$type> = parking_lot::Mutex::new($value);
    };
}
#[cfg(not(loom))]
pub(crate) use plain_lock as static_lock;

/// Atomics and fences.
pub(crate) mod atomic {
    #[cfg(loom)]
    pub(crate) use loom::sync::atomic::*;
    #[cfg(not(loom))]
    pub(crate) use std::sync::atomic::*;
}

/// A cell whose accesses loom checks.
#[cfg(loom)]
pub(crate) use loom::cell::UnsafeCell;

/// A cell whose accesses loom checks; plain outside of models.
#[cfg(not(loom))]
#[derive(Debug)]
pub(crate) struct UnsafeCell<T: ?Sized>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    #[inline]
    pub(crate) const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    #[inline]
    pub(crate) fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    #[inline]
    pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

/// A lock that is never poisoned: parking_lot's, or loom's in a model.
#[cfg(not(loom))]
pub(crate) use parking_lot::{Mutex, MutexGuard};

/// Takes a lock.
#[cfg(not(loom))]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

/// Takes a lock.
#[cfg(loom)]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("a model does not go on after a panic")
}
