//! The table of colors that are given by number.
//!
//! # Hashing
//!
//! Numbers may come from outside: the number of a connection, or the hash of a name. Each table
//! hashes them with its own random keys, so an attacker cannot choose numbers that collide in one
//! shard or in one sequence of buckets.
//!
//! # Which colors are remembered
//!
//! The table keeps every color that has references or events, and a few of the others:
//!
//! - A shard keeps up to `IDLE_MAX` colors unconditionally.
//! - Beyond that, dropping the last reference to an idle color forgets it at once
//!   ([`Table::forget`]).
//! - A walk around each shard finds colors that were busy at that moment, or were only posted to.
//!   The walk visits `WALK` buckets after every `WALK_EVERY_NEW` colors that are new to the shard,
//!   or every `WALK_EVERY_KNOWN` look-ups of known colors.
//!
//! So in a map of `b` buckets the walk completes a round within `b / 4` new colors. The map
//! rehashes when it runs out of free buckets, and afterwards has at least `b * 7 / 16` free
//! buckets. If it rehashes during one round, it does not rehash during the next. Hence a color that
//! stays idle is forgotten within `b / 2` new colors of its shard, or 256 times as many look-ups of
//! known colors. The only exception is a map that has shrunk in the meantime, which means that half
//! of its colors were forgotten. The map shrinks when `b` exceeds five times (colors remembered +
//! `IDLE_MAX`).

use std::hash::{BuildHasher, Hasher, RandomState};
use std::ptr::NonNull;
use std::sync::Arc;

use foldhash::SharedSeed;
use foldhash::quality::FoldHasher;
use hashbrown::HashTable;
use parking_lot::Mutex;

use super::cell::ColorCell;
use super::{Color, ColorName, ColorRef};
use crate::runtime::Shared;

/// Number of locks in the table: enough that posters rarely contend.
const SHARDS: usize = 64;

/// The maximum number of unused colors that a shard keeps. Naming a remembered color again costs
/// less than creating it anew.
const IDLE_MAX: usize = 64;

/// Number of buckets per step of the walk.
const WALK: usize = 128;

/// New colors of a shard per step: the walk must complete a round well before the map is full
/// again.
const WALK_EVERY_NEW: u32 = 32;

/// Look-ups of known colors per step, so that a service that names no new colors still forgets old
/// ones.
const WALK_EVERY_KNOWN: u32 = 8192;

/// The hash function and its keys. Security depends on the secrecy of the keys, not on the
/// function.
struct Keys {
    shared: SharedSeed,
    own: u64,
}

impl Keys {
    fn new() -> Self {
        // The standard library takes its keys from the operating system. A model must be
        // repeatable, so it uses constants.
        let random = |number: u64| match cfg!(loom) {
            true => number,
            false => RandomState::new().hash_one(number),
        };
        Self {
            shared: SharedSeed::from_u64(random(1)),
            own: random(2),
        }
    }

    #[inline]
    fn hash(&self, number: u64) -> u64 {
        let mut hasher = FoldHasher::with_seed(self.own, &self.shared);
        hasher.write_u64(number);
        hasher.finish()
    }
}

/// Maps numbers to cells, which are created when named and forgotten when idle.
pub(crate) struct Table {
    keys: Keys,
    shards: Box<[Mutex<TableShard>]>,
}

#[derive(Default)]
struct TableShard {
    cells: HashTable<Entry>,
    /// The bucket at which the next step of the walk begins.
    next: usize,
    /// Progress towards the next step of the walk: 1 for each look-up of a known color, more for a
    /// new one.
    due: u32,
}

/// The table's handle to a color.
struct Entry {
    number: u64,
    cell: NonNull<ColorCell>,
}

// SAFETY: the cell's rules allow sharing it between OS threads.
unsafe impl Send for TableShard {}

impl Table {
    pub(crate) fn new() -> Self {
        Self {
            keys: Keys::new(),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
        }
    }

    fn shard(&self, hash: u64) -> &Mutex<TableShard> {
        // These are bits that the map uses neither for buckets (up to about 16 million in a shard)
        // nor for tags.
        &self.shards[(hash >> 40) as usize & (SHARDS - 1)]
    }

    /// Calls `f` with the cell of a color, creating it if necessary. The shard's lock is held
    /// during the call and keeps the cell alive. In the lock order it comes before the sleepers'
    /// locks.
    pub(crate) fn with<R>(
        &self,
        shared: &Arc<Shared>,
        color: Color,
        f: impl FnOnce(NonNull<ColorCell>) -> R,
    ) -> R {
        shared.drop_later(|| self.with_locked(shared, color, f))
    }

    fn with_locked<R>(
        &self,
        shared: &Arc<Shared>,
        color: Color,
        f: impl FnOnce(NonNull<ColorCell>) -> R,
    ) -> R {
        let hash = self.keys.hash(color.0);
        let mut shard = self.shard(hash).lock();
        if let Some(&Entry { cell, .. }) = shard.cells.find(hash, |entry| entry.number == color.0) {
            let result = f(cell);
            shard.named(1, &self.keys);
            return result;
        }
        shard.named(WALK_EVERY_KNOWN / WALK_EVERY_NEW, &self.keys);
        let number = color.0;
        let cell = new_cell(shared, color);
        shard
            .cells
            .insert_unique(hash, Entry { number, cell }, |entry| {
                self.keys.hash(entry.number)
            });
        f(cell)
    }

