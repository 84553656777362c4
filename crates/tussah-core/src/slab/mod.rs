//! The slab: memory for events and threads.
//!
//! It has three layers, each in its own file. *Spans* are aligned blocks cut into slots of one
//! size. Masking the address of an object leads to the header of its span, and so to its owner. The
//! *depot* knows which spans have free slots, and returns spans that have become empty. *Magazines*
//! let a worker allocate and free without a lock: they take the depot's lock only once per batch.
//! OS threads that are not workers allocate from shared magazines, each under a lock of its own
//! (`outside.rs`).
//!
//! Any OS thread may free an object, through its own magazines or through the slab, whichever OS
//! thread allocated it.
//!
//! The locks of the depots are leaves of the lock order, and those of the shared magazines come
//! directly before them. Under one of these locks, only the allocators, the visitor of
//! [`Slab::for_each_thread_slot`] and an increment of the owner's count are called. Locks and
//! atomics are those of the standard build even under loom: slots are raw memory, in which loom's
//! types cannot live. So the slab has no model, and its tests run under Miri instead. The
//! references to the owner have a model (`keeper/loom_tests.rs`).
//!
//! # References to the owner
//!
//! The owner is a counted object that contains the slab: the runtime. Some users have an object of
//! the slab and nothing else that keeps the owner alive: join handles, wakers and requests are a
//! single pointer. So the slab has references to its own owner:
//!
//! - An *open* slab has one such reference.
//! - A *closed* depot has one exactly as long as an object of it is in use. An object is in use
//!   from its allocation until it is freed. Both happen under the depot's lock, and so does the
//!   change of the reference.
//!
//! The claim: *the user of an object may use the owner, from the moment at which the object was
//! taken to the end of the call that frees it. This holds whatever other OS threads do in the
//! meantime, and wherever they stall.*
//!
//! *While it is in use.* Consider the depot of the object. If the depot is open, so is the slab,
//! which has its reference: `close` closes both depots before its caller may release that
//! reference. If the depot is closed and any of its objects is in use, the depot has its own
//! reference. There is no moment in between. The depot receives its own reference under the lock
//! under which it is closed, and the slab's reference is released afterwards.
//!
//! *While it is taken.* The allocating caller uses the owner, so something keeps the owner alive
//! for the length of that call: a counted reference, or another object that is in use until then.
//! This is the only requirement for a caller. Therefore the count is above zero when a depot takes
//! its reference, at any time and any number of times. So an OS thread that found the runtime open,
//! and allocates after it has ended, does no harm.
//!
//! *While it is freed.* Until the lock is released, the object or the lock keeps the owner alive.
//! An open depot cannot close under the lock, and no other caller can free the last object of a
//! closed depot. Once it is released, other OS threads may free the owner. The caller's next steps
//! depend on one bit that it found under the lock:
//!
//! - If the depot keeps its reference, or is open, the caller does not access the owner again. The
//!   spans that it unmaps have already left the depot. The release of a lock is its last access to
//!   the lock's memory (`parking_lot` exchanges the state, or stores it under a lock of its own,
//!   and wakes by address).
//! - If the depot has lost its last object, its reference now belongs to the caller, which releases
//!   it as the last step. The bit cannot become wrong: if another caller takes from the depot in
//!   the meantime, the depot receives another reference.
//!
//! *In magazines.* A slot in a magazine counts as in use, so nothing may be in magazines when the
//! depots close. A worker empties its magazines before it ends. `close` empties the shared ones and
//! marks them as closed, under their locks. After that, an OS thread that allocates takes single
//! slots from the depot.
//!
//! So nothing is freed too early. Nothing is kept forever either: each reference is released by the
//! caller that frees the last object, or that closes the slab. A slab that is never closed keeps
//! its owner forever. The shutdown leaves the slab open on purpose if it leaves a worker behind,
//! and a panic in the shutdown has the same effect.

mod class;
mod depot;
mod keeper;
mod list;
mod magazine;
mod outside;
mod region;
mod span;
#[cfg(all(test, not(loom)))]
mod tests;

pub(crate) use magazine::Magazines;
use magazine::OPEN;

use class::{batch_slots, class_of};
use depot::{Dead, Depot};
use outside::Outside;
use parking_lot::Mutex;
use span::{DEDICATED, Link, Span, set_link, span_of, state_of};
use std::alloc::Layout;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};

/// The offset of the state word in a thread slot, in bytes.
pub(crate) const THREAD_STATE_OFFSET: usize = 16;

const KINDS: usize = 2;

/// The use of a slot. Kinds never share a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// A node of an event, or a shared value with its color.
    Event = 0,
    /// A thread; its memory is type-stable, see [`Slab`].
    Thread = 1,
}

