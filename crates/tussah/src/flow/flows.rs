//! Flows: groups of related items, such as those of one connection, and the state that modules keep
//! for each flow.
//!
//! The flow itself holds its state, in one slot per instance that keeps state. A call therefore
//! finds the state without a look-up, whereas Aspen (§4) uses a hash table. Each item holds its
//! flow, so the state is dropped when the flow is closed and its last item is gone. No separate
//! count is needed.

use std::borrow::Borrow;
use std::cell::RefCell;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use parking_lot::Mutex;
use tussah_core::quietly;

use super::keepers::Keepers;
use super::kept::{Kept, Slot};
use super::turns::{Ticket, Turns};
use crate::sync::{Limit, LimitPermit};

/// The name of a flow, unique among the flows of one output port.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum Key {
    /// A number, such as the number of a connection.
    Number(u64),
    /// A string, such as the name of a chat room.
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

/// The flow of an item. Clones refer to the same flow. An item outside any flow has an empty
/// `Flow`.
///
/// If a module keeps a clone, the clone counts as an item of the flow. Until the module drops the
/// clone, the flow does not end, and [`Running::drain`](super::Running::drain) waits. If the item
/// counts toward a [limit](super::Graph::limit), it continues to count until the clone is dropped.
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
    /// In the order in which the fields are dropped.
    Item {
        holds: Holds,
        flow: Flow,
    },
}

/// The part of an item's handle besides its flow.
enum Holds {
    /// The permit of an item inside a set of instances with a limit. The permit is free before the
    /// flow can end, because its end takes a permit of its own.
    Permit(Arc<LimitPermit>),
    /// The ticket of an item in the queue of an ordered module, or in that module.
    Ticket(Ticket),
}

// An idle flow takes 96 bytes with the counts of its `Arc`.
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Handle>() <= 80);

/// The fields of the first slot are here, and not in a [`Slot`], because `entry` then shares a word
/// with `is_closed`.
struct Inner {
    key: Key,
    number: u64,
    keepers: Arc<Keepers>,
    kept: Mutex<Kept>,
    entry: AtomicU32,
    is_closed: AtomicBool,
    /// The slots of the other instances, if there are any.
    others: Option<Box<Others>>,
}

struct Others(Box<[Slot]>);

impl Inner {
    /// Returns what the instance with this number keeps.
    #[inline]
    fn kept(&self, number: usize) -> Option<&Mutex<Kept>> {
        match number.checked_sub(1) {
            None => Some(&self.kept),
            Some(other) => Some(&self.others.as_ref()?.0.get(other)?.kept),
        }
    }

    fn kept_mut(&mut self, number: usize) -> Option<&mut Kept> {
        match number.checked_sub(1) {
            None => Some(self.kept.get_mut()),
            Some(other) => Some(self.others.as_mut()?.0.get_mut(other)?.kept.get_mut()),
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
            keepers: Arc::clone(keepers),
            kept: Mutex::default(),
            entry: AtomicU32::default(),
            is_closed: AtomicBool::new(false),
            others: (keepers.list.len() > 1).then(|| {
                let slots = keepers.list[1..].iter().map(|_| Slot::default());
                Box::new(Others(slots.collect()))
            }),
        })
    }

    fn of(inner: Inner) -> Self {
        Self(Some(Arc::new(Handle::Flow(inner))))
    }

    #[inline]
    fn inner(&self) -> Option<&Inner> {
        match &**self.0.as_ref()? {
            Handle::Flow(inner) => Some(inner),
            Handle::Item { flow, .. } => flow.inner(),
        }
    }

    /// Returns what an item holds besides its flow, and the flow.
    fn item(&self) -> Option<(&Holds, &Self)> {
        match self.0.as_deref()? {
            Handle::Item { holds, flow } => Some((holds, flow)),
            Handle::Flow(_) => None,
        }
    }

    fn holding(self, holds: Holds) -> Self {
        Self(Some(Arc::new(Handle::Item { flow: self, holds })))
    }

    /// Returns the flow with a permit, which is returned when nothing holds it any longer.
    pub(crate) fn with_permit(self, permit: LimitPermit) -> Self {
        self.holding(Holds::Permit(Arc::new(permit)))
    }

    /// Returns the flow with the permit of an item for which an instance sends another item in this
    /// flow.
    pub(crate) fn inside(self, of: &Self) -> Self {
        match of.item() {
            Some((Holds::Permit(permit), _)) => self.holding(Holds::Permit(Arc::clone(permit))),
            _ => self,
        }
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
        match self.item() {
            Some((Holds::Permit(_), flow)) => flow.clone(),
            _ => self,
        }
    }

    /// Returns the flow with a ticket, which ends when nothing holds it any more. An item that goes
    /// back to its queue keeps its ticket.
    pub(crate) fn ordered(self, turns: &Arc<Turns>) -> Self {
        match self.ticket() {
            Some(_) => self,
            None => self.holding(Holds::Ticket(turns.ticket())),
        }
    }

    /// Returns the ticket, if the flow has one.
    pub(crate) fn ticket(&self) -> Option<&Ticket> {
        match self.item()? {
            (Holds::Ticket(ticket), _) => Some(ticket),
            _ => None,
        }
    }

    /// Returns the flow without a ticket, for values that may outlive the item.
    #[doc(hidden)]
    #[must_use]
    pub fn without_ticket(&self) -> Self {
        match self.item() {
            Some((Holds::Ticket(_), flow)) => flow.clone(),
            _ => self.clone(),
        }
    }

    /// Waits until the ordered module has finished all earlier items. If the flow has no ticket,
    /// this method returns immediately.
    #[doc(hidden)]
    pub async fn turn(&self) {
        if let Some(ticket) = self.ticket() {
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

    /// Returns the number of the flow, which is unique within the process, or 0 for an empty
    /// `Flow`.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.inner().map_or(0, |inner| inner.number)
    }

    /// Returns the number of the flow and the place that the queue of an instance remembers.
    #[inline]
    pub(crate) fn entry(&self, slot: usize) -> (u64, Option<&AtomicU32>) {
        let Some(inner) = self.inner() else {
            return (0, None);
        };
        let entry = match slot.checked_sub(1) {
            None => Some(&inner.entry),
            Some(other) => {
                let others = inner.others.as_ref();
                others.and_then(|others| Some(&others.0.get(other)?.entry))
            }
        };
        (inner.number, entry)
    }

    /// Returns what the instance with this slot keeps.
    #[inline]
    pub(crate) fn kept(&self, slot: usize) -> Option<&Mutex<Kept>> {
        self.inner()?.kept(slot)
    }
}

