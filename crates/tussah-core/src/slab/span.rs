//! A span: one aligned block of memory, cut into slots of one size behind a header.
//!
//! Headers are accessed only through raw pointers, never through references. A reference to a
//! header would claim bytes that another OS thread reads (`owner`), and pointers derived from it
//! could not reach the slots. Every slot pointer is derived from the pointer to the whole block, so
//! that masking it leads back to the header under Stacked Borrows and Tree Borrows.
//!
//! | bytes of a header | readers | writers |
//! |---|---|---|
//! | `owner` to `layout` | any user of a slot of the span | none after the span is made |
//! | `moving` | the holder of the depot's lock | the holder of the depot's lock |

use super::class::{SLOT_ALIGN_MAX, slot_bytes};
use super::list::Links;
use super::region;
use super::{Kind, THREAD_STATE_OFFSET};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// The size of a span, in bytes: large enough for three slots of the largest class, small enough to
/// become empty again.
pub(super) const SPAN_BYTES: usize = 64 * 1024;

const HEADER_BYTES: usize = size_of::<Span>();
const _: () = assert!(HEADER_BYTES == 128 && HEADER_BYTES.is_multiple_of(SLOT_ALIGN_MAX));

/// The class in the header of a span that holds a single object.
pub(super) const DEDICATED: u8 = u8::MAX;

/// A free slot links to the next free slot through its first word.
pub(super) type Link = Option<NonNull<u8>>;

/// The header of a span.
#[repr(C)]
pub(super) struct Span {
    pub(super) owner: *const (),
    pub(super) kind: Kind,
    /// The class of the slots, or [`DEDICATED`].
    pub(super) class: u8,
    /// The distance between slots, in bytes; meaningless in a dedicated span.
    slot_bytes: u32,
    /// The distance from the header to the first slot, in bytes.
    first: u32,
    /// The number of slots that fit.
    capacity: u32,
    /// Size and alignment; for a dedicated span, those requested from the global allocator.
    pub(super) layout: Layout,
    pub(super) moving: Moving,
}

/// The part of a header that changes. It has its own cache line, because `owner` is read without a
/// lock.
#[repr(C, align(64))]
pub(super) struct Moving {
    /// The number of slots cut so far. The slots after these have never been touched, so their
    /// pages need not exist.
    carved: u32,
    /// The number of slots that are in a magazine or in use.
    used: u32,
    /// The slots that were used and have been returned.
    free: Link,
    /// Places in the depot's lists, see [`super::list::List`].
    pub(super) links: [Links; 2],
}

/// Returns the state word of a thread slot.
///
/// # Safety
/// `slot` must be a carved slot of a thread span, which must stay mapped for `'a`.
#[inline]
pub(super) unsafe fn state_of<'a>(slot: NonNull<u8>) -> &'a AtomicU64 {
    // SAFETY: a thread slot has at least 24 bytes and is aligned to 8 (`Kind::slot_bytes_min`,
    // `class_of`). Users of thread slots promise to access the word only atomically.
    unsafe { AtomicU64::from_ptr(slot.add(THREAD_STATE_OFFSET).cast().as_ptr()) }
}

/// Reads the link of a free slot.
///
/// # Safety
/// The slot must be free, belong to the caller, and have been linked.
#[inline]
pub(super) unsafe fn link(slot: NonNull<u8>) -> Link {
    // SAFETY: every slot has room for a word and is aligned to 8, and the caller owns it.
    unsafe { slot.cast::<Link>().read() }
}

/// Writes the link of a free slot, which touches only its first word.
///
/// # Safety
/// The slot must be free and belong to the caller.
#[inline]
pub(super) unsafe fn set_link(slot: NonNull<u8>, next: Link) {
    // SAFETY: as in `link`.
    unsafe { slot.cast::<Link>().write(next) }
}

/// Returns the span of a slot.
///
/// One is subtracted before masking. The object of a dedicated span with an alignment of
/// [`SPAN_BYTES`] or more begins exactly at the end of the first `SPAN_BYTES` after the header.
#[inline]
pub(super) fn span_of(slot: NonNull<u8>) -> *mut Span {
    slot.as_ptr()
        .map_addr(|addr| (addr - 1) & !(SPAN_BYTES - 1))
        .cast()
}

