//! The latest value, for many who watch it.
//!
//! A sender replaces the value; a receiver sees the latest one, and waits for the next that it has not seen. Values in
//! between are skipped, so that nothing is queued and a slow receiver holds nobody up.
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

/// Set in the version when the last sender is gone.
const CLOSED: usize = 1;

/// What the version grows by with each value.
const STEP: usize = 2;

struct Shared<T> {
    /// Never poisoned in effect: a closure that panics leaves the value as it was then.
    value: RwLock<T>,
    /// Grows by [`STEP`], under the write lock, with each value; [`CLOSED`] is added at the end. It wraps: a receiver
    /// that sleeps through exactly half the range of `usize` would miss a value.
    version: AtomicUsize,
    senders: AtomicUsize,
    receivers: AtomicUsize,
    /// Wakes the receivers.
    changed: Notify,
    /// Wakes those who wait in [`Sender::closed`].
    unwatched: Notify,
}

impl<T> Shared<T> {
    fn read(&self) -> Ref<'_, T> {
        Ref {
            guard: self.value.read().unwrap_or_else(PoisonError::into_inner),
        }
    }

    fn version(&self) -> usize {
        // Acquire: pairs with the Release in `modify` and in the drop of the last sender; who sees that something is
        // new sees what was done before.
        self.version.load(Ordering::Acquire)
    }

    /// Applies `change`, which says whether the value is new, and wakes the receivers if it is.
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

    /// Waits until there is a value newer than `seen`, and marks it as seen.
    async fn changed(&self, seen: &mut usize) -> Result<(), RecvError> {
        loop {
            // Made before the test, so that a value that comes in between is not missed.
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

/// Makes a watched value. The receiver has seen `value`.
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

/// Sets the value; clones set the same one.
pub struct Sender<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Sender<T> {
    /// Replaces the value and wakes the receivers.
    ///
    /// # Errors
    ///
    /// Gives the value back if nobody watches; [`send_replace`](Self::send_replace) sets it all the same.
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        if self.is_closed() {
            return Err(SendError(value));
        }
        // The old value is dropped here, where no lock is held.
        drop(self.send_replace(value));
        Ok(())
    }

    /// Replaces the value, whether somebody watches or not, and returns the old one.
    pub fn send_replace(&self, mut value: T) -> T {
        self.send_modify(|place| std::mem::swap(place, &mut value));
        value
    }

    /// Changes the value in place and wakes the receivers, whether somebody watches or not.
    ///
    /// `change` runs under the lock that [`borrow`](Self::borrow) takes: it must neither borrow nor take long.
    ///
    /// # Panics
    ///
    /// A panic of `change` is passed on. The value stays as it was at that moment, and nobody is woken.
    pub fn send_modify(&self, change: impl FnOnce(&mut T)) {
        self.send_if_modified(|value| {
            change(value);
            true
        });
    }

    /// Changes the value in place and wakes the receivers if `change` returns true, which is also the result.
    ///
    /// # Panics
    ///
    /// As [`send_modify`](Self::send_modify).
    pub fn send_if_modified(&self, change: impl FnOnce(&mut T) -> bool) -> bool {
        self.shared.modify(change)
    }

    /// The value, locked against senders: keep it for short only, and take no second one meanwhile.
    #[must_use]
    pub fn borrow(&self) -> Ref<'_, T> {
        self.shared.read()
    }

    /// Makes a receiver that has seen the present value.
    #[must_use]
    pub fn subscribe(&self) -> Receiver<T> {
        self.shared.receivers.fetch_add(1, Ordering::Relaxed);
        let seen = self.shared.version() & !CLOSED;
        Receiver {
            shared: Arc::clone(&self.shared),
            seen,
        }
    }

    /// True if nobody watches. [`subscribe`](Self::subscribe) can change that.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.receivers() == 0
    }

    /// How many watch.
    #[must_use]
    pub fn receivers(&self) -> usize {
        // Acquire: pairs with the Release in the drop of a receiver.
        self.shared.receivers.load(Ordering::Acquire)
    }

    /// Waits until nobody watches.
    ///
    /// # Cancellation
    ///
    /// Dropping the future loses nothing.
    pub async fn closed(&self) {
        loop {
            // Made before the test, so that a receiver that goes in between is not missed.
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
        // Release and Acquire pair with each other: the last one passes on what all did.
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

/// Watches the value; a clone has seen what this one has seen.
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    /// The version, without [`CLOSED`], of the latest value that counts as seen.
    seen: usize,
}

impl<T> Receiver<T> {
    /// Waits for a value that has not been seen, and marks the latest as seen; completes at once if there is one.
    ///
    /// # Errors
    ///
    /// If the latest value has been seen and all senders are gone.
    ///
    /// # Cancellation
    ///
    /// Dropping the future loses nothing: a value is marked as seen only when the future completes.
    pub async fn changed(&mut self) -> Result<(), RecvError> {
        self.shared.changed(&mut self.seen).await
    }

    /// Waits until the latest value fulfils `condition`, and marks it as seen; completes at once if it does.
    ///
    /// # Errors
    ///
    /// If the latest value does not fulfil it and all senders are gone.
    ///
    /// # Panics
    ///
    /// A panic of `condition`, which runs under the lock, is passed on.
    ///
    /// # Cancellation
    ///
    /// Dropping the future loses nothing, but values that did not fulfil the condition count as seen.
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

    /// Whether there is a value that has not been seen.
    ///
    /// # Errors
    ///
    /// If there is none and all senders are gone.
    pub fn has_changed(&self) -> Result<bool, RecvError> {
        let version = self.shared.version();
        match (version & !CLOSED != self.seen, version & CLOSED != 0) {
            (false, true) => Err(RecvError::new()),
            (new, _) => Ok(new),
        }
    }

    /// The latest value, locked against senders: keep it for short only, and take no second one meanwhile.
    ///
    /// It does not count as seen.
    #[must_use]
    pub fn borrow(&self) -> Ref<'_, T> {
        self.shared.read()
    }

    /// The latest value, as with [`borrow`](Self::borrow), which then counts as seen.
    #[must_use]
    pub fn borrow_and_update(&mut self) -> Ref<'_, T> {
        let value = self.shared.read();
        // The version of just this value: it grows under the write lock only.
        self.seen = self.shared.version() & !CLOSED;
        value
    }

    /// True if both watch one value.
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

/// A look at the value, which holds senders up as long as it lives. It cannot be kept over an `await` of a spawned
/// thread, since it is not `Send`.
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
