//! A hierarchical timing wheel: it inserts and removes in constant time, and finds the earliest
//! tick in bitmaps.
//!
//! Varghese and Lauck, *Hashed and Hierarchical Timing Wheels* (SOSP 1987), scheme 7. Differences:
//!
//! - An entry's level is that of the highest base-64 digit in which its tick differs from the
//!   wheel's time. So a level never wraps around, and the first set bit of its bitmap is its
//!   earliest slot.
//! - Empty slots cost no time: an advance jumps from one occupied slot to the next.
//! - An advance can stop after a given number of entries, even in the middle of a slot, and a later
//!   call continues from there.
//!
//! The lists are intrusive: the wheel allocates only when it is created. It has no clock and no
//! locks.

use std::{marker::PhantomPinned, ptr::NonNull};

use crate::loom::UnsafeCell;

const DIGIT_BITS: u32 = 6;
const SLOTS_PER_LEVEL: usize = 1 << DIGIT_BITS;

/// The number of levels. 64^8 ticks of 131 µs are 1170 years, more than a 64-bit nanosecond clock
/// can show.
const LEVELS: usize = 8;

/// The range of the levels, in ticks; a later tick counts as this one.
pub(crate) const MAX_TICK: u64 = (1 << (DIGIT_BITS * LEVELS as u32)) - 1;

/// The list of entries whose tick had passed when they were inserted. It comes after the slots.
const DUE: usize = LEVELS * SLOTS_PER_LEVEL;

type Link<T> = Option<NonNull<Entry<T>>>;

/// An entry of a wheel. Its owner pins it while it is linked.
pub(crate) struct Entry<T> {
    links: UnsafeCell<Links<T>>,
    /// The owner's data, which the wheel never accesses.
    pub(crate) data: T,
    /// Also tells the compiler that a `&mut` to an owner of the entry does not exclude access
    /// through the wheel's pointers to it.
    _pinned: PhantomPinned,
}

struct Links<T> {
    prev: Link<T>,
    next: Link<T>,
    tick: u64,
    /// The list that holds the entry. Meaningless while it is not linked.
    index: usize,
}

// SAFETY: only the wheel that holds the entry accesses the links, and its `&mut` serializes the
// accesses. An entry that moves to another OS thread is not linked, or is pinned and only its
// owner's pointer moves. `T` itself must be `Send`. Tested by the Miri runs of `shard/tests.rs` and
// `wheel/tests.rs`.
unsafe impl<T: Send> Send for Entry<T> {}
// SAFETY: as above. A shared reference to an entry gives access only to `data`.
unsafe impl<T: Sync> Sync for Entry<T> {}

impl<T> Entry<T> {
    /// Creates an entry that is not linked.
    pub(crate) fn new(data: T) -> Self {
        Self {
            links: UnsafeCell::new(Links {
                prev: None,
                next: None,
                tick: 0,
                index: DUE,
            }),
            data,
            _pinned: PhantomPinned,
        }
    }
}

/// A list: either both its first and last entry, or neither.
struct Slot<T> {
    head: Link<T>,
    tail: Link<T>,
}

/// The wheel. Entries that are due at the same tick fire in the order in which they were inserted,
/// if no advance stopped between their insertions.
pub(crate) struct Wheel<T> {
    /// Ticks up to and including this one have passed. Every linked entry with a later tick is in
    /// the slot that [`place`] names, except those in `draining`.
    elapsed: u64,
    /// The slot that starts at `elapsed`, whose entries are being fired or moved to lower levels.
    draining: Option<usize>,
    /// Bit `n`: slot `n` of the level is not empty.
    occupied: [u64; LEVELS],
    /// Bit `n`: level `n` has a slot that is not empty.
    levels: u32,
    /// `LEVELS * SLOTS_PER_LEVEL` slots, then `DUE`.
    slots: Box<[Slot<T>]>,
}

// SAFETY: the wheel owns only pointers to its entries. `insert` requires that entries may be used
// from any OS thread that uses the wheel. `T: Send + Sync` because `advance` hands the entries out
// while their owners hold shared references.
unsafe impl<T: Send + Sync> Send for Wheel<T> {}