impl Kind {
    /// Returns the smallest slot size of this kind, in bytes: room for the link, and for the state
    /// word of a thread.
    const fn slot_bytes_min(self) -> usize {
        match self {
            Kind::Event => 8,
            Kind::Thread => THREAD_STATE_OFFSET + 8,
        }
    }
}

/// The amount of memory that a slab holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlabStats {
    /// The number of spans, including dedicated and empty ones.
    pub(crate) spans: usize,
    /// The size of the spans, in bytes, including pages that were never touched.
    pub(crate) bytes: usize,
}

/// An allocator of small objects, one per runtime.
///
/// # Thread slots
/// A thread slot keeps its meaning while it is free, so that [`Slab::for_each_thread_slot`] can
/// look at slots of any state:
///
/// - Bytes 16 to 24 are an `AtomicU64`, the state word. Zero means free. The slab sets it to zero
///   when the slot is carved and never writes it again, so it is zero in a slot that was just
///   allocated.
/// - The user of a slot accesses the state word only atomically (so it does not write a struct over
///   the word). The user makes the word nonzero as the last step of setting up the slot, and zero
///   before freeing it.
/// - The slab itself writes only bytes 0 to 8 of a free slot.
///
/// # Dropping
/// Dropping a slab frees its spans, whether or not objects are in them. A slab with an owner is
/// dropped with the owner, when nothing is in use.
/// nothing is in use.
pub(crate) struct Slab {
    owner: AtomicPtr<()>,
    /// Adds a reference to the owner.
    retain: unsafe fn(*const ()),
    depots: [Mutex<Depot>; KINDS],
    outside: Outside,
}

impl Slab {
    /// Creates a slab without spans. `retain` adds a reference to the owner that `set_owner` names.
    pub(crate) const fn new(retain: unsafe fn(*const ())) -> Self {
        Self {
            owner: AtomicPtr::new(null_mut()),
            retain,
            depots: [
                Mutex::new(Depot::new(Kind::Event)),
                Mutex::new(Depot::new(Kind::Thread)),
            ],
            outside: Outside::new(),
        }
    }

