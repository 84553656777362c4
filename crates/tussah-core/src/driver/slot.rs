//! What is known of a descriptor, and who waits for it. Why nothing is missed: `mod.rs`.

#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(all(test, not(loom)))]
mod tests;

use std::mem;
use std::task::Waker;

use crate::loom::atomic::{AtomicU32, Ordering};
use crate::loom::{Mutex, MutexGuard, lock};
use crate::tiny_waker::TinyWaker;

/// What an operation waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// There is something to read or to accept, or the end.
    Read,
    /// There is room to write, or a connection has been made, or has failed.
    Write,
}

pub(super) const READ: u32 = 1;
pub(super) const WRITE: u32 = 2;
/// The peer has closed its side, there was an error, or urgent data: reported once, so a short reading is no reason to wait.
pub(super) const CLOSED: u32 = 4;
const FLAGS: u32 = READ | WRITE | CLOSED;
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

/// Of those who wait in a slot; no two at a time have the same one. 0: nobody's.
pub(super) type Key = u32;

/// The key of those who wait by `poll_` functions: the last one to call takes the place.
pub(super) const POLLED: Key = 1;

/// How many foreign deliveries make a descriptor move to where it is waited for: not in a row, so that those that are stolen now and then move away from a worker that has more than the others.
const FOREIGN_MAX: u8 = 16;

/// The state of a descriptor at some moment.
#[derive(Clone, Copy)]
pub(super) struct Seen(u32);

impl Seen {
    #[inline]
    pub(super) fn is_ready(self, direction: Direction) -> bool {
        self.0 & direction.flag() != 0
    }

    /// Whether anything has been reported; after some 500 million reports it may say no once more.
    #[inline]
    pub(super) fn is_reported(self) -> bool {
        self.0 >= REPORT
    }
}

/// A descriptor's place in the table of a runtime: a line of the cache.
#[repr(align(64))]
pub(super) struct Slot {
    /// Its number in the table.
    pub(super) index: u32,
    /// Flags and the number of reports; written under the lock.
    state: AtomicU32,
    inner: Mutex<Inner>,
}

#[cfg(all(not(loom), target_pointer_width = "64"))]
const _: () = assert!(mem::size_of::<Slot>() == 64);

pub(super) struct Inner {
    /// How many descriptors had the slot before.
    pub(super) generation: u32,
    /// The place whose driver has the descriptor, plus one; 0: it is not registered.
    pub(super) home: u16,
    /// How often it was waited for elsewhere since it is there.
    foreign: u8,
    last_key: Key,
    /// The first who waits for each direction: its key, 0 for nobody, and its waker.
    keys: [Key; 2],
    wakers: [TinyWaker; 2],
    /// The others.
    more: More,
}

/// Those who wait beside a first one, which is rare: one word as long as there are none.
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

/// Wakers that were taken out of a slot, to be called or dropped when its lock is released.
pub(super) struct Wakers {
    first: [TinyWaker; 2],
    #[expect(clippy::box_collection, reason = "seldom there, and moved often")]
    more: Option<Box<Vec<TinyWaker>>>,
}

impl Wakers {
    const fn new() -> Self {
        Self {
            first: [TinyWaker::NONE; 2],
            more: None,
        }
    }

    /// Asks for what the first ones point at.
    #[inline]
    fn prefetch(&self) {
        self.first.iter().for_each(TinyWaker::prefetch);
    }

    /// Calls them; says how many there were.
    #[inline]
    pub(super) fn wake(self) -> usize {
        let mut woken = 0;
        for waker in self.first {
            if !waker.is_none() {
                waker.wake_guarded();
                woken += 1;
            }
        }
        woken + self.more.map_or(0, |more| Self::wake_more(*more))
    }

    #[cold]
    fn wake_more(more: Vec<TinyWaker>) -> usize {
        more.into_iter().map(TinyWaker::wake_guarded).count()
    }
}

/// Bound, in reports: how far calling runs behind reporting, so that what is called has come into the cache.
const BEHIND: usize = 4;

/// Wakers of the last reports, which are called a little later.
pub(crate) struct Late {
    wakers: [Wakers; BEHIND],
    next: usize,
}

