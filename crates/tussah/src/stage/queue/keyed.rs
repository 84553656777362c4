//! The queue by key. A key is busy from the time at which some of its events are taken until their
//! handler has finished.
//!
//! The key function and the key's `Hash`, `Eq` and destructor are the user's, and may panic. They
//! are called only where nothing has changed yet ([`ByKey::look`]), or where their panic is caught.

mod key;
mod ready;
mod table;

use std::collections::VecDeque;
use std::hash::Hash;

use tussah_core::{Guarded, caught};

use self::key::{Key, KeyTurns};
use self::ready::{Listing, Ready};
use self::table::{Looked, Table};
use super::turns::Turns;
use super::{KeyFull, is_due, pick};
use crate::stage::control::Order;
use crate::stage::event::{Batch, Chunk, Classes, Event};

/// The stale entries of a list are removed when it has this many entries or fewer for each of them.
const STALE_PART: usize = 8;
/// The maximum number of empty lists of events that are kept for later keys.
const SPARE_MAX: usize = 128;
/// The maximum capacity of a list that is kept, in events.
const SPARE_ROOM_MAX: usize = 8;

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
    /// Returns the turns for which the event that was looked at last would wait, if the queue
    /// counts the events of each key.
    fn turns(&self) -> Option<KeyTurns> {
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
    /// Notes the number of events of a busy key that were served, and the time that this took.
    fn served(&mut self, _key: usize, _events: u64, _ns: u64) {}
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

/// A queue by the key that `key_of` computes from an event.
pub(crate) struct ByKey<E, K, F> {
    key_of: Guarded<F>,
    /// The most events of a key, if there is a bound.
    depth_max: Option<usize>,
    /// The key of the event that was looked at last.
    looked_at: Option<Looked<K>>,
    keys: Table<K, Key<E>>,
    /// Keys that have events and are not busy, by the class of their oldest event.
    ready: Vec<Ready>,
    turns: Turns,
    next_ticket: u64,
    /// Empty lists of events, for the next keys.
    spare: Vec<VecDeque<Event<E>>>,
    /// The key that was opened last.
    opened: Option<usize>,
}

/// Returns whether an entry is valid for a key.
fn is_of<E, K>(keys: &Table<K, Key<E>>, entry: Listing) -> bool {
    let listed = keys.get(entry.place).and_then(|key| key.listed);
    listed.is_some_and(|(_, ticket)| ticket == entry.ticket)
}

impl<E, K: Hash + Eq, F: Fn(&E) -> K> ByKey<E, K, F> {
    pub(crate) fn new(key_of: F, depth_max: Option<usize>, classes: Classes) -> Self {
        Self {
            key_of: Guarded::new(key_of),
            depth_max,
            looked_at: None,
            keys: Table::default(),
            ready: (0..classes.count()).map(|_| Ready::default()).collect(),
            turns: Turns::new(classes),
            next_ticket: 0,
            spare: Vec::new(),
            opened: None,
        }
    }

    /// Determines the key of an event; this may panic.
    fn look(&self, event: &Event<E>) -> Looked<K> {
        self.keys.look((self.key_of)(event))
    }

    /// Lists a key that is not busy behind the others, or forgets it if it has no events.
    fn rest(&mut self, place: usize) {
        self.list(place, VecDeque::push_back);
    }

    /// Lists a key that is not busy by the class of its oldest event, or forgets it if it has none.
    fn list(&mut self, place: usize, push: fn(&mut VecDeque<Listing>, Listing)) {
        let classes = self.ready.len();
        let ticket = self.next_ticket;
        let key = self.keys.at(place);
        match key.events.front() {
            Some(event) => {
                let class = event.class_of().among(classes);
                key.listed = Some((class, ticket));
                if self.ready[class].is_empty() {
                    self.turns.came(class);
                }
                push(&mut self.ready[class].entries, Listing { place, ticket });
                self.next_ticket += 1;
            }
            None => {
                let events = std::mem::take(&mut key.events);
                if events.capacity() <= SPARE_ROOM_MAX && self.spare.len() < SPARE_MAX {
                    self.spare.push(events);
                }
                self.keys.forget(place);
            }
        }
    }

    /// Takes out the events of a key that `picks` selects.
    fn pick(
        &mut self,
        place: usize,
        picks: &mut dyn FnMut(&Event<E>) -> bool,
        picked: &mut Vec<Event<E>>,
    ) {
        let classes = self.ready.len();
        let class_of = |key: &Key<E>| key.events.front().map(|it| it.class_of().among(classes));
        let key = self.keys.at(place);
        let before = class_of(key);
        pick(&mut key.events, picks, picked);
        // A busy key is listed or forgotten when it is released.
        if !key.busy && class_of(key) != before {
            self.unlist(place);
            self.rest(place);
        }
    }

    /// Removes a key from the list of ready keys. Stale entries are removed when they make up an
    /// eighth of the list, so that each costs little.
    fn unlist(&mut self, place: usize) {
        let Some((class, _)) = self.keys.at(place).listed.take() else {
            return;
        };
        let ready = &mut self.ready[class];
        ready.stale += 1;
        if ready.stale * STALE_PART >= ready.entries.len() {
            ready.entries.retain(|&entry| is_of(&self.keys, entry));
            ready.stale = 0;
        }
    }
}

impl<E, K, F> Keyed<E> for ByKey<E, K, F>
where
    E: Send,
    K: Hash + Eq + Send,
    F: Fn(&E) -> K + Send,
{
    fn look_at(&mut self, event: &Event<E>) {
        self.looked_at = Some(self.look(event));
    }

    fn hash(&self) -> Option<u64> {
        self.looked_at.as_ref().map(|looked| looked.hash)
    }

    fn push(&mut self, event: Event<E>) -> Result<usize, KeyFull<E>> {
        let depth_max = self.depth_max;
        let looked = self.looked_at.take();
        let place = self
            .keys
            .place(looked.expect("an event is looked at before it is queued"));
        let key = self.keys.at(place);
        if depth_max.is_some_and(|max| key.waiting() >= max) {
            return Err(KeyFull(event));
        }
        if key.events.capacity() == 0 {
            key.events = self.spare.pop().unwrap_or_default();
        }
        key.events.push_back(event);
        if !key.busy && key.events.len() == 1 {
            self.rest(place);
        }
        Ok(place)
    }

    fn is_full(&self) -> bool {
        let place = self.looked_at.as_ref().and_then(|looked| looked.place);
        let key = place.and_then(|place| self.keys.get(place));
        let max = self.depth_max.unwrap_or(usize::MAX);
        key.is_some_and(|key| key.waiting() >= max)
    }

    fn turns(&self) -> Option<KeyTurns> {
        let place = self.looked_at.as_ref()?.place;
        let key = place.and_then(|place| self.keys.get(place));
        Some(KeyTurns {
            queued: key.map_or(0, |key| key.waiting() as u64),
            is_busy: key.is_some_and(|key| key.busy),
            keys: self.keys.len() as u64,
            served: key.map_or((0, 0), |key| key.served),
        })
    }

    fn push_front(&mut self, event: Event<E>, taken_from: Option<usize>) -> usize {
        // A handler may have changed the event. A panic is reported only to the panic hook.
        let looked = caught(|| self.look(&event));
        let place = match looked {
            Some(looked) => self.keys.place(looked),
            None => taken_from.expect("what was taken is of a busy key"),
        };
        let key = self.keys.at(place);
        key.events.push_front(event);
        if !key.busy && key.events.len() == 1 {
            self.rest(place);
        }
        place
    }

    fn is_ready(&self) -> bool {
        self.ready.iter().any(|class| !class.is_empty())
    }

    fn open(&mut self, order: Order) -> Option<usize> {
        let at = self.turns.next(|class| !self.ready[class].is_empty())?;
        let class = &mut self.ready[at];
        let place = loop {
            let entry = match order {
                Order::Fifo => class.entries.pop_front(),
                Order::Lifo => class.entries.pop_back(),
            }?;
            if is_of(&self.keys, entry) {
                break entry.place;
            }
            class.stale -= 1;
        };
        self.opened = Some(place);
        let key = self.keys.at(place);
        (key.busy, key.listed, key.pays) = (true, None, at);
        Some(place)
    }

    fn take_one(&mut self) -> Option<Event<E>> {
        let key = self.keys.at(self.opened?);
        let event = key.events.pop_front()?;
        let ready = &self.ready;
        self.turns
            .took(key.pays, 1, |class| !ready[class].is_empty());
        Some(event)
    }

    fn refund(&mut self, key: Option<usize>) {
        if let Some(key) = key.or(self.opened) {
            self.turns.refund(self.keys.at(key).pays);
        }
    }

    fn served(&mut self, place: usize, events: u64, ns: u64) {
        self.keys.at(place).served(events, ns);
    }

    fn release(&mut self, place: usize) {
        self.keys.at(place).busy = false;
        self.rest(place);
    }

    fn unopen(&mut self, place: usize, order: Order) {
        self.keys.at(place).busy = false;
        match order {
            Order::Fifo => self.list(place, VecDeque::push_front),
            Order::Lifo => self.list(place, VecDeque::push_back),
        }
    }

    fn enter(&mut self, event: &Event<E>) -> Option<usize> {
        let looked = self.look(event);
        let place = self.keys.place(looked);
        if self.keys.at(place).busy {
            return None;
        }
        self.keys.at(place).busy = true;
        self.unlist(place);
        Some(place)
    }

    fn take_out(&mut self) -> Option<Event<E>> {
        let keys = &self.keys;
        let mut ready = self.ready.iter_mut();
        let Some(place) = ready.find_map(|class| class.first(|entry| is_of(keys, entry))) else {
            // The keys of the remaining events are busy, and are forgotten when they are released.
            let mut keys = self.keys.values_mut();
            return keys.find_map(|key| key.events.pop_front());
        };
        let event = self.keys.at(place).events.pop_front();
        if self.keys.at(place).events.is_empty() {
            self.unlist(place);
            self.rest(place);
        }
        event
    }

    fn take_late(&mut self, is_late: &mut dyn FnMut(&Event<E>) -> bool) -> Vec<Event<E>> {
        let mut late = Vec::new();
        for place in 0..self.keys.places() {
            if self.keys.get(place).is_some() {
                self.pick(place, is_late, &mut late);
            }
        }
        late
    }

    fn buried(&mut self, place: usize) -> Option<&mut usize> {
        let key = self.keys.get_mut(place);
        key.map(|key| &mut key.buried)
    }

    fn sweep(&mut self, place: usize) -> Vec<Event<E>> {
        let mut swept = Vec::new();
        let key = self.keys.get(place);
        if key.is_some_and(|key| is_due(key.buried, key.events.len())) {
            self.pick(place, &mut Event::is_buried, &mut swept);
        }
        swept
    }

    fn same(&self, one: &Event<E>, other: &Event<E>) -> bool {
        (self.key_of)(one) == (self.key_of)(other)
    }

    fn keys(&self) -> usize {
        self.keys.len()
    }
}
