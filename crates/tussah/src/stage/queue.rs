//! The queue of a stage: lanes by class, or by key.

mod flows;
mod keyed;
mod lane;
mod senders;
mod turns;

use std::collections::VecDeque;

pub(crate) use flows::ByFlow;
pub(crate) use keyed::{ByKey, Keyed};
pub(crate) use lane::{CHUNK_MAX, Lanes};
pub(crate) use senders::{
    Lacks, Next, PATIENCE, PATIENCE_LONG, PATIENCE_MAX, Senders, Waiter, Wanted,
};

use super::control::Order;
use super::event::{BURIED_PART, Chunk, Event};

/// Bound, in events: after this many events of higher classes, one waiting event of a lower class
/// is taken. Higher classes slow a class down, but do not starve it.
const PASSED_OVER_MAX: u32 = 64;

/// The queued events of a stage. The queue enforces no bounds except those of keys, and calls no
/// controller.
pub(crate) enum Queue<E> {
    Lanes(Lanes<E>),
    Keyed(Box<dyn Keyed<E>>),
}

/// The refused event: its key has no room.
pub(crate) struct KeyFull<E>(pub(crate) Event<E>);

impl<E> Queue<E> {
    /// Returns whether events may be queued without checks one by one.
    pub(crate) fn is_plain(&self) -> bool {
        match self {
            Queue::Lanes(_) => true,
            Queue::Keyed(keyed) => keyed.is_plain(),
        }
    }

    /// Determines the key of an event before the event is queued. The user's code may panic here,
    /// when nothing has changed yet.
    #[inline]
    pub(crate) fn look_at(&mut self, event: &Event<E>) {
        if let Queue::Keyed(keyed) = self {
            keyed.look_at(event);
        }
    }

    /// Returns a hash of the key of the event that was looked at last, in a keyed stage.
    pub(crate) fn key_hash(&self) -> Option<u64> {
        match self {
            Queue::Lanes(_) => None,
            Queue::Keyed(keyed) => keyed.hash(),
        }
    }

    /// Queues the event that was looked at last. Returns the part of the queue in which the event
    /// is: its lane or its key.
    #[inline(always)]
    pub(crate) fn push(&mut self, event: Event<E>) -> Result<usize, KeyFull<E>> {
        match self {
            Queue::Lanes(lanes) => Ok(lanes.push(event)),
            Queue::Keyed(keyed) => keyed.push(event),
        }
    }

    /// Queues the events of a chunk, which need no checks one by one, and leaves an empty chunk.
    pub(crate) fn push_chunk(&mut self, chunk: &mut Chunk<E>) {
        match self {
            Queue::Lanes(lanes) => lanes.push_chunk(chunk),
            Queue::Keyed(keyed) => keyed.push_chunk(chunk),
        }
    }

    /// Returns an empty chunk for the next sender.
    pub(crate) fn spare(&mut self) -> Chunk<E> {
        match self {
            Queue::Lanes(lanes) => lanes.spare(),
            Queue::Keyed(keyed) => keyed.spare(),
        }
    }

    /// Puts back an event that a servlet took in this order from this key and did not use, so that
    /// it is the next to be taken. Of several such events, the one that was put back last comes
    /// first. Returns the part of the queue in which the event is.
    pub(crate) fn put_back(&mut self, event: Event<E>, order: Order, key: Option<usize>) -> usize {
        match (self, order) {
            (Queue::Lanes(lanes), Order::Fifo) => lanes.push_front(event),
            (Queue::Lanes(lanes), Order::Lifo) => lanes.push(event),
            (Queue::Keyed(keyed), _) => keyed.push_front(event, key),
        }
    }

    /// Notes that an event of a class was taken and not served. In a keyed queue, it came from this
    /// key, or from the key that was opened last.
    pub(crate) fn refund(&mut self, class: usize, key: Option<usize>) {
        match self {
            Queue::Lanes(lanes) => lanes.refund(class),
            Queue::Keyed(keyed) => keyed.refund(key),
        }
    }

    /// Returns the oldest event of a queue with one class.
    pub(crate) fn first(&self) -> Option<&Event<E>> {
        match self {
            Queue::Lanes(lanes) => lanes.oldest(0),
            Queue::Keyed(_) => None,
        }
    }

