//! The state of a descriptor, and its waiters. `mod.rs` proves that no report is missed.

#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(all(test, not(loom)))]
mod tests;
mod wakers;

use std::mem;
use std::task::Waker;

use crate::loom::atomic::{AtomicU32, Ordering};
use crate::loom::{Mutex, MutexGuard, lock};
use crate::tiny_waker::TinyWaker;

#[cfg_attr(
    loom,
    allow(unused_imports, reason = "the models have a driver of their own")
)]
pub(crate) use wakers::Late;
use wakers::Wakers;

/// The direction of the I/O that an operation waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Waits for data to read, a connection to accept, or end-of-file.
    Read,
    /// Waits until data can be written, or for the outcome of a connection attempt.
    Write,
}

pub(super) const READ: u32 = 1;
pub(super) const WRITE: u32 = 2;
/// The peer has closed its side, an error has occurred, or urgent data has arrived. This is
/// reported only once, so a later short read is no reason to wait.
pub(super) const CLOSED: u32 = 4;
/// The peer has closed its side. This flag and the next one are never cleared while the slot is in
/// use.
pub(super) const HALF: u32 = 8;
/// The connection is over, or an error has occurred.
pub(super) const FULL: u32 = 16;
const FLAGS: u32 = READ | WRITE | CLOSED | HALF | FULL;
/// Counts the reports, above the flags.
const REPORT: u32 = FLAGS + 1;

impl Direction {
    fn flag(self) -> u32 {
        match self {
            Direction::Read => READ,
            Direction::Write => WRITE,
        }
    }
}

/// The identity of a waiter, unique in its slot; 0 belongs to no waiter.
pub(super) type Key = u32;

/// The key that all `poll_` functions share: the last caller takes the place.
pub(super) const POLLED: Key = 1;

/// The number of foreign deliveries after which a descriptor moves to the worker that waits for it.
/// They need not be consecutive: so descriptors whose threads are occasionally stolen move away
/// from an overloaded worker.
const FOREIGN_MAX: u8 = 16;

/// The state of a descriptor at one moment.
#[derive(Clone, Copy)]
pub(super) struct Seen(u32);

impl Seen {
    #[inline]
    pub(super) fn is_ready(self, direction: Direction) -> bool {
        self.has(direction.flag())
    }

    /// Returns whether anything has been reported. The count wraps after some 130 million reports,
    /// when this may return false once.
    #[inline]
    pub(super) fn is_reported(self) -> bool {
        self.0 >= REPORT
    }

    /// Returns whether one of these flags is set.
    #[inline]
    pub(super) fn has(self, flags: u32) -> bool {
        self.0 & flags != 0
    }
}

/// A descriptor's place in a runtime's table: one cache line.
#[repr(align(64))]
pub(super) struct Slot {
    /// The slot's number in the table.
    pub(super) index: u32,
    /// The flags and the number of reports, written under the lock.
    state: AtomicU32,
    inner: Mutex<Inner>,
}

#[cfg(all(not(loom), target_pointer_width = "64"))]
const _: () = assert!(mem::size_of::<Slot>() == 64);

pub(super) struct Inner {
    /// The number of descriptors that have used the slot before.
    pub(super) generation: u32,
    /// The place whose driver has the descriptor, plus one; 0 if the descriptor is not registered.
    pub(super) home: u16,
    /// The number of times that a thread has waited elsewhere since the descriptor came to its
    /// present place.
    foreign: u8,
    last_key: Key,
    /// The first waiter of each direction: its key, 0 if there is none, and its waker.
    keys: [Key; 2],
    wakers: [TinyWaker; 2],
    /// The other waiters.
    more: More,
}

/// The waiters after the first, which are rare: this is one word as long as there are none.
#[derive(Default)]
#[expect(
    clippy::box_collection,
    reason = "a vector would take three words in each slot"
)]
struct More(Option<Box<Vec<Entry>>>);

struct Entry {
    direction: Direction,
    key: Key,
    waker: TinyWaker,
}

impl Inner {
    fn new_key(&mut self) -> Key {
        loop {
            self.last_key = self.last_key.wrapping_add(1).max(POLLED + 1);
            let key = self.last_key;
            // The counter wraps after billions of keys, and a waiter may still be using one of
            // them.
            let more = self.more.0.iter().flat_map(|more| more.iter());
            if !self.keys.contains(&key) && !more.into_iter().any(|entry| entry.key == key) {
                return key;
            }
        }
    }

