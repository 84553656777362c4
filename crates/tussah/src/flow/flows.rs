//! Flows: groups of related items, such as those of one connection, and the state that modules keep
//! for each flow.
//!
//! The flow itself holds its state, in one slot per instance that keeps state. A call therefore
//! finds the state without a look-up, whereas Aspen (§4) uses a hash table. Each item holds its
//! flow, so the state is dropped when the flow is closed and its last item is gone. No separate
//! count is needed.

use std::any::Any;
use std::borrow::Borrow;
use std::fmt;
use std::future::{Future, poll_fn};
use std::hash::{Hash, Hasher};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Poll;

use parking_lot::{Mutex, MutexGuard};
use tussah_core::{Notify, quietly};

use super::turns::Ticket;
use crate::sync::{Limit, LimitPermit};

/// The name of a flow, unique among the flows of one output port.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum Key {
    /// A number, such as the number of a connection.
    Number(u64),
    /// A text, such as the name of a room.
    Text(Arc<str>),
}

impl From<u64> for Key {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for Key {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Key {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<Arc<str>> for Key {
    fn from(text: Arc<str>) -> Self {
        Self::Text(text)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

/// The flow of an item. Clones refer to the same flow. An item outside of any flow has an empty
/// `Flow`.
///
/// A clone that a module keeps is like an item of the flow: the flow does not end, and
/// [`Running::drain`](super::Running::drain) waits for it. Inside a limit, the clone keeps the
/// item's place.
#[derive(Clone, Default)]
pub struct Flow(Option<Arc<Handle>>);

/// An open flow of an output port, found by its name.
pub(crate) struct Open(pub(crate) Flow);

impl Borrow<Key> for Open {
    fn borrow(&self) -> &Key {
        self.0.key().expect("an open flow has a name")
    }
}

impl PartialEq for Open {
    fn eq(&self, other: &Self) -> bool {
        self.0.key() == other.0.key()
    }
}

impl Eq for Open {}

impl Hash for Open {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let key: &Key = self.borrow();
        key.hash(hasher);
    }
}

/// The part of a flow that an item holds.
enum Handle {
    Flow(Inner),
    /// The flow of an item inside a set of instances with a limit, and the item's permit. The
    /// permit is free before the flow can end, because its end takes a permit of its own.
    Limited {
        _permit: LimitPermit,
        flow: Flow,
    },
    /// The flow of an item in the queue of an ordered module, or in that module.
    Ordered {
        ticket: Ticket,
        flow: Flow,
    },
}

/// A place for the state that one instance keeps for a flow, and for what its queue remembers.
#[derive(Default)]
pub(crate) struct Slot {
    /// The lock is always free: only the instance takes it, and the instance handles one item of a
    /// flow at a time.
    state: Mutex<Option<Box<dyn Any + Send>>>,
    /// The place of the flow in the instance's queue.
    entry: AtomicUsize,
}

impl Slot {
    /// Returns the state, and the right to put it back.
    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, Option<Box<dyn Any + Send>>> {
        self.state.lock()
    }
}

struct Inner {
    key: Key,
    number: u64,
    slots: Box<[Slot]>,
    keepers: Arc<Keepers>,
    is_closed: AtomicBool,
}

/// The instances of a graph that keep state for each flow.
#[derive(Default)]
pub struct Keepers {
    list: Vec<Keeper>,
    /// The number of flows that are closed and have not ended, and of items that edges delay.
    unsettled: AtomicU64,
    settled: Notify,
    is_draining: AtomicBool,
    is_halted: AtomicBool,
    halted: Notify,
}

/// An instance that keeps state for each flow. The function is set if the instance handles the end
/// of a flow.
type Keeper = OnceLock<Box<dyn Fn(Flow) + Send + Sync>>;

impl Keepers {
    pub(crate) fn new(keepers: usize) -> Self {
        Self {
            list: (0..keepers).map(|_| Keeper::new()).collect(),
            ..Self::default()
        }
    }

    /// Sets the function that handles the end of a flow in the instance with this number.
    pub(crate) fn on_end(&self, number: usize, end: impl Fn(Flow) + Send + Sync + 'static) {
        let first = self.list[number].set(Box::new(end));
        assert!(first.is_ok(), "an instance is installed once");
    }

    /// Records that no more items arrive from outside.
    pub(crate) fn drain(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }

    /// Ends everything that only waits: calls of modules, alarms, and delayed items.
    pub(crate) fn halt(&self) {
        // Release: with the Acquire in `is_halted`. A thread that reads it needs no notification.
        self.is_halted.store(true, Ordering::Release);
        self.halted.notify_waiters();
    }

    fn is_halted(&self) -> bool {
        self.is_halted.load(Ordering::Acquire)
    }

    /// Waits until the graph is halted.
    pub(crate) async fn halted(&self) {
        let halted = self.halted.notified();
        if !self.is_halted() {
            halted.await;
        }
    }

    /// Polls a future to its end, or drops it when the graph is halted. A future that never waits
    /// always ends.
    pub(crate) async fn unless_halted<F: Future>(&self, future: F) -> Option<F::Output> {
        let (mut future, mut halted) = (pin!(future), pin!(None));
        let polled = poll_fn(|cx| {
            if let Poll::Ready(output) = future.as_mut().poll(cx) {
                return Poll::Ready(Some(output));
            }
            if halted.is_none() {
                halted.set(Some(self.halted()));
            }
            let halted = halted.as_mut().as_pin_mut();
            halted.expect("it is set").poll(cx).map(|()| None)
        });
        polled.await
    }

    /// Records that an edge starts to delay an item.
    pub(crate) fn delay(&self) {
        self.unsettled.fetch_add(1, Ordering::Relaxed);
    }

