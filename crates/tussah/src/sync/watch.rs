//! A channel that keeps only the latest value, which any number of receivers can watch.
//!
//! Senders replace the value. Receivers read the latest value, and can wait for a value that they
//! have not seen. The channel has no queue: a slow receiver misses intermediate values, but never
//! delays a sender.
//!
//! ```
//! use tussah::sync::watch;
//!
//! # futures_lite::future::block_on(async {
//! let (sender, mut receiver) = watch::channel("starting");
//! assert_eq!(*receiver.borrow(), "starting");
//! sender.send("ready")?;
//! receiver.changed().await.unwrap();
//! assert_eq!(*receiver.borrow_and_update(), "ready");
//! drop(sender);
//! assert!(receiver.changed().await.is_err());
//! # Ok::<(), watch::SendError<&str>>(())
//! # }).unwrap();
//! ```

mod error;

use std::{
    fmt,
    ops::Deref,
    sync::{
        Arc, PoisonError, RwLock, RwLockReadGuard,
        atomic::{AtomicUsize, Ordering},
    },
};

use tussah_core::Notify;

pub use self::error::{RecvError, SendError};

/// The bit that is set in the version when the last sender is dropped.
const CLOSED: usize = 1;

/// The increment of the version for each value.
const STEP: usize = 2;

struct Shared<T> {
    /// Poisoning is ignored: if a closure panics, the value stays as the closure left it.
    value: RwLock<T>,
    /// Grows by [`STEP`] with each value, under the write lock. [`CLOSED`] is set when the last
    /// sender is dropped. The version wraps, so a receiver that skips exactly half the range of
    /// `usize` misses a value.
    version: AtomicUsize,
    senders: AtomicUsize,
    receivers: AtomicUsize,
    /// Wakes the receivers.
    changed: Notify,
    /// Wakes the tasks that wait in [`Sender::closed`].
    unwatched: Notify,
}

impl<T> Shared<T> {
    fn read(&self) -> Ref<'_, T> {
        Ref {
            guard: self.value.read().unwrap_or_else(PoisonError::into_inner),
        }
    }

    fn version(&self) -> usize {
        // Acquire: pairs with the Release in `modify` and in the drop of the last sender. A reader
        // that sees the new version sees everything that was done before it.
        self.version.load(Ordering::Acquire)
    }

    /// Applies `change`, which returns whether the value is new, and wakes the receivers if it is.
    fn modify(&self, change: impl FnOnce(&mut T) -> bool) -> bool {
        {
            let mut value = self.value.write().unwrap_or_else(PoisonError::into_inner);
            if !change(&mut value) {
                return false;
            }
            // Release: pairs with the Acquire in `version`.
            self.version.fetch_add(STEP, Ordering::Release);
        }
        self.changed.notify_waiters();
        true
    }

    /// Waits for a value newer than `seen`, and marks it as seen.
    async fn changed(&self, seen: &mut usize) -> Result<(), RecvError> {
        loop {
            // Created before the check, so that a value sent in between is not missed.
            let notified = self.changed.notified();
            let version = self.version();
            if version & !CLOSED != *seen {
                *seen = version & !CLOSED;
                return Ok(());
            }
            if version & CLOSED != 0 {
                return Err(RecvError::new());
            }
            notified.await;
        }
    }
}

/// Creates a channel with an initial value. For the receiver, `value` counts as already seen.
#[must_use]
pub fn channel<T>(value: T) -> (Sender<T>, Receiver<T>) {
    let shared = Arc::new(Shared {
        value: RwLock::new(value),
        version: AtomicUsize::new(0),
        senders: AtomicUsize::new(1),
        receivers: AtomicUsize::new(1),
        changed: Notify::new(),
        unwatched: Notify::new(),
    });
    (
        Sender {
            shared: Arc::clone(&shared),
        },
        Receiver { shared, seen: 0 },
    )
}

