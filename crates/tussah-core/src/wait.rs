//! `Notify`: an event that threads wait for.
//!
//! One lock guards the list of waiters, the permit and the number of broadcasts. Under this lock, a
//! future links its node, a notifier unlinks it and takes the waker out, and a dropped future
//! unlinks its own node. Wakers are foreign code. They are cloned before the lock is taken, and
//! called and dropped after it has been released.

mod list;
#[cfg(all(test, loom))]
mod loom_tests;
mod place;
#[cfg(all(test, not(loom)))]
mod tests;

use std::{
    fmt,
    future::Future,
    marker::PhantomPinned,
    panic::{RefUnwindSafe, UnwindSafe},
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

#[cfg(not(loom))]
use parking_lot::{Mutex, MutexGuard};

use self::{
    list::{Node, Notification, WaitList},
    place::{Phase, Place},
};
#[cfg(loom)]
use crate::loom::{Mutex, MutexGuard};
use crate::tiny_waker::TinyWaker;

/// The number of wakers that a broadcast takes at a time, which bounds its stack and how long it
/// holds the lock.
#[cfg(not(loom))]
const WAKE_BATCH: usize = 32;
/// Small, so that a model reaches a second batch.
#[cfg(loom)]
const WAKE_BATCH: usize = 1;

/// A notification that threads can wait for and that carries no value.
///
/// `Notify` behaves like `tokio::sync::Notify`:
///
/// - [`notify_one`](Self::notify_one) wakes the thread that has waited longest. If no thread is
///   waiting, `notify_one` stores one *permit*, and the next [`notified`](Self::notified) completes
///   immediately. A `Notify` never stores more than one permit.
/// - [`notify_waiters`](Self::notify_waiters) completes every existing [`Notified`] future, polled
///   or not, and stores no permit.
///
/// A woken thread sees everything that happened before the notification.
///
/// # Waiting for a condition
///
/// Create the future first, then test the condition, and then wait. In this order, the future
/// completes even if `notify_waiters` is called between the test and the wait:
///
/// ```
/// # mod tussah { pub use tussah_core as sync; }
/// use std::sync::atomic::{AtomicBool, Ordering};
/// use tussah::sync::Notify;
///
/// # futures_lite::future::block_on(async {
/// let (ready, notify) = (AtomicBool::new(false), Notify::new());
/// let wait = async {
///     loop {
///         let notified = notify.notified();
///         if ready.load(Ordering::Acquire) {
///             break;
///         }
///         notified.await;
///     }
/// };
/// let set = async {
///     ready.store(true, Ordering::Release);
///     notify.notify_waiters();
/// };
/// futures_lite::future::zip(wait, set).await;
/// # });
/// ```
///
/// If the notifier calls `notify_one` instead, a single waiting thread may also test the condition
/// before it creates the future, because the permit remains stored. If several threads can wait at
/// the same time, call [`Notified::enable`] before the test.
///
/// # Leaks
///
/// Leaking a polled [`Notified`] is sound. The leaked future keeps its place in the queue forever,
/// so one later call to `notify_one` has no effect.
pub struct Notify {
    state: Mutex<State>,
}

struct State {
    list: WaitList,
    /// True if `notify_one` found no waiter.
    permit: bool,
    /// The number of calls of `notify_waiters`, by which an unpolled future detects that it missed
    /// a call. It wraps.
    broadcasts: usize,
}

impl State {
    const NEW: Self = Self {
        list: WaitList::new(),
        permit: false,
        broadcasts: 0,
    };

    /// Gives one notification to the first waiter in the line, or stores it as the permit.
    fn notify_one(&mut self) -> TinyWaker {
        // SAFETY: a `State` is inside its lock, and `&mut self` came from there.
        let first = unsafe { self.list.pop_front(Notification::One) };
        first.unwrap_or_else(|| {
            self.permit = true;
            TinyWaker::NONE
        })
    }
}

impl UnwindSafe for Notify {}
// No code that may panic runs under the lock.
impl RefUnwindSafe for Notify {}

impl Notify {
    /// Creates a `Notify` without waiters and without a permit.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self {
            state: Mutex::new(State::NEW),
        }
    }

    /// Creates a `Notify` without waiters and without a permit.
    #[cfg(loom)]
    #[must_use]
    pub fn new() -> Self {
        Self {
            state: Mutex::new(State::NEW),
        }
    }

    #[inline]
    fn lock(&self) -> MutexGuard<'_, State> {
        let guard = self.state.lock();
        #[cfg(loom)]
        let guard = guard.expect("no model panics under the lock");
        guard
    }

    /// Waits for a notification.
    ///
    /// Any later call to [`notify_waiters`](Self::notify_waiters) completes the future. When the
    /// future is first polled or [enabled](Notified::enable), it consumes the permit, or enters the
    /// queue for [`notify_one`](Self::notify_one).
    ///
    /// # Cancellation
    ///
    /// Dropping the future gives up its place in the queue. If a call to `notify_one` has already
    /// selected the future, the notification passes to the next future in the queue. If no future
    /// is queued, the notification is stored as the permit.
    pub fn notified(&self) -> Notified<'_> {
        let broadcasts = self.lock().broadcasts;
        Notified {
            place: Place::new(self),
            node: Node::new(broadcasts),
            _pinned: PhantomPinned,
        }
    }

    /// Wakes the thread that has waited longest, or stores a permit if no thread is waiting.
    ///
    /// ```
    /// # mod tussah { pub use tussah_core as sync; }
    /// # futures_lite::future::block_on(async {
    /// let notify = tussah::sync::Notify::new();
    /// notify.notify_one();
    /// notify.notified().await; // the permit
    /// # });
    /// ```
    pub fn notify_one(&self) {
        let waker = self.lock().notify_one();
        waker.wake_guarded();
    }

    /// Completes every existing [`Notified`] future, and wakes the threads that wait for these
    /// futures. Stores no permit.
    ///
    /// The method calls the wakers one by one on the calling OS thread. A waker that panics does
    /// not stop the others from being called.
    pub fn notify_waiters(&self) {
        let mut state = self.lock();
        state.broadcasts = state.broadcasts.wrapping_add(1);
        if state.list.is_empty() {
            return;
        }
        // Waiters that arrive while the lock is released between two batches must not be woken. In
        // the meantime, `notify_one` may choose these waiters, but not those in the ring.
        let ring = pin!(Node::new(0));
        let ring = ring.as_ref().get_ref();
        // SAFETY: the list is inside its lock, which is held. `ring` is pinned on this stack, and
        // this function neither returns nor unwinds before the ring is empty, because wakers run
        // under `catch_unwind`.
        unsafe { state.list.detach(ring) };
        loop {
            let mut batch = [const { TinyWaker::NONE }; WAKE_BATCH];
            let mut taken = 0;
            while taken < WAKE_BATCH {
                // SAFETY: `ring` was detached from this list, whose lock is held.
                let Some(waker) = (unsafe { state.list.pop_ring(ring, Notification::All) }) else {
                    break;
                };
                batch[taken] = waker;
                taken += 1;
            }
            drop(state);
            batch.into_iter().for_each(TinyWaker::wake_guarded);
            if taken < WAKE_BATCH {
                return;
            }
            state = self.lock();
        }
    }
}