impl Drop for Inner {
    /// Ends the flow: the instances that handle its end do so one after the other. Each of these
    /// instances may send items, which keep the flow alive; when they are gone, this runs again.
    fn drop(&mut self) {
        for number in 0..self.keepers.list.len() {
            let Some(kept) = self.kept_mut(number) else {
                break;
            };
            let kept = std::mem::take(kept);
            if kept.state.is_none() {
                continue;
            }
            let keepers = Arc::clone(&self.keepers);
            if keepers.list[number].get().is_some() {
                *self.kept_mut(number).expect("it is there") = kept;
                let rest = Inner {
                    key: self.key.clone(),
                    number: self.number,
                    keepers: Arc::clone(&keepers),
                    kept: std::mem::take(&mut self.kept),
                    entry: AtomicU32::new(*self.entry.get_mut()),
                    is_closed: AtomicBool::new(*self.is_closed.get_mut()),
                    others: self.others.take(),
                };
                return end_in_turn(number, Flow::of(rest));
            }
            quietly(|| drop(kept));
        }
        if *self.is_closed.get_mut() {
            self.keepers.settle();
        }
    }
}

/// Flows that end, and the numbers of the instances that handle their ends.
type Ends = Vec<(usize, Flow)>;

thread_local! {
    /// The ends that this OS thread has yet to send while it sends one. Otherwise it is `None`, so
    /// that it needs no destructor.
    static ENDS: RefCell<ManuallyDrop<Option<Ends>>> =
        const { RefCell::new(ManuallyDrop::new(None)) };
}

/// Sends the end of a flow to the instance with this number. An instance that is gone drops the
/// flow, which then ends in the next instance: one after the other, because a flow that ends in
/// many such instances would overflow the stack.
fn end_in_turn(number: usize, flow: Flow) {
    let mut next = ENDS.with_borrow_mut(|ends| match &mut **ends {
        Some(ends) => {
            ends.push((number, flow));
            None
        }
        None => {
            **ends = Some(Vec::new());
            Some((number, flow))
        }
    });
    while let Some((number, flow)) = next {
        let keepers = flow.inner().map(|inner| Arc::clone(&inner.keepers));
        if let Some(end) = keepers.as_ref().and_then(|it| it.list[number].get()) {
            quietly(|| end(flow));
        }
        next = ENDS.with_borrow_mut(|ends| {
            let next = ends.as_mut().and_then(Vec::pop);
            if next.is_none() {
                **ends = None;
            }
            next
        });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_permit_of_the_last_item_is_free_when_its_flow_ends() {
        let (limit, found) = (Limit::new("items", 1), Arc::new(Mutex::new(None)));
        let keepers = Arc::new(Keepers::new(1));
        let (of, free) = (limit.clone(), Arc::clone(&found));
        keepers.on_end(0, move |flow| {
            *free.lock() = Some(of.try_acquire().is_some());
            // The instance takes the state.
            drop(flow.kept(0).map(|kept| std::mem::take(&mut *kept.lock())));
        });
        let flow = Flow::open(Key::Number(1), &keepers);
        let kept = flow.kept(0).expect("there is one keeper");
        kept.lock().state = Some(Box::new(()));
        let permit = limit.try_acquire().expect("it is free");
        let item = flow.with_permit(permit);
        item.clone().close();
        assert_eq!(*found.lock(), None);
        drop(item);
        assert_eq!(*found.lock(), Some(true));
        assert!(keepers.are_settled());
    }
}
