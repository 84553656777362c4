//! Prefetching of memory that is needed soon.
//!
//! In a runtime with thousands of descriptors, the next descriptor's objects are not in any cache.
//! The runtime knows these objects a little earlier, while it has other work to do.

/// The size of a cache line, in bytes.
const LINE: usize = 64;

/// The length, in bytes, of the prefetched part of one object. A processor has at most about ten
/// memory requests in flight.
const BYTES_MAX: usize = 5 * LINE;

/// Prefetches the line at any address. It has no visible effect.
#[inline(always)]
pub(crate) fn line<T>(at: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
    // SAFETY: every x86-64 processor has the instruction, and it fails for no address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    let _ = at;
}

/// Prefetches the lines of an object of `len` bytes after its first one.
#[inline(always)]
pub(crate) fn rest_of<T>(at: *const T, len: usize) {
    for bytes in (LINE..len.min(BYTES_MAX)).step_by(LINE) {
        line(at.cast::<u8>().wrapping_add(bytes));
    }
}
