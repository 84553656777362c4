//! The queue by key. A key is busy from the time at which some of its events are taken until their
//! handler has finished.

mod by_key;
mod key;
mod ready;
mod table;

pub(crate) use self::by_key::ByKey;
use self::key::KeyTurns;
use super::KeyFull;
use crate::stage::control::Order;
use crate::stage::event::{Batch, Chunk, Event};

/// A queue by key, for any type of key.
pub(crate) trait Keyed<E>: Send {
    /// Returns whether events may be queued without checks one by one.
    fn is_plain(&self) -> bool {
        false
    }
    /// Determines the key of the event to which the next `push` or `is_full` refers. If the key
    /// function or the key panics, nothing has changed.
    fn look_at(&mut self, event: &Event<E>);
    /// Returns a hash of the key of the event that was looked at last. It is always the same for
    /// one key.
    fn hash(&self) -> Option<u64>;
    /// Queues the event that was looked at last, and returns its key's number.
    fn push(&mut self, event: Event<E>) -> Result<usize, KeyFull<E>>;
    /// Queues the events of a chunk, if the queue is plain.
    fn push_chunk(&mut self, _chunk: &mut Chunk<E>) {
        unreachable!("the events need checks one by one");
    }
    /// Returns an empty chunk, which may have capacity.
    fn spare(&mut self) -> Chunk<E> {
        Chunk::new()
    }
    /// Returns whether the key of the event that was looked at last has no more room.
    fn is_full(&self) -> bool;
    /// Counts the event that was looked at last as an arrival of its key.
    fn arrives(&mut self) {}
    /// Counts it as rejected, too.
    fn rejects(&mut self) {}
    /// Returns the key of the event that was looked at last, if the queue counts the events of each
    /// key.
    fn looked_at(&self) -> Option<KeyTurns> {
        None
    }
    /// Returns the key that was opened last, if the queue counts the events of each key.
    fn opened(&self) -> Option<KeyTurns> {
        None
    }
    /// Returns the number of keys that have events and are not busy, if the queue counts the events
    /// of each key.
    fn ready_keys(&self) -> Option<u64> {
        None
    }
    /// Puts an event back to the front of its key, and returns the key's number. If determining the
    /// key panics, the event goes to the busy key from which it was taken.
    fn push_front(&mut self, event: Event<E>, taken_from: Option<usize>) -> usize;
    /// Returns whether some key has events and is not busy.
    fn is_ready(&self) -> bool;
    /// Makes the next key busy. The caller then calls `take_one` until it returns `None` or enough
    /// events have been taken, and later passes the key's number to `release`.
    fn open(&mut self, order: Order) -> Option<usize>;
    /// Takes the next event of the key that was opened last.
    fn take_one(&mut self) -> Option<Event<E>>;
    /// Notes that an event of this key, or of the key that was opened last, was taken and not
    /// served.
    fn refund(&mut self, _key: Option<usize>) {}
    /// Moves events of that key to `batch` until it holds `most`.
    fn take_many(&mut self, batch: &mut Batch<E>, most: usize) {
        while batch.len() < most
            && let Some(event) = self.take_one()
        {
            batch.put_one(event);
        }
    }
    /// Notes that events of a busy key have ended, and the time that they took if it is known.
    fn ended(&mut self, _key: usize, _events: u64, _ns: Option<u64>) {}
    /// Ends a key's busy time; a key without events is forgotten.
    fn release(&mut self, key: usize);
    /// Does the same for a key of which nothing was handled: it is the next to be opened.
    fn unopen(&mut self, key: usize, order: Order);
    /// Makes the key of an event busy for a direct call, unless it is already busy.
    fn enter(&mut self, event: &Event<E>) -> Option<usize>;
    /// Takes an event of any key, for a stage that is being abandoned.
    fn take_out(&mut self) -> Option<Event<E>>;
    /// Takes out all late events, of any key.
    fn take_late(&mut self, is_late: &mut dyn FnMut(&Event<E>) -> bool) -> Vec<Event<E>>;
    /// Returns the number of cancelled events of a key that are queued.
    fn buried(&mut self, key: usize) -> Option<&mut usize>;
    /// Takes out the cancelled events of a key if there are many.
    fn sweep(&mut self, key: usize) -> Vec<Event<E>>;
    /// Returns whether two events have the same key.
    fn same(&self, one: &Event<E>, other: &Event<E>) -> bool;
    /// Returns the number of keys that have events or are busy.
    fn keys(&self) -> usize;
}
