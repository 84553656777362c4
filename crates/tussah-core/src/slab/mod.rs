//! The slab: memory for events and threads.
//!
//! Three layers, each in a file. *Spans* are aligned blocks cut into slots of one size; masking the
//! address of an object leads to the header of its span, and so to its owner. The *depot* knows
//! which spans have free slots, and gives spans that became empty back to the global allocator.
//! *Magazines* let a worker allocate and free without a lock; a lock is taken once per batch.
//!
//! An object may be freed by any OS thread, through its own magazines or through the slab, whoever
//! allocated it.
//!
//! The locks are leaves of the lock order: nothing but the global allocator and the visitor of
//! [`Slab::for_each_task_slot`] is called under one. They and the atomics are those of the standard
//! build even under loom: slots are raw memory, in which loom's types cannot live, so the slab is
//! not modelled and its tests run under Miri instead.

mod class;
mod depot;
mod list;
mod magazine;
mod region;
mod span;
#[cfg(all(test, not(loom)))]
mod tests;

pub(crate) use magazine::Magazines;

use class::class_of;
use depot::{Dead, Depot};
use parking_lot::Mutex;
use span::{DEDICATED, Link, Span, set_link, span_of, state_of};
use std::alloc::Layout;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Where in a task slot its state word is, in bytes.
pub(crate) const TASK_STATE_OFFSET: usize = 16;

const KINDS: usize = 2;

/// What a slot is for. Kinds never share a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// A node of an event.
    Event = 0,
    /// A thread; its memory is type-stable, see [`Slab`].
    Task = 1,
}

impl Kind {
    /// The smallest slot of this kind, in bytes: room for the link, and for the state word of a
    /// task.
    const fn slot_bytes_min(self) -> usize {
        match self {
            Kind::Event => 8,
            Kind::Task => TASK_STATE_OFFSET + 8,
        }
    }
}

/// How much memory a slab has from the global allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlabStats {
    /// Spans, dedicated and empty ones included.
    pub(crate) spans: usize,
    /// Their size, in bytes. Pages that were never touched count too.
    pub(crate) bytes: usize,
}

/// An allocator of small objects, one per runtime.
///
/// # Task slots
/// A task slot keeps its meaning while it is free, so that [`Slab::for_each_task_slot`] can look at
/// slots whose life it knows nothing about:
///
/// - Bytes 16 to 24 are an `AtomicU64`, the state word. Zero means free. The slab zeroes it when
///   the slot is carved and never writes it again, so it is zero in a slot that was just allocated.
/// - Whoever has the slot in use accesses the state word atomically only (so does not write a
///   struct over it), makes it nonzero last when setting the slot up, and zero before freeing it.
/// - The slab itself writes bytes 0 to 8 of a free slot and nothing else.
///
/// # Dropping
/// Dropping a slab frees its spans, whether or not objects live in them. An owner that cannot tell
/// that all objects are gone keeps the slab in a `ManuallyDrop`.
pub(crate) struct Slab {
    owner: AtomicPtr<()>,
    /// After `close`: objects that are still in use, and one more while `close` runs.
    left: AtomicUsize,
    depots: [Mutex<Depot>; KINDS],
}

impl Slab {
    /// A slab without spans.
    pub(crate) const fn new() -> Self {
        Self {
            owner: AtomicPtr::new(null_mut()),
            left: AtomicUsize::new(0),
            depots: [
                Mutex::new(Depot::new(Kind::Event)),
                Mutex::new(Depot::new(Kind::Task)),
            ],
        }
    }

    /// Sets what [`owner_of`] returns for the objects of this slab; to be called before the first
    /// allocation.
    pub(crate) fn set_owner(&self, owner: *const ()) {
        debug_assert_eq!(
            self.stats().spans,
            0,
            "the owner is set before the first allocation"
        );
        self.owner.store(owner.cast_mut(), Ordering::Relaxed);
    }

    /// Allocates memory for one object under the lock of its kind. For [`Kind::Task`], see the
    /// rules above.
    ///
    /// # Safety
    /// The memory is used only until it is freed or the slab is dropped, and by the rules of its
    /// kind.
    pub(crate) unsafe fn alloc(&self, kind: Kind, layout: Layout) -> NonNull<u8> {
        match class_of(kind, layout) {
            Some(class) => self
                .take(kind, class, 1)
                .0
                .expect("the depot gives at least one slot"),
            None => self.alloc_dedicated(kind, layout),
        }
    }

    #[cold]
    fn alloc_dedicated(&self, kind: Kind, layout: Layout) -> NonNull<u8> {
        let (span, slot) = Span::new_dedicated(self.owner(), kind, layout);
        let mut depot = self.depots[kind as usize].lock();
        // SAFETY: the span is new and of the kind of the depot.
        unsafe { depot.enter_dedicated(span) };
        self.add_left(&depot, 1);
        slot
    }

    /// Counts what is allocated after `close` by whoever keeps the slab's owner for himself.
    fn add_left(&self, depot: &Depot, objects: usize) {
        if depot.is_closed() {
            self.left.fetch_add(objects, Ordering::Relaxed);
        }
    }

