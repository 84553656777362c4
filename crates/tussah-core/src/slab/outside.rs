//! The magazines of OS threads that are not workers of the runtime.
//!
//! Such an OS thread has no magazines of its own. They would keep the memory of a runtime that has
//! ended, for as long as the OS thread lives. So the slab has a few, each under a lock, and each OS
//! thread always uses the same ones. The lock is rarely contended, and most allocations take only
//! this lock.

use std::alloc::Layout;
use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::{Kind, Magazines, Slab};

/// The number of sets of magazines. OS threads beyond this number share one.
const PLACES: usize = 16;

/// The magazines of all places.
pub(super) struct Outside([Place; PLACES]);

/// Aligned so that OS threads with different places do not share a cache line.
#[repr(align(128))]
struct Place(Mutex<Content>);

enum Content {
    Unused,
    Open(Box<Magazines>),
    /// The slab is closed, and counts each object in use: nothing may be in magazines.
    Closed,
}

impl Outside {
    pub(super) const fn new() -> Self {
        Self([const { Place(Mutex::new(Content::Unused)) }; PLACES])
    }

    /// Allocates memory for one object from the magazines of this OS thread's place.
    ///
    /// # Safety
    /// Same as for [`Slab::alloc`]; also, `slab` must be the slab that contains these magazines.
    pub(super) unsafe fn alloc(&self, slab: &Slab, kind: Kind, layout: Layout) -> NonNull<u8> {
        let mut content = self.0[place()].0.lock();
        if matches!(*content, Content::Unused) {
            *content = Content::Open(Box::new(Magazines::new()));
        }
        // SAFETY: the caller's promise.
        unsafe {
            match &*content {
                Content::Open(magazines) => magazines.alloc(slab, kind, layout),
                Content::Unused | Content::Closed => slab.alloc(kind, layout),
            }
        }
    }

    /// Returns all slots to the depots, and leaves nothing to take from here.
    ///
    /// # Safety
    /// `slab` must be the slab that contains these magazines, and be open.
    pub(super) unsafe fn close(&self, slab: &Slab) {
        for Place(content) in &self.0 {
            let mut content = content.lock();
            if let Content::Open(magazines) = std::mem::replace(&mut *content, Content::Closed) {
                // SAFETY: the magazines were used with this slab only.
                unsafe { magazines.flush_all(slab) }
            }
        }
    }
}

/// Returns the place of this OS thread.
#[inline]
fn place() -> usize {
    // Relaxed: only the number itself matters.
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    const NONE: usize = usize::MAX;
    thread_local! {
        static PLACE: Cell<usize> = const { Cell::new(NONE) };
    }
    PLACE.with(|place| {
        if place.get() == NONE {
            place.set(NEXT.fetch_add(1, Ordering::Relaxed) % PLACES);
        }
        place.get()
    })
}
