//! The slots of all descriptors of a runtime.

use std::sync::OnceLock;

use parking_lot::Mutex;
use rustix::event::epoll::EventFlags;

use super::slot::{CLOSED, FULL, HALF, Late, READ, Slot, WRITE};
use crate::loom::atomic::{AtomicBool, AtomicU32, Ordering};
use crate::prefetch;

/// The number of slots in each of the first chunks.
const FIRST: u32 = 64;

/// The number of chunks of each size. The chunks after them are twice as large, so at most an
/// eighth of the slots is unused.
const STEPS: u32 = 8;

/// The maximum number of chunks. They hold 2^26 slots, more than the descriptors that the system
/// gives to a process (`fs.nr_open` is 2^20).
const CHUNKS_MAX: usize = 136;

/// The table of slots. Slots are never freed, only reused: the table keeps as many as the largest
/// number of simultaneous descriptors.
pub(crate) struct Sources {
    chunks: [OnceLock<Box<[Slot]>>; CHUNKS_MAX],
    /// All slots below this number have been given out at some time.
    used: AtomicU32,
    free: Mutex<Vec<u32>>,
    closed: AtomicBool,
}

impl Sources {
    pub(crate) fn new() -> Self {
        Self {
            chunks: [const { OnceLock::new() }; CHUNKS_MAX],
            used: AtomicU32::new(0),
            free: Mutex::new(Vec::new()),
            closed: AtomicBool::new(false),
        }
    }

    /// Takes a slot for a new descriptor. The slot stays at its address as long as the table
    /// exists.
    pub(super) fn take(&self) -> &Slot {
        let mut free = self.free.lock();
        let index = free.pop().unwrap_or_else(|| {
            // This happens under the lock, so chunks are made one after the other.
            let index = self.used.load(Ordering::Relaxed);
            let (chunk, _) = place_of(index);
            // The first slot of a chunk makes the chunk.
            let indices = index..index + size_of_chunk(chunk);
            self.chunks[chunk].get_or_init(|| indices.map(Slot::new).collect());
            self.used.store(index + 1, Ordering::Release);
            index
        });
        drop(free);
        self.slot(index)
    }

    /// Returns a slot that was reset.
    pub(super) fn give_back(&self, index: u32) {
        self.free.lock().push(index);
    }

    #[inline]
    fn slot(&self, index: u32) -> &Slot {
        let (chunk, at) = place_of(index);
        let chunk = self.chunks[chunk].get();
        &chunk.expect("the index was given out")[at]
    }

    /// Prefetches the slot of a token.
    #[inline]
    pub(super) fn prefetch(&self, token: u64) {
        prefetch::line(self.slot(token as u32));
    }

    /// Records a report of a driver. Returns the number of wakers of earlier reports that `late`
    /// called during this call.
    pub(crate) fn report(&self, token: u64, events: EventFlags, late: &mut Late) -> usize {
        let (generation, index) = ((token >> 32) as u32, token as u32);
        let mut flags = 0;
        let gone = EventFlags::HUP | EventFlags::ERR;
        if events.intersects(EventFlags::IN | EventFlags::RDHUP | EventFlags::PRI | gone) {
            flags |= READ;
        }
        if events.intersects(EventFlags::OUT | gone) {
            flags |= WRITE;
        }
        // A read comes short at the mark of urgent data, although more data follows.
        if events.intersects(EventFlags::RDHUP | EventFlags::PRI | gone) {
            flags |= CLOSED;
        }
        if events.contains(EventFlags::RDHUP) {
            flags |= HALF;
        }
        if events.intersects(gone) {
            flags |= FULL;
        }
        late.push(self.slot(index).report(generation, flags))
    }

    /// Wakes all waiters, and refuses new ones, because no driver will report anything from now on.
    pub(crate) fn close(&self) {
        // Pairs with `is_closed`, which runs under a slot's lock: the loop below finds every waiter
        // that was stored earlier.
        self.closed.store(true, Ordering::Release);
        // Slots are given out under this lock: the user of any slot given out later sees that the
        // table is closed.
        let used = {
            let _free = self.free.lock();
            self.used.load(Ordering::Acquire)
        };
        for index in 0..used {
            let slot = self.slot(index);
            let generation = slot.lock().generation;
            slot.report(generation, READ | WRITE | CLOSED).wake();
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }
}

/// Returns the chunk of a slot, and its index in the chunk.
fn place_of(index: u32) -> (usize, usize) {
    // After this shift, the chunks of one size begin at a power of two.
    let first = FIRST * STEPS;
    let above = index + first;
    let level = above.ilog2() - first.ilog2();
    let at = above - (first << level);
    // The number of slots in each chunk is this power of two.
    let bits = FIRST.ilog2() + level;
    let (chunk, place) = (level * STEPS + (at >> bits), at & ((1 << bits) - 1));
    (chunk as usize, place as usize)
}

fn size_of_chunk(chunk: usize) -> u32 {
    FIRST << (chunk as u32 / STEPS)
}

/// Returns the token that a driver reports for a descriptor.
pub(super) fn token(generation: u32, index: u32) -> u64 {
    u64::from(generation) << 32 | u64::from(index)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::driver::slot::Direction;

    #[test]
    fn a_report_of_each_kind_sets_its_flags() {
        let check = |events: EventFlags, expected: u32| {
            let sources = Sources::new();
            let slot = sources.take();
            // The descriptor is registered, and is ready in neither direction.
            slot.lock().home = 1;
            for direction in [Direction::Read, Direction::Write] {
                slot.exhausted(direction, slot.seen());
            }
            sources.report(token(0, slot.index), events, &mut Late::new());
            for flag in [READ, WRITE, CLOSED, HALF, FULL] {
                let is_set = slot.seen().has(flag);
                assert_eq!(is_set, expected & flag != 0, "{events:?}, flag {flag}");
            }
        };
        check(EventFlags::IN, READ);
        check(EventFlags::OUT, WRITE);
        check(EventFlags::IN | EventFlags::OUT, READ | WRITE);
        check(EventFlags::PRI, READ | CLOSED);
        check(EventFlags::RDHUP, READ | CLOSED | HALF);
        check(EventFlags::HUP, READ | WRITE | CLOSED | FULL);
        check(EventFlags::ERR, READ | WRITE | CLOSED | FULL);
    }

    #[test]
    fn slots_lie_one_after_the_other() {
        let mut index = 0;
        for chunk in 0..CHUNKS_MAX {
            let size = size_of_chunk(chunk);
            assert_eq!(place_of(index), (chunk, 0));
            index += size;
            assert_eq!(place_of(index - 1), (chunk, size as usize - 1));
        }
        assert_eq!(index, (1 << 26) - FIRST * STEPS);
    }
}
