//! Reading what the page cache has, before an operation is begun: as with sockets, the call is tried first.
//!
//! preadv2(2) with `RWF_NOWAIT` copies what is in memory and refuses what would have to come from the device. So a read of
//! cached pages costs one system call, and neither an operation nor a switch to another thread. Past the page cache (`O_DIRECT`) it
//! would wait for the device all the same, so that is not tried.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::Errno;

use super::buffer::Memory;

/// Bound, in bytes: into more room it is not tried, so that the copy does not hold up the others of this worker.
const ROOM_MAX: usize = 128 * 1024;

/// Whether it is worth to try.
pub(super) struct Cached(AtomicBool);

/// How far a trial came.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Tried {
    /// So many bytes were read, which fill the room or reach the file's end.
    All(usize),
    /// So many were read; what follows is not in memory, or nobody knows whether it is.
    Part(usize),
}

impl Cached {
    pub(super) fn of(fd: &OwnedFd) -> Self {
        let cached = fcntl_getfl(fd).is_ok_and(|flags| !flags.contains(OFlags::DIRECT));
        Self(AtomicBool::new(cached))
    }

    /// Reads what is in memory, from the room's beginning on.
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
                    // A file that can't say it, such as a pipe or one of /proc, or a system that refuses the call. What else is
                    // wrong, the operation will say.
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

/// One preadv2(2) that does not wait, into what is left of the room.
fn read_now(fd: &OwnedFd, room: &Memory, done: usize, offset: u64) -> Result<usize, Errno> {
    let (start, len) = room.rest(done, ROOM_MAX);
    let part = libc::iovec {
        iov_base: start.cast(),
        iov_len: len,
    };
    // SAFETY: the room is the buffer's, valid for writes, and nobody else uses it during the call: see `IoBufMut` and `Memory`. The call
    // takes the offset in two halves where a register is too short for it.
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