    /// Returns a reference to the color, through which later posts skip the table.
    pub(crate) fn get(&self, shared: &Arc<Shared>, color: Color) -> ColorRef {
        self.with(shared, color, |cell| {
            // SAFETY: the lock keeps the cell alive; the new handle becomes the reference's.
            unsafe {
                cell.as_ref().retain();
                ColorRef::from_cell(cell, shared.clone())
            }
        })
    }

    /// Forgets a color if it is idle, has no references, and its shard is above `IDLE_MAX`.
    pub(super) fn forget(&self, color: Color) {
        let hash = self.keys.hash(color.0);
        let mut shard = self.shard(hash).lock();
        if shard.cells.len() <= IDLE_MAX {
            return;
        }
        if let Ok(entry) = shard
            .cells
            .find_entry(hash, |entry| entry.number == color.0)
            && entry.get().is_unused()
        {
            entry.remove().0.release();
            shard.shrink(&self.keys);
        }
    }

    /// Returns the number of remembered colors.
    pub(crate) fn len(&self) -> usize {
        self.shards
            .iter()
            .map(|shard| shard.lock().cells.len())
            .sum()
    }

    /// Releases the table's handles when the runtime ends.
    pub(crate) fn clear(&self) {
        for shard in &self.shards {
            let cells = std::mem::take(&mut shard.lock().cells);
            cells.into_iter().for_each(Entry::release);
        }
    }
}

impl TableShard {
    #[inline]
    fn named(&mut self, due: u32, keys: &Keys) {
        self.due += due;
        if self.due >= WALK_EVERY_KNOWN {
            self.due = 0;
            self.walk(keys);
        }
    }

    /// Visits the next buckets and forgets unused colors.
    #[cold]
    fn walk(&mut self, keys: &Keys) {
        let buckets = self.cells.num_buckets();
        for _ in 0..WALK.min(buckets) {
            if self.cells.len() <= IDLE_MAX {
                break;
            }
            self.next = (self.next + 1) & (buckets - 1);
            if let Ok(entry) = self.cells.get_bucket_entry(self.next)
                && entry.get().is_unused()
            {
                entry.remove().0.release();
            }
        }
        self.shrink(keys);
    }

    fn shrink(&mut self, keys: &Keys) {
        let used = self.cells.len() + IDLE_MAX;
        if self.cells.num_buckets() > 5 * used {
            self.cells
                .shrink_to(2 * used, |entry| keys.hash(entry.number));
        }
    }
}

impl Entry {
    /// Returns whether the color is idle and only the table refers to it. The caller holds the
    /// shard's lock, without which no further handle or post can be made.
    fn is_unused(&self) -> bool {
        // SAFETY: the table's handle keeps the cell alive.
        let cell = unsafe { self.cell.as_ref() };
        cell.handles() == 1 && cell.is_idle()
    }

    fn release(self) {
        // SAFETY: this gives up the table's own handle.
        unsafe { ColorCell::release(self.cell) };
    }
}

/// A cell on its own, aligned like the one in a `Colored`.
#[repr(C, align(64))]
struct Aligned(ColorCell);

fn new_cell(shared: &Arc<Shared>, color: Color) -> NonNull<ColorCell> {
    let name = ColorName::Number(color);
    let cell = Box::new(Aligned(ColorCell::new(shared, name, destroy)));
    NonNull::from(Box::leak(cell)).cast()
}

unsafe fn destroy(cell: NonNull<ColorCell>) {
    // SAFETY: the cell came from `new_cell`, and no handle to it is left.
    drop(unsafe { Box::from_raw(cell.cast::<Aligned>().as_ptr()) });
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Returns numbers that share a shard and the low bits of their bucket in a table.
    fn colliding(keys: &Keys) -> Vec<u64> {
        let hit = |number: &u64| keys.hash(*number) & (63 << 40 | 63) == 0;
        let most = if cfg!(miri) { 3 } else { 1_000 };
        (0..).filter(hit).take(most).collect()
    }

    #[test]
    fn numbers_that_meet_in_one_table_do_not_in_another() {
        let numbers = colliding(&Keys::new());
        let met = colliding(&Keys::new());
        let both = numbers.iter().filter(|n| met.contains(n)).count();
        assert!(
            both <= 10,
            "{both} of {} numbers meet in both tables",
            numbers.len()
        );
    }

    #[test]
    fn numbers_in_a_row_are_spread_over_the_shards() {
        let keys = Keys::new();
        let table = Table::new();
        let mut shards = [0; SHARDS];
        for number in 0..64_000 {
            let shard: *const _ = table.shard(keys.hash(number << 12));
            let place = (0..SHARDS).find(|place| std::ptr::eq(&table.shards[*place], shard));
            shards[place.expect("a shard of the table")] += 1;
        }
        assert!(
            shards.iter().all(|count| (700..1_300).contains(count)),
            "{shards:?}"
        );
    }
}
