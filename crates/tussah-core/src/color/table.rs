//! The table of colors that are given by number.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ptr::NonNull;
use std::sync::Arc;

use parking_lot::Mutex;

use super::cell::ColorCell;
use super::{Color, ColorName, ColorRef};
use crate::runtime::Shared;

/// Locks of the table: enough that posters rarely meet at one.
const SHARDS: usize = 64;

/// A shard is swept when it holds twice the colors that the last sweep left, and this many more.
const SWEEP_SLACK: usize = 64;

/// Mixes a number once: user's colors are often small or aligned (the finaliser of MurmurHash3, Appleby).
#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {
        unreachable!("colors hash as one u64");
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = mix(value);
    }
}

fn mix(value: u64) -> u64 {
    let mut x = value ^ (value >> 33);
    x = x.wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    x ^= x >> 33;
    x = x.wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    x ^ (x >> 33)
}

/// Cells by number, created when named and forgotten when idle.
pub(crate) struct Table {
    shards: Box<[Mutex<TableShard>]>,
}

#[derive(Default)]
struct TableShard {
    /// Each cell carries one handle, which is the table's.
    cells: HashMap<u64, NonNull<ColorCell>, BuildHasherDefault<Mix>>,
    /// The number of cells at which the next sweep is due.
    sweep_at: usize,
}

// SAFETY: cells are shared between OS threads by their own rules.
unsafe impl Send for TableShard {}

impl Table {
    pub(crate) fn new() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
        }
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
        let mut shard = self.shards[(mix(color.0) >> 40) as usize & (SHARDS - 1)].lock();
        if let Some(&cell) = shard.cells.get(&color.0) {
            return f(cell);
        }
        if shard.cells.len() >= shard.sweep_at {
            shard.sweep();
        }
        let cell = new_cell(shared, color);
        shard.cells.insert(color.0, cell);
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
            for cell in cells.into_values() {
                // SAFETY: the table's handle ends here.
                unsafe { ColorCell::release(cell) }
            }
        }
    }
}

impl TableShard {
    /// Forgets colors that are idle and that nobody else refers to.
    fn sweep(&mut self) {
        self.cells.retain(|_, cell| {
            // SAFETY: the table's handle keeps the cell alive. Nobody can get a further handle while we hold the lock.
            let this = unsafe { cell.as_ref() };
            let keep = this.handles() > 1 || !this.is_idle();
            if !keep {
                // SAFETY: the table's handle ends with the entry.
                unsafe { ColorCell::release(*cell) }
            }
            keep
        });
        if self.cells.capacity() > 4 * (self.cells.len() + SWEEP_SLACK) {
            self.cells.shrink_to_fit();
        }
        self.sweep_at = 2 * self.cells.len() + SWEEP_SLACK;
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
