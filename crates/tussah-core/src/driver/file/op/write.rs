//! Writing at an offset or at the end, once or until everything is written.

use std::io::{self, IoSlice};
use std::slice;
use std::sync::Arc;

use io_uring::{opcode, squeue};
use rustix::io::{Errno, ReadWriteFlags};

use super::super::buffer::{IoBuf, Memory};
use super::super::open_file::Opened;
use super::super::operation::{Operation, WhenDropped};

/// The position of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum At {
    /// At this offset, in bytes from the start of the file.
    Offset(u64),
    /// At the end of the file at the time of the write.
    End,
}

pub(in super::super) struct Write<B> {
    file: Arc<Opened>,
    buffer: B,
    bytes: Memory,
    at: At,
    /// True if the write continues until everything is written.
    whole: bool,
    /// The number of bytes written.
    done: usize,
}

impl<B: IoBuf> Write<B> {
    pub(in super::super) fn new(file: Arc<Opened>, buffer: B, at: At, whole: bool) -> Self {
        Self {
            file,
            buffer,
            bytes: Memory::NONE,
            at,
            whole,
            done: 0,
        }
    }

    /// Returns the bytes of the next part.
    fn rest(&self) -> &[u8] {
        let (start, len) = self.bytes.rest(self.done, super::TRANSFER_MAX);
        // SAFETY: the bytes belong to the buffer, and nothing changes them (see `IoBuf` and
        // `Memory`). Only called after `prepare` has set them.
        unsafe { slice::from_raw_parts(start, len) }
    }

    fn offset(&self) -> u64 {
        match self.at {
            At::Offset(offset) => offset + self.done as u64,
            At::End => 0,
        }
    }

    fn flags(&self) -> ReadWriteFlags {
        match self.at {
            At::Offset(_) => ReadWriteFlags::empty(),
            At::End => ReadWriteFlags::APPEND,
        }
    }
}

// SAFETY: the entry points at the buffer's bytes. By the contract of `IoBuf` they stay in place,
// and the kernel only reads them.
unsafe impl<B: IoBuf> Operation for Write<B> {
    type Output = (io::Result<usize>, B);
    const CODE: u8 = opcode::Write::CODE;
    const WHEN_DROPPED: WhenDropped = WhenDropped::CarriedOut;

    fn prepare(&mut self) {
        self.bytes = Memory::of(&self.buffer);
    }

    fn entry(&mut self) -> squeue::Entry {
        let rest = self.rest();
        opcode::Write::new(super::raw(&self.file.fd), rest.as_ptr(), rest.len() as u32)
            .offset(self.offset())
            .rw_flags(self.flags().bits() as i32)
            .build()
    }

    fn block(&mut self) -> Result<u32, Errno> {
        let file = &self.file.fd;
        let written = match self.at {
            At::Offset(_) => rustix::io::pwrite(file, self.rest(), self.offset()),
            At::End => {
                let rest = [IoSlice::new(self.rest())];
                rustix::io::pwritev2(file, &rest, 0, self.flags())
            }
        };
        let written = match written {
            // A pipe has no offset. The ring ignores the offset there.
            Err(Errno::SPIPE) => rustix::io::write(file, self.rest()),
            written => written,
        };
        Ok(written? as u32)
    }

    fn goes_on(&mut self, written: u32) -> bool {
        self.done += written as usize;
        self.whole && written > 0 && self.done < self.bytes.len()
    }

    fn finish(self, result: io::Result<u32>) -> Self::Output {
        (result.map(|_| self.done), self.buffer)
    }
}
