//! Buffers that an operation owns while the kernel uses them.

use std::sync::Arc;

/// Bytes to write.
///
/// An operation owns its buffer until the operation has ended. If the future is dropped earlier,
/// the buffer is dropped when the kernel no longer uses it.
///
/// # Safety
/// While `self` lives and no other method of `self` is called, `bytes` must return the same memory
/// on every call, even after `self` was moved. Until another method is called or `self` is dropped,
/// the content of the memory must not change.
///
/// An operation calls `bytes` once, in its first poll, and keeps the result. Until the operation
/// ends, it uses this memory, and calls no method of `self`. If `bytes` panics, the poll that
/// called it panics, and nothing is written.
pub unsafe trait IoBuf: Send + Unpin + 'static {
    /// Returns the bytes to write.
    fn bytes(&self) -> &[u8];
}

/// Memory to read into.
///
/// An operation owns its buffer until the operation has ended. If the future is dropped earlier,
/// the buffer is dropped when the kernel no longer uses it.
///
/// # Safety
/// While `self` lives and no methods other than `start` and `capacity` are called, these two must
/// return the same values on every call, even after `self` was moved. Until another method is
/// called or `self` is dropped, the memory must be valid for writes of `capacity` bytes, and
/// nothing else may use it.
///
/// An operation calls both methods before it reads from the page cache, and again if it has to wait
/// for the device. The operation keeps the results of the last calls. Until the operation ends, it
/// uses this memory, and calls no method of `self`. In the poll that returns the result, the
/// operation calls `set_filled`, unless the result is an error. If a method panics, the poll that
/// called it panics.
pub unsafe trait IoBufMut: Send + Unpin + 'static {
    /// Returns a pointer to the start of the memory.
    fn start(&mut self) -> *mut u8;

    /// Returns the length of the memory, in bytes.
    fn capacity(&self) -> usize;

    /// Reports that a read has filled the first `len` bytes of the memory. If the buffer has a
    /// length, this method sets it to `len`.
    ///
    /// # Safety
    /// The first `len` bytes must have been written, and `len` must be at most `capacity`.
    unsafe fn set_filled(&mut self, len: usize);
}

/// The memory of a buffer, as the buffer returned it. It is valid as long as the buffer, which the
/// same operation owns; during that time, nothing else calls the buffer's methods.
pub(super) struct Memory {
    start: *mut u8,
    len: usize,
}

// SAFETY: as for the buffer; the operation that has this value is its exclusive owner.
unsafe impl Send for Memory {}

impl Memory {
    /// The memory of a buffer that has not been asked yet.
    pub(super) const NONE: Self = Self {
        start: std::ptr::null_mut(),
        len: 0,
    };

    /// Returns the bytes to write. Nothing writes to these bytes.
    pub(super) fn of(buffer: &impl IoBuf) -> Self {
        let bytes = buffer.bytes();
        Self {
            start: bytes.as_ptr().cast_mut(),
            len: bytes.len(),
        }
    }

    /// Returns the memory to read into.
    pub(super) fn of_mut(buffer: &mut impl IoBufMut) -> Self {
        let len = buffer.capacity();
        let start = buffer.start();
        Self { start, len }
    }

    /// Returns the length, in bytes.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the memory after the first `done` bytes, limited to `len_max` bytes.
    pub(super) fn rest(&self, done: usize, len_max: usize) -> (*mut u8, usize) {
        let done = done.min(self.len);
        (
            self.start.wrapping_add(done),
            (self.len - done).min(len_max),
        )
    }
}

/// Implements `IoBuf` for types whose bytes are in an allocation that does not move with them.
macro_rules! io_buf {
    ($($type:ty: |$this:ident| $bytes:expr;)*) => {$(
        // SAFETY: the bytes are static or in an allocation, and change only through `&mut self`, if
        // at all.
        unsafe impl IoBuf for $type {
            fn bytes(&self) -> &[u8] {
                let $this = self;
                $bytes
            }
        }
    )*};
}

io_buf! {
    Vec<u8>: |bytes| bytes;
    Box<[u8]>: |bytes| bytes;
    Arc<[u8]>: |bytes| bytes;
    Arc<Vec<u8>>: |bytes| bytes;
    &'static [u8]: |bytes| bytes;
    String: |text| text.as_bytes();
    Box<str>: |text| text.as_bytes();
    Arc<str>: |text| text.as_bytes();
    &'static str: |text| text.as_bytes();
}

// SAFETY: the bytes are static.
unsafe impl<const N: usize> IoBuf for &'static [u8; N] {
    fn bytes(&self) -> &[u8] {
        *self
    }
}

/// The capacity of the vector is the memory to read into. After a read, the vector holds exactly
/// the bytes read.
// SAFETY: the memory is the vector's allocation, which moves only when it grows.
unsafe impl IoBufMut for Vec<u8> {
    fn start(&mut self) -> *mut u8 {
        self.as_mut_ptr()
    }

    fn capacity(&self) -> usize {
        self.capacity()
    }

    unsafe fn set_filled(&mut self, len: usize) {
        // SAFETY: the caller promises that these bytes are written.
        unsafe { self.set_len(len) }
    }
}

/// The whole slice is the memory to read into. A read fills its beginning.
// SAFETY: the memory is the box's allocation.
unsafe impl IoBufMut for Box<[u8]> {
    fn start(&mut self) -> *mut u8 {
        self.as_mut_ptr()
    }

    fn capacity(&self) -> usize {
        self.len()
    }

    unsafe fn set_filled(&mut self, _len: usize) {}
}
