//! The operations, one per file, each with a form for the ring and a form for the pool.

pub(super) mod close;
pub(super) mod link;
pub(super) mod make_dir;
pub(super) mod open;
pub(super) mod read;
pub(super) mod rename;
pub(super) mod set_len;
pub(super) mod stat;
pub(super) mod symlink;
pub(super) mod sync;
pub(super) mod unlink;
pub(super) mod write;

use std::os::fd::{AsFd, AsRawFd};

use io_uring::types::Fd;

/// The maximum number of bytes that one system call reads or writes: Linux's `MAX_RW_COUNT` for
/// pages of 4 KiB.
const TRANSFER_MAX: usize = 0x7fff_f000;

/// Returns a descriptor in the form that an entry uses.
fn raw(fd: impl AsFd) -> Fd {
    Fd(fd.as_fd().as_raw_fd())
}

/// Returns the start of relative paths: the working directory.
fn cwd() -> Fd {
    raw(rustix::fs::CWD)
}
