//! Truncating or extending a file.

use std::io;
use std::sync::Arc;

use io_uring::{opcode, squeue};
use rustix::io::Errno;

use super::super::open_file::Opened;
use super::super::operation::{Operation, WhenDropped};

pub(in super::super) struct SetLen {
    pub(in super::super) file: Arc<Opened>,
    pub(in super::super) len: u64,
}

// SAFETY: the entry contains no pointer.
unsafe impl Operation for SetLen {
    type Output = io::Result<()>;
    const CODE: u8 = opcode::Ftruncate::CODE;
    const WHEN_DROPPED: WhenDropped = WhenDropped::CarriedOut;

    fn entry(&mut self) -> squeue::Entry {
        opcode::Ftruncate::new(super::raw(&self.file.fd), self.len).build()
    }

    fn block(&mut self) -> Result<u32, Errno> {
        rustix::fs::ftruncate(&self.file.fd, self.len).map(|()| 0)
    }

    fn finish(self, result: io::Result<u32>) -> io::Result<()> {
        result.map(drop)
    }
}