    /// Frees the memory of an object under the lock of its kind.
    ///
    /// # Safety
    /// `slot` is the pointer that [`Slab::alloc`] or [`Magazines::alloc`] returned for this slab,
    /// with its provenance (not one made from a reference to the object), for the same `kind` and
    /// `layout`; nobody uses the object again. The state word of a task is zero.
    ///
    /// True if the slab is closed and this was the last object: then nobody else will use the slab
    /// again.
    pub(crate) unsafe fn free(&self, kind: Kind, slot: NonNull<u8>, layout: Layout) -> bool {
        // SAFETY: the caller gives us the slot, which is carved and mapped.
        unsafe {
            debug_check_free(kind, slot, layout);
            set_link(slot, None);
            self.give(kind, Some(slot))
        }
    }

    /// Begins to count what is still in use, so that whoever frees the last object learns of it
    /// (see [`Slab::free`]). To be called once, when all magazines are flushed. True if nothing is in
    /// use.
    pub(crate) fn close(&self) -> bool {
        // The one more keeps the count from reaching zero before both kinds are in it.
        self.left.fetch_add(1, Ordering::Relaxed);
        for depot in &self.depots {
            let mut depot = depot.lock();
            // Under the lock: what is freed later is subtracted from what is added here.
            self.left.fetch_add(depot.close(), Ordering::Relaxed);
        }
        self.subtract(1)
    }

    /// Subtracts objects from those that are left after `close`; true if none is.
    fn subtract(&self, objects: usize) -> bool {
        // AcqRel: the last one sees all that the others did with the slab. The count may come to zero more than once, as
        // objects can be allocated after `close`; only one of these times is the last, and then it is set far from zero.
        objects > 0
            && self.left.fetch_sub(objects, Ordering::AcqRel) == objects
            && self
                .left
                .compare_exchange(0, usize::MAX / 2, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
    }

    /// Calls `f` with every task slot, in use or free, while no span can be unmapped.
    ///
    /// `f` may access the state word, atomically; it may look at more of a slot, or keep the
    /// pointer, only once it has made sure through that word that the slot is in use and remains
    /// so. It runs under the lock of the task slots: it must not allocate or free through this
    /// slab, nor drop what might.
    pub(crate) fn for_each_task_slot(&self, f: impl FnMut(NonNull<u8>)) {
        self.depots[Kind::Task as usize].lock().for_each_slot(f);
    }

    /// How much memory the slab has from the global allocator.
    pub(crate) fn stats(&self) -> SlabStats {
        let [event, task] = self.depots.each_ref().map(|depot| depot.lock().stats());
        SlabStats {
            spans: event.spans + task.spans,
            bytes: event.bytes + task.bytes,
        }
    }

    fn owner(&self) -> *const () {
        self.owner.load(Ordering::Relaxed)
    }

    /// Takes between one and `want` slots from the depot: a chain and its length.
    fn take(&self, kind: Kind, class: usize, want: u32) -> (Link, u32) {
        let mut depot = self.depots[kind as usize].lock();
        let chain = depot.take(self.owner(), class, want);
        self.add_left(&depot, chain.len as usize);
        (chain.head, chain.len)
    }

    /// Gives a chain of slots back to the depot.
    ///
    /// # Safety
    /// The slots came from this slab for this `kind`, are free, linked, and belong to the caller.
    unsafe fn give(&self, kind: Kind, chain: Link) -> bool {
        if chain.is_none() {
            return false;
        }
        let mut dead = Dead::new();
        // SAFETY: by contract. Dead spans have left the depot and none of their slots is in use, so
        // nobody can reach them; they are unmapped without the lock, as that can be a system call.
        unsafe {
            let counted = self.depots[kind as usize].lock().give(chain, &mut dead);
            dead.unmap_all();
            self.subtract(counted)
        }
    }
}

/// Checks what can be checked of the contract of [`Slab::free`]; nothing in a release build.
///
/// # Safety
/// As for [`Slab::free`].
#[inline]
unsafe fn debug_check_free(kind: Kind, slot: NonNull<u8>, layout: Layout) {
    if cfg!(debug_assertions) {
        // SAFETY: the slot is in use until now, so its span is mapped; class and kind never change.
        let (slot_kind, class) = unsafe { ((*span_of(slot)).kind, (*span_of(slot)).class) };
        assert_eq!(
            slot_kind, kind,
            "an object is freed as the kind it was allocated as"
        );
        let expected = class_of(kind, layout).map_or(DEDICATED, |class| class as u8);
        assert_eq!(
            class, expected,
            "an object is freed with the layout it was allocated with"
        );
        if kind == Kind::Task {
            // SAFETY: a task slot, carved and mapped.
            let state = unsafe { state_of(slot) }.load(Ordering::Relaxed);
            assert_eq!(state, 0, "a task is marked as free before it is freed");
        }
    }
}

/// The owner of the slab that `slot` came from, as set by [`Slab::set_owner`].
///
/// # Safety
/// `slot` is in use and has the provenance with which it was allocated.
#[inline]
pub(crate) unsafe fn owner_of(slot: NonNull<u8>) -> *const () {
    // SAFETY: an object in use keeps its span mapped; `owner` does not change after the span was
    // made.
    unsafe { (*span_of(slot)).owner }
}
