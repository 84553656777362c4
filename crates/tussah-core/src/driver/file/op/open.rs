//! Opening a file.

use std::ffi::CString;
use std::io;
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};

use io_uring::{opcode, squeue};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

use super::super::operation::{Operation, WhenDropped};

pub(in super::super) struct Open {
    pub(in super::super) path: CString,
    pub(in super::super) flags: OFlags,
    pub(in super::super) mode: Mode,
}

// SAFETY: the path is a separate allocation, which the kernel only reads.
unsafe impl Operation for Open {
    type Output = io::Result<OwnedFd>;
    const CODE: u8 = opcode::OpenAt::CODE;
    // Opening a FIFO can take forever.
    const WHEN_DROPPED: WhenDropped = WhenDropped::Cancelled;

    fn entry(&mut self) -> squeue::Entry {
        opcode::OpenAt::new(super::cwd(), self.path.as_ptr())
            .flags(self.flags.bits() as i32)
            .mode(self.mode.as_raw_mode())
            .build()
            // Without this flag the kernel first tries as if `O_NONBLOCK` were set, which has
            // another meaning for a FIFO.
            .flags(squeue::Flags::ASYNC)
    }

    fn block(&mut self) -> Result<u32, Errno> {
        let fd = rustix::fs::openat(CWD, &self.path, self.flags, self.mode)?;
        // In the form of the ring's result; `finish` takes ownership again.
        Ok(fd.into_raw_fd() as u32)
    }

    fn finish(self, result: io::Result<u32>) -> io::Result<OwnedFd> {
        let fd = result?;
        // SAFETY: the result of either form is a new descriptor without another owner. Tested by
        // `a_future_that_is_dropped_leaves_no_descriptor`.
        Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
    }
}
