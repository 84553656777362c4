//! Events by key: a key is busy from when some of its events are taken until their handler is done.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, Hash};

use tussah_core::{Guarded, caught};

use super::{KeyFull, PASSED_OVER_MAX, pick};
use crate::stage::control::Order;
use crate::stage::event::Event;

/// A queue by key, whatever the type of the key.
pub(crate) trait Keyed<E>: Send {
    /// Finds the key of the event that `push` or `is_full` comes for next. If the key function panics, nothing has changed.
    fn look_at(&mut self, event: &Event<E>);
    /// A hash of the key of the event that was looked at last: of one key always the same.
    fn hash(&self) -> Option<u64>;
    /// Queues the event that was looked at last.
    fn push(&mut self, event: Event<E>) -> Result<(), KeyFull<E>>;
    /// Whether there is no room for an event with the key of the one that was looked at last.
    fn is_full(&self) -> bool;
    /// Puts an event back to the front of its key, or if the key function panics to that of the busy key which it was taken from.
    fn push_front(&mut self, event: Event<E>, taken_from: Option<usize>);
    /// Whether some key has events and is not busy.
    fn is_ready(&self) -> bool;
    /// Makes the next key busy, for whose events `take_one` is called until it returns none or enough were taken. The key's number goes to `release`.
    fn open(&mut self, order: Order) -> Option<usize>;
    /// The next event of the key that was opened last.
    fn take_one(&mut self) -> Option<Event<E>>;
    /// The key is no longer busy; a key without events is forgotten.
    fn release(&mut self, key: usize);
    /// Makes the key of a value busy for a call, if it is not.
    fn enter(&mut self, event: &Event<E>) -> Option<usize>;
    /// Takes an event of any key, for a stage that is given up.
    fn take_out(&mut self) -> Option<Event<E>>;
    /// Takes out what is late, whatever its key.
    fn take_late(&mut self, is_late: &mut dyn FnMut(&Event<E>) -> bool) -> Vec<Event<E>>;
    /// Whether two events have the same key.
    fn same(&self, one: &Event<E>, other: &Event<E>) -> bool;
    /// Keys that have events or are busy.
    fn keys(&self) -> usize;
}

/// A queue by the key that `key_of` makes of an event.
pub(crate) struct ByKey<E, K, F> {
    key_of: Guarded<F>,
    depth_max: usize,
    /// The key of the event that was looked at last.
    looked_at: Option<K>,
    places: HashMap<K, usize>,
    keys: Vec<Option<Key<E, K>>>,
    free: Vec<usize>,
    /// Keys that are not busy and have events, by the class of the oldest.
    ready: Vec<Ready>,
    /// The key that was opened last, and the class that it was in.
    opened: Option<(usize, usize)>,
}

/// Keys of one class that are ready.
#[derive(Default)]
struct Ready {
    keys: VecDeque<usize>,
    /// Events that were taken from classes above while something was here.
    passed_over: u32,
}

struct Key<E, K> {
    key: K,
    events: VecDeque<Event<E>>,
    busy: bool,
}

impl<E, K: Hash + Eq + Clone, F: Fn(&E) -> K> ByKey<E, K, F> {
    /// At most `depth_max` events of one key are queued.
    pub(crate) fn new(key_of: F, depth_max: usize, classes: usize) -> Self {
        Self {
            key_of: Guarded::new(key_of),
            depth_max,
            looked_at: None,
            places: HashMap::new(),
            keys: Vec::new(),
            free: Vec::new(),
            ready: (0..classes).map(|_| Ready::default()).collect(),
            opened: None,
        }
    }

    fn place(&mut self, key: K) -> usize {
        let vacant = match self.places.entry(key) {
            Entry::Occupied(known) => return *known.get(),
            Entry::Vacant(vacant) => vacant,
        };
        let key = Key {
            key: vacant.key().clone(),
            events: VecDeque::new(),
            busy: false,
        };
        let place = self.free.pop().unwrap_or_else(|| {
            self.keys.push(None);
            self.keys.len() - 1
        });
        self.keys[place] = Some(key);
        *vacant.insert(place)
    }

    fn at(&mut self, place: usize) -> &mut Key<E, K> {
        self.keys[place]
            .as_mut()
            .expect("a place that is known has a key")
    }

    /// Queues a key that is not busy by the class of its oldest event, or forgets it.
    fn rest(&mut self, place: usize) {
        let classes = self.ready.len();
        match self.at(place).events.front() {
            Some(event) => {
                let class = event.class_of().among(classes);
                self.ready[class].keys.push_back(place);
            }
            None => {
                let key = self.keys[place]
                    .take()
                    .expect("a place that is known has a key");
                self.places.remove(&key.key);
                self.free.push(place);
            }
        }
    }
}