    /// Sets the result of [`owner_of`] for the objects of this slab, and takes the reference of an
    /// open slab. Called once, before the first allocation.
    ///
    /// # Safety
    /// `owner` must be alive, and of the type that `retain` expects.
    pub(crate) unsafe fn set_owner(&self, owner: *const ()) {
        debug_assert_eq!(
            self.stats().spans,
            0,
            "the owner is set before the first allocation"
        );
        self.owner.store(owner.cast_mut(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { (self.retain)(owner) }
    }

    /// Allocates memory for one object under the lock of its kind. For [`Kind::Thread`], see the
    /// rules above.
    ///
    /// # Safety
    /// The memory must be used only until it is freed or the slab is dropped, and by the rules of
    /// its kind. Something must keep the owner alive for the length of the call.
    pub(crate) unsafe fn alloc(&self, kind: Kind, layout: Layout) -> NonNull<u8> {
        match class_of(kind, layout) {
            Some(class) => self
                .take(kind, class, 1)
                .0
                .expect("the depot gives at least one slot"),
            None => self.alloc_dedicated(kind, layout),
        }
    }

    /// Does the same for an OS thread that has no magazines. Most calls take no lock that other OS
    /// threads use.
    ///
    /// # Safety
    /// Same as for [`Slab::alloc`].
    pub(crate) unsafe fn alloc_outside(&self, kind: Kind, layout: Layout) -> NonNull<u8> {
        // SAFETY: the caller's promise; the magazines are those of this slab.
        unsafe { self.outside.alloc(self, kind, layout) }
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

    /// Counts slots taken from a depot whose lock is held.
    #[inline]
    fn taken(&self, depot: &mut Depot, slots: usize) {
        if depot.keeper.take(slots) {
            self.retain_owner();
        }
    }

    #[cold]
    fn retain_owner(&self) {
        // SAFETY: something keeps the owner alive for our caller: see the module's documentation.
        unsafe { (self.retain)(self.owner()) }
    }

    /// Frees the memory of an object under the lock of its kind. Returns true if the caller has to
    /// release the depot's reference to the owner. Otherwise the owner, and the slab with it, may
    /// no longer exist when this returns.
    ///
    /// # Safety
    /// `slot` must be the pointer that [`Slab::alloc`] or [`Magazines::alloc`] returned for this
    /// slab, with its provenance (not one made from a reference to the object), for the same `kind`
    /// and `layout`. The object must not be used again. The state word of a thread must be zero.
    #[must_use]
    pub(crate) unsafe fn free(
        this: *const Self,
        kind: Kind,
        slot: NonNull<u8>,
        layout: Layout,
    ) -> bool {
        // SAFETY: the caller gives up the slot, which is carved and mapped, and was in use until
        // now.
        unsafe {
            debug_check_free(kind, slot, layout);
            set_link(slot, None);
            Self::give(this, kind, Some(slot))
        }
    }

    /// Makes each depot with slots in use keep the owner alive. Called once, when the magazines of
    /// all workers are flushed; the caller then has to release the reference of the open slab.
    pub(crate) fn close(&self) {
        // SAFETY: these magazines are part of this slab, which is open.
        unsafe { self.outside.close(self) };
        for depot in &self.depots {
            let mut depot = depot.lock();
            if depot.keeper.close() {
                self.retain_owner();
            }
        }
    }

    /// Returns whether the slab is closed, and nothing is in use.
    pub(crate) fn is_done(&self) -> bool {
        self.depots
            .iter()
            .all(|depot| depot.lock().keeper.is_done())
    }

    /// Calls `f` with every thread slot, in use or free, while no span can be unmapped.
    ///
    /// `f` may access the state word, atomically. It may read more of a slot, or keep the pointer,
    /// only after it has used that word to make sure that the slot stays in use. It runs under the
    /// lock of the thread slots, so it must neither allocate nor free through this slab, nor drop
    /// an object that might.
    pub(crate) fn for_each_thread_slot(&self, f: impl FnMut(NonNull<u8>)) {
        self.depots[Kind::Thread as usize].lock().for_each_slot(f);
    }

    /// Returns the amount of memory that the slab holds.
    pub(crate) fn stats(&self) -> SlabStats {
        let [event, thread] = self.depots.each_ref().map(|depot| depot.lock().stats());
        SlabStats {
            spans: event.spans + thread.spans,
            bytes: event.bytes + thread.bytes,
        }
    }

    fn owner(&self) -> *const () {
        self.owner.load(Ordering::Relaxed)
    }

    /// Takes between one and `want` slots from the depot. Returns the chain and its length.
    fn take(&self, kind: Kind, class: usize, want: u32) -> (Link, u32) {
        let mut depot = self.depots[kind as usize].lock();
        let chain = depot.take(self.owner(), class, want);
        self.taken(&mut depot, chain.len as usize);
        (chain.head, chain.len)
    }

    /// Returns a full magazine of an open slab to the depot.
    ///
    /// # Safety
    /// The chain must hold `batch_slots(class)` slots, which must have come from this slab for this
    /// `kind` and `class`, be free and linked, and belong to the caller.
    unsafe fn give_full(&self, kind: Kind, class: usize, full: NonNull<u8>) {
        let mut depot = self.depots[kind as usize].lock();
        let last = match depot.keep_full(class, full) {
            true => depot.keeper.give(batch_slots(class) as usize),
            false => {
                drop(depot);
                // SAFETY: the caller's promise.
                unsafe { Self::give(self, kind, Some(full)) }
            }
        };
        debug_assert!(!last, "{OPEN}");
    }

    /// Puts the slots of the magazines that the depots keep back into their spans.
    fn empty_full(&self) {
        for depot in &self.depots {
            let mut dead = Dead::new();
            depot.lock().empty_full(&mut dead);
            // SAFETY: dead spans have left the depot, and none of their slots is in use.
            unsafe { dead.unmap_all() };
        }
    }

    /// Returns a chain of slots to the depot; the result has the same meaning as that of `free`.
    /// Takes a pointer, because a reference would have to stay valid until this function returns.
    ///
    /// # Safety
    /// The slots must have come from this slab for this `kind`, be free and linked, and belong to
    /// the caller.
    #[must_use]
    unsafe fn give(this: *const Self, kind: Kind, chain: Link) -> bool {
        if chain.is_none() {
            return false;
        }
        let mut dead = Dead::new();
        // SAFETY: by contract; since the slots are in use, the slab exists until the lock is
        // released. Dead spans have left the depot and none of their slots is in use, so no OS
        // thread can reach them. They are unmapped without the lock, because that can be a system
        // call.
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

/// Checks the contract of [`Slab::free`] as far as possible; does nothing in a release build.
///
/// # Safety
/// Same as for [`Slab::free`].
#[inline]
unsafe fn debug_check_free(kind: Kind, slot: NonNull<u8>, layout: Layout) {
    if cfg!(debug_assertions) {
        // SAFETY: the slot was in use until now, so its span is mapped. Class and kind never
        // change.
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
        if kind == Kind::Thread {
            // SAFETY: this is a thread slot, carved and mapped.
            let state = unsafe { state_of(slot) }.load(Ordering::Relaxed);
            assert_eq!(state, 0, "a thread is marked as free before it is freed");
        }
    }
}

/// Returns the owner of the slab that `slot` came from, as set by [`Slab::set_owner`].
///
/// # Safety
/// `slot` must be in use and have the provenance with which it was allocated.
#[inline]
pub(crate) unsafe fn owner_of(slot: NonNull<u8>) -> *const () {
    // SAFETY: an object in use keeps its span mapped, and `owner` does not change after the span
    // was made.
    unsafe { (*span_of(slot)).owner }
}
