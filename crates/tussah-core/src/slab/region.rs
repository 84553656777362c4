//! The source of spans: large regions of address space, cut into spans, shared by all runtimes of
//! the process.
//!
//! Spans are aligned to their size. With a general allocator, such an alignment doubles the memory
//! (measured: 145 bytes of RAM for each parked thread of 48 bytes), so regions are mapped directly.
//! A returned span gives its pages back to the system, except for a few spans whose pages are kept.
//! Its address space is kept for the next span.
//!
//! With `--cfg slab_guard` a returned span becomes inaccessible immediately and is never reused, so
//! that a use after free ends the process. The leak detector then looks for pointers in spans, as
//! it does in the heap. Miri has no `mmap`: there, each span comes from the global allocator and is
//! returned to it immediately, so that Miri detects a use after free.

use std::ptr::NonNull;

use parking_lot::Mutex;

use super::span::SPAN_BYTES;

/// The address space, in bytes, that is mapped at a time; unused parts of it take no RAM.
const REGION_BYTES: usize = 4 * 1024 * 1024;

/// The maximum number of spans that are kept in RAM (1 MiB), so that a fluctuating load need not
/// fault its pages in every time.
const WARM_MAX: usize = if cfg!(any(miri, slab_guard)) { 0 } else { 16 };

/// The free spans, as many as at the peak. Each entry stands for address space without RAM.
struct Pool {
    /// Spans whose pages are in RAM.
    warm: Vec<NonNull<u8>>,
    /// Spans whose pages were returned or never touched.
    cold: Vec<NonNull<u8>>,
}

// SAFETY: the pool owns the spans in it.
unsafe impl Send for Pool {}

static POOL: Mutex<Pool> = Mutex::new(Pool {
    warm: Vec::new(),
    cold: Vec::new(),
});

/// Returns memory for a span: `SPAN_BYTES`, with that alignment. Its contents are arbitrary.
pub(super) fn take() -> NonNull<u8> {
    let mut pool = POOL.lock();
    if let Some(span) = pool.warm.pop() {
        return span;
    }
    if pool.cold.is_empty() {
        let mut fresh = system::map();
        // The lowest address then goes first.
        fresh.reverse();
        pool.cold = fresh;
    }
    pool.cold.pop().expect("a region has spans")
}

/// Takes back the memory of a span.
///
/// # Safety
/// The memory must have come from `take`, and must not be used again.
pub(super) unsafe fn give(span: NonNull<u8>) {
    let mut pool = POOL.lock();
    if pool.warm.len() < WARM_MAX {
        pool.warm.push(span);
        return;
    }
    drop(pool);
    // Without the lock, because it is a system call.
    // SAFETY: the caller's promise.
    if unsafe { system::cool(span) } {
        POOL.lock().cold.push(span);
    }
}

#[cfg(not(miri))]
mod system {
    use std::alloc::{Layout, handle_alloc_error};
    use std::ptr::{NonNull, null_mut};

    use rustix::mm::{
        Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap_anonymous, mprotect, munmap,
    };

    use super::{REGION_BYTES, SPAN_BYTES};

    #[cfg(slab_guard)]
    unsafe extern "C" {
        fn __lsan_register_root_region(begin: *const core::ffi::c_void, size: usize);
    }

    /// Maps a region and cuts it into spans.
    pub(super) fn map() -> Vec<NonNull<u8>> {
        let bytes = REGION_BYTES + SPAN_BYTES;
        // SAFETY: this is a new private mapping, which overlaps nothing.
        let mapped = unsafe {
            mmap_anonymous(
                null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        };
        let Ok(base) = mapped else {
            handle_alloc_error(Layout::new::<[u8; REGION_BYTES]>());
        };
        let base = base.cast::<u8>();
        let lead = base.align_offset(SPAN_BYTES);
        #[cfg(slab_guard)]
        // SAFETY: the region stays mapped, and the detector skips its inaccessible parts.
        unsafe {
            __lsan_register_root_region(base.add(lead).cast(), REGION_BYTES);
        }
        // SAFETY: the unmapped parts are whole pages in the mapping, before and after the aligned
        // region, and have no user. If it fails, only address space is lost.
        unsafe {
            if lead > 0 {
                let _ = munmap(base.cast(), lead);
            }
            let rest = bytes - lead - REGION_BYTES;
            if rest > 0 {
                let _ = munmap(base.add(lead + REGION_BYTES).cast(), rest);
            }
            (0..REGION_BYTES / SPAN_BYTES)
                .map(|index| NonNull::new_unchecked(base.add(lead + index * SPAN_BYTES)))
                .collect()
        }
    }

    /// Returns the pages of a span to the system. Returns true if the span may be used again.
    ///
    /// # Safety
    /// The contents of the span must not be used again.
    pub(super) unsafe fn cool(span: NonNull<u8>) -> bool {
        // SAFETY: the span is in one of our regions. If the call fails, the only effect is that its
        // pages stay in RAM.
        let _ = unsafe { madvise(span.as_ptr().cast(), SPAN_BYTES, Advice::LinuxDontNeed) };
        if cfg!(slab_guard) {
            // SAFETY: as above.
            let _ = unsafe { mprotect(span.as_ptr().cast(), SPAN_BYTES, MprotectFlags::empty()) };
        }
        !cfg!(slab_guard)
    }
}

#[cfg(miri)]
mod system {
    use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
    use std::ptr::NonNull;

    use super::SPAN_BYTES;

    fn layout() -> Layout {
        Layout::from_size_align(SPAN_BYTES, SPAN_BYTES).expect("a power of two")
    }

    pub(super) fn map() -> Vec<NonNull<u8>> {
        // SAFETY: the layout is not empty.
        let span = unsafe { alloc(layout()) };
        vec![NonNull::new(span).unwrap_or_else(|| handle_alloc_error(layout()))]
    }

    pub(super) unsafe fn cool(span: NonNull<u8>) -> bool {
        // SAFETY: the span came from `map`, and is not used again.
        unsafe { dealloc(span.as_ptr(), layout()) };
        false
    }
}