/// The sending side of a watch channel. All clones of a sender set the same value.
pub struct Sender<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Sender<T> {
    /// Replaces the value and wakes the receivers.
    ///
    /// # Errors
    ///
    /// If no receiver exists, returns an error with `value`, and keeps the old value.
    /// [`send_replace`](Self::send_replace) sets the value even without receivers.
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        if self.is_closed() {
            return Err(SendError(value));
        }
        // The old value is dropped here, where no lock is held.
        drop(self.send_replace(value));
        Ok(())
    }

    /// Replaces the value, even if no receiver exists, and returns the old value.
    pub fn send_replace(&self, mut value: T) -> T {
        self.send_modify(|place| std::mem::swap(place, &mut value));
        value
    }

    /// Modifies the value in place and wakes all receivers, if there are any.
    ///
    /// `change` runs while the value is locked, so it must not call [`borrow`](Self::borrow), and
    /// should return quickly.
    ///
    /// # Panics
    ///
    /// If `change` panics, the panic propagates to the caller. The value stays as `change` left it,
    /// and no receiver is woken.
    pub fn send_modify(&self, change: impl FnOnce(&mut T)) {
        self.send_if_modified(|value| {
            change(value);
            true
        });
    }

    /// Modifies the value in place, and wakes all receivers if `change` returns true. Returns the
    /// result of `change`.
    ///
    /// # Panics
    ///
    /// Same as [`send_modify`](Self::send_modify).
    pub fn send_if_modified(&self, change: impl FnOnce(&mut T) -> bool) -> bool {
        self.shared.modify(change)
    }

    /// Returns a guard for reading the value. Senders cannot change the value while the guard
    /// exists. Hold the guard only briefly, and do not call `borrow` again while you hold it.
    #[must_use]
    pub fn borrow(&self) -> Ref<'_, T> {
        self.shared.read()
    }

    /// Creates a receiver for which the current value counts as already seen.
    #[must_use]
    pub fn subscribe(&self) -> Receiver<T> {
        self.shared.receivers.fetch_add(1, Ordering::Relaxed);
        let seen = self.shared.version() & !CLOSED;
        Receiver {
            shared: Arc::clone(&self.shared),
            seen,
        }
    }

    /// Returns true if no receiver exists. A later call to [`subscribe`](Self::subscribe) can
    /// create a receiver.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.receivers() == 0
    }

    /// Returns the number of receivers.
    #[must_use]
    pub fn receivers(&self) -> usize {
        // Acquire: pairs with the Release in the drop of a receiver.
        self.shared.receivers.load(Ordering::Acquire)
    }

    /// Waits until all receivers have been dropped.
    ///
    /// # Cancellation
    ///
    /// Dropping the future has no effect on the channel.
    pub async fn closed(&self) {
        loop {
            // Created before the check, so that a receiver dropped in between is not missed.
            let notified = self.shared.unwatched.notified();
            if self.is_closed() {
                return;
            }
            notified.await;
        }
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.shared.senders.fetch_add(1, Ordering::Relaxed);
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        // AcqRel: pairs with itself, so that the last sender publishes the writes of all senders.
        if self.shared.senders.fetch_sub(1, Ordering::AcqRel) == 1 {
            // Release: pairs with the Acquire in `version`.
            self.shared.version.fetch_or(CLOSED, Ordering::Release);
            self.shared.changed.notify_waiters();
        }
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender")
            .field("receivers", &self.receivers())
            .finish_non_exhaustive()
    }
}

/// The receiving side of a watch channel. A clone of a receiver starts with the same values marked
/// as seen.
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    /// The version, without [`CLOSED`], of the latest value that was seen.
    seen: usize,
}

impl<T> Receiver<T> {
    /// Waits for a value that this receiver has not seen, and marks the latest value as seen.
    /// Completes immediately if the latest value has not been seen yet.
    ///
    /// # Errors
    ///
    /// Returns an error if all senders were dropped and this receiver has already seen the latest
    /// value.
    ///
    /// # Cancellation
    ///
    /// Dropping the future loses no value: a value is marked as seen only when the future
    /// completes.
    pub async fn changed(&mut self) -> Result<(), RecvError> {
        self.shared.changed(&mut self.seen).await
    }

    /// Waits until the latest value satisfies `condition`, and marks that value as seen. Completes
    /// immediately if the current value satisfies the condition.
    ///
    /// Senders cannot change the value while `condition` runs, so `condition` should return
    /// quickly.
    ///
    /// # Errors
    ///
    /// Returns an error if the latest value does not satisfy `condition` and all senders were
    /// dropped.
    ///
    /// # Panics
    ///
    /// If `condition` panics, the panic propagates to the caller.
    ///
    /// # Cancellation
    ///
    /// Dropping the future loses no value, but values that did not satisfy `condition` count as
    /// seen.
    pub async fn wait_for(
        &mut self,
        mut condition: impl FnMut(&T) -> bool,
    ) -> Result<Ref<'_, T>, RecvError> {
        let Self { shared, seen } = self;
        let shared: &Shared<T> = shared;
        loop {
            {
                let value = shared.read();
                *seen = shared.version() & !CLOSED;
                if condition(&value) {
                    return Ok(value);
                }
            }
            shared.changed(seen).await?;
        }
    }

    /// Returns whether this receiver has not yet seen the latest value.
    ///
    /// # Errors
    ///
    /// Returns an error if all senders were dropped and this receiver has seen the latest value.
    pub fn has_changed(&self) -> Result<bool, RecvError> {
        let version = self.shared.version();
        match (version & !CLOSED != self.seen, version & CLOSED != 0) {
            (false, true) => Err(RecvError::new()),
            (new, _) => Ok(new),
        }
    }

    /// Returns a guard for reading the latest value. Senders cannot change the value while the
    /// guard exists. Hold the guard only briefly, and do not call `borrow` again while you hold it.
    ///
    /// This method does not mark the value as seen.
    #[must_use]
    pub fn borrow(&self) -> Ref<'_, T> {
        self.shared.read()
    }

    /// Returns a guard as [`borrow`](Self::borrow) does, and marks the latest value as seen.
    #[must_use]
    pub fn borrow_and_update(&mut self) -> Ref<'_, T> {
        let value = self.shared.read();
        // This is the version of exactly this value, since the version grows only under the write
        // lock.
        self.seen = self.shared.version() & !CLOSED;
        value
    }

    /// Returns whether both receivers belong to the same channel.
    #[must_use]
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        self.shared.receivers.fetch_add(1, Ordering::Relaxed);
        Self {
            shared: Arc::clone(&self.shared),
            seen: self.seen,
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `Sender::receivers`.
        if self.shared.receivers.fetch_sub(1, Ordering::Release) == 1 {
            self.shared.unwatched.notify_waiters();
        }
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("has_changed", &self.has_changed())
            .finish_non_exhaustive()
    }
}

/// A guard for reading the value of a watch channel. Senders block while the guard exists. The
/// guard is not `Send`, so a spawned thread cannot hold it across an `await`.
pub struct Ref<'a, T> {
    guard: RwLockReadGuard<'a, T>,
}

impl<T> Deref for Ref<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T: fmt::Debug> fmt::Debug for Ref<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