impl<E, K, F> Keyed<E> for ByKey<E, K, F>
where
    E: Send,
    K: Hash + Eq + Clone + Send,
    F: Fn(&E) -> K + Send,
{
    fn look_at(&mut self, event: &Event<E>) {
        self.looked_at = Some((self.key_of)(event));
    }

    fn hash(&self) -> Option<u64> {
        let key = self.looked_at.as_ref()?;
        Some(self.places.hasher().hash_one(key))
    }

    fn push(&mut self, event: Event<E>) -> Result<(), KeyFull<E>> {
        let depth_max = self.depth_max;
        let key = self.looked_at.take();
        let place = self.place(key.expect("an event is looked at before it is queued"));
        let key = self.at(place);
        if key.events.len() >= depth_max {
            return Err(KeyFull(event));
        }
        key.events.push_back(event);
        if !key.busy && key.events.len() == 1 {
            self.rest(place);
        }
        Ok(())
    }

    fn is_full(&self) -> bool {
        let key = self.looked_at.as_ref();
        let place = key.and_then(|key| self.places.get(key));
        let key = place.and_then(|&place| self.keys[place].as_ref());
        key.is_some_and(|key| key.events.len() >= self.depth_max)
    }

    fn push_front(&mut self, event: Event<E>, taken_from: Option<usize>) {
        // A handler may have changed it. There is nobody to tell of a panic, but for the panic hook.
        let key = caught(|| (self.key_of)(&event));
        let place = match key {
            Some(key) => self.place(key),
            None => taken_from.expect("what was taken is of a busy key"),
        };
        let key = self.at(place);
        key.events.push_front(event);
        if !key.busy && key.events.len() == 1 {
            self.rest(place);
        }
    }

    fn is_ready(&self) -> bool {
        self.ready.iter().any(|class| !class.keys.is_empty())
    }

    fn open(&mut self, order: Order) -> Option<usize> {
        let waiting = |class: &Ready| !class.keys.is_empty();
        let starved = |class: &Ready| waiting(class) && class.passed_over >= PASSED_OVER_MAX;
        let starving = self.ready.iter().position(starved);
        let at = starving.or_else(|| self.ready.iter().position(waiting))?;
        let class = &mut self.ready[at];
        class.passed_over = 0;
        let place = match order {
            Order::Fifo => class.keys.pop_front(),
            Order::Lifo => class.keys.pop_back(),
        }?;
        self.opened = Some((place, at));
        self.at(place).busy = true;
        Some(place)
    }

    fn take_one(&mut self) -> Option<Event<E>> {
        let (place, class) = self.opened?;
        let event = self.at(place).events.pop_front()?;
        for below in &mut self.ready[class + 1..] {
            if !below.keys.is_empty() {
                below.passed_over = below.passed_over.saturating_add(1);
            }
        }
        Some(event)
    }

    fn release(&mut self, place: usize) {
        self.at(place).busy = false;
        self.rest(place);
    }

    fn enter(&mut self, event: &Event<E>) -> Option<usize> {
        let place = self.place((self.key_of)(event));
        if self.at(place).busy {
            return None;
        }
        self.at(place).busy = true;
        // It may have been ready.
        for class in &mut self.ready {
            class.keys.retain(|ready| *ready != place);
        }
        Some(place)
    }

    fn take_out(&mut self) -> Option<Event<E>> {
        let ready = self.ready.iter().find_map(|class| class.keys.front());
        let Some(&place) = ready else {
            // The keys of what is left are busy, and forgotten as they are released.
            let mut keys = self.keys.iter_mut().flatten();
            return keys.find_map(|key| key.events.pop_front());
        };
        let event = self.at(place).events.pop_front();
        if self.at(place).events.is_empty() {
            for class in &mut self.ready {
                class.keys.retain(|ready| *ready != place);
            }
            self.rest(place);
        }
        event
    }

    fn take_late(&mut self, is_late: &mut dyn FnMut(&Event<E>) -> bool) -> Vec<Event<E>> {
        let (classes, mut late) = (self.ready.len(), Vec::new());
        let class_of = |key: &Key<E, K>| key.events.front().map(|it| it.class_of().among(classes));
        for place in 0..self.keys.len() {
            let Some(key) = &mut self.keys[place] else {
                continue;
            };
            let before = class_of(key);
            pick(&mut key.events, is_late, &mut late);
            // One that is busy is queued or forgotten as it is released.
            if !key.busy && class_of(key) != before {
                for class in &mut self.ready {
                    class.keys.retain(|ready| *ready != place);
                }
                self.rest(place);
            }
        }
        late
    }

    fn same(&self, one: &Event<E>, other: &Event<E>) -> bool {
        (self.key_of)(one) == (self.key_of)(other)
    }

    fn keys(&self) -> usize {
        self.places.len()
    }
}