    /// Stores a waiter, replacing the waiter with the same key. Returns the replaced waker.
    fn put(&mut self, entry: Entry) -> TinyWaker {
        let at = entry.direction as usize;
        if self.keys[at] == entry.key || self.keys[at] == 0 {
            self.keys[at] = entry.key;
            return mem::replace(&mut self.wakers[at], entry.waker);
        }
        let more = self.more.0.get_or_insert_default();
        let same =
            |other: &&mut Entry| (other.direction, other.key) == (entry.direction, entry.key);
        if let Some(other) = more.iter_mut().find(same) {
            return mem::replace(&mut other.waker, entry.waker);
        }
        more.push(entry);
        TinyWaker::NONE
    }

    /// Removes a waiter. The first place is occupied as long as the direction has any waiter.
    fn remove(&mut self, direction: Direction, key: Key) -> TinyWaker {
        let at = direction as usize;
        let mut more = self.more.0.as_mut();
        let mut find = |wanted: &dyn Fn(&Entry) -> bool| {
            let more = more.as_mut()?;
            let place = more
                .iter()
                .position(|entry| entry.direction == direction && wanted(entry))?;
            Some(more.swap_remove(place))
        };
        if self.keys[at] == key {
            let next = find(&|_| true);
            let (key, waker) = next.map_or((0, TinyWaker::NONE), |next| (next.key, next.waker));
            self.keys[at] = key;
            return mem::replace(&mut self.wakers[at], waker);
        }
        find(&|entry| entry.key == key).map_or(TinyWaker::NONE, |entry| entry.waker)
    }

    /// Removes all waiters of a direction.
    fn take(&mut self, direction: Direction, wakers: &mut Wakers) {
        let at = direction as usize;
        if mem::take(&mut self.keys[at]) == 0 {
            return; // there are no others then
        }
        wakers.first[at] = self.wakers[at].take();
        if self.more.0.is_some() {
            self.take_more(direction, wakers);
        }
    }

    #[cold]
    fn take_more(&mut self, direction: Direction, wakers: &mut Wakers) {
        let mut more = self.more.0.take().unwrap_or_default();
        let gone = more.extract_if(.., |entry| entry.direction == direction);
        let gone = gone.map(|entry| entry.waker);
        wakers.more.get_or_insert_default().extend(gone);
        self.more = More((!more.is_empty()).then_some(more));
    }

    /// Returns whether the descriptor, registered elsewhere, should move to this place, where a
    /// thread is now waiting for it.
    pub(super) fn is_foreign(&mut self, place: usize) -> bool {
        if usize::from(self.home) == place + 1 {
            return false;
        }
        self.foreign = self.foreign.saturating_add(1);
        self.foreign >= FOREIGN_MAX
    }

    /// Records that the descriptor cannot move now. The next attempt comes after the same number of
    /// further deliveries.
    pub(super) fn stays(&mut self) {
        self.foreign = 0;
    }

    /// Records the new home, and returns the place where the descriptor was.
    pub(super) fn moved(&mut self, place: usize) -> Option<usize> {
        self.foreign = 0;
        let before = mem::replace(&mut self.home, place as u16 + 1);
        usize::from(before).checked_sub(1)
    }
}