/// Returns the list for `tick`, as seen from `elapsed`, which must be earlier.
#[inline]
fn place(elapsed: u64, tick: u64) -> usize {
    debug_assert!(elapsed < tick && tick <= MAX_TICK);
    let level = (u64::BITS - 1 - (elapsed ^ tick).leading_zeros()) / DIGIT_BITS;
    let slot = (tick >> (level * DIGIT_BITS)) as usize % SLOTS_PER_LEVEL;
    level as usize * SLOTS_PER_LEVEL + slot
}

impl<T> Wheel<T> {
    /// Creates an empty wheel at tick 0.
    pub(crate) fn new() -> Self {
        let slots = (0..=DUE)
            .map(|_| Slot {
                head: None,
                tail: None,
            })
            .collect();
        Self {
            elapsed: 0,
            draining: None,
            occupied: [0; LEVELS],
            levels: 0,
            slots,
        }
    }

    /// Returns the tick up to which the wheel has been advanced.
    #[inline]
    pub(crate) fn elapsed(&self) -> u64 {
        self.elapsed
    }

    /// Links `entry` at `tick`, in constant time. If the tick has passed, the next advance fires
    /// the entry.
    ///
    /// # Safety
    ///
    /// `entry` must point to an entry that is not linked in any wheel. It must neither be moved nor
    /// freed, and no unique reference to it may be used, until it has been removed from this wheel
    /// or handed out by [`advance`](Self::advance) or [`pop_any`](Self::pop_any). The wheel may use
    /// it from any OS thread that uses the wheel.
    #[inline]
    pub(crate) unsafe fn insert(&mut self, entry: NonNull<Entry<T>>, tick: u64) {
        let tick = tick.min(MAX_TICK);
        let index = if tick <= self.elapsed {
            DUE
        } else {
            place(self.elapsed, tick)
        };
        // SAFETY: the caller promises that the entry is valid and not linked.
        unsafe { self.push_back(index, entry, tick) };
    }

    /// Unlinks `entry`, in constant time.
    ///
    /// # Safety
    ///
    /// `entry` must be linked in this wheel.
    #[inline]
    pub(crate) unsafe fn remove(&mut self, entry: NonNull<Entry<T>>) {
        // SAFETY: a linked entry is valid (contract of `insert`), and so are its neighbors, which
        // are linked too. `&mut self` makes this the only access to the links.
        unsafe {
            let (prev, next, index) = entry
                .as_ref()
                .links
                .with(|links| ((*links).prev, (*links).next, (*links).index));
            match prev {
                Some(prev) => prev.as_ref().links.with_mut(|links| (*links).next = next),
                None => self.slots[index].head = next,
            }
            match next {
                Some(next) => next.as_ref().links.with_mut(|links| (*links).prev = prev),
                None => self.slots[index].tail = prev,
            }
            if prev.is_none() && next.is_none() {
                self.mark_empty(index);
            }
        }
    }

    /// Returns the earliest tick at which there may be work, in constant time; `None` if the wheel
    /// is empty.
    ///
    /// No entry is due before it. The result is exact if the earliest entry is in the current block
    /// of 64 ticks, or alone in its slot. Otherwise it is the start of that slot: an advance to
    /// this tick moves the slot's entries to lower levels, and the next result is closer.
    #[inline]
    pub(crate) fn next_expiry(&self) -> Option<u64> {
        if self.active().is_some() {
            return Some(self.elapsed);
        }
        let (index, start) = self.next_slot()?;
        let slot = &self.slots[index];
        match slot.head {
            Some(head) if slot.head == slot.tail => {
                // SAFETY: linked entries are valid (contract of `insert`), and links change only
                // under `&mut self`.
                let entry = unsafe { head.as_ref() };
                // SAFETY: as above.
                Some(entry.links.with(|links| unsafe { (*links).tick }))
            }
            _ => Some(start),
        }
    }

