//! Creating a directory.

use std::ffi::CString;
use std::io;

use io_uring::{opcode, squeue};
use rustix::fs::{CWD, Mode};
use rustix::io::Errno;

use super::super::operation::{Operation, WhenDropped, has_not_begun};

pub(in super::super) struct MakeDir {
    pub(in super::super) path: CString,
    pub(in super::super) mode: Mode,
}

// SAFETY: the path is a separate allocation, which the kernel only reads.
unsafe impl Operation for MakeDir {
    type Output = io::Result<()>;
    const CODE: u8 = opcode::MkDirAt::CODE;
    const WHEN_DROPPED: WhenDropped = WhenDropped::CarriedOut;

    fn entry(&mut self) -> squeue::Entry {
        opcode::MkDirAt::new(super::cwd(), self.path.as_ptr())
            .mode(self.mode.as_raw_mode())
            .build()
    }

    fn block(&mut self) -> Result<u32, Errno> {
        rustix::fs::mkdirat(CWD, &self.path, self.mode).map(|()| 0)
    }

    fn is_retried(error: Errno) -> bool {
        // The directory may already exist.
        has_not_begun(error)
    }

    fn finish(self, result: io::Result<u32>) -> io::Result<()> {
        result.map(drop)
    }
}
