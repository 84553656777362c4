//! The directory beneath which everything is opened.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

use super::options::Symlinks;
use super::walk::{self, RootNames};

/// Bound, in attempts: how often one path is resolved again when somebody renames directories meanwhile.
const ATTEMPTS_MAX: usize = 16;

/// Whether one may wait for a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// Only what the kernel has in its cache of names.
    Never,
    Allowed,
}

/// How files are opened beneath the root; found out once, when it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beneath {
    /// By openat2(2), which can also be told not to wait for a disk (Linux 5.12).
    Kernel,
    /// By openat2(2), which may always wait for a disk (Linux 5.6).
    KernelWaits,
    /// One component at a time, since openat2(2) is missing or forbidden. It may always wait.
    Steps,
}

#[derive(Debug)]
pub(super) struct Root {
    directory: OwnedFd,
    beneath: Beneath,
    symlinks: Symlinks,
    /// For absolute links, if those are followed that stay inside.
    names: Option<RootNames>,
}

impl Root {
    /// Takes hold of a directory: if another one is put in its place later, this one stays.
    pub(super) fn open(path: &Path, symlinks: Symlinks) -> Result<Self, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat(CWD, path, flags, Mode::empty())?;
        // `.` itself is always in the cache, so that EAGAIN can't mean a disk here.
        let probe = |resolve| openat2(&directory, c".", flags, Mode::empty(), resolve);
        let beneath = if probe(ResolveFlags::BENEATH | ResolveFlags::CACHED).is_ok() {
            Beneath::Kernel
        } else if probe(ResolveFlags::BENEATH).is_ok() {
            Beneath::KernelWaits
        } else {
            Beneath::Steps
        };
        Ok(Self {
            directory,
            beneath,
            symlinks,
            names: (symlinks == Symlinks::Inside).then(|| RootNames::of(path)),
        })
    }

    #[cfg(test)]
    pub(super) fn force(&mut self, beneath: Beneath) {
        self.beneath = beneath;
    }

    pub(super) fn beneath(&self) -> Beneath {
        self.beneath
    }

    /// Opens a relative path; the descriptor is closed when another program is executed.
    pub(super) fn open_at(&self, path: &[u8], flags: OFlags, wait: Wait) -> Result<OwnedFd, Errno> {
        if wait == Wait::Never && self.beneath != Beneath::Kernel {
            return Err(Errno::AGAIN);
        }
        let flags = flags | OFlags::CLOEXEC;
        if self.beneath == Beneath::Steps {
            let root = self.directory.as_fd();
            return match self.symlinks {
                Symlinks::All => openat(root, path, flags, Mode::empty()),
                _ => walk::open_beneath(root, path, flags, self.names.as_ref()),
            };
        }
        match self.open_by_kernel(path, flags, wait) {
            // Perhaps by an absolute link, which the kernel does not follow, into the root.
            Err(Errno::XDEV) if self.names.is_some() => match wait {
                Wait::Never => Err(Errno::AGAIN),
                Wait::Allowed => {
                    walk::open_beneath(self.directory.as_fd(), path, flags, self.names.as_ref())
                }
            },
            result => result,
        }
    }

    fn open_by_kernel(&self, path: &[u8], flags: OFlags, wait: Wait) -> Result<OwnedFd, Errno> {
        let mut resolve = ResolveFlags::NO_MAGICLINKS;
        resolve |= match self.symlinks {
            Symlinks::None => ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
            Symlinks::Inside => ResolveFlags::BENEATH,
            Symlinks::All => ResolveFlags::empty(),
        };
        let open = |resolve| openat2(&self.directory, path, flags, Mode::empty(), resolve);
        if wait == Wait::Never {
            return open(resolve | ResolveFlags::CACHED);
        }
        // The kernel says EAGAIN when it can't rule out that a `..` left the root during a rename.
        for _ in 1..ATTEMPTS_MAX {
            match open(resolve) {
                Err(Errno::AGAIN) => {}
                result => return result,
            }
        }
        // It must not look as if asking later, and waiting, would help.
        open(resolve).map_err(|error| {
            if error == Errno::AGAIN {
                Errno::BUSY
            } else {
                error
            }
        })
    }
}
