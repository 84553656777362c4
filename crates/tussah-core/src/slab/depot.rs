//! The depot: the spans of one kind, and the record of their free slots.

use super::class::{CLASSES, batch_slots};
use super::keeper::Keeper;
use super::list::List;
use super::span::{Chain, DEDICATED, Link, Span, link, span_of};
use super::{Kind, SlabStats};
use std::ptr::{NonNull, null_mut};

/// Links number 0: all spans of the depot.
type All = List<0>;
/// Links number 1: spans of one class that are partial, neither full nor kept as the class's empty
/// span.
type Partial = List<1>;
/// Links number 1 again: spans that have left the depot and will be unmapped when its lock is
/// released.
pub(super) type Dead = List<1>;

/// The spans of one kind. All of its methods run under its lock.
///
/// A span of a class is in exactly one of three states: *full* (in no list but `all`), *partial*
/// (in its class's list) or *empty* (kept by its class). Dedicated spans are always full.
pub(super) struct Depot {
    kind: Kind,
    all: All,
    classes: [ClassSpans; CLASSES],
    stats: SlabStats,
    pub(super) keeper: Keeper,
}

struct ClassSpans {
    /// The first span became partial last and so has the fewest free slots. Filling it first gives
    /// the other spans the chance to become empty.
    partial: Partial,
    /// At most one empty span per class, so that a load that varies around the size of a span maps
    /// no memory.
    empty: *mut Span,
    /// At most one full magazine per class. A full magazine that was given back is the next to be
    /// taken. If one OS thread allocates what another one frees, no slot goes back into its span.
    full: Link,
}

// SAFETY: the depot owns its spans, and nothing in it is tied to an OS thread. Users of slots
// access no header field except `owner`, which never changes.
unsafe impl Send for Depot {}

impl Depot {
    pub(super) const fn new(kind: Kind) -> Self {
        const NONE: ClassSpans = ClassSpans {
            partial: Partial::new(),
            empty: null_mut(),
            full: None,
        };
        Self {
            kind,
            all: All::new(),
            classes: [NONE; CLASSES],
            stats: SlabStats { spans: 0, bytes: 0 },
            keeper: Keeper::new(),
        }
    }

    pub(super) fn stats(&self) -> SlabStats {
        self.stats
    }

    /// Takes up to `want` slots, but at least one. A new span is mapped only if no slot would be
    /// available otherwise.
    pub(super) fn take(&mut self, owner: *const (), class: usize, want: u32) -> Chain {
        if want == batch_slots(class)
            && let Some(full) = self.classes[class].full.take()
        {
            return Chain::of(full, want);
        }
        let mut chain = Chain::default();
        // SAFETY: `&mut self` is the lock. Spans in the lists are live and in the state of their
        // list.
        unsafe {
            while chain.len < want {
                let mut span = self.classes[class].partial.first();
                if span.is_null() {
                    if chain.len > 0 {
                        break;
                    }
                    span = self.open(owner, class);
                }
                Span::take(span, &mut chain, want);
                if Span::is_full(span) {
                    self.classes[class].partial.remove(span);
                }
            }
        }
        chain
    }

    /// Adds a span that was made for one object.
    ///
    /// # Safety
    /// Same as for `enter`.
    pub(super) unsafe fn enter_dedicated(&mut self, span: *mut Span) {
        // SAFETY: the caller's promise.
        unsafe { self.enter(span) }
    }

    /// Makes the empty span of the class, or a new one, its only partial span.
    #[cold]
    fn open(&mut self, owner: *const (), class: usize) -> *mut Span {
        let mut span = std::mem::replace(&mut self.classes[class].empty, null_mut());
        if span.is_null() {
            span = Span::new(owner, self.kind, class);
            // SAFETY: the span is new.
            unsafe { self.enter(span) };
        }
        // SAFETY: `&mut self` is the lock; an empty or new span is in no list of partial ones.
        unsafe { self.classes[class].partial.push(span) };
        span
    }

