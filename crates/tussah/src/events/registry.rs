//! The callbacks registered in a runtime: at most one thread for each descriptor, signal or child.
//!
//! # Why unregistering is exact
//!
//! Each registration has a thread in the color of its callback. Each poll of the thread is an event
//! of that color, which checks for readiness and calls the closure. Unregistering marks the
//! registration, which is checked before each call, and aborts the thread. If the caller that
//! unregisters runs in the same color, no call follows, because the mark was set in an earlier
//! event. A caller elsewhere may find a call under way; that call completes.
//!
//! The abort alone would not suffice. The thread may already run, and its closure may unregister
//! it, before the OS thread that started it has stored its handle in the table.

use std::collections::HashMap;
use std::future::Future;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tussah_core::{AbortHandle, ColorRef, Handle};

use super::Callback;
use crate::process::Child;

/// The source of events for which a callback is registered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Key {
    /// The registration keeps the descriptor open, so its number cannot be reused meanwhile.
    Readable(RawFd),
    Writable(RawFd),
    Signal(i32),
    Child(u32),
    Idle,
}

/// The registrations of a runtime.
///
/// The entries keep the runtime's memory alive, and the runtime keeps the registry alive. Each
/// entry is removed with its thread, so the cycle ends with the runtime.
#[derive(Default)]
pub(super) struct Registry(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    entries: HashMap<Key, Entry>,
}

struct Entry {
    interest: Interest,
    /// `None` while the thread is being started.
    thread: Option<AbortHandle>,
    child: Option<OwnedChild>,
}

/// A child that a registration waits for. The registration that replaces it takes the child over.
pub(super) type OwnedChild = Arc<async_lock::Mutex<Child>>;

/// True if a registration is still active.
///
/// Accesses are Relaxed: the color orders events of one color, and nothing is promised to other
/// callers.
#[derive(Clone)]
pub(super) struct Interest(Arc<AtomicBool>);

impl Interest {
    pub(super) fn new() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }

    fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Calls the closure inside the current event if the registration is active. Returns whether
    /// the registration was active.
    pub(super) fn call<A: Send + 'static>(&self, callback: &Callback<A>, argument: A) -> bool {
        let is_there = self.0.load(Ordering::Relaxed);
        if is_there {
            callback.call(argument);
        }
        is_there
    }
}

impl Registry {
    pub(super) fn of(handle: &Handle) -> Arc<Self> {
        handle.extension(Self::default)
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a thread for a key and ends the previous one.
    ///
    /// A runtime that is shut down drops the future.
    #[track_caller]
    pub(super) fn register<F>(
        self: &Arc<Self>,
        key: Key,
        handle: &Handle,
        color: &ColorRef,
        future: impl FnOnce(Interest) -> F,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        self.register_child(key, handle, color, None, future);
    }

    /// Does the same as [`register`](Self::register) for a callback on the exit of a child.
    #[track_caller]
    pub(super) fn register_child<F>(
        self: &Arc<Self>,
        key: Key,
        handle: &Handle,
        color: &ColorRef,
        child: Option<OwnedChild>,
        future: impl FnOnce(Interest) -> F,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let interest = Interest::new();
        let before = self.reserve(key, interest.clone(), child);
        end(before);
        let registered = Registered {
            registry: self.clone(),
            key,
            interest: interest.clone(),
        };
        let future = future(interest.clone());
        // The guard is dropped with the future, even if the future is never polled. No lock is held
        // here, because a runtime that has ended drops the future immediately.
        let thread = handle.try_spawn_in(color, async move {
            let _registered = registered;
            future.await;
        });
        let Ok(thread) = thread else {
            return;
        };
        let thread = thread.abort_handle();
        // The thread has already ended, or another OS thread has unregistered it.
        if let Some(unwanted) = self.keep(key, &interest, thread) {
            unwanted.abort();
        }
    }

    /// Stores the thread. Returns it if its entry no longer exists.
    fn keep(&self, key: Key, interest: &Interest, thread: AbortHandle) -> Option<AbortHandle> {
        match self.lock().entries.get_mut(&key) {
            Some(entry) if entry.interest.is_same(interest) => entry.thread.replace(thread),
            _ => Some(thread),
        }
    }

    /// Ends the registration for a key, if there is one.
    pub(super) fn unregister(&self, key: Key) {
        let before = self.lock().entries.remove(&key);
        end(before);
    }

    /// Returns the child that the registration for a key owns.
    pub(super) fn child(&self, key: Key) -> Option<OwnedChild> {
        self.lock().entries.get(&key)?.child.clone()
    }

    fn reserve(&self, key: Key, interest: Interest, child: Option<OwnedChild>) -> Option<Entry> {
        let entry = Entry {
            interest,
            thread: None,
            child,
        };
        self.lock().entries.insert(key, entry)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.lock().entries.len()
    }
}

fn end(entry: Option<Entry>) {
    let Some(entry) = entry else {
        return;
    };
    entry.interest.0.store(false, Ordering::Relaxed);
    // Without a handle here, `register_child` finds its entry gone and aborts the thread.
    if let Some(thread) = entry.thread {
        thread.abort();
    }
}

/// Guard that ends the registration together with its thread.
struct Registered {
    registry: Arc<Registry>,
    key: Key,
    interest: Interest,
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut lock = self.registry.lock();
        let mine = lock.entries.get(&self.key);
        let mine = mine.is_some_and(|entry| entry.interest.is_same(&self.interest));
        let entry = mine.then(|| lock.entries.remove(&self.key));
        // The memory of a peak of registrations is not kept.
        if lock.entries.len() < lock.entries.capacity() / 8 {
            let len = lock.entries.len();
            lock.entries.shrink_to(2 * len);
        }
        drop(lock);
        drop(entry);
    }
}
