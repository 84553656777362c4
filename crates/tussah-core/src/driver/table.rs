//! The slots of all descriptors of a runtime.

use std::sync::OnceLock;

use parking_lot::Mutex;
use rustix::event::epoll::EventFlags;

use super::slot::{CLOSED, Late, READ, Slot, WRITE};
use crate::loom::atomic::{AtomicBool, AtomicU32, Ordering};
use crate::prefetch;

/// Slots of each of the first chunks.
const FIRST: u32 = 64;

/// Chunks of one size; the next ones are twice as large, so that an eighth of the slots is unused at most.
const STEPS: u32 = 8;

/// Bound, in chunks: 2^26 slots, more than the system gives descriptors to a process (`fs.nr_open` is 2^20).
const CHUNKS_MAX: usize = 136;

/// Slots are never freed, only used again: as many are kept as there were descriptors at one time.
pub(crate) struct Sources {
    chunks: [OnceLock<Box<[Slot]>>; CHUNKS_MAX],
    /// Slots below this number were given out at some time.
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

    /// A slot for a new descriptor. It stays where it is as long as the table.
    pub(super) fn take(&self) -> &Slot {
        let mut free = self.free.lock();
        let index = free.pop().unwrap_or_else(|| {
            // Under the lock: chunks are made one after the other.
            let index = self.used.load(Ordering::Relaxed);
            let (chunk, _) = place_of(index);
            // The first one of a chunk makes it.
            let indices = index..index + size_of_chunk(chunk);
            self.chunks[chunk].get_or_init(|| indices.map(Slot::new).collect());
            self.used.store(index + 1, Ordering::Release);
            index
        });
        drop(free);
        self.slot(index)
    }

    /// Gives a slot back that was reset.
    pub(super) fn give_back(&self, index: u32) {
        self.free.lock().push(index);
    }

    #[inline]
    fn slot(&self, index: u32) -> &Slot {
        let (chunk, at) = place_of(index);
        let chunk = self.chunks[chunk].get();
        &chunk.expect("the index was given out")[at]
    }

    /// Asks for the slot of a token.
    #[inline]
    pub(super) fn prefetch(&self, token: u64) {
        prefetch::line(self.slot(token as u32));
    }

    /// Takes in what a driver reported; says how many `late` has woken meanwhile.
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
        // A reading stops short at the mark of urgent data, and there is more behind it.
        if events.intersects(EventFlags::RDHUP | EventFlags::PRI | gone) {
            flags |= CLOSED;
        }
        late.push(self.slot(index).report(generation, flags))
    }

    /// No driver will report anything any more: who waits is woken, and nobody waits again.
    pub(crate) fn close(&self) {
        // Pairs with `is_closed`, which is asked under a slot's lock: who took its place before that is found there.
        self.closed.store(true, Ordering::Release);
        // With the lock, under which slots are given out: one that is given out after this is used by who sees that we closed.
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

/// The chunk of a slot, and its place there.
fn place_of(index: u32) -> (usize, usize) {
    // The chunks of one size together begin at the same distance from their end: with this many more before them.
    let first = FIRST * STEPS;
    let above = index + first;
    let level = above.ilog2() - first.ilog2();
    let at = above - (first << level);
    // A chunk has this power of two slots.
    let bits = FIRST.ilog2() + level;
    let (chunk, place) = (level * STEPS + (at >> bits), at & ((1 << bits) - 1));
    (chunk as usize, place as usize)
}

fn size_of_chunk(chunk: usize) -> u32 {
    FIRST << (chunk as u32 / STEPS)
}

/// What a driver reports for a descriptor.
pub(super) fn token(generation: u32, index: u32) -> u64 {
    u64::from(generation) << 32 | u64::from(index)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

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
