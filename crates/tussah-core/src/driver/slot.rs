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
/// The peer has closed its side, or there was an error: reported once, so a short reading is no reason to wait.
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

/// How many foreign deliveries in a row make a descriptor move to where it is waited for.
const FOREIGN_MAX: u8 = 16;

/// The state of a descriptor at some moment.
#[derive(Clone, Copy)]
pub(super) struct Seen(u32);

impl Seen {
    #[inline]
    pub(super) fn is_ready(self, direction: Direction) -> bool {
        self.0 & direction.flag() != 0
    }
}

/// A descriptor's place in the table of a runtime.
pub(super) struct Slot {
    /// Flags and the number of reports; written under the lock.
    state: AtomicU32,
    inner: Mutex<Inner>,
}

pub(super) struct Inner {
    /// How many descriptors had the slot before.
    pub(super) generation: u32,
    /// The place whose driver has the descriptor, plus one; 0: it is not registered.
    pub(super) home: u16,
    /// How often in a row it was waited for elsewhere.
    foreign: u8,
    last_key: Key,
    /// The first who waits for each direction.
    first: [Entry; 2],
    /// The others.
    more: Vec<(Direction, Entry)>,
}

struct Entry {
    key: Key,
    waker: TinyWaker,
}

impl Entry {
    const NONE: Self = Self {
        key: 0,
        waker: TinyWaker::NONE,
    };
}

/// Wakers that were taken out of a slot, to be called or dropped when its lock is released.
#[derive(Default)]
pub(super) struct Wakers {
    first: [Option<TinyWaker>; 2],
    more: Vec<TinyWaker>,
}

impl Wakers {
    /// Calls them; says how many there were.
    pub(super) fn wake(self) -> usize {
        let all = self.first.into_iter().flatten().chain(self.more);
        all.map(TinyWaker::wake_guarded).count()
    }
}

impl Inner {
    fn entry(&mut self, direction: Direction, key: Key) -> Option<&mut Entry> {
        let first = &mut self.first[direction as usize];
        if first.key == key {
            return Some(first);
        }
        let mut more = self.more.iter_mut();
        let found = more.find(|(waits_for, entry)| *waits_for == direction && entry.key == key);
        found.map(|(_, entry)| entry)
    }

    fn new_key(&mut self) -> Key {
        self.last_key = self.last_key.wrapping_add(1).max(POLLED + 1);
        self.last_key
    }

    fn push(&mut self, direction: Direction, entry: Entry) {
        let first = &mut self.first[direction as usize];
        if first.key == 0 {
            *first = entry;
        } else {
            self.more.push((direction, entry));
        }
    }

    /// After one of those who wait for a direction was taken out: the first must be there if any other is.
    fn close_gap(&mut self, direction: Direction) {
        let more = &mut self.more;
        more.retain(|(_, entry)| entry.key != 0);
        let first = &mut self.first[direction as usize];
        if first.key == 0
            && let Some(at) = more
                .iter()
                .position(|(waits_for, _)| *waits_for == direction)
        {
            *first = more.swap_remove(at).1;
        }
    }

    /// Takes out all who wait for a direction.
    fn take(&mut self, direction: Direction, wakers: &mut Wakers) {
        let first = mem::replace(&mut self.first[direction as usize], Entry::NONE);
        if first.key == 0 {
            return; // nobody is among the others then
        }
        wakers.first[direction as usize] = Some(first.waker);
        if !self.more.is_empty() {
            let gone = self
                .more
                .extract_if(.., |(waits_for, _)| *waits_for == direction);
            wakers.more.extend(gone.map(|(_, entry)| entry.waker));
        }
    }

    /// Whether the descriptor, registered elsewhere, should move to where it is waited for now.
    pub(super) fn is_foreign(&mut self, place: usize) -> bool {
        if usize::from(self.home) == place + 1 {
            self.foreign = 0;
            return false;
        }
        self.foreign += 1;
        self.foreign >= FOREIGN_MAX
    }

    /// The descriptor is registered there now; gives the place where it was.
    pub(super) fn moved(&mut self, place: usize) -> Option<usize> {
        self.foreign = 0;
        let before = mem::replace(&mut self.home, place as u16 + 1);
        usize::from(before).checked_sub(1)
    }
}

impl Slot {
    pub(super) fn new() -> Self {
        Self {
            state: AtomicU32::new(READ | WRITE),
            inner: Mutex::new(Inner {
                generation: 0,
                home: 0,
                foreign: 0,
                last_key: POLLED,
                first: [Entry::NONE; 2],
                more: Vec::new(),
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

    /// An operation that began when the state was `seen` has taken all that there was.
    pub(super) fn exhausted(&self, direction: Direction, seen: Seen) {
        if seen.0 & CLOSED == 0 {
            self.clear_if(&self.lock(), direction, seen);
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
        let ready = !self.clear_if(&inner, direction, seen);
        if !ready {
            register(&mut inner)?;
            let found = if *key == 0 {
                None
            } else {
                inner.entry(direction, *key)
            };
            if let Some(entry) = found {
                before = mem::replace(&mut entry.waker, waker);
            } else {
                if *key == 0 {
                    *key = inner.new_key();
                }
                let key = *key;
                inner.push(direction, Entry { key, waker });
            }
        }
        drop(inner);
        drop(before);
        Ok(ready)
    }

    /// Who waited does so no more.
    pub(super) fn cancel(&self, direction: Direction, key: Key) {
        let mut inner = self.lock();
        let mut gone = None;
        if let Some(entry) = inner.entry(direction, key) {
            gone = Some(mem::replace(entry, Entry::NONE));
            inner.close_gap(direction);
        }
        drop(inner);
        drop(gone);
    }

    /// Something was reported, of the descriptor that has the slot by this generation. Gives whom to wake.
    pub(super) fn report(&self, generation: u32, flags: u32) -> Wakers {
        let mut wakers = Wakers::default();
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
        let mut wakers = Wakers::default();
        let mut inner = self.lock();
        inner.generation = inner.generation.wrapping_add(1);
        inner.foreign = 0;
        inner.take(Direction::Read, &mut wakers);
        inner.take(Direction::Write, &mut wakers);
        inner.more = Vec::new();
        self.set(&inner, READ | WRITE);
        let home = mem::take(&mut inner.home);
        (wakers, usize::from(home).checked_sub(1))
    }
}
