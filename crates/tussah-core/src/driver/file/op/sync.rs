//! Flushing a file's content to the device.

use std::io;
use std::sync::Arc;

use io_uring::types::FsyncFlags;
use io_uring::{opcode, squeue};
use rustix::io::Errno;

use super::super::open_file::Opened;
use super::super::operation::{Operation, WhenDropped};

pub(in super::super) struct Sync {
    pub(in super::super) file: Arc<Opened>,
    /// Leaves out metadata that is not needed to read the data back, such as times.
    pub(in super::super) data_only: bool,
}

// SAFETY: the entry contains no pointer.
unsafe impl Operation for Sync {
    type Output = io::Result<()>;
    const CODE: u8 = opcode::Fsync::CODE;
    const WHEN_DROPPED: WhenDropped = WhenDropped::CarriedOut;

    fn entry(&mut self) -> squeue::Entry {
        let flags = if self.data_only {
            FsyncFlags::DATASYNC
        } else {
            FsyncFlags::empty()
        };
        opcode::Fsync::new(super::raw(&self.file.fd))
            .flags(flags)
            .build()
    }

    fn block(&mut self) -> Result<u32, Errno> {
        if self.data_only {
            rustix::fs::fdatasync(&self.file.fd)?;
        } else {
            rustix::fs::fsync(&self.file.fd)?;
        }
        Ok(0)
    }

    fn finish(self, result: io::Result<u32>) -> io::Result<()> {
        result.map(drop)
    }
}