    /// Inserts an event behind the oldest events for which `is_before` returns true, in a queue
    /// with one class. Returns the part of the queue in which the event is.
    pub(crate) fn insert(
        &mut self,
        event: Event<E>,
        is_before: impl Fn(&Event<E>) -> bool,
    ) -> usize {
        let mut before = Vec::new();
        if let Queue::Lanes(lanes) = self {
            while lanes.oldest(0).is_some_and(&is_before) {
                before.extend(lanes.take_oldest(0));
            }
        }
        let part = self.put_back(event, Order::Fifo, None);
        for event in before.into_iter().rev() {
            self.put_back(event, Order::Fifo, None);
        }
        part
    }

    /// Takes out all late events, wherever they are.
    pub(crate) fn take_late(
        &mut self,
        is_late: &mut dyn FnMut(&Event<E>) -> bool,
    ) -> Vec<Event<E>> {
        match self {
            Queue::Lanes(lanes) => lanes.take_late(is_late),
            Queue::Keyed(keyed) => keyed.take_late(is_late),
        }
    }

    /// Counts a cancelled event in this part.
    pub(crate) fn bury(&mut self, part: usize) {
        if let Some(buried) = self.buried(part) {
            *buried += 1;
        }
    }

    /// Counts a cancelled event of this part that has left the queue.
    pub(crate) fn removed_buried(&mut self, part: usize) {
        if let Some(buried) = self.buried(part) {
            *buried -= 1;
        }
    }

    /// Returns the number of cancelled events in this part; `None` if the key is forgotten.
    fn buried(&mut self, part: usize) -> Option<&mut usize> {
        match self {
            Queue::Lanes(lanes) => Some(lanes.buried(part)),
            Queue::Keyed(keyed) => keyed.buried(part),
        }
    }

    /// Takes the cancelled events out of a part if they make up at least [their
    /// share](BURIED_PART).
    pub(crate) fn sweep(&mut self, part: usize) -> Vec<Event<E>> {
        match self {
            Queue::Lanes(lanes) => lanes.sweep(part),
            Queue::Keyed(keyed) => keyed.sweep(part),
        }
    }

    /// Returns the number of keys that have events or are busy.
    pub(crate) fn keys(&self) -> usize {
        match self {
            Queue::Lanes(_) => 0,
            Queue::Keyed(keyed) => keyed.keys(),
        }
    }

    /// Returns whether a servlet would find an event.
    pub(crate) fn is_ready(&self) -> bool {
        match self {
            Queue::Lanes(lanes) => !lanes.is_empty(),
            Queue::Keyed(keyed) => keyed.is_ready(),
        }
    }

    /// Makes the next key busy; `None` if there is none.
    pub(crate) fn open(&mut self, order: Order) -> Option<usize> {
        match self {
            Queue::Lanes(_) => None,
            Queue::Keyed(keyed) => keyed.open(order),
        }
    }

    /// Takes the next event. In a keyed queue, it comes from the key that was opened last.
    pub(crate) fn take_one(&mut self, order: Order) -> Option<Event<E>> {
        match self {
            Queue::Lanes(lanes) => lanes.take_one(order),
            Queue::Keyed(keyed) => keyed.take_one(),
        }
    }
}

/// Returns whether the share of cancelled events among `len` is large enough to remove them.
fn is_due(buried: usize, len: usize) -> bool {
    buried > 0 && buried * BURIED_PART >= len
}

/// Moves the events that `picks` selects to `picked`; the others keep their order. `picks` may be
/// called twice for an event.
fn pick<E>(
    events: &mut VecDeque<Event<E>>,
    picks: &mut dyn FnMut(&Event<E>) -> bool,
    picked: &mut Vec<Event<E>>,
) {
    if !events.iter().any(&mut *picks) {
        return;
    }
    // This makes one rotation: removing each event from its place would move half of the others.
    for _ in 0..events.len() {
        let event = events.pop_front().expect("each is looked at once");
        if picks(&event) {
            picked.push(event);
        } else {
            events.push_back(event);
        }
    }
}