    /// Adds a span that has just been made.
    ///
    /// # Safety
    /// The span must be live, of this depot's kind and in no list.
    unsafe fn enter(&mut self, span: *mut Span) {
        // SAFETY: `&mut self` is the lock; the contract ensures the rest.
        unsafe {
            self.all.push(span);
            self.stats.bytes += (*span).layout.size();
        }
        self.stats.spans += 1;
    }

    /// Takes back a full magazine in constant time, if there is a place for it.
    pub(super) fn keep_full(&mut self, class: usize, chain: NonNull<u8>) -> bool {
        let full = &mut self.classes[class].full;
        let is_kept = full.is_none();
        if is_kept {
            *full = Some(chain);
        }
        is_kept
    }

    /// Puts the slots of all kept magazines back into their spans, and moves the spans to unmap to
    /// `dead`.
    pub(super) fn empty_full(&mut self, dead: &mut Dead) {
        for class in 0..CLASSES {
            let full = self.classes[class].full.take();
            // SAFETY: these slots came from this depot, are free and linked, and belong to it.
            unsafe { self.give(full, dead) };
        }
    }

    /// Takes back a chain of slots, each in constant time, and moves the spans to unmap to `dead`.
    /// Returns the number of slots.
    ///
    /// # Safety
    /// The slots must have come from this depot, be free and linked, and belong to the caller.
    pub(super) unsafe fn give(&mut self, mut chain: Link, dead: &mut Dead) -> usize {
        let mut slots = 0;
        while let Some(slot) = chain {
            // SAFETY: by contract; the link is read before the slot receives another link.
            unsafe {
                chain = link(slot);
                self.give_one(slot, dead);
            }
            slots += 1;
        }
        slots
    }

    /// # Safety
    /// The slot must have come from this depot, be free, and belong to the caller.
    unsafe fn give_one(&mut self, slot: NonNull<u8>, dead: &mut Dead) {
        let span = span_of(slot);
        // SAFETY: `&mut self` is the lock; the span is live because the slot was in use until now.
        unsafe {
            debug_assert!(
                (*span).kind as u8 == self.kind as u8,
                "a slot goes back to its own kind"
            );
            let was_full = Span::is_full(span);
            Span::put(span, slot);
            if Span::is_empty(span) {
                self.retire(span, was_full, dead);
            } else if was_full {
                self.classes[usize::from((*span).class)].partial.push(span);
            }
        }
    }

    /// Keeps a span that became empty as its class's empty span, or moves it to `dead`.
    ///
    /// # Safety
    /// The span must belong to the depot and be empty. It must be in its class's list unless it
    /// `was_full`.
    unsafe fn retire(&mut self, span: *mut Span, was_full: bool, dead: &mut Dead) {
        // SAFETY: `&mut self` is the lock; the contract ensures the rest. A span in `dead` is in no
        // other list.
        unsafe {
            let class = (*span).class;
            if class != DEDICATED {
                let spans = &mut self.classes[usize::from(class)];
                if !was_full {
                    spans.partial.remove(span);
                }
                if spans.empty.is_null() {
                    spans.empty = span;
                    return;
                }
            }
            self.all.remove(span);
            self.stats.bytes -= (*span).layout.size();
            self.stats.spans -= 1;
            dead.push(span);
        }
    }

    /// Calls `f` with each slot carved so far.
    pub(super) fn for_each_slot(&self, mut f: impl FnMut(NonNull<u8>)) {
        // SAFETY: `&self` is the lock; spans in the list are live.
        unsafe { self.all.for_each(|span| Span::for_each_slot(span, &mut f)) }
    }
}

impl Drop for Depot {
    fn drop(&mut self) {
        // SAFETY: the spans are ours, and the code that drops a slab promises that its objects no
        // longer exist. Some spans may still be in lists of partial spans, which end here, too.
        unsafe { self.all.unmap_all() }
    }
}
