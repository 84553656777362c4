//! What is registered in a runtime: at most one thread for each thing that callbacks are registered for.
//!
//! # Why a registration ends exactly
//!
//! A registration is a thread in the color of its callback: each of its polls is an event of that color, in which it looks
//! whether there is anything to call the closure for, and calls it. Un-registering aborts the thread, and a thread that was
//! aborted is not polled again, whether it was queued before or not. So if the one who un-registers runs in that color, no call
//! follows. One who runs elsewhere may find a call under way, which goes on to its end.

use std::collections::HashMap;
use std::future::Future;
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tussah_core::{AbortHandle, ColorRef, Handle};

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
    last_number: u64,
    entries: HashMap<Key, Entry>,
}

struct Entry {
    number: u64,
    /// `None` while the thread is being started.
    thread: Option<AbortHandle>,
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
        future: F,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let (before, number) = self.reserve(key);
        abort(before);
        let registered = Registered {
            registry: self.clone(),
            key,
            number,
        };
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
        if let Some(unwanted) = self.keep(key, number, thread) {
            unwanted.abort();
        }
    }

    /// Gives the thread back if its entry is gone.
    fn keep(&self, key: Key, number: u64, thread: AbortHandle) -> Option<AbortHandle> {
        match self.lock().entries.get_mut(&key) {
            Some(entry) if entry.number == number => entry.thread.replace(thread),
            _ => Some(thread),
        }
    }

    /// Ends the registration for a key, if there is one.
    pub(super) fn unregister(&self, key: Key) {
        let before = self.lock().entries.remove(&key);
        abort(before);
    }

    fn reserve(&self, key: Key) -> (Option<Entry>, u64) {
        let mut lock = self.lock();
        lock.last_number += 1;
        let number = lock.last_number;
        let thread = None;
        (lock.entries.insert(key, Entry { number, thread }), number)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.lock().entries.len()
    }
}

fn abort(entry: Option<Entry>) {
    // Without a handle, whoever starts the thread finds its entry gone, and ends it.
    if let Some(Entry {
        thread: Some(thread),
        ..
    }) = entry
    {
        thread.abort();
    }
}

/// Ends the registration with its thread.
struct Registered {
    registry: Arc<Registry>,
    key: Key,
    number: u64,
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut lock = self.registry.lock();
        let mine = lock.entries.get(&self.key);
        let mine = mine.is_some_and(|entry| entry.number == self.number);
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
