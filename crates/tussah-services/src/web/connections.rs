//! The connections that are open: how many, and which. There are as many places for them as the configuration says,
//! whatever configuration a connection has begun with.
//!
//! # Making room
//! When all places are taken, a connection that waits for a request gives up its own ([`Connection::make_room`]), of those that
//! are looked at the one that has waited longest. Requests write down nothing for that, so it has to be searched for:
//! [`LOOKS_MAX`] places each time, on from where the last search ended. With fewer places it is the idlest of all; and
//! where one in twenty connections is idle, a search that finds none is rarer than one in 700.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::Weak;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tussah::sync::Notify;

use super::connection::Connection;

/// Bound, in connections: those that are told at a time that there are too many; others are closed without a word.
const REFUSED_MAX: usize = 1000;

/// Bound, in connections: those that have given up their places and are about to end, beside those that have one. A few of them may have a request to answer first.
pub(crate) const LEAVING_MAX: usize = 1000;

/// Bound, in places: how many are looked at for one that can be given up, about 10 µs.
const LOOKS_MAX: usize = 128;

/// The connections of a process.
pub(crate) struct Connections {
    refused: AtomicUsize,
    open: Mutex<Open>,
}

struct Open {
    /// How many may have a place.
    max: usize,
    /// How many have one.
    count: usize,
    /// How many have given theirs up, and have not ended.
    leaving: usize,
    /// The last one is taken.
    places: Vec<Place>,
    /// Places that are free; those that are beyond the end are not.
    free: BinaryHeap<Reverse<u32>>,
    /// Where the next search begins.
    hand: usize,
}

/// What is known of a connection.
struct Place {
    connection: Weak<Connection>,
    /// Which configuration it is of.
    group: usize,
    is_leaving: bool,
    is_free: bool,
}

/// The connections of one configuration.
pub(crate) struct Group {
    all: Arc<Connections>,
    /// Its number.
    number: usize,
    /// How many have not ended.
    count: AtomicUsize,
    /// Called when the last one ends.
    none: Notify,
}

/// A connection that is told that there are too many.
pub(crate) struct Refused<'a>(&'a AtomicUsize);

impl Drop for Refused<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Where a connection is among those that are open.
pub(crate) struct Entered(u32);

impl Connections {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            refused: AtomicUsize::new(0),
            open: Mutex::new(Open {
                max,
                count: 0,
                leaving: 0,
                places: Vec::new(),
                free: BinaryHeap::new(),
                hand: 0,
            }),
        }
    }

    /// Has another number of places from now on. Connections that are too many stay.
    pub(crate) fn set_max(&self, max: usize) {
        self.open.lock().max = max;
    }

    /// How many have a place.
    pub(crate) fn count(&self) -> usize {
        self.open.lock().count
    }

    /// The connections of another configuration.
    pub(crate) fn group(self: &Arc<Self>) -> Group {
        static NUMBERS: AtomicUsize = AtomicUsize::new(0);
        Group {
            all: Arc::clone(self),
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            count: AtomicUsize::new(0),
            none: Notify::new(),
        }
    }
}

impl Group {
    /// Its number, which no other has.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// All connections of the process.
    pub(crate) fn all(&self) -> &Arc<Connections> {
        &self.all
    }

    /// Takes a connection in; `None` if there is no place for it. What is idle in this second may make room.
    pub(crate) fn enter(&self, connection: &Arc<Connection>, now_s: u64) -> Option<Entered> {
        let mut open = self.all.open.lock();
        if open.count < open.max {
            return Some(self.enter_open(&mut open, connection));
        }
        let (leaving, _others) = open.make_room(now_s);
        let is_in = open.count < open.max;
        let entered = is_in.then(|| self.enter_open(&mut open, connection));
        drop(open);
        // Wakers are called, and connections perhaps dropped, without the lock.
        leaving.iter().for_each(|connection| connection.wake());
        entered
    }