/// Free slots on their way out of the depot, in the order in which they will be used.
#[derive(Default)]
pub(super) struct Chain {
    pub(super) head: Link,
    tail: Link,
    pub(super) len: u32,
}

impl Chain {
    /// Returns a chain that is complete: nothing may be pushed to it.
    pub(super) fn of(head: NonNull<u8>, len: u32) -> Self {
        Self {
            head: Some(head),
            tail: None,
            len,
        }
    }

    /// # Safety
    /// The slot must be free and belong to the caller.
    unsafe fn push(&mut self, slot: NonNull<u8>) {
        // SAFETY: both slots are free and ours: one by contract, the other since its own push.
        unsafe {
            set_link(slot, None);
            match self.tail {
                Some(tail) => set_link(tail, Some(slot)),
                None => self.head = Some(slot),
            }
        }
        self.tail = Some(slot);
        self.len += 1;
    }
}

impl Span {
    /// Creates a span for the slots of a class, none of them carved yet.
    pub(super) fn new(owner: *const (), kind: Kind, class: usize) -> *mut Span {
        const LAYOUT: Layout = match Layout::from_size_align(SPAN_BYTES, SPAN_BYTES) {
            Ok(layout) => layout,
            Err(_) => panic!("a power of two"),
        };
        let slot_bytes = slot_bytes(class);
        // SAFETY: the header fits in front, and the slots behind it, within `SPAN_BYTES`.
        unsafe {
            Self::map(
                LAYOUT,
                0,
                Span {
                    owner,
                    kind,
                    class: class as u8,
                    slot_bytes: slot_bytes as u32,
                    first: HEADER_BYTES as u32,
                    capacity: ((SPAN_BYTES - HEADER_BYTES) / slot_bytes) as u32,
                    layout: LAYOUT,
                    moving: Moving::new(),
                },
            )
        }
    }

    /// Creates a span for one object, and returns it with the object's slot, which counts as used.
    pub(super) fn new_dedicated(
        owner: *const (),
        kind: Kind,
        object: Layout,
    ) -> (*mut Span, NonNull<u8>) {
        let first = object.align().clamp(HEADER_BYTES, SPAN_BYTES);
        let lead = object.align().saturating_sub(SPAN_BYTES);
        let size = object.size().max(kind.slot_bytes_min());
        let layout = size
            .checked_add(lead + first)
            .and_then(|bytes| Layout::from_size_align(bytes, object.align().max(SPAN_BYTES)).ok());
        let Some(layout) = layout else {
            handle_alloc_error(object)
        };
        // SAFETY: the size is the sum of the lead, the header (`first` is at least its size) and
        // the object. The first slot is at a multiple of the object's alignment: at `first` if that
        // is at most `SPAN_BYTES`, otherwise at `lead + SPAN_BYTES`, the alignment itself.
        unsafe {
            let span = Self::map(
                layout,
                lead,
                Span {
                    owner,
                    kind,
                    class: DEDICATED,
                    slot_bytes: 0,
                    first: first as u32,
                    capacity: 1,
                    layout,
                    moving: Moving::new(),
                },
            );
            let slot = Self::carve(span);
            (*span).moving.used = 1;
            (span, slot)
        }
    }

    /// # Safety
    /// `lead` must be a multiple of [`SPAN_BYTES`], and `layout` must have room for it, the header
    /// and the slots.
    unsafe fn map(layout: Layout, lead: usize, header: Span) -> *mut Span {
        // SAFETY: the layout is not empty. The header is within it, at a multiple of `SPAN_BYTES`.
        unsafe {
            let base = if header.class == DEDICATED {
                alloc(layout)
            } else {
                region::take().as_ptr()
            };
            if base.is_null() {
                handle_alloc_error(layout);
            }
            let span = base.add(lead).cast::<Span>();
            span.write(header);
            span
        }
    }

