//! The directory beneath which all files are opened.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::{Errno, retry_on_intr};

use super::options::Symlinks;
use super::walk::{self, RootNames};

/// Bound, in attempts: the maximum number of attempts to resolve one path while directories are
/// being renamed, after which the request fails.
const ATTEMPTS_MAX: usize = 16;

/// The permission to wait for a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// Look only at names in the kernel's cache.
    Never,
    Allowed,
}

/// The method by which a site opens files beneath its root. The method depends on what the kernel
/// supports and permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beneath {
    /// Use openat2(2), which can avoid waiting for a disk (Linux 5.12 or later).
    Kernel,
    /// Use openat2(2), even though it may wait for a disk on this kernel (Linux 5.6 to 5.11).
    KernelWaits,
    /// Open a path one component at a time, because openat2(2) is missing or forbidden. Each step
    /// may wait for a disk.
    Steps,
}

#[derive(Debug)]
pub(super) struct Root {
    /// `None` if there are no files.
    directory: Option<OwnedFd>,
    beneath: Beneath,
    symlinks: Symlinks,
    /// The names of the root for absolute links, if links that stay inside are followed.
    names: Option<RootNames>,
}

impl Root {
    /// Opens a directory. If its path later names another directory, this one stays open.
    pub(super) fn open(path: &Path, symlinks: Symlinks) -> Result<Self, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = retry_on_intr(|| openat(CWD, path, flags, Mode::empty()))?;
        // `.` itself is always in the cache, so EAGAIN cannot mean a disk here.
        let probe = |resolve| openat2(&directory, c".", flags, Mode::empty(), resolve);
        let beneath = if probe(ResolveFlags::BENEATH | ResolveFlags::CACHED).is_ok() {
            Beneath::Kernel
        } else if probe(ResolveFlags::BENEATH).is_ok() {
            Beneath::KernelWaits
        } else {
            Beneath::Steps
        };
        Ok(Self {
            directory: Some(directory),
            beneath,
            symlinks,
            names: (symlinks == Symlinks::Inside).then(|| RootNames::of(path)),
        })
    }

    /// Creates a root without files. It does not touch the file system.
    pub(super) fn empty() -> Self {
        Self {
            directory: None,
            beneath: Beneath::Kernel,
            symlinks: Symlinks::None,
            names: None,
        }
    }

    #[cfg(test)]
    pub(super) fn force(&mut self, beneath: Beneath) {
        self.beneath = beneath;
    }

    pub(super) fn beneath(&self) -> Beneath {
        self.beneath
    }

    /// Opens a relative path. The descriptor is closed on exec.
    pub(super) fn open_at(&self, path: &[u8], flags: OFlags, wait: Wait) -> Result<OwnedFd, Errno> {
        retry_on_intr(|| self.open_once(path, flags, wait))
    }

    fn open_once(&self, path: &[u8], flags: OFlags, wait: Wait) -> Result<OwnedFd, Errno> {
        if wait == Wait::Never && self.beneath != Beneath::Kernel {
            return Err(Errno::AGAIN);
        }
        let root = self.directory.as_ref().ok_or(Errno::NOENT)?.as_fd();
        let flags = flags | OFlags::CLOEXEC;
        if self.beneath == Beneath::Steps {
            return match self.symlinks {
                Symlinks::All => openat(root, path, flags, Mode::empty()),
                _ => walk::open_beneath(root, path, flags, self.names.as_ref()),
            };
        }
        match self.open_by_kernel(root, path, flags, wait) {
            // The path may contain an absolute link into the root, which the kernel does not
            // follow.
            Err(Errno::XDEV) if self.names.is_some() => match wait {
                Wait::Never => Err(Errno::AGAIN),
                Wait::Allowed => walk::open_beneath(root, path, flags, self.names.as_ref()),
            },
            result => result,
        }
    }

    fn open_by_kernel(
        &self,
        root: BorrowedFd<'_>,
        path: &[u8],
        flags: OFlags,
        wait: Wait,
    ) -> Result<OwnedFd, Errno> {
        let mut resolve = ResolveFlags::NO_MAGICLINKS;
        resolve |= match self.symlinks {
            Symlinks::None => ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
            Symlinks::Inside => ResolveFlags::BENEATH,
            Symlinks::All => ResolveFlags::empty(),
        };
        let open = |resolve| openat2(root, path, flags, Mode::empty(), resolve);
        if wait == Wait::Never {
            return open(resolve | ResolveFlags::CACHED);
        }
        // The kernel returns EAGAIN if it cannot exclude that a `..` left the root during a rename.
        for _ in 1..ATTEMPTS_MAX {
            match open(resolve) {
                Err(Errno::AGAIN) => {}
                result => return result,
            }
        }
        // The error must not suggest that waiting and trying again would help.
        open(resolve).map_err(|error| {
            if error == Errno::AGAIN {
                Errno::BUSY
            } else {
                error
            }
        })
    }
}