    /// Moves the time to `now`, unlinks every due entry and passes it to `fire`, in the order of
    /// ticks. An entry that was inserted late counts as due at the time of its insertion.
    ///
    /// At most `limit` entries are fired or moved to a lower level. Returns true if nothing due is
    /// left. Otherwise the wheel's time has not reached `now`, and another call continues. If `now`
    /// has already passed, only the entries that are due fire.
    pub(crate) fn advance(
        &mut self,
        now: u64,
        limit: usize,
        fire: &mut impl FnMut(NonNull<Entry<T>>),
    ) -> bool {
        let now = now.min(MAX_TICK);
        let mut left = limit;
        loop {
            let index = match self.active() {
                Some(index) => index,
                None => match self.next_slot() {
                    Some((index, start)) if start <= now => {
                        // No slot lies in between, so all other entries are still in the right
                        // places as seen from the new time.
                        self.elapsed = start;
                        self.draining = Some(index);
                        index
                    }
                    _ => {
                        self.elapsed = self.elapsed.max(now);
                        self.draining = None;
                        return true;
                    }
                },
            };
            if left == 0 {
                return false;
            }
            left -= 1;
            let Some((entry, tick)) = self.pop_front(index) else {
                continue;
            };
            if tick <= self.elapsed {
                fire(entry);
            } else {
                // SAFETY: the entry was linked a moment ago, so it is valid, and it has just been
                // unlinked.
                unsafe { self.push_back(place(self.elapsed, tick), entry, tick) };
            }
        }
    }

    /// Unlinks some entry, whether it is due or not; `None` if the wheel is empty.
    pub(crate) fn pop_any(&mut self) -> Option<NonNull<Entry<T>>> {
        let index = match self.active() {
            Some(index) => index,
            None => self.next_slot()?.0,
        };
        self.pop_front(index).map(|(entry, _)| entry)
    }

    /// Returns the list with which an advance must continue before time can move: late entries,
    /// then the slot being drained.
    #[inline]
    fn active(&self) -> Option<usize> {
        if self.slots[DUE].head.is_some() {
            return Some(DUE);
        }
        self.draining
            .filter(|&index| self.slots[index].head.is_some())
    }

    /// Returns the earliest slot that is not empty, and its first tick. The result has a meaning
    /// only if no list is active.
    #[inline]
    fn next_slot(&self) -> Option<(usize, u64)> {
        if self.levels == 0 {
            return None;
        }
        // All entries of a level come before the entries of the next level, because they share one
        // more digit with the current tick.
        let level = self.levels.trailing_zeros();
        let slot = self.occupied[level as usize].trailing_zeros();
        let shift = level * DIGIT_BITS;
        let block = self.elapsed >> (shift + DIGIT_BITS) << DIGIT_BITS;
        Some((
            level as usize * SLOTS_PER_LEVEL + slot as usize,
            (block | u64::from(slot)) << shift,
        ))
    }

    /// # Safety
    ///
    /// Same as for [`insert`](Self::insert); also, `index` must be the entry's right place.
    #[inline]
    unsafe fn push_back(&mut self, index: usize, entry: NonNull<Entry<T>>, tick: u64) {
        let slot = &mut self.slots[index];
        let prev = slot.tail.replace(entry);
        match prev {
            // SAFETY: the tail is linked, so it is valid, and `&mut self` makes this the only
            // access to its links.
            Some(prev) => unsafe {
                prev.as_ref()
                    .links
                    .with_mut(|links| (*links).next = Some(entry))
            },
            None => {
                slot.head = Some(entry);
                if index < DUE {
                    self.occupied[index / SLOTS_PER_LEVEL] |= 1 << (index % SLOTS_PER_LEVEL);
                    self.levels |= 1 << (index / SLOTS_PER_LEVEL);
                }
            }
        }
        // SAFETY: the caller promises that the entry is valid and in no list, so its links have no
        // other user.
        unsafe {
            entry.as_ref().links.with_mut(|links| {
                *links = Links {
                    prev,
                    next: None,
                    tick,
                    index,
                }
            })
        };
    }

    #[inline]
    fn pop_front(&mut self, index: usize) -> Option<(NonNull<Entry<T>>, u64)> {
        let entry = self.slots[index].head?;
        // SAFETY: the entry is linked in this wheel, hence valid (contract of `insert`).
        let tick = unsafe { entry.as_ref().links.with(|links| (*links).tick) };
        // SAFETY: the entry is linked in this wheel.
        unsafe { self.remove(entry) };
        Some((entry, tick))
    }

    #[inline]
    fn mark_empty(&mut self, index: usize) {
        if index < DUE {
            let level = index / SLOTS_PER_LEVEL;
            self.occupied[level] &= !(1 << (index % SLOTS_PER_LEVEL));
            if self.occupied[level] == 0 {
                self.levels &= !(1 << level);
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