    fn enter_open(&self, open: &mut Open, connection: &Arc<Connection>) -> Entered {
        open.count += 1;
        // Relaxed: the lock orders it, here and in `leave`.
        self.count.fetch_add(1, Ordering::Relaxed);
        let place = Place {
            connection: Arc::downgrade(connection),
            group: self.number,
            is_leaving: false,
            is_free: false,
        };
        Entered(open.put(place))
    }

    /// Takes in one that is to be told that there are too many, until what this returns is dropped; `None` if there are too many of these.
    pub(crate) fn refuse(&self) -> Option<Refused<'_>> {
        let refused = Refused(&self.all.refused);
        (self.all.refused.fetch_add(1, Ordering::Relaxed) < REFUSED_MAX).then_some(refused)
    }

    /// A connection has ended.
    pub(crate) fn leave(&self, entered: &Entered) {
        let mut open = self.all.open.lock();
        let place = &mut open.places[entered.0 as usize];
        if std::mem::take(&mut place.is_leaving) {
            open.leaving -= 1;
        } else {
            open.count -= 1;
        }
        open.clear(entered.0);
        let is_last = self.count.fetch_sub(1, Ordering::Relaxed) == 1;
        drop(open);
        if is_last {
            self.none.notify_waiters();
        }
    }

    /// How many have not ended.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Has all look what there is to do.
    pub(crate) fn wake_all(&self) {
        self.each(Connection::wake);
    }

    /// Has all end at once, whatever they do.
    pub(crate) fn cut_all(&self) {
        self.each(Connection::cut);
    }

    fn each(&self, f: impl Fn(&Connection)) {
        let open = self.all.open.lock();
        let own = open
            .places
            .iter()
            .filter(|place| place.group == self.number);
        let own: Vec<_> = own.map(|place| Weak::clone(&place.connection)).collect();
        drop(open);
        own.iter()
            .filter_map(Weak::upgrade)
            .for_each(|connection| f(&connection));
    }

    /// Waits until all have ended.
    pub(crate) async fn none(&self) {
        loop {
            let none = self.none.notified();
            if self.count() == 0 {
                return;
            }
            none.await;
        }
    }
}

impl Open {
    /// Takes the first place that is free, so that there are few among those that are taken, and says which.
    fn put(&mut self, place: Place) -> u32 {
        match self.free.pop() {
            Some(Reverse(at)) if (at as usize) < self.places.len() => {
                self.places[at as usize] = place;
                at
            }
            // All others are beyond the end, too.
            _ => {
                self.free.clear();
                self.places.push(place);
                (self.places.len() - 1) as u32
            }
        }
    }

    /// Frees a place, and forgets those at the end that are free: a search would find nothing there.
    fn clear(&mut self, at: u32) {
        self.places[at as usize].is_free = true;
        self.places[at as usize].connection = Weak::new();
        self.free.push(Reverse(at));
        while self.places.pop_if(|last| last.is_free).is_some() {}
    }

    /// Has connections that are idle give up their places, until there is one or no other is found. Gives those, to be
    /// woken, and others that were looked at; both are for who has the lock no more.
    #[cold]
    fn make_room(&mut self, now_s: u64) -> (Vec<Arc<Connection>>, Vec<Arc<Connection>>) {
        let (mut idle, mut others) = (Vec::new(), Vec::new());
        for _ in 0..self.places.len().min(LOOKS_MAX) {
            self.hand = (self.hand + 1) % self.places.len();
            let place = &self.places[self.hand];
            let Some(connection) = place.connection.upgrade().filter(|_| !place.is_leaving) else {
                continue;
            };
            match connection.idle_since_s(now_s) {
                Some(since_s) => idle.push((since_s, self.hand, connection)),
                None => others.push(connection),
            }
        }
        idle.sort_by_key(|(since_s, ..)| *since_s);
        let mut leaving = Vec::new();
        for (_, at, connection) in idle {
            let is_wanted = self.count >= self.max && self.leaving < LEAVING_MAX;
            // One may have been asked for something meanwhile.
            if is_wanted && connection.make_room() {
                self.places[at].is_leaving = true;
                self.leaving += 1;
                self.count -= 1;
                leaving.push(connection);
            } else {
                others.push(connection);
            }
        }
        (leaving, others)
    }
}