impl Late {
    pub(crate) fn new() -> Self {
        Self {
            wakers: [const { Wakers::new() }; BEHIND],
            next: 0,
        }
    }

    /// Takes those of a report, and calls those of an earlier one; says how many these were.
    #[inline]
    pub(super) fn push(&mut self, wakers: Wakers) -> usize {
        wakers.prefetch();
        self.next = (self.next + 1) % BEHIND;
        mem::replace(&mut self.wakers[self.next], wakers).wake()
    }

    /// Calls all that are left; says how many there were.
    pub(crate) fn wake(self) -> usize {
        self.wakers.into_iter().map(Wakers::wake).sum()
    }
}

impl Inner {
    fn new_key(&mut self) -> Key {
        loop {
            self.last_key = self.last_key.wrapping_add(1).max(POLLED + 1);
            let key = self.last_key;
            // After some billions of them, one may still be there.
            let more = self.more.0.iter().flat_map(|more| more.iter());
            if !self.keys.contains(&key) && !more.into_iter().any(|entry| entry.key == key) {
                return key;
            }
        }
    }

    /// Puts the waker to those who wait, in the place of the one with this key if that waits; gives that one's.
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

    /// Takes out who waits for a direction with this key. The first is there as long as any other is.
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

    /// Takes out all who wait for a direction.
    fn take(&mut self, direction: Direction, wakers: &mut Wakers) {
        let at = direction as usize;
        if mem::take(&mut self.keys[at]) == 0 {
            return; // nobody is among the others then
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

    /// Whether the descriptor, registered elsewhere, should move to where it is waited for now.
    pub(super) fn is_foreign(&mut self, place: usize) -> bool {
        if usize::from(self.home) == place + 1 {
            return false;
        }
        self.foreign = self.foreign.saturating_add(1);
        self.foreign >= FOREIGN_MAX
    }

    /// It can't move now; another try comes after as many more.
    pub(super) fn stays(&mut self) {
        self.foreign = 0;
    }

    /// The descriptor is registered there now; gives the place where it was.
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
        // Pairs with the Release in `set`: what was reported is there.
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
        let state = self.state.load(Ordering::Relaxed);
        let unchanged = state / REPORT == seen.0 / REPORT;
        if unchanged {
            self.set(inner, state & !direction.flag());
        }
        unchanged
    }

    /// An operation that began when the state was `seen` has come short: it has taken all that there was, but for the end, which is reported only once.
    pub(super) fn came_short(&self, direction: Direction, seen: Seen) {
        if seen.0 & CLOSED == 0 {
            self.exhausted(direction, seen);
        }
    }

    /// An operation that began when the state was `seen` would have blocked. Has no effect as long as nobody would report that there is more.
    pub(super) fn exhausted(&self, direction: Direction, seen: Seen) {
        let inner = self.lock();
        if inner.home != 0 {
            self.clear_if(&inner, direction, seen);
        }
    }

    /// Waits, unless something was reported since `seen`. True: try again.
    ///
    /// `register` is called under the lock, before the place is taken; if it fails nobody waits.
    pub(super) fn wait<E>(
        &self,
        direction: Direction,
        seen: Seen,
        key: &mut Key,
        waker: &Waker,
        register: impl FnOnce(&mut Inner) -> Result<(), E>,
    ) -> Result<bool, E> {
        // Cloned and dropped without the lock: it may be foreign code.
        let waker = TinyWaker::from_waker(waker);
        let mut before = TinyWaker::NONE;
        let mut inner = self.lock();
        // Registered first: if that fails, the operation is tried again the next time.
        register(&mut inner)?;
        let ready = !self.clear_if(&inner, direction, seen);
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

    /// Who waited does so no more.
    pub(super) fn cancel(&self, direction: Direction, key: Key) {
        let gone = self.lock().remove(direction, key);
        drop(gone);
    }

    /// Something was reported, of the descriptor that has the slot by this generation. Gives whom to wake.
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

    /// The descriptor leaves: the slot is as new, but for its generation. Gives those who waited, and where it was registered.
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
