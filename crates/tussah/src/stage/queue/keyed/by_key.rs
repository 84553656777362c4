//! The queue by the key that a function computes.
//!
//! The key function and the key's `Hash`, `Eq` and destructor are the user's, and may panic. They
//! are called only where nothing has changed yet ([`ByKey::look`]), or where their panic is caught.

use std::collections::VecDeque;
use std::hash::Hash;

use tussah_core::{Guarded, caught};

use super::Keyed;
use super::key::{Key, KeyTurns};
use super::ready::{Listing, Ready};
use super::table::{Looked, Table};
use crate::stage::control::Order;
use crate::stage::event::{Classes, Event};
use crate::stage::queue::turns::Turns;
use crate::stage::queue::{KeyFull, is_due, pick};

/// The stale entries of a list are removed when it has this many entries or fewer for each of them.
const STALE_PART: usize = 8;
/// The maximum number of empty lists of events that are kept for later keys.
const SPARE_MAX: usize = 128;
/// The maximum capacity of a list that is kept, in events.
const SPARE_ROOM_MAX: usize = 8;

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

    /// Returns the key of the event that was looked at last, if it has events or is busy.
    fn key_looked_at(&mut self) -> Option<&mut Key<E>> {
        let place = self.looked_at.as_ref()?.place?;
        self.keys.get_mut(place)
    }

    /// Returns the turns of a key; `None` stands for a key without events.
    fn turns(&self, key: Option<&Key<E>>) -> KeyTurns {
        KeyTurns {
            queued: key.map_or(0, |key| key.waiting() as u64),
            is_busy: key.is_some_and(|key| key.busy),
            arrived: key.map_or(0, |key| key.arrived),
            ended: key.map_or(0, |key| key.ended),
            rejected: key.map_or(0, |key| key.rejected),
            recent: key.map_or((0, 0), |key| key.recent),
            keys: self.keys.len() as u64,
            ready: self.ready.iter().map(|class| class.len() as u64).sum(),
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
        key.arrived = key.arrived.max(1);
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

    fn arrives(&mut self) {
        if let Some(key) = self.key_looked_at() {
            key.arrived += 1;
        }
    }

    fn rejects(&mut self) {
        if let Some(key) = self.key_looked_at() {
            key.rejected += 1;
        }
    }

    fn looked_at(&self) -> Option<KeyTurns> {
        let place = self.looked_at.as_ref()?.place;
        Some(self.turns(place.and_then(|place| self.keys.get(place))))
    }

    fn opened(&self) -> Option<KeyTurns> {
        Some(self.turns(self.keys.get(self.opened?)))
    }

    fn ready_keys(&self) -> Option<u64> {
        Some(self.ready.iter().map(|class| class.len() as u64).sum())
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

    fn ended(&mut self, place: usize, events: u64, ns: Option<u64>) {
        self.keys.at(place).ended(events, ns);
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
