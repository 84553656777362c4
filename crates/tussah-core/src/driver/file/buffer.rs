//! Buffers that an operation owns while the kernel has them.

use std::sync::Arc;

/// Bytes to be written.
///
/// The operation owns the buffer until it has ended, also if its future is dropped before: then the buffer is dropped when the
/// kernel is done with it.
///
/// # Safety
/// `bytes` gives the same memory each time, also after `self` was moved, for the life of `self`, unless something else of `self` is used;
/// the memory does not change meanwhile.
///
/// An operation calls `bytes` once, in its first poll, and keeps what it says: the memory is used from then on until the
/// operation has ended, and `self` not at all. A panic is one of that poll, and nothing is written.
pub unsafe trait IoBuf: Send + Unpin + 'static {
    /// What is to be written.
    fn bytes(&self) -> &[u8];
}

/// Room to be read into.
///
/// The operation owns the buffer until it has ended, also if its future is dropped before: then the buffer is dropped when the
/// kernel is done with it.
///
/// # Safety
/// `start` and `capacity` give the same memory each time, also after `self` was moved, for the life of `self`, unless something else of
/// `self` is used but these two. It is valid for writes of `capacity` bytes, and nobody else uses it meanwhile.
///
/// An operation calls both before it begins: to read what is in memory, and once more if it has to wait. It keeps what they say: the
/// memory is used from then on until the operation has ended, and `self` not at all. `set_filled` is called in the poll that gives
/// the result, unless that is an error. A panic is one of the poll in which it happens.
pub unsafe trait IoBufMut: Send + Unpin + 'static {
    /// Where the room begins.
    fn start(&mut self) -> *mut u8;

    /// How long it is, in bytes.
    fn capacity(&self) -> usize;

    /// Says how much of the room, from its beginning, has been read into: for a buffer that knows its length, this is
    /// the new one.
    ///
    /// # Safety
    /// So many bytes have been written, and are no more than `capacity`.
    unsafe fn set_filled(&mut self, len: usize);
}

/// The memory of a buffer, as it has said. It is valid as long as the buffer, which the same operation owns, and whose
/// methods nobody calls meanwhile.
pub(super) struct Memory {
    start: *mut u8,
    len: usize,
}

// SAFETY: as the buffer, whose exclusive owner is the operation that has this.
unsafe impl Send for Memory {}

impl Memory {
    /// Of a buffer that has not been asked.
    pub(super) const NONE: Self = Self {
        start: std::ptr::null_mut(),
        len: 0,
    };

    /// What is to be written, which nobody writes to.
    pub(super) fn of(buffer: &impl IoBuf) -> Self {
        let bytes = buffer.bytes();
        Self {
            start: bytes.as_ptr().cast_mut(),
            len: bytes.len(),
        }
    }

    /// What is to be read into.
    pub(super) fn of_mut(buffer: &mut impl IoBufMut) -> Self {
        let len = buffer.capacity();
        let start = buffer.start();
        Self { start, len }
    }

    /// Its length, in bytes.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// What is left behind so many bytes, and at most `len_max` bytes of it.
    pub(super) fn rest(&self, done: usize, len_max: usize) -> (*mut u8, usize) {
        let done = done.min(self.len);
        (
            self.start.wrapping_add(done),
            (self.len - done).min(len_max),
        )
    }
}

/// What owns its bytes in an allocation of its own, which does not move with it.
macro_rules! io_buf {
    ($($type:ty: |$this:ident| $bytes:expr;)*) => {$(
        // SAFETY: the bytes are in an allocation, or are static, and change only through `&mut self` or not at all.
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

/// The room is the capacity; afterwards the vector holds exactly what was read.
// SAFETY: the room is the vector's allocation, which moves only when it grows.
unsafe impl IoBufMut for Vec<u8> {
    fn start(&mut self) -> *mut u8 {
        self.as_mut_ptr()
    }

    fn capacity(&self) -> usize {
        self.capacity()
    }

    unsafe fn set_filled(&mut self, len: usize) {
        // SAFETY: the caller's promise.
        unsafe { self.set_len(len) }
    }
}

/// The room is the whole slice, of which what was read is the beginning.
// SAFETY: the room is the box's allocation.
unsafe impl IoBufMut for Box<[u8]> {
    fn start(&mut self) -> *mut u8 {
        self.as_mut_ptr()
    }

    fn capacity(&self) -> usize {
        self.len()
    }

    unsafe fn set_filled(&mut self, _len: usize) {}
}