impl Default for Notify {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Notify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (permit, waiting) = {
            let state = self.lock();
            (state.permit, !state.list.is_empty())
        };
        f.debug_struct("Notify")
            .field("permit", &permit)
            .field("waiting", &waiting)
            .finish()
    }
}

/// The future of [`Notify::notified`]; its size is 32 bytes.
///
/// If the future is polled after completion, it returns `Ready` again.
#[must_use = "futures do nothing unless they are polled"]
pub struct Notified<'a> {
    place: Place<'a>,
    node: Node,
    /// The list points at the node.
    _pinned: PhantomPinned,
}

#[cfg(all(not(loom), target_pointer_width = "64"))]
const _: () = assert!(size_of::<Notified<'_>>() == 32);

// SAFETY: others access the node only under the lock of its `Notify`, and it holds a `Send` waker.
unsafe impl Send for Notified<'_> {}
// SAFETY: a shared reference gives access to nothing.
unsafe impl Sync for Notified<'_> {}

impl UnwindSafe for Notified<'_> {}
impl RefUnwindSafe for Notified<'_> {}

impl Notified<'_> {
    /// Consumes the permit or enters the queue, without waiting. Returns whether the future is
    /// complete.
    ///
    /// A later notification wakes the thread only if the future has been polled.
    ///
    /// ```
    /// # mod tussah { pub use tussah_core as sync; }
    /// # futures_lite::future::block_on(async {
    /// let notify = tussah::sync::Notify::new();
    /// let mut first = std::pin::pin!(notify.notified());
    /// assert!(!first.as_mut().enable());
    /// notify.notify_one(); // goes to `first`, which has not been polled, and leaves no permit
    /// first.await;
    /// # });
    /// ```
    pub fn enable(self: Pin<&mut Self>) -> bool {
        self.poll_with(None).is_ready()
    }

    fn poll_with(self: Pin<&mut Self>, waker: Option<&Waker>) -> Poll<()> {
        // SAFETY: nothing is moved out of the reference.
        let this = unsafe { self.get_unchecked_mut() };
        let polled = match this.place.phase() {
            Phase::New => this.enter(waker),
            Phase::Queued => this.look(waker),
            Phase::Done => return Poll::Ready(()),
        };
        this.place.set_phase(if polled.is_ready() {
            Phase::Done
        } else {
            Phase::Queued
        });
        polled
    }

    /// Performs the first poll: completes or links the node.
    fn enter(&mut self, waker: Option<&Waker>) -> Poll<()> {
        // The waker is cloned before the lock is taken. The clone is wasted if there is a permit,
        // which is rarer than waiting.
        let waker = waker.map_or(TinyWaker::NONE, TinyWaker::from_waker);
        // SAFETY: the phase shows that the node has never been linked.
        let broadcasts = unsafe { self.node.stamp() };
        let mut state = self.place.notify().lock();
        // A broadcast is consumed first, so that a permit is left for a waiter that needs it.
        let ready = state.broadcasts != broadcasts || std::mem::take(&mut state.permit);
        if ready {
            drop(state);
            return Poll::Ready(());
        }
        // SAFETY: the list is inside its lock, which is held. The node has never been linked, and
        // it is pinned: only `poll_with` calls this. `drop` unlinks it.
        unsafe { state.list.push_back(&self.node, waker) };
        Poll::Pending
    }

    /// Performs a later poll: completes, or makes sure that the current task will be woken.
    fn look(&mut self, waker: Option<&Waker>) -> Poll<()> {
        let state = self.place.notify().lock();
        // SAFETY: the node was linked to the list in this lock, which is held.
        if unsafe { self.node.notification() }.is_some() {
            return Poll::Ready(());
        }
        let Some(waker) = waker else {
            return Poll::Pending;
        };
        // SAFETY: as above.
        if unsafe { self.node.will_wake(waker) } {
            return Poll::Pending;
        }
        drop(state);
        let new = TinyWaker::from_waker(waker);
        let state = self.place.notify().lock();
        // SAFETY: as above. The lock was released in between, so this has to be read again.
        if unsafe { self.node.notification() }.is_some() {
            drop(state);
            return Poll::Ready(());
        }
        // SAFETY: as above, and the node is still linked.
        let old = unsafe { self.node.replace_waker(new) };
        drop(state);
        drop(old);
        Poll::Pending
    }
}

impl Future for Notified<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.poll_with(Some(context.waker()))
    }
}

impl Drop for Notified<'_> {
    fn drop(&mut self) {
        if self.place.phase() != Phase::Queued {
            return;
        }
        let mut state = self.place.notify().lock();
        // SAFETY: the node was linked to the list in this lock, which is held.
        match unsafe { self.node.notification() } {
            None => {
                // SAFETY: as above, and the node is still linked.
                let waker = unsafe { state.list.remove(&self.node) };
                drop(state);
                drop(waker);
            }
            Some(Notification::One) => {
                let next = state.notify_one();
                drop(state);
                next.wake_guarded();
            }
            Some(Notification::All) => {}
        }
    }
}

impl fmt::Debug for Notified<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notified")
            .field("phase", &self.place.phase())
            .finish_non_exhaustive()
    }
}
