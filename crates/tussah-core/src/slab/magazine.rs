//! The magazines of a worker: free slots that it hands out and takes back without a lock.
//!
//! The design follows Bonwick and Adams, *Magazines and Vmem* (USENIX 2001), section 3. There are
//! two magazines per class, the loaded magazine and a full one behind it, so no sequence of
//! allocations and frees can make every operation go to the depot. There are two differences. A
//! magazine is a list through the slots, which needs no separate memory. The depot puts slots back
//! into their spans, so that spans become empty.

use super::class::{CLASSES, batch_slots, class_of};
use super::span::{Link, link, set_link};
use super::{KINDS, Kind, Slab, debug_check_free};
use crate::prefetch;
use std::alloc::Layout;
use std::cell::Cell;
use std::ptr::NonNull;

/// Workers end before their slab closes, or the slab is never closed.
pub(super) const OPEN: &str = "a slab is open while magazines are in use";

/// The magazines of one worker, for all kinds and classes.
///
/// Dropping the magazines leaves their slots unused until their slab is dropped, too. So a worker
/// that is ending first calls [`Magazines::flush_all`].
pub(crate) struct Magazines {
    bins: [[Bin; CLASSES]; KINDS],
}

/// The two magazines of a class.
struct Bin {
    /// The loaded magazine, last freed slot first.
    loaded: Cell<Link>,
    /// A magazine of exactly `batch_slots` slots, or none.
    full: Cell<Link>,
    /// The free capacity of the loaded magazine: `batch_slots` minus its length.
    room: Cell<u32>,
}

// SAFETY: its slots are free and belong to it alone, and nothing is tied to an OS thread. The cells
// keep it from being `Sync`.
unsafe impl Send for Magazines {}

impl Magazines {
    /// Creates empty magazines.
    pub(crate) fn new() -> Self {
        let bin = |class| Bin {
            loaded: Cell::new(None),
            full: Cell::new(None),
            room: Cell::new(batch_slots(class)),
        };
        Self {
            bins: std::array::from_fn(|_| std::array::from_fn(bin)),
        }
    }

    /// Allocates memory for an object. For [`Kind::Thread`], see the rules at [`Slab`].
    ///
    /// # Safety
    /// `slab` must be the same slab for the whole life of these magazines.
    #[inline]
    pub(crate) unsafe fn alloc(&self, slab: &Slab, kind: Kind, layout: Layout) -> NonNull<u8> {
        let Some(class) = class_of(kind, layout) else {
            // SAFETY: a single object has no further conditions.
            return unsafe { slab.alloc(kind, layout) };
        };
        let bin = &self.bins[kind as usize][class];
        let Some(slot) = bin.loaded.get() else {
            return bin.refill(slab, kind, class);
        };
        // SAFETY: slots in a magazine are free and linked, and belong to it.
        let next = unsafe { link(slot) };
        // Another OS thread may have freed it.
        prefetch::line(next.map_or(std::ptr::null(), |next| next.as_ptr().cast_const()));
        bin.loaded.set(next);
        bin.room.set(bin.room.get() + 1);
        slot
    }

    /// Frees the memory of an object.
    ///
    /// # Safety
    /// Same as for [`Slab::free`]; also, `slab` must be the same slab for the whole life of these
    /// magazines.
    #[inline]
    pub(crate) unsafe fn free(&self, slab: &Slab, kind: Kind, slot: NonNull<u8>, layout: Layout) {
        let Some(class) = class_of(kind, layout) else {
            // SAFETY: by contract.
            let last = unsafe { Slab::free(slab, kind, slot, layout) };
            return debug_assert!(!last, "{OPEN}");
        };
        // SAFETY: by contract.
        unsafe { debug_check_free(kind, slot, layout) };
        let bin = &self.bins[kind as usize][class];
        if bin.room.get() == 0 {
            bin.make_room(slab, kind, class);
        }
        // SAFETY: the caller gives the slot to this magazine.
        unsafe { set_link(slot, bin.loaded.get()) };
        bin.loaded.set(Some(slot));
        bin.room.set(bin.room.get() - 1);
    }

    /// Returns all slots to the depot.
    ///
    /// # Safety
    /// `slab` must be the same slab for the whole life of these magazines.
    pub(crate) unsafe fn flush_all(&self, slab: &Slab) {
        for (kind, bins) in [Kind::Event, Kind::Thread].into_iter().zip(&self.bins) {
            for (class, bin) in bins.iter().enumerate() {
                // SAFETY: slots in a magazine are free and linked, belong to it, and came from
                // `slab`.
                unsafe {
                    let last = Slab::give(slab, kind, bin.loaded.take())
                        | Slab::give(slab, kind, bin.full.take());
                    debug_assert!(!last, "{OPEN}");
                }
                bin.room.set(batch_slots(class));
            }
        }
        slab.empty_full();
    }

    /// Returns the number of slots of a class in these magazines.
    #[cfg(all(test, not(loom)))]
    pub(super) fn len(&self, kind: Kind, class: usize) -> u32 {
        let bin = &self.bins[kind as usize][class];
        let len = |mut at: Link| {
            let mut len = 0;
            while let Some(slot) = at {
                // SAFETY: slots in a magazine are free and linked, and belong to it.
                at = unsafe { link(slot) };
                len += 1;
            }
            len
        };
        let loaded = len(bin.loaded.get());
        assert_eq!(loaded + bin.room.get(), batch_slots(class));
        loaded + len(bin.full.get())
    }
}

impl Bin {
    /// Loads the full magazine, or a magazine from the depot, and takes a slot out of it.
    #[cold]
    #[inline(never)]
    fn refill(&self, slab: &Slab, kind: Kind, class: usize) -> NonNull<u8> {
        let batch = batch_slots(class);
        let (head, len) = match self.full.take() {
            Some(head) => (Some(head), batch),
            None => slab.take(kind, class, batch),
        };
        let slot = head.expect("neither a full magazine nor a chain from the depot is empty");
        // SAFETY: the slot is free and linked, and belongs to this magazine.
        self.loaded.set(unsafe { link(slot) });
        self.room.set(batch - (len - 1));
        slot
    }

    /// Turns the loaded magazine, which is full, into the second one, and returns the previous
    /// second one to the depot.
    #[cold]
    #[inline(never)]
    fn make_room(&self, slab: &Slab, kind: Kind, class: usize) {
        if let Some(full) = self.full.replace(self.loaded.take()) {
            // SAFETY: slots in a magazine are free and linked, belong to it, and came from `slab`.
            unsafe { slab.give_full(kind, class, full) };
        }
        self.room.set(batch_slots(class));
    }
}
