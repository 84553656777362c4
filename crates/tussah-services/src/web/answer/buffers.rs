//! Buffers of evicted pages, for reuse.
//!
//! Most allocators map a large page separately, and its memory is faulted in again each time. The
//! next page of about the same size therefore reuses the buffer of an evicted page, as in Haboob
//! (Welsh, Culler and Brewer: SEDA, SOSP 2001, section 5.1.1).

use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam_queue::ArrayQueue;

/// The length of the shortest buffer, in bytes. Short buffers are kept, too: with the C library's
/// allocator, memory that the OS threads of *disk* allocate and workers free is not available to
/// others.
const BYTES_MIN: usize = 512;

/// The number of sizes in each doubling, so that at most a fifth of a buffer is unused.
const STEPS: usize = 4;

/// The length, in bytes, above which buffers are not kept, and the maximum length of all kept
/// buffers of one size.
const BYTES_MAX: usize = 1024 * 1024;

/// The ratio of the cache's size to the size of all spare buffers; one of the longest buffers is
/// kept in any case. The number of buffers of a size varies as pages come and go. With a bound for
/// each size alone, the total would grow to the sum of all maxima.
const CACHE_RATIO: u64 = 16;

/// The maximum number of spare buffers of one size.
const SPARE_MAX: usize = 64;

/// Spare buffers by size.
pub(crate) struct Buffers {
    classes: Box<[ArrayQueue<Vec<u8>>]>,
    /// The total size of the spare buffers, in bytes.
    spare_bytes: AtomicUsize,
    spare_bytes_max: usize,
}

impl Buffers {
    /// Creates an empty pool for a cache of `cache_bytes` bytes.
    pub(crate) fn new(cache_bytes: u64) -> Self {
        let places = |class| ArrayQueue::new((BYTES_MAX / size(class)).min(SPARE_MAX));
        Self {
            classes: (0..=class(BYTES_MAX)).map(places).collect(),
            spare_bytes: AtomicUsize::new(0),
            spare_bytes_max: ((cache_bytes / CACHE_RATIO) as usize).max(BYTES_MAX),
        }
    }

    /// Returns a buffer of at least `len` bytes with arbitrary contents.
    pub(crate) fn take(&self, len: usize) -> Vec<u8> {
        let class = class(len);
        let Some(spare) = self.classes.get(class) else {
            return vec![0; len];
        };
        let Some(buffer) = spare.pop() else {
            return vec![0; size(class)];
        };
        self.spare_bytes.fetch_sub(buffer.len(), Ordering::Relaxed);
        buffer
    }

    /// Keeps a buffer that was [taken](Self::take), unless there are already enough of its size, or
    /// in total.
    pub(crate) fn put(&self, buffer: Vec<u8>) {
        let len = buffer.len();
        if len < BYTES_MIN {
            return;
        }
        let Some(spare) = self.classes.get(class(len)) else {
            return;
        };
        // The buffer is counted before other threads can take it, so that the count never drops
        // below 0.
        let before = self.spare_bytes.fetch_add(len, Ordering::Relaxed);
        if before + len > self.spare_bytes_max || spare.push(buffer).is_err() {
            self.spare_bytes.fetch_sub(len, Ordering::Relaxed);
        }
    }
}

/// Returns the smallest class whose buffers have at least `len` bytes.
fn class(len: usize) -> usize {
    let len = len.max(BYTES_MIN);
    let doublings = (len / BYTES_MIN).ilog2() as usize;
    let start = BYTES_MIN << doublings;
    doublings * STEPS + (len - start).div_ceil(start / STEPS)
}

/// Returns the size of the buffers of a class.
fn size(class: usize) -> usize {
    let start = BYTES_MIN << (class / STEPS);
    start + class % STEPS * (start / STEPS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_what_they_are_for() {
        for len in (BYTES_MIN..3_000_000).step_by(997) {
            let (size, below) = (size(class(len)), class(len).checked_sub(1).map_or(0, size));
            assert!(
                below < len && len <= size,
                "{len} is not in {below}..{size}"
            );
            assert!(size <= len + len.div_ceil(STEPS));
            assert_eq!(class(size), class(len));
        }
    }

    #[test]
    fn a_buffer_is_used_again() {
        let buffers = Buffers::new(0);
        let first = buffers.take(100_000);
        let place = first.as_ptr();
        buffers.put(first);
        let (other, again) = (buffers.take(40_000), buffers.take(99_000));
        assert_ne!(other.as_ptr(), place, "that is another size");
        assert_eq!(again.as_ptr(), place);
        for _ in 0..100 {
            buffers.put(vec![0; BYTES_MIN]);
        }
        assert_eq!(buffers.classes[0].len(), SPARE_MAX);
        assert_eq!(buffers.take(10).len(), BYTES_MIN);
        assert_eq!(buffers.classes[0].len(), SPARE_MAX - 1);
        buffers.put(buffers.take(5_000_000));
    }

    #[test]
    fn all_sizes_together_are_bounded() {
        let bound = 2 * BYTES_MAX;
        let buffers = Buffers::new(bound as u64 * CACHE_RATIO);
        let kept = || {
            let of_class = |(class, spare): (usize, &ArrayQueue<_>)| size(class) * spare.len();
            buffers
                .classes
                .iter()
                .enumerate()
                .map(of_class)
                .sum::<usize>()
        };
        for class in 0..buffers.classes.len() {
            for _ in 0..SPARE_MAX {
                buffers.put(vec![0; size(class)]);
            }
        }
        assert!((bound - BYTES_MAX..=bound).contains(&kept()), "{}", kept());
        assert_eq!(buffers.spare_bytes.load(Ordering::Relaxed), kept());
        // There is room again for exactly the buffers that were taken out.
        let (before, short) = (kept(), buffers.take(BYTES_MIN));
        assert_eq!(kept(), before - BYTES_MIN);
        buffers.put(short);
        assert_eq!(kept(), before);
    }
}