impl Slot {
    pub(super) fn new(index: u32) -> Self {
        Self {
            index,
            state: AtomicU32::new(READ | WRITE),
            inner: Mutex::new(Inner {
                generation: 0,
                home: 0,
                foreign: 0,
                last_key: POLLED,
                keys: [0; 2],
                wakers: [TinyWaker::NONE; 2],
                more: More::default(),
            }),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }

    #[inline]
    pub(super) fn seen(&self) -> Seen {
        // Pairs with the Release in `set`, so that the reported state is visible.
        Seen(self.state.load(Ordering::Acquire))
    }

    #[cold]
    pub(super) fn is_registered(&self) -> bool {
        self.lock().home != 0
    }

    fn set(&self, _: &Inner, state: u32) {
        self.state.store(state, Ordering::Release);
    }

    /// Marks a direction as not ready, unless something was reported since `seen`.
    fn clear_if(&self, inner: &Inner, direction: Direction, seen: Seen) -> bool {
        let unchanged = self.is_unchanged(inner, seen);
        if unchanged {
            let state = self.state.load(Ordering::Relaxed);
            self.set(inner, state & !direction.flag());
        }
        unchanged
    }

    /// Returns whether nothing was reported since `seen`.
    fn is_unchanged(&self, _: &Inner, seen: Seen) -> bool {
        self.state.load(Ordering::Relaxed) / REPORT == seen.0 / REPORT
    }

    /// Records that an operation that began at state `seen` came short: it took everything, except
    /// perhaps the end, which is reported only once.
    pub(super) fn came_short(&self, direction: Direction, seen: Seen) {
        if seen.0 & CLOSED == 0 {
            self.exhausted(direction, seen);
        }
    }

    /// Records that an operation that began at state `seen` would have blocked. Has no effect on a
    /// descriptor that is not registered, since nothing would be reported later.
    pub(super) fn exhausted(&self, direction: Direction, seen: Seen) {
        let inner = self.lock();
        if inner.home != 0 {
            self.clear_if(&inner, direction, seen);
        }
    }

    /// Waits, unless something was reported since `seen`. Returns true if the caller has to try
    /// again.
    ///
    /// `register` runs under the lock, before the waiter is stored. If it fails, nothing is stored.
    pub(super) fn wait<E>(
        &self,
        direction: Direction,
        seen: Seen,
        key: &mut Key,
        waker: &Waker,
        register: impl FnOnce(&mut Inner) -> Result<(), E>,
    ) -> Result<bool, E> {
        let may_wait = |inner: &Inner| self.clear_if(inner, direction, seen);
        self.take_place(direction, key, waker, register, may_wait)
    }

    /// Waits for the next report that wakes readers, unless there was one since `seen`. Directions
    /// that are ready stay ready. Returns true if the caller has to check again. `register` is as
    /// for [`wait`](Self::wait).
    pub(super) fn wait_report<E>(
        &self,
        seen: Seen,
        key: &mut Key,
        waker: &Waker,
        register: impl FnOnce(&mut Inner) -> Result<(), E>,
    ) -> Result<bool, E> {
        let may_wait = |inner: &Inner| self.is_unchanged(inner, seen);
        self.take_place(Direction::Read, key, waker, register, may_wait)
    }

    /// Stores the waker if `may_wait` allows it; otherwise returns true.
    #[inline]
    fn take_place<E>(
        &self,
        direction: Direction,
        key: &mut Key,
        waker: &Waker,
        register: impl FnOnce(&mut Inner) -> Result<(), E>,
        may_wait: impl FnOnce(&Inner) -> bool,
    ) -> Result<bool, E> {
        // The waker is cloned and dropped outside the lock, because a waker may be foreign code.
        let waker = TinyWaker::from_waker(waker);
        let mut before = TinyWaker::NONE;
        let mut inner = self.lock();
        // The registration comes first: if it fails, the next poll tries the operation again.
        register(&mut inner)?;
        let ready = !may_wait(&inner);
        if !ready {
            if *key == 0 {
                *key = inner.new_key();
            }
            before = inner.put(Entry {
                direction,
                key: *key,
                waker,
            });
        }
        drop(inner);
        drop(before);
        Ok(ready)
    }

    /// Removes a waiter that no longer waits.
    pub(super) fn cancel(&self, direction: Direction, key: Key) {
        let gone = self.lock().remove(direction, key);
        drop(gone);
    }

    /// Records a report for the descriptor of this generation. Returns the wakers to call.
    pub(super) fn report(&self, generation: u32, flags: u32) -> Wakers {
        let mut wakers = Wakers::new();
        let mut inner = self.lock();
        if inner.generation == generation {
            let state = self.state.load(Ordering::Relaxed);
            self.set(&inner, (state | flags).wrapping_add(REPORT));
            if flags & READ != 0 {
                inner.take(Direction::Read, &mut wakers);
            }
            if flags & WRITE != 0 {
                inner.take(Direction::Write, &mut wakers);
            }
        }
        wakers
    }

    /// Resets the slot, except for its generation, when its descriptor is removed. Returns the
    /// wakers of the waiters, and the place where the descriptor was registered.
    pub(super) fn reset(&self) -> (Wakers, Option<usize>) {
        let mut wakers = Wakers::new();
        let mut inner = self.lock();
        inner.generation = inner.generation.wrapping_add(1);
        inner.foreign = 0;
        inner.take(Direction::Read, &mut wakers);
        inner.take(Direction::Write, &mut wakers);
        inner.more = More::default();
        self.set(&inner, READ | WRITE);
        let home = mem::take(&mut inner.home);
        (wakers, usize::from(home).checked_sub(1))
    }
}