    /// Records that an item is no longer delayed, or that a closed flow has ended.
    pub(crate) fn settle(&self) {
        // Release: with the Acquire in `are_settled`, so that what was sent before has arrived.
        if self.unsettled.fetch_sub(1, Ordering::Release) == 1 {
            self.settled.notify_waiters();
        }
    }

    /// Returns whether all flows that were closed have ended, and no edge delays an item.
    pub(crate) fn are_settled(&self) -> bool {
        self.unsettled.load(Ordering::Acquire) == 0
    }

    /// Waits until all flows that were closed have ended, and no edge delays an item.
    pub(crate) async fn settled(&self) {
        loop {
            let settled = self.settled.notified();
            if self.are_settled() {
                return;
            }
            settled.await;
        }
    }
}

impl Flow {
    /// Opens a flow with a place for the state of each keeper.
    pub(crate) fn open(key: Key, keepers: &Arc<Keepers>) -> Self {
        // Relaxed: only the number itself matters.
        static OPENED: AtomicU64 = AtomicU64::new(0);
        Self::of(Inner {
            key,
            number: OPENED.fetch_add(1, Ordering::Relaxed) + 1,
            slots: keepers.list.iter().map(|_| Slot::default()).collect(),
            keepers: Arc::clone(keepers),
            is_closed: AtomicBool::new(false),
        })
    }

    fn of(inner: Inner) -> Self {
        Self(Some(Arc::new(Handle::Flow(inner))))
    }

    #[inline]
    fn inner(&self) -> Option<&Inner> {
        match &**self.0.as_ref()? {
            Handle::Flow(inner) => Some(inner),
            Handle::Limited { flow, .. } | Handle::Ordered { flow, .. } => flow.inner(),
        }
    }

    /// Returns the flow with a permit, which is returned when nothing holds it any longer.
    pub(crate) fn with_permit(self, permit: LimitPermit) -> Self {
        Self(Some(Arc::new(Handle::Limited {
            flow: self,
            _permit: permit,
        })))
    }

    /// Returns the flow with a permit of the limit, if there is one; waits until one is free.
    pub(crate) async fn limited(self, limit: Option<&Limit>) -> Self {
        match limit {
            None => self,
            Some(limit) => self.with_permit(limit.acquire().await),
        }
    }

    /// Returns the flow without a permit.
    pub(crate) fn without_permit(self) -> Self {
        match self.0.as_deref() {
            Some(Handle::Limited { flow, .. }) => flow.clone(),
            _ => self,
        }
    }

    /// Returns the flow with a ticket, which ends when nothing holds it any more.
    pub(crate) fn ordered(self, ticket: Ticket) -> Self {
        Self(Some(Arc::new(Handle::Ordered { ticket, flow: self })))
    }

    /// Returns the flow without a ticket, for everything that may outlive the item.
    #[doc(hidden)]
    #[must_use]
    pub fn without_ticket(&self) -> Self {
        match self.0.as_deref() {
            Some(Handle::Ordered { flow, .. }) => flow.clone(),
            _ => self.clone(),
        }
    }

    /// Waits until all earlier items of the ordered module have ended. A flow without a ticket does
    /// not wait.
    #[doc(hidden)]
    pub async fn turn(&self) {
        if let Some(Handle::Ordered { ticket, .. }) = self.0.as_deref() {
            ticket.turn().await;
        }
    }

    /// Records that no more items of the flow arrive from its source.
    pub(crate) fn close(self) {
        if let Some(inner) = self.inner()
            && !inner.is_closed.swap(true, Ordering::Relaxed)
        {
            inner.keepers.unsettled.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the name of the flow, or `None` for an empty `Flow`.
    #[must_use]
    pub fn key(&self) -> Option<&Key> {
        self.inner().map(|inner| &inner.key)
    }

    /// Returns the number of the flow, which no other flow of this process ever has, or 0 for an
    /// empty `Flow`.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.inner().map_or(0, |inner| inner.number)
    }

    /// Returns the number of the flow, and the place that the queue of an instance remembers.
    #[inline]
    pub(crate) fn entry(&self, slot: usize) -> (u64, Option<&AtomicUsize>) {
        (self.number(), self.slot(slot).map(|slot| &slot.entry))
    }

    /// Returns the place of an instance's state.
    #[inline]
    pub(crate) fn slot(&self, number: usize) -> Option<&Slot> {
        self.inner()?.slots.get(number)
    }
}

impl Drop for Inner {
    /// Ends the flow: the instances that handle its end do so one after the other. Each of these
    /// instances may send items, which keep the flow alive; when they are gone, this runs again.
    fn drop(&mut self) {
        for (number, keeper) in self.keepers.list.iter().enumerate() {
            let Some(slot) = self.slots.get_mut(number) else {
                break;
            };
            if slot.state.get_mut().is_none() {
                continue;
            }
            if let Some(end) = keeper.get() {
                let rest = Inner {
                    key: self.key.clone(),
                    number: self.number,
                    slots: std::mem::take(&mut self.slots),
                    keepers: Arc::clone(&self.keepers),
                    is_closed: AtomicBool::new(*self.is_closed.get_mut()),
                };
                return end(Flow::of(rest));
            }
            let state = slot.state.get_mut().take();
            quietly(|| drop(state));
        }
        if *self.is_closed.get_mut() {
            self.keepers.settle();
        }
    }
}

impl fmt::Debug for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Flow").field(&self.key()).finish()
    }
}

/// An item in transit, with its flow.
// The item comes first: a processor stalls where it loads a part of what it has just stored at
// another alignment, and the flow would shift the item by a word.
#[repr(C)]
pub struct Parcel<I> {
    pub(crate) item: I,
    pub(crate) flow: Flow,
}
