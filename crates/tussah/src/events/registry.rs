//! What is registered in a runtime: at most one thread for each thing that callbacks are registered for.
//!
//! # Why a registration ends exactly
//!
//! A registration is a thread in the color of its callback: each of its polls is an event of that color, in which it looks
//! whether there is anything to call the closure for, and calls it. Un-registering marks the registration, which is looked at before
//! each call, and aborts the thread. So if the one who un-registers runs in that color, no call follows: the mark was made in an
//! event before. One who runs elsewhere may find a call under way, which goes on to its end.
//!
//! The mark is needed beside the abort: a thread may run, and its closure un-register it, before whoever started it on another
//! OS thread has put its handle into the table.

use std::collections::HashMap;
use std::future::Future;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tussah_core::{AbortHandle, ColorRef, Handle};

use super::Callback;
use crate::process::Child;

/// What a callback is registered for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Key {
    /// A descriptor can't become another one while it is registered, since the registration keeps it open.
    Readable(RawFd),
    Writable(RawFd),
    Signal(i32),
    Child(u32),
    Idle,
}

/// The registrations of a runtime.
///
/// Its entries hold the memory of the runtime, which holds it; each leaves with its thread, and so at the runtime's end.
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

/// A child that is waited for, and goes on to the registration that takes the place of this one.
pub(super) type OwnedChild = Arc<async_lock::Mutex<Child>>;

/// Whether a registration is still wanted.
///
/// Written and read with Relaxed: between events of one color, the color orders them; between others nothing is promised.
#[derive(Clone)]
pub(super) struct Interest(Arc<AtomicBool>);

impl Interest {
    pub(super) fn new() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }

    fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Calls the closure within the event that runs, if it is still wanted; says whether it was.
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

    /// Starts a thread for a key, in the place of the one that is there.
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

    /// The same for the end of a child.
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
        // The guard is dropped with the future, also if that is never polled. No lock is held: a runtime that has ended
        // drops the future on the spot.
        let thread = handle.try_spawn_in(color, async move {
            let _registered = registered;
            future.await;
        });
        let Ok(thread) = thread else {
            return;
        };
        let thread = thread.abort_handle();
        // It has ended already, or another OS thread has un-registered it.
        if let Some(unwanted) = self.keep(key, &interest, thread) {
            unwanted.abort();
        }
    }

    /// Gives the thread back if its entry is gone.
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

    /// The child that belongs to the registration for a key.
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
    // Without a handle, whoever starts the thread finds its entry gone, and ends it.
    if let Some(thread) = entry.thread {
        thread.abort();
    }
}

/// Ends the registration with its thread.
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
        // So that a peak of registrations is not kept in memory.
        if lock.entries.len() < lock.entries.capacity() / 8 {
            let len = lock.entries.len();
            lock.entries.shrink_to(2 * len);
        }
        drop(lock);
        drop(entry);
    }
}
