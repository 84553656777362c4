//! The size classes of the slab, which map the layout of an object to a slot.

use super::Kind;
use std::alloc::Layout;

/// The number of classes: 64 steps of 8 bytes and 8 steps in each of the 5 doublings from 512 bytes
/// to 16 KiB.
pub(super) const CLASSES: usize = SMALL_CLASSES + 5 * STEPS;

/// The largest slot, a quarter of a span, so that a span holds at least three slots beside its
/// header.
pub(super) const SLOT_BYTES_MAX: usize = 16 * 1024;

/// The largest alignment of a slot, a cache line. A larger alignment is so rare that the object
/// gets its own span. The first slot of a span has this alignment, and so do all slots whose size
/// is a multiple of it.
pub(super) const SLOT_ALIGN_MAX: usize = 64;

/// The maximum number of slots of a batch. The cost of the depot's lock is spread over this many
/// allocations, so that each pays less than a nanosecond.
const BATCH_SLOTS_MAX: usize = 64;

/// The minimum number of slots of a batch. A pair of large objects does not take the lock twice.
const BATCH_SLOTS_MIN: usize = 2;

/// The memory, in bytes, that one batch may withhold from other workers: half of an L1 cache.
const BATCH_BYTES: usize = 16 * 1024;

const SMALL_BYTES_MAX: usize = 512;
const SMALL_CLASSES: usize = SMALL_BYTES_MAX / 8;
/// The number of classes for each doubling above the small classes: steps of 12.5 % at its
/// beginning.
const STEPS: usize = 8;

/// Returns the class whose slots fit `layout`, or `None` if the object needs its own span.
///
/// The result is a constant if the layout is one.
#[inline]
pub(super) const fn class_of(kind: Kind, layout: Layout) -> Option<usize> {
    let align = if layout.align() < 8 {
        8
    } else {
        layout.align()
    };
    if align > SLOT_ALIGN_MAX || layout.size() > SLOT_BYTES_MAX {
        return None;
    }
    let least = kind.slot_bytes_min();
    let size = if layout.size() < least {
        least
    } else {
        layout.size()
    };
    let size = (size + align - 1) & !(align - 1);
    if size <= SMALL_BYTES_MAX {
        return Some(size / 8 - 1);
    }
    let log = (size - 1).ilog2() as usize;
    let doubling = log - SMALL_BYTES_MAX.ilog2() as usize;
    let step = ((size - 1) >> (log - 3)) - STEPS;
    Some(SMALL_CLASSES + doubling * STEPS + step)
}

/// Returns the size of the slots of `class`, in bytes.
pub(super) const fn slot_bytes(class: usize) -> usize {
    if class < SMALL_CLASSES {
        return (class + 1) * 8;
    }
    let doubling = (class - SMALL_CLASSES) / STEPS;
    let step = (class - SMALL_CLASSES) % STEPS;
    (STEPS + step + 1) << (SMALL_BYTES_MAX.ilog2() as usize - 3 + doubling)
}

/// Returns the number of slots of `class` that move between a magazine and the depot at a time.
pub(super) const fn batch_slots(class: usize) -> u32 {
    let fit = BATCH_BYTES / slot_bytes(class);
    if fit > BATCH_SLOTS_MAX {
        BATCH_SLOTS_MAX as u32
    } else if fit < BATCH_SLOTS_MIN {
        BATCH_SLOTS_MIN as u32
    } else {
        fit as u32
    }
}
