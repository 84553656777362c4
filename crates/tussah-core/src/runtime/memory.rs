//! The memory of a runtime's objects: allocating, freeing, and leaving it to the remaining owners.

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::Arc;

use super::shared::Shared;
use crate::slab::{self, Kind, Slab};
use crate::worker::Worker;

impl Shared {
    /// Allocates an event or a thread. A worker of this runtime takes the memory from its
    /// magazines.
    #[inline(always)]
    pub(crate) fn alloc(&self, kind: Kind, layout: Layout) -> NonNull<u8> {
        Worker::with(|worker| match worker {
            Some(worker) if worker.is_of(self) => worker.alloc(kind, layout),
            _ => self.alloc_outside(kind, layout),
        })
    }

    /// Does the same as [`alloc`](Self::alloc) for a caller that is not one of this runtime's
    /// workers.
    #[cold]
    #[inline(never)]
    pub(crate) fn alloc_outside(&self, kind: Kind, layout: Layout) -> NonNull<u8> {
        // SAFETY: the caller uses the memory by the rules of its kind until `free`, and holds
        // something that keeps this runtime alive (`shutdown.rs`).
        unsafe { self.slab.alloc_outside(kind, layout) }
    }

    /// # Safety
    /// The memory must have come from `alloc` of a runtime with this kind and layout, and must not
    /// be used again.
    #[inline(always)]
    pub(crate) unsafe fn free(kind: Kind, ptr: NonNull<u8>, layout: Layout) {
        // SAFETY: the owner of a slab's object is its runtime, which the object keeps alive.
        let shared = unsafe { slab::owner_of(ptr) }.cast::<Shared>();
        Worker::with(|worker| match worker {
            // SAFETY: the caller gives up the memory.
            Some(worker) if std::ptr::eq(&*worker.handle.shared, shared) => unsafe {
                worker.free(kind, ptr, layout)
            },
            // SAFETY: as above. The slab returns whether a reference now belongs to us; if not, the
            // runtime may no longer exist.
            _ => unsafe {
                if Slab::free(&raw const (*shared).slab, kind, ptr, layout) {
                    drop(Arc::from_raw(shared));
                }
            },
        });
    }

    /// # Safety
    /// The pointer must be that of a live, counted runtime.
    pub(super) unsafe fn retain(shared: *const ()) {
        // SAFETY: the caller's promise.
        unsafe { Arc::increment_strong_count(shared.cast::<Shared>()) }
    }

    /// Leaves the runtime's memory to the objects that still use it. Called once, when no worker is
    /// left.
    pub(crate) fn close_slab(self: &Arc<Self>) {
        self.slab.close();
        // SAFETY: the open slab owned a reference, which is ours now.
        unsafe { Arc::decrement_strong_count(Arc::as_ptr(self)) }
    }
}
