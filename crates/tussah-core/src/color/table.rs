//! The table of colors that are given by number.
//!
//! # What it costs, whichever numbers are chosen
//!
//! Numbers may come from outside (the number of a connection, a hash of a name), so they are hashed with keys that each table
//! draws for itself: nobody can choose numbers that meet in one shard or in one run of buckets.
//!
//! # Which colors it remembers
//!
//! Those that somebody refers to, those that have events, and of the others few:
//!
//! - Up to `IDLE_MAX` colors of a shard are all remembered.
//! - Beyond, dropping the last reference to an idle color forgets it there and then ([`Table::forget`]).
//! - A color that was busy then, or was only posted to, is found by a walk around each shard. It looks at `WALK` buckets after
//!   every `WALK_EVERY_NEW` colors that are new to the shard, or `WALK_EVERY_KNOWN` that are not.
//!
//! So in a map of `b` buckets the walk gets around within `b / 4` new colors. The map moves its items about when it runs out of
//! free buckets, and has at least `b * 7 / 16` of these afterwards: if that happens while the walk gets around, it does so
//! undisturbed the next time. Hence a color that is idle, and stays so, is forgotten within `b / 2` new colors of its shard, or
//! 256 times as many look-ups of known ones; or else the map has shrunk meanwhile, and so half of its colors are forgotten. It
//! shrinks when `b` is more than five times (colors remembered + `IDLE_MAX`).

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

/// Locks of the table: enough that posters rarely meet at one.
const SHARDS: usize = 64;

/// Bound, in colors of a shard: as many are remembered without being in use, since naming a color again costs less than
/// making it.
const IDLE_MAX: usize = 64;

/// Buckets that the walk looks at in one go.
const WALK: usize = 128;

/// New colors of a shard for each such go: the walk has to get around well before the map is full again.
const WALK_EVERY_NEW: u32 = 32;

/// Look-ups of known colors for each such go: a service that names no new colors forgets the old ones, too.
const WALK_EVERY_KNOWN: u32 = 8192;

/// What numbers are hashed with. No security rests on the function itself, only on its keys being unknown.
struct Keys {
    shared: SharedSeed,
    own: u64,
}

impl Keys {
    fn new() -> Self {
        // The standard library has them from the operating system. A model has to do the same each time.
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

/// Cells by number, created when named and forgotten when idle.
pub(crate) struct Table {
    keys: Keys,
    shards: Box<[Mutex<TableShard>]>,
}

#[derive(Default)]
struct TableShard {
    cells: HashTable<Entry>,
    /// The bucket that the walk looks at next.
    next: usize,
    /// How near the walk's next go is: look-ups of known colors, or as many for each new one.
    due: u32,
}

/// The handle that the table has to a color.
struct Entry {
    number: u64,
    cell: NonNull<ColorCell>,
}

// SAFETY: cells are shared between OS threads by their own rules.
unsafe impl Send for TableShard {}

impl Table {
    pub(crate) fn new() -> Self {
        Self {
            keys: Keys::new(),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
        }
    }

    fn shard(&self, hash: u64) -> &Mutex<TableShard> {
        // Bits that the map itself uses for neither buckets, up to some 16 million in a shard, nor tags.
        &self.shards[(hash >> 40) as usize & (SHARDS - 1)]
    }

    /// Calls `f` with the cell of a color, which is made if there is none. The lock of a shard is held meanwhile: it
    /// keeps the cell alive, and comes before those of the sleepers.
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

    /// A reference that skips the table from now on.
    pub(crate) fn get(&self, shared: &Arc<Shared>, color: Color) -> ColorRef {
        self.with(shared, color, |cell| {
            // SAFETY: the lock keeps the cell alive; the handle that is added becomes the reference's.
            unsafe {
                cell.as_ref().retain();
                ColorRef::from_cell(cell, shared.clone())
            }
        })
    }

    /// Forgets a color that is idle and that nobody refers to.
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

    /// Colors that are remembered.
    pub(crate) fn len(&self) -> usize {
        self.shards
            .iter()
            .map(|shard| shard.lock().cells.len())
            .sum()
    }

    /// Gives the table's handles back, at the end of the runtime.
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

    /// Looks at the next buckets, and forgets colors that are idle and that nobody else refers to.
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
    /// Whether the color is idle and nobody but the table refers to it. The caller has the shard's lock, without which nobody
    /// can get a further handle, or post.
    fn is_unused(&self) -> bool {
        // SAFETY: the table's handle keeps the cell alive.
        let cell = unsafe { self.cell.as_ref() };
        cell.handles() == 1 && cell.is_idle()
    }

    fn release(self) {
        // SAFETY: the table's handle ends here.
        unsafe { ColorCell::release(self.cell) };
    }
}

/// A cell by itself, aligned like that of a `Colored`.
#[repr(C, align(64))]
struct Aligned(ColorCell);

fn new_cell(shared: &Arc<Shared>, color: Color) -> NonNull<ColorCell> {
    let name = ColorName::Number(color);
    let cell = Box::new(Aligned(ColorCell::new(shared, name, destroy)));
    NonNull::from(Box::leak(cell)).cast()
}

unsafe fn destroy(cell: NonNull<ColorCell>) {
    // SAFETY: the cell came from `new_cell`, and nobody refers to it any more.
    drop(unsafe { Box::from_raw(cell.cast::<Aligned>().as_ptr()) });
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Numbers that share a shard and the first bits of their bucket in a table.
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
