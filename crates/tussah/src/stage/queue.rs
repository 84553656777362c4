//! Where events wait: lanes by class, or by key.

mod keyed;
mod lane;

use std::collections::VecDeque;

pub(crate) use keyed::{ByKey, Keyed};
pub(crate) use lane::{CHUNK_MAX, Lanes};

use super::control::Order;
use super::event::Event;

/// Bound, in events: after so many of higher classes, one of a lower class that waits is taken. A class is slowed down by
/// those above it, but not stopped.
const PASSED_OVER_MAX: u32 = 64;

/// The events of a stage that wait. It knows no bounds but those of keys, and calls no controller.
pub(crate) enum Queue<E> {
    Lanes(Lanes<E>),
    Keyed(Box<dyn Keyed<E>>),
}

/// Why an event can't be queued.
pub(crate) struct KeyFull<E>(pub(crate) Event<E>);

impl<E> Queue<E> {
    /// Finds out by which key an event will be queued: asks what may panic, while the event is not in here yet.
    #[inline]
    pub(crate) fn look_at(&mut self, event: &Event<E>) {
        if let Queue::Keyed(keyed) = self {
            keyed.look_at(event);
        }
    }

    /// A hash of the key of the event that was looked at last, in a stage by key.
    pub(crate) fn key_hash(&self) -> Option<u64> {
        match self {
            Queue::Lanes(_) => None,
            Queue::Keyed(keyed) => keyed.hash(),
        }
    }

    /// Queues the event that was looked at last.
    #[inline(always)]
    pub(crate) fn push(&mut self, event: Event<E>) -> Result<(), KeyFull<E>> {
        match self {
            Queue::Lanes(lanes) => {
                lanes.push(event);
                Ok(())
            }
            Queue::Keyed(keyed) => keyed.push(event),
        }
    }

    /// Puts back what a servlet took in this order, out of this key, and did not use, so that it is the first to be taken again. Of several, the one that
    /// was taken last comes first.
    pub(crate) fn put_back(&mut self, event: Event<E>, order: Order, key: Option<usize>) {
        match (self, order) {
            (Queue::Lanes(lanes), Order::Fifo) => lanes.push_front(event),
            (Queue::Lanes(lanes), Order::Lifo) => lanes.push(event),
            (Queue::Keyed(keyed), _) => keyed.push_front(event, key),
        }
    }

    /// Takes out what is late, wherever it is.
    pub(crate) fn take_late(
        &mut self,
        is_late: &mut dyn FnMut(&Event<E>) -> bool,
    ) -> Vec<Event<E>> {
        match self {
            Queue::Lanes(lanes) => lanes.take_late(is_late),
            Queue::Keyed(keyed) => keyed.take_late(is_late),
        }
    }

    /// Keys that have events or are busy.
    pub(crate) fn keys(&self) -> usize {
        match self {
            Queue::Lanes(_) => 0,
            Queue::Keyed(keyed) => keyed.keys(),
        }
    }

    /// Whether a servlet would find something.
    pub(crate) fn is_ready(&self) -> bool {
        match self {
            Queue::Lanes(lanes) => !lanes.is_empty(),
            Queue::Keyed(keyed) => keyed.is_ready(),
        }
    }

    /// Takes the next event that may be taken: out of the key that is in `batch`, if it is one by key.
    pub(crate) fn take_one(&mut self, order: Order) -> Option<Event<E>> {
        match self {
            Queue::Lanes(lanes) => lanes.take_one(order),
            Queue::Keyed(keyed) => keyed.take_one(),
        }
    }
}

/// Moves the events for which `picks` says yes to `picked`; the others keep their order.
fn pick<E>(
    events: &mut VecDeque<Event<E>>,
    picks: &mut dyn FnMut(&Event<E>) -> bool,
    picked: &mut Vec<Event<E>>,
) {
    let mut at = 0;
    while let Some(event) = events.get(at) {
        if picks(event) {
            picked.extend(events.remove(at));
        } else {
            at += 1;
        }
    }
}
