//! Closing a descriptor, with the resulting error.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use io_uring::types::Fd;
use io_uring::{opcode, squeue};
use rustix::io::Errno;

use super::super::operation::{Operation, WhenDropped, has_not_begun};

pub(in super::super) struct Close {
    /// The descriptor; it is ours until the kernel is known to have closed it.
    fd: RawFd,
    taken: bool,
}

impl Close {
    pub(in super::super) fn new(fd: OwnedFd) -> Self {
        let raw = fd.as_raw_fd();
        std::mem::forget(fd);
        Self {
            fd: raw,
            taken: false,
        }
    }
}

impl Drop for Close {
    fn drop(&mut self) {
        if !self.taken {
            // SAFETY: `new` has taken over the descriptor, and neither form has closed it.
            drop(unsafe { OwnedFd::from_raw_fd(self.fd) });
        }
    }
}

// SAFETY: the entry contains no pointer.
unsafe impl Operation for Close {
    type Output = io::Result<()>;
    const CODE: u8 = opcode::Close::CODE;
    const WHEN_DROPPED: WhenDropped = WhenDropped::CarriedOut;

    fn entry(&mut self) -> squeue::Entry {
        opcode::Close::new(Fd(self.fd)).build()
    }

    fn block(&mut self) -> Result<u32, Errno> {
        self.taken = true;
        // SAFETY: the descriptor is ours, and is not used again, whatever the result: see close(2).
        match unsafe { rustix::io::try_close(self.fd) } {
            // The descriptor is closed nevertheless.
            Err(Errno::INTR) => Ok(0),
            result => result.map(|()| 0),
        }
    }

    fn is_retried(error: Errno) -> bool {
        // After any other error, too, the descriptor is closed.
        has_not_begun(error)
    }

    fn finish(mut self, result: io::Result<u32>) -> io::Result<()> {
        let error = match &result {
            Ok(_) => None,
            Err(error) => Errno::from_io_error(error),
        };
        // A descriptor that the kernel has not seen is closed when this is dropped.
        self.taken |= result.is_ok() || error.is_some_and(|error| error != Errno::CANCELED);
        match error {
            Some(Errno::INTR) => Ok(()),
            _ => result.map(drop),
        }
    }
}
