//! Reads from the page cache, which are tried before an operation starts, as with sockets.
//!
//! preadv2(2) with `RWF_NOWAIT` copies the data that is in the page cache and refuses to read the
//! rest from the device. So a read of cached pages costs one system call, but no operation and no
//! switch to another OS thread. With `O_DIRECT` the call would wait for the device anyway, so it is
//! not tried there.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::Errno;

use super::buffer::Memory;

/// No attempt is made to fill a buffer of more than this many bytes, so that the copy does not
/// delay the worker's other events.
const ROOM_MAX: usize = 128 * 1024;

/// True if an attempt is worthwhile for a file.
pub(super) struct Cached(AtomicBool);

/// The result of an attempt.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Tried {
    /// This number of bytes was read: they fill the buffer or reach the end of the file.
    All(usize),
    /// This number of bytes was read. The following bytes are not in the page cache, or it is
    /// unknown whether they are.
    Part(usize),
}

impl Cached {
    pub(super) fn of(fd: &OwnedFd) -> Self {
        let cached = fcntl_getfl(fd).is_ok_and(|flags| !flags.contains(OFlags::DIRECT));
        Self(AtomicBool::new(cached))
    }

    /// Reads the bytes that are in the page cache into the beginning of the buffer.
    pub(super) fn read(&self, fd: &OwnedFd, room: &Memory, offset: u64) -> Tried {
        if room.len() == 0 || room.len() > ROOM_MAX || !self.0.load(Ordering::Relaxed) {
            return Tried::Part(0);
        }
        let mut done = 0;
        loop {
            match read_now(fd, room, done, offset + done as u64) {
                Ok(0) => return Tried::All(done),
                Ok(read) => done += read,
                Err(errno) => {
                    // The file does not support this call (a pipe, a file of /proc), or the system
                    // refuses it. Any other error is left to the operation.
                    if let Errno::OPNOTSUPP | Errno::SPIPE | Errno::NOSYS | Errno::PERM = errno {
                        self.0.store(false, Ordering::Relaxed);
                    }
                    return Tried::Part(done);
                }
            }
            if done == room.len() {
                return Tried::All(done);
            }
        }
    }
}

/// Makes one preadv2(2) call that does not wait, into the rest of the buffer.
fn read_now(fd: &OwnedFd, room: &Memory, done: usize, offset: u64) -> Result<usize, Errno> {
    let (start, len) = room.rest(done, ROOM_MAX);
    let part = libc::iovec {
        iov_base: start.cast(),
        iov_len: len,
    };
    // SAFETY: the memory belongs to the buffer: it is valid for writes, and nothing else uses it
    // during the call (see `IoBufMut` and `Memory`). The offset is passed in two halves, for
    // registers that are too short for it.
    let read = unsafe {
        libc::syscall(
            libc::SYS_preadv2,
            fd.as_raw_fd(),
            &raw const part,
            1usize,
            offset as usize,
            (u128::from(offset) >> usize::BITS) as usize,
            libc::RWF_NOWAIT,
        )
    };
    usize::try_from(read).map_err(|_| {
        let error = std::io::Error::last_os_error();
        Errno::from_io_error(&error).unwrap_or(Errno::IO)
    })
}
