//! Creating a symbolic link.

use std::ffi::CString;
use std::io;

use io_uring::{opcode, squeue};
use rustix::fs::CWD;
use rustix::io::Errno;

use super::super::operation::{Operation, WhenDropped, has_not_begun};

pub(in super::super) struct Symlink {
    pub(in super::super) target: CString,
    pub(in super::super) path: CString,
}

// SAFETY: the paths are separate allocations, which the kernel only reads.
unsafe impl Operation for Symlink {
    type Output = io::Result<()>;
    const CODE: u8 = opcode::SymlinkAt::CODE;
    const WHEN_DROPPED: WhenDropped = WhenDropped::CarriedOut;

    fn entry(&mut self) -> squeue::Entry {
        opcode::SymlinkAt::new(super::cwd(), self.target.as_ptr(), self.path.as_ptr()).build()
    }

    fn block(&mut self) -> Result<u32, Errno> {
        rustix::fs::symlinkat(&self.target, CWD, &self.path).map(|()| 0)
    }

    fn is_retried(error: Errno) -> bool {
        // The link may already exist.
        has_not_begun(error)
    }

    fn finish(self, result: io::Result<u32>) -> io::Result<()> {
        result.map(drop)
    }
}
