//! Reading the metadata of a file.

use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;
use std::sync::Arc;

use io_uring::{opcode, squeue};
use rustix::fs::{AtFlags, CWD, Statx, StatxFlags};
use rustix::io::Errno;

use super::super::metadata::Metadata;
use super::super::open_file::Opened;
use super::super::operation::{Operation, WhenDropped};

/// The file whose metadata is read.
const MASK: StatxFlags = StatxFlags::BASIC_STATS.union(StatxFlags::BTIME);

/// Linux's size of `struct statx`.
const _: () = assert!(size_of::<Statx>() == 256);

pub(in super::super) enum What {
    File(Arc<Opened>),
    Path { path: CString, follow: bool },
}

pub(in super::super) struct Stat {
    what: What,
    result: Box<MaybeUninit<Statx>>,
}

impl Stat {
    pub(in super::super) fn new(what: What) -> Self {
        Self {
            what,
            result: Box::new(MaybeUninit::zeroed()),
        }
    }

    fn flags(&self) -> AtFlags {
        match &self.what {
            What::File(_) => AtFlags::EMPTY_PATH,
            What::Path { follow: true, .. } => AtFlags::empty(),
            What::Path { follow: false, .. } => AtFlags::SYMLINK_NOFOLLOW,
        }
    }
}

// SAFETY: the path and the result are separate allocations, and the empty path is static. The
// kernel writes only the result.
unsafe impl Operation for Stat {
    type Output = io::Result<Metadata>;
    const CODE: u8 = opcode::Statx::CODE;
    const WHEN_DROPPED: WhenDropped = WhenDropped::Cancelled;

    fn entry(&mut self) -> squeue::Entry {
        let (directory, path) = match &self.what {
            What::File(file) => (super::raw(&file.fd), c"".as_ptr()),
            What::Path { path, .. } => (super::cwd(), path.as_ptr()),
        };
        let flags = self.flags().bits() as i32;
        opcode::Statx::new(directory, path, self.result.as_mut_ptr().cast())
            .flags(flags)
            .mask(MASK.bits())
            .build()
    }

    fn block(&mut self) -> Result<u32, Errno> {
        let flags = self.flags();
        let result = match &self.what {
            What::File(file) => rustix::fs::statx(&file.fd, c"", flags, MASK),
            What::Path { path, .. } => rustix::fs::statx(CWD, path, flags, MASK),
        };
        self.result.write(result?);
        Ok(0)
    }

    fn finish(self, result: io::Result<u32>) -> io::Result<Metadata> {
        result?;
        // SAFETY: the ring or the pool has filled it, and all of its fields are integers.
        Ok(Metadata::new(unsafe { self.result.assume_init_ref() }))
    }
}
