//! Reading at an offset, once or until the buffer is full.

use std::io;
use std::mem::MaybeUninit;
use std::slice;
use std::sync::Arc;

use io_uring::{opcode, squeue};
use rustix::io::Errno;

use super::super::buffer::IoBufMut;
use super::super::operation::{Operation, WhenDropped};
use super::super::open_file::Opened;

pub(in super::super) struct Read<B> {
    pub(in super::super) file: Arc<Opened>,
    pub(in super::super) buffer: B,
    pub(in super::super) offset: u64,
    /// The buffer is to be filled, as far as the file reaches.
    pub(in super::super) whole: bool,
    /// Bytes that have been read.
    pub(in super::super) done: usize,
}

impl<B: IoBufMut> Read<B> {
    /// What is to be read into next.
    fn room(&mut self) -> (*mut u8, usize) {
        let capacity = self.buffer.capacity();
        let done = self.done.min(capacity);
        // SAFETY: within the room that the buffer promises.
        let start = unsafe { self.buffer.start().add(done) };
        (start, (capacity - done).min(super::TRANSFER_MAX))
    }
}

// SAFETY: the entry points at the buffer's room, which by the contract of `IoBufMut` stays where it is and may be written.
unsafe impl<B: IoBufMut> Operation for Read<B> {
    type Output = (io::Result<usize>, B);
    const CODE: u8 = opcode::Read::CODE;
    const WHEN_DROPPED: WhenDropped = WhenDropped::Cancelled;

    fn entry(&mut self) -> squeue::Entry {
        let (start, len) = self.room();
        opcode::Read::new(super::raw(&self.file.fd), start, len as u32)
            .offset(self.offset + self.done as u64)
            .build()
    }

    fn block(&mut self) -> Result<u32, Errno> {
        let (start, len) = self.room();
        // SAFETY: the room is the buffer's, valid for writes, and nobody else uses it.
        let room = unsafe { slice::from_raw_parts_mut(start.cast::<MaybeUninit<u8>>(), len) };
        let offset = self.offset + self.done as u64;
        let read = match rustix::io::pread(&self.file.fd, &mut *room, offset) {
            // A pipe has no offset; the ring does not mind.
            Err(Errno::SPIPE) => rustix::io::read(&self.file.fd, room),
            read => read,
        };
        Ok(read?.0.len() as u32)
    }

    fn goes_on(&mut self, read: u32) -> bool {
        self.done += read as usize;
        self.whole && read > 0 && self.done < self.buffer.capacity()
    }

    fn finish(mut self, result: io::Result<u32>) -> Self::Output {
        let result = result.map(|_| {
            // SAFETY: so many have been written, and never more than there was room for.
            unsafe { self.buffer.set_filled(self.done) };
            self.done
        });
        (result, self.buffer)
    }
}
