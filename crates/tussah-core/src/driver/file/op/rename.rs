//! Renaming a file, which replaces the target.

use std::ffi::CString;
use std::io;

use io_uring::{opcode, squeue};
use rustix::fs::CWD;
use rustix::io::Errno;

use super::super::operation::{Operation, WhenDropped, has_not_begun};

pub(in super::super) struct Rename {
    pub(in super::super) from: CString,
    pub(in super::super) to: CString,
}

// SAFETY: the paths are separate allocations, which the kernel only reads.
unsafe impl Operation for Rename {
    type Output = io::Result<()>;
    const CODE: u8 = opcode::RenameAt::CODE;
    const WHEN_DROPPED: WhenDropped = WhenDropped::CarriedOut;

    fn entry(&mut self) -> squeue::Entry {
        opcode::RenameAt::new(
            super::cwd(),
            self.from.as_ptr(),
            super::cwd(),
            self.to.as_ptr(),
        )
        .build()
    }

    fn block(&mut self) -> Result<u32, Errno> {
        rustix::fs::renameat(CWD, &self.from, CWD, &self.to).map(|()| 0)
    }

    fn is_retried(error: Errno) -> bool {
        // The old name may no longer exist.
        has_not_begun(error)
    }

    fn finish(self, result: io::Result<u32>) -> io::Result<()> {
        result.map(drop)
    }
}
