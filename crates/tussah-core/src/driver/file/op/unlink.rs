//! Removing a name of a file, or an empty directory.

use std::ffi::CString;
use std::io;

use io_uring::{opcode, squeue};
use rustix::fs::{AtFlags, CWD};
use rustix::io::Errno;

use super::super::operation::{Operation, WhenDropped, has_not_begun};

pub(in super::super) struct Unlink {
    pub(in super::super) path: CString,
    pub(in super::super) directory: bool,
}

impl Unlink {
    fn flags(&self) -> AtFlags {
        if self.directory {
            AtFlags::REMOVEDIR
        } else {
            AtFlags::empty()
        }
    }
}

// SAFETY: the path is a separate allocation, which the kernel only reads.
unsafe impl Operation for Unlink {
    type Output = io::Result<()>;
    const CODE: u8 = opcode::UnlinkAt::CODE;
    const WHEN_DROPPED: WhenDropped = WhenDropped::CarriedOut;

    fn entry(&mut self) -> squeue::Entry {
        let flags = self.flags().bits() as i32;
        opcode::UnlinkAt::new(super::cwd(), self.path.as_ptr())
            .flags(flags)
            .build()
    }

    fn block(&mut self) -> Result<u32, Errno> {
        rustix::fs::unlinkat(CWD, &self.path, self.flags()).map(|()| 0)
    }

    fn is_retried(error: Errno) -> bool {
        // The name may no longer exist.
        has_not_begun(error)
    }

    fn finish(self, result: io::Result<u32>) -> io::Result<()> {
        result.map(drop)
    }
}
