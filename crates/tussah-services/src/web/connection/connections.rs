//! The open connections of the process. Each open connection has a place, whatever configuration it
//! began with. The current configuration limits the number of places.
//!
//! # Making room
//! When all places are taken, an idle connection gives up its own ([`Connection::make_room`]): of
//! those examined, the connection that has waited longest. Requests keep no records for this, so a
//! search is needed. The search examines [`LOOKS_MAX`] places, starting at the end of the last
//! search. If there are fewer places, it finds the longest wait of all. Where one in twenty
//! connections is idle, fewer than one in 700 searches find no idle connection.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::Weak;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tussah::sync::Notify;

use super::state::Connection;

/// Bound, in connections: the maximum number that get a 503 at the same time because there are too
/// many. Others are closed without a response.
const REFUSED_MAX: usize = 1000;

/// Bound, in connections: the maximum number that gave up their places and are about to end, in
/// addition to those that have a place; further connections get a 503. A few of them may first have
/// to respond to a request.
pub(crate) const LEAVING_MAX: usize = 1000;

/// The maximum number of places examined to find one that can be given up, which takes about 10 µs.
const LOOKS_MAX: usize = 128;

/// The connections of a process.
pub(crate) struct Connections {
    refused: AtomicUsize,
    open: Mutex<Open>,
}

struct Open {
    /// The number of places.
    max: usize,
    /// The number of connections with a place.
    count: usize,
    /// The number of connections that have given up their places but have not ended.
    leaving: usize,
    /// The places; the last place in the list is taken.
    places: Vec<Place>,
    /// Free places, except for those beyond the end.
    free: BinaryHeap<Reverse<u32>>,
    /// The start of the next search.
    hand: usize,
}

/// The record of a connection.
struct Place {
    connection: Weak<Connection>,
    /// The number of the place's configuration.
    group: usize,
    is_leaving: bool,
    is_free: bool,
}

/// The connections of one configuration.
pub(crate) struct Group {
    all: Arc<Connections>,
    /// The group's number.
    number: usize,
    /// The number of connections that have not ended.
    count: AtomicUsize,
    /// Notified when the last connection ends.
    none: Notify,
}

/// A connection that gets a 503 because there are too many.
pub(crate) struct Refused<'a>(&'a AtomicUsize);

impl Drop for Refused<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The counts of connections.
pub(crate) struct Census {
    /// Connections with a place.
    pub(crate) open: usize,
    /// Of these, connections that wait for a request.
    pub(crate) idle: usize,
    /// The number of places.
    pub(crate) limit: usize,
}

/// The place of an open connection.
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

    /// Changes the number of places. Connections beyond that number stay.
    pub(crate) fn set_max(&self, max: usize) {
        self.open.lock().max = max;
    }

    /// Returns the number of connections with a place.
    pub(crate) fn count(&self) -> usize {
        self.open.lock().count
    }

    /// Counts connections by their activity.
    pub(crate) fn census(&self) -> Census {
        let open = self.open.lock();
        let (count, limit) = (open.count, open.max);
        let places = open.places.iter().filter(|place| !place.is_leaving);
        let all: Vec<_> = places.map(|place| Weak::clone(&place.connection)).collect();
        drop(open);
        let all = all.iter().filter_map(Weak::upgrade);
        Census {
            open: count,
            idle: all.filter(|connection| !connection.is_busy()).count(),
            limit,
        }
    }

    /// Creates a group for the connections of another configuration.
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
    /// Returns its number, which is unique.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// Returns all connections of the process.
    pub(crate) fn all(&self) -> &Arc<Connections> {
        &self.all
    }

    /// Gives a connection a place; `None` if there is none. Connections that are idle in this
    /// second may make room.
    pub(crate) fn enter(&self, connection: &Arc<Connection>, now_s: u64) -> Option<Entered> {
        let mut open = self.all.open.lock();
        if open.count < open.max {
            return Some(self.enter_open(&mut open, connection));
        }
        let (leaving, _others) = open.make_room(now_s);
        let is_in = open.count < open.max;
        let entered = is_in.then(|| self.enter_open(&mut open, connection));
        drop(open);
        // Wakers are called, and connections dropped, outside of the lock.
        leaving.iter().for_each(|connection| connection.wake());
        entered
    }

    fn enter_open(&self, open: &mut Open, connection: &Arc<Connection>) -> Entered {
        open.count += 1;
        // Relaxed: the lock orders this access, here and in `leave`.
        self.count.fetch_add(1, Ordering::Relaxed);
        let place = Place {
            connection: Arc::downgrade(connection),
            group: self.number,
            is_leaving: false,
            is_free: false,
        };
        Entered(open.put(place))
    }

    /// Admits a connection that gets a 503, until the returned value is dropped; `None` if there
    /// are already too many of these.
    pub(crate) fn refuse(&self) -> Option<Refused<'_>> {
        let refused = Refused(&self.all.refused);
        (self.all.refused.fetch_add(1, Ordering::Relaxed) < REFUSED_MAX).then_some(refused)
    }

    /// Records that a connection has ended.
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

    /// Returns the number of connections that have not ended.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Wakes all connections, so that they look for work.
    pub(crate) fn wake_all(&self) {
        self.each(Connection::wake);
    }

    /// Ends the streams of all connections, whatever their state.
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

    /// Waits until all connections have ended.
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
    /// Stores a connection in the first free place, so that few free places lie between taken ones,
    /// and returns the place.
    fn put(&mut self, place: Place) -> u32 {
        match self.free.pop() {
            Some(Reverse(at)) if (at as usize) < self.places.len() => {
                self.places[at as usize] = place;
                at
            }
            // All other free places are also beyond the end.
            _ => {
                self.free.clear();
                self.places.push(place);
                (self.places.len() - 1) as u32
            }
        }
    }

    /// Frees a place, and removes free places at the end, where a search would find nothing.
    fn clear(&mut self, at: u32) {
        self.places[at as usize].is_free = true;
        self.places[at as usize].connection = Weak::new();
        self.free.push(Reverse(at));
        while self.places.pop_if(|last| last.is_free).is_some() {}
    }

    /// Makes idle connections give up their places, until a place is free or no other connection is
    /// found. Returns the connections to wake, and the others that were examined; drop both outside
    /// of the lock.
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
            // A request may have arrived for the connection in the meantime.
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
