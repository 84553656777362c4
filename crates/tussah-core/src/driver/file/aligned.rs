//! A buffer with a given alignment, for direct I/O.

use std::alloc::{self, Layout};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::{fmt, slice};

use super::buffer::{IoBuf, IoBufMut};

/// Bound, in bytes: the largest alignment of a buffer; a larger one panics. No device requires more
/// than a huge page.
const ALIGN_MAX: usize = 2 * 1024 * 1024;

/// A buffer whose address is a multiple of a given power of two, for files opened with `direct`.
///
/// The buffer has a fixed capacity and a length, and dereferences to a slice of that length.
///
/// # Examples
/// ```
/// # mod tussah { pub use tussah_core::file as fs; }
/// use tussah::fs::AlignedBuf;
///
/// let mut buffer = AlignedBuf::zeroed(8192, 4096);
/// buffer[..5].copy_from_slice(b"hello");
/// assert_eq!((buffer.len(), buffer.as_ptr() as usize % 4096), (8192, 0));
/// ```
pub struct AlignedBuf {
    start: NonNull<u8>,
    /// The length, in bytes; all bytes are initialized.
    len: usize,
    layout: Layout,
}

// SAFETY: the buffer owns its bytes.
unsafe impl Send for AlignedBuf {}
// SAFETY: as above; shared access only reads the bytes.
unsafe impl Sync for AlignedBuf {}

impl AlignedBuf {
    /// Creates an empty buffer that can hold `capacity` bytes.
    ///
    /// # Panics
    /// Panics if `align` is not a power of two up to 2 MiB, or if the capacity is larger than
    /// `isize::MAX`.
    #[must_use]
    pub fn with_capacity(capacity: usize, align: usize) -> Self {
        assert!(
            align.is_power_of_two() && align <= ALIGN_MAX,
            "expected an alignment that is a power of two up to 2 MiB, got {align}"
        );
        let layout = Layout::from_size_align(capacity.max(1), align)
            .expect("a capacity is at most `isize::MAX`");
        // SAFETY: the size is not zero. The bytes are zeroed so that `set_len` is a safe function.
        let start = unsafe { alloc::alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else {
            alloc::handle_alloc_error(layout);
        };
        Self {
            start,
            len: 0,
            layout: Layout::from_size_align(capacity, align).unwrap_or(layout),
        }
    }

    /// Creates a buffer that contains `len` zero bytes.
    ///
    /// # Panics
    /// Panics in the same cases as [`with_capacity`](Self::with_capacity).
    #[must_use]
    pub fn zeroed(len: usize, align: usize) -> Self {
        let mut buffer = Self::with_capacity(len, align);
        buffer.len = len;
        buffer
    }

    /// Returns the capacity, in bytes.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.layout.size()
    }

    /// Returns the alignment, in bytes.
    #[must_use]
    pub fn align(&self) -> usize {
        self.layout.align()
    }

    /// Sets the length. Bytes that were never written are zero.
    ///
    /// # Panics
    /// Panics if `len` exceeds the capacity.
    pub fn set_len(&mut self, len: usize) {
        let capacity = self.capacity();
        assert!(
            len <= capacity,
            "expected at most {capacity} bytes, the capacity, got {len}"
        );
        self.len = len;
    }
}

impl Drop for AlignedBuf {
    fn drop(&mut self) {
        let size = self.layout.size().max(1);
        // SAFETY: this is the valid layout that `with_capacity` used, and the bytes are owned.
        unsafe {
            let layout = Layout::from_size_align_unchecked(size, self.layout.align());
            alloc::dealloc(self.start.as_ptr(), layout);
        }
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: all bytes are initialized from the beginning, and owned.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for AlignedBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

// SAFETY: the bytes are in an allocation that never moves.
unsafe impl IoBuf for AlignedBuf {
    fn bytes(&self) -> &[u8] {
        self
    }
}

// SAFETY: as above, and the buffer owns it.
unsafe impl IoBufMut for AlignedBuf {
    fn start(&mut self) -> *mut u8 {
        self.start.as_ptr()
    }

    fn capacity(&self) -> usize {
        self.capacity()
    }

    unsafe fn set_filled(&mut self, len: usize) {
        self.set_len(len);
    }
}

impl fmt::Debug for AlignedBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AlignedBuf")
            .field("len", &self.len)
            .field("capacity", &self.capacity())
            .field("align", &self.align())
            .finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::AlignedBuf;

    #[test]
    fn length_and_capacity() {
        let mut buffer = AlignedBuf::with_capacity(100, 512);
        assert_eq!(
            (buffer.len(), buffer.capacity(), buffer.align()),
            (0, 100, 512)
        );
        assert_eq!(buffer.as_ptr().addr() % 512, 0);
        buffer.set_len(100);
        assert_eq!(&buffer[..], [0; 100]);
        let empty = AlignedBuf::zeroed(0, 4096);
        assert_eq!((empty.len(), empty.capacity()), (0, 0));
    }

    #[test]
    #[should_panic = "expected at most 8 bytes"]
    fn the_length_stays_below_the_capacity() {
        AlignedBuf::with_capacity(8, 8).set_len(9);
    }
}