    /// Returns a span to its origin: a dedicated span to the global allocator, other spans to the
    /// regions.
    ///
    /// # Safety
    /// The span must have come from this module and be in no list. Neither it nor any of its slots
    /// may be used again.
    pub(super) unsafe fn unmap(span: *mut Span) {
        // SAFETY: the header is intact; lead and layout are those of `map`.
        unsafe {
            if (*span).class != DEDICATED {
                return region::give(NonNull::new_unchecked(span.cast()));
            }
            let layout = (*span).layout;
            let lead = layout.align() - SPAN_BYTES;
            dealloc(span.cast::<u8>().sub(lead), layout);
        }
    }

    /// Returns the slot with the given index.
    ///
    /// # Safety
    /// `span` must be live and `index` must be below its capacity.
    unsafe fn slot(span: *mut Span, index: u32) -> NonNull<u8> {
        // SAFETY: the slot is within the block of the span, whose address is not zero.
        unsafe {
            let offset = (*span).first as usize + index as usize * (*span).slot_bytes as usize;
            NonNull::new_unchecked(span.cast::<u8>().add(offset))
        }
    }

    /// Cuts the next slot.
    ///
    /// # Safety
    /// The caller must hold the depot's lock, unless the span is in no list yet. At least one slot
    /// must not be carved yet.
    unsafe fn carve(span: *mut Span) -> NonNull<u8> {
        // SAFETY: by contract. The state word is set to zero before the slot counts as carved. Both
        // happen under the lock, so `for_each_slot` never sees an uninitialized word.
        unsafe {
            let slot = Self::slot(span, (*span).moving.carved);
            if let Kind::Thread = (*span).kind {
                state_of(slot).store(0, Ordering::Relaxed);
            }
            (*span).moving.carved += 1;
            slot
        }
    }

    /// Moves free slots to `chain` until the chain has `want` slots or the span has no free slot
    /// left.
    ///
    /// # Safety
    /// The caller must hold the depot's lock and `span` must be live.
    pub(super) unsafe fn take(span: *mut Span, chain: &mut Chain, want: u32) {
        // SAFETY: under the lock, `moving` and the free slots of the span are ours.
        unsafe {
            while chain.len < want {
                let slot = if let Some(slot) = (*span).moving.free {
                    (*span).moving.free = link(slot);
                    slot
                } else if (*span).moving.carved < (*span).capacity {
                    Self::carve(span)
                } else {
                    return;
                };
                (*span).moving.used += 1;
                chain.push(slot);
            }
        }
    }

    /// Takes a slot back.
    ///
    /// # Safety
    /// The caller must hold the depot's lock. The slot must belong to the span, be free, and belong
    /// to the caller.
    pub(super) unsafe fn put(span: *mut Span, slot: NonNull<u8>) {
        // SAFETY: under the lock, `moving` is ours; the slot is ours by contract.
        unsafe {
            set_link(slot, (*span).moving.free);
            (*span).moving.free = Some(slot);
            (*span).moving.used -= 1;
        }
    }

    /// Returns whether no slot is free.
    ///
    /// # Safety
    /// The caller must hold the depot's lock and `span` must be live.
    pub(super) unsafe fn is_full(span: *mut Span) -> bool {
        // SAFETY: by contract.
        unsafe { (*span).moving.used == (*span).capacity }
    }

    /// Returns whether all slots are free.
    ///
    /// # Safety
    /// The caller must hold the depot's lock and `span` must be live.
    pub(super) unsafe fn is_empty(span: *mut Span) -> bool {
        // SAFETY: by contract.
        unsafe { (*span).moving.used == 0 }
    }

    /// Calls `f` with each slot carved so far.
    ///
    /// # Safety
    /// The caller must hold the depot's lock and `span` must be live.
    pub(super) unsafe fn for_each_slot(span: *mut Span, mut f: impl FnMut(NonNull<u8>)) {
        // SAFETY: by contract; carved slots are below the capacity.
        unsafe {
            for index in 0..(*span).moving.carved {
                f(Self::slot(span, index));
            }
        }
    }
}

impl Moving {
    const fn new() -> Self {
        Self {
            carved: 0,
            used: 0,
            free: None,
            links: [Links::NONE; 2],
        }
    }
}
