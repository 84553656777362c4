//! Asking for memory before it is needed.
//!
//! A runtime with thousands of descriptors finds what belongs to the next one in no cache. What it will touch soon is known
//! a little earlier, when there is other work to do meanwhile.

/// Bytes of a line of the cache.
const LINE: usize = 64;

/// Bound, in bytes: what is asked for of one thing; the processor has some ten requests to the memory under way at most.
const BYTES_MAX: usize = 5 * LINE;

/// Asks for the line at an address, which may be any. It changes nothing that can be seen.
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

/// Asks for the lines of something, behind its first one.
#[inline(always)]
pub(crate) fn rest_of<T>(at: *const T) {
    for bytes in (LINE..size_of::<T>().min(BYTES_MAX)).step_by(LINE) {
        line(at.cast::<u8>().wrapping_add(bytes));
    }
}
