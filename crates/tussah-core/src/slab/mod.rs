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
//! The locks are leaves of the lock order: nothing but the global allocator, the visitor of
//! [`Slab::for_each_task_slot`] and an increment of the owner's count is called under one. They and
//! the atomics are those of the standard build even under loom: slots are raw memory, in which
//! loom's types cannot live, so the slab is not modelled and its tests run under Miri instead. Who
//! keeps the owner is modelled (`keeper/loom_tests.rs`).
//!
//! # Who keeps the owner
//!
//! The owner is a counted object in which the slab lies: the runtime. Others have objects of the slab, and nothing
//! else that keeps the owner: join handles, wakers and requests are one pointer. So the slab has references to its own
//! owner, and these are all that there is to it:
//!
//! - An *open* slab has one.
//! - A depot that is *closed* has one exactly as long as an object of it is in use. In use is what was taken and has
//!   not been given back; both happen under the depot's lock, and so does the change of the reference.
//!
//! The claim: *whoever has an object in use may use the owner, from the moment at which the object was taken to the
//! end of the call that gives it back, whatever other OS threads do meanwhile, and wherever they stand still.*
//!
//! *While it is in use.* Look at the depot of the object. If it is open, so is the slab, and has its reference:
//! `close` closes both depots before it lets the caller give that one back. If it is closed and something of it is in
//! use, it has its own. There is no moment in between: it gets its own under the lock under which it is closed, and
//! the slab's is given back after that.
//!
//! *While it is taken.* Who allocates uses the owner, so something keeps it for the length of that call: a counted
//! reference, or another object that is in use until then. This is all that is asked of a caller. Therefore the count
//! is above zero when a depot takes its reference, at any time and as often as it likes: that nothing was left when
//! the slab closed, or at some time after that, is no end. So an OS thread that has found the runtime open, and
//! allocates when it is long over, does no harm.
//!
//! *While it is given back.* Up to the release of the lock, the object or the lock keeps the owner: an open depot
//! can't close under the lock, and of a closed one nobody else can give the last object back. With that release,
//! others may free the owner. What the caller does then depends on one bit that was found under the lock. If the
//! depot keeps its reference, or is open, the caller does not touch the owner again: the spans that it unmaps have
//! left the depot, and the release of a lock is its last access to it (`parking_lot` exchanges the state, or stores it
//! under a lock of its own, and wakes by address). If the depot has lost its last object, its reference became the
//! caller's, who gives it back as the last thing. The bit can't become wrong: if somebody takes from the depot
//! meanwhile, the depot gets another reference.
//!
//! Nothing is freed too early, then; and nothing is kept for ever, since each reference is given back by who gives
//! back the last object, or closes the slab. A slab that is never closed keeps its owner for ever. That is what the
//! shutdown does if a worker is left behind, and what a panic in the shutdown comes to.

mod class;
mod depot;
mod keeper;
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
use std::sync::atomic::{AtomicPtr, Ordering};

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
/// Dropping a slab frees its spans, whether or not objects live in them. One with an owner is dropped with that, when
/// nothing is in use.
pub(crate) struct Slab {
    owner: AtomicPtr<()>,
    /// Adds a reference to the owner.
    retain: unsafe fn(*const ()),
    depots: [Mutex<Depot>; KINDS],
}

impl Slab {
    /// A slab without spans. `retain` adds a reference to the owner that `set_owner` names.
    pub(crate) const fn new(retain: unsafe fn(*const ())) -> Self {
        Self {
            owner: AtomicPtr::new(null_mut()),
            retain,
            depots: [
                Mutex::new(Depot::new(Kind::Event)),
                Mutex::new(Depot::new(Kind::Task)),
            ],
        }
    }

    /// Sets what [`owner_of`] returns for the objects of this slab, and takes the reference of an open slab; to be
    /// called once, before the first allocation.
    ///
    /// # Safety
    /// `owner` is alive, and what `retain` expects.
    pub(crate) unsafe fn set_owner(&self, owner: *const ()) {
        debug_assert_eq!(
            self.stats().spans,
            0,
            "the owner is set before the first allocation"
        );
        self.owner.store(owner.cast_mut(), Ordering::Relaxed);
        // SAFETY: passed on from the caller.
        unsafe { (self.retain)(owner) }
    }

    /// Allocates memory for one object under the lock of its kind. For [`Kind::Task`], see the
    /// rules above.
    ///
    /// # Safety
    /// The memory is used only until it is freed or the slab is dropped, and by the rules of its
    /// kind. Something keeps the owner for the length of the call.
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
        self.taken(&mut depot, 1);
        slot
    }

    /// Counts what was taken from a depot, with its lock held.
    #[inline]
    fn taken(&self, depot: &mut Depot, slots: usize) {
        if depot.keeper.take(slots) {
            self.retain_owner();
        }
    }

    #[cold]
    fn retain_owner(&self) {
        // SAFETY: something keeps the owner for our caller: see the module.
        unsafe { (self.retain)(self.owner()) }
    }

    /// Frees the memory of an object under the lock of its kind. True if the depot's reference to the owner is the
    /// caller's to give back. Else the owner, and the slab with it, may be gone when this returns.
    ///
    /// # Safety
    /// `slot` is the pointer that [`Slab::alloc`] or [`Magazines::alloc`] returned for this slab,
    /// with its provenance (not one made from a reference to the object), for the same `kind` and
    /// `layout`; nobody uses the object again. The state word of a task is zero.
    #[must_use]
    pub(crate) unsafe fn free(
        this: *const Self,
        kind: Kind,
        slot: NonNull<u8>,
        layout: Layout,
    ) -> bool {
        // SAFETY: the caller gives us the slot, which is carved and mapped, and in use until now.
        unsafe {
            debug_check_free(kind, slot, layout);
            set_link(slot, None);
            Self::give(this, kind, Some(slot))
        }
    }

    /// Has each depot that still has something in use keep the owner. To be called once, when all magazines are
    /// flushed; then the reference of the open slab is the caller's to give back.
    pub(crate) fn close(&self) {
        for depot in &self.depots {
            let mut depot = depot.lock();
            if depot.keeper.close() {
                self.retain_owner();
            }
        }
    }

    /// Whether the slab is closed, and nothing is in use.
    pub(crate) fn is_done(&self) -> bool {
        self.depots
            .iter()
            .all(|depot| depot.lock().keeper.is_done())
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
        self.taken(&mut depot, chain.len as usize);
        (chain.head, chain.len)
    }

    /// Gives a chain of slots back to the depot; see `free` for what it returns. By pointer, since a reference would
    /// have to be good until this returns.
    ///
    /// # Safety
    /// The slots came from this slab for this `kind`, are free, linked, and belong to the caller.
    #[must_use]
    unsafe fn give(this: *const Self, kind: Kind, chain: Link) -> bool {
        if chain.is_none() {
            return false;
        }
        let mut dead = Dead::new();
        // SAFETY: by contract, and as the slots are in use, the slab is there until the lock is released. Dead spans have
        // left the depot and none of their slots is in use, so nobody can reach them; they are unmapped without the
        // lock, as that can be a system call.
        unsafe {
            let last = {
                let mut depot = (*this).depots[kind as usize].lock();
                let slots = depot.give(chain, &mut dead);
                depot.keeper.give(slots)
            };
            dead.unmap_all();
            last
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
