//! Reading at an offset, once or until the buffer is full.

use std::io;
use std::mem::MaybeUninit;
use std::slice;
use std::sync::Arc;

use io_uring::{opcode, squeue};
use rustix::io::Errno;

use super::super::buffer::{IoBufMut, Memory};
use super::super::open_file::Opened;
use super::super::operation::{Operation, WhenDropped};

pub(in super::super) struct Read<B> {
    file: Arc<Opened>,
    buffer: B,
    room: Memory,
    offset: u64,
    /// True if the read continues until the buffer is full or the file ends.
    whole: bool,
    /// The number of bytes read.
    done: usize,
}

impl<B: IoBufMut> Read<B> {
    /// Creates the rest of a read, of which `done` bytes are already in the buffer.
    pub(in super::super) fn new(
        file: Arc<Opened>,
        buffer: B,
        offset: u64,
        whole: bool,
        done: usize,
    ) -> Self {
        Self {
            file,
            buffer,
            room: Memory::NONE,
            offset,
            whole,
            done,
        }
    }

    /// Returns the memory for the next part.
    fn rest(&self) -> (*mut u8, usize) {
        self.room.rest(self.done, super::TRANSFER_MAX)
    }
}

// SAFETY: the entry points at the buffer's memory. By the contract of `IoBufMut` it stays in place
// and may be written.
unsafe impl<B: IoBufMut> Operation for Read<B> {
    /// The number of bytes read, and the buffer, whose length has not been set yet.
    type Output = (io::Result<usize>, B);
    const CODE: u8 = opcode::Read::CODE;
    const WHEN_DROPPED: WhenDropped = WhenDropped::Cancelled;

    fn prepare(&mut self) {
        self.room = Memory::of_mut(&mut self.buffer);
    }

    fn entry(&mut self) -> squeue::Entry {
        let (start, len) = self.rest();
        opcode::Read::new(super::raw(&self.file.fd), start, len as u32)
            .offset(self.offset + self.done as u64)
            .build()
    }

    fn block(&mut self) -> Result<u32, Errno> {
        let (start, len) = self.rest();
        // SAFETY: the memory belongs to the buffer: it is valid for writes, and nothing else uses
        // it (see `IoBufMut` and `Memory`).
        let room = unsafe { slice::from_raw_parts_mut(start.cast::<MaybeUninit<u8>>(), len) };
        let offset = self.offset + self.done as u64;
        let read = match rustix::io::pread(&self.file.fd, &mut *room, offset) {
            // A pipe has no offset. The ring ignores the offset there.
            Err(Errno::SPIPE) => rustix::io::read(&self.file.fd, room),
            read => read,
        };
        Ok(read?.0.len() as u32)
    }

    fn goes_on(&mut self, read: u32) -> bool {
        self.done += read as usize;
        self.whole && read > 0 && self.done < self.room.len()
    }

    fn finish(self, result: io::Result<u32>) -> Self::Output {
        (result.map(|_| self.done), self.buffer)
    }
}
