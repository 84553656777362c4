//! Opens files beneath a directory one component at a time, for kernels without openat2(2).
//!
//! Every component is opened without following a link, and the walk resolves links itself. `..`
//! returns to the descriptor of the previous component and never asks the file system for a parent.
//! An attacker who moves directories or replaces them by links therefore cannot lead the walk out
//! of the root.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, fstat, openat, readlinkat};
use rustix::io::Errno;

/// Bound, in links: the maximum number followed for one path, as in the kernel
/// (path_resolution(7)). A path with more links is not found.
const LINKS_MAX: usize = 40;

/// Bound, in components: the maximum number walked for one path and its links, each of which holds
/// a descriptor. A longer path is not found.
const COMPONENTS_MAX: usize = 256;

/// Opens a relative path, and never anything outside of the root. An absolute link continues at the
/// root if its target begins with one of the root's names. Without names, no link is followed.
///
/// # Errors
/// Returns any error from openat2(2) with `RESOLVE_BENEATH`, and with `RESOLVE_NO_SYMLINKS` if
/// there are no names.
pub(super) fn open_beneath(
    root: BorrowedFd<'_>,
    path: &[u8],
    flags: OFlags,
    names: Option<&RootNames>,
) -> Result<OwnedFd, Errno> {
    let mut pending = Vec::new();
    push(&mut pending, path)?;
    let (mut above, mut links, mut walked) = (Vec::<OwnedFd>::new(), 0, 0);
    while let Some(component) = pending.pop() {
        walked += 1;
        if walked > COMPONENTS_MAX {
            return Err(Errno::NAMETOOLONG);
        }
        match &component[..] {
            b"." => continue,
            b".." => {
                above.pop().ok_or(Errno::XDEV)?;
                continue;
            }
            _ => {}
        }
        let directory = above.last().map_or(root, AsFd::as_fd);
        let step = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let there = openat(directory, &component[..], step, Mode::empty())?;
        match FileType::from_raw_mode(fstat(&there)?.st_mode) {
            FileType::Symlink => {
                links += 1;
                let names = names.filter(|_| links <= LINKS_MAX).ok_or(Errno::LOOP)?;
                let target = readlinkat(&there, "", Vec::new())?.into_bytes();
                if target.starts_with(b"/") {
                    let rest = names.relative(&target).ok_or(Errno::XDEV)?;
                    above.clear();
                    push(&mut pending, &rest)?;
                } else {
                    push(&mut pending, &target)?;
                }
            }
            FileType::Directory => above.push(there),
            _ if pending.is_empty() => {
                return openat(
                    directory,
                    &component[..],
                    flags | OFlags::NOFOLLOW,
                    Mode::empty(),
                );
            }
            _ => return Err(Errno::NOTDIR),
        }
    }
    let directory = above.last().map_or(root, AsFd::as_fd);
    openat(directory, ".", flags, Mode::empty())
}

/// The absolute paths by which links may name the root: the path by which it was opened, and that
/// path with links resolved.
#[derive(Debug)]
pub(super) struct RootNames(Vec<Vec<Vec<u8>>>);

impl RootNames {
    pub(super) fn of(path: &Path) -> Self {
        let names = [std::path::absolute(path), std::fs::canonicalize(path)];
        let parts = |name: PathBuf| {
            let parts = components(name.as_os_str().as_bytes());
            // The target of `..` depends on links.
            let parts: Vec<_> = parts.map(<[u8]>::to_vec).collect();
            (!parts.iter().any(|part| part == b"..")).then_some(parts)
        };
        Self(names.into_iter().flatten().filter_map(parts).collect())
    }

    /// Returns the part of an absolute path after the root's name.
    fn relative(&self, path: &[u8]) -> Option<Vec<u8>> {
        let parts: Vec<_> = components(path).collect();
        let rest = self.0.iter().find_map(|name| {
            let (start, rest) = parts.split_at_checked(name.len())?;
            start.iter().eq(name).then_some(rest)
        })?;
        let end: &[u8] = if path.ends_with(b"/") { b"/." } else { b"" };
        Some([&b"."[..], b"/", &rest.join(&b'/'), end].concat())
    }
}

/// Returns the components of a path that name something.
fn components(path: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    let parts = path.split(|&byte| byte == b'/');
    parts.filter(|part| !part.is_empty() && *part != b".")
}

/// Puts the components of a path before the pending components. A path that ends with a slash ends
/// with the component `.`, since it must be a directory.
fn push(pending: &mut Vec<Vec<u8>>, path: &[u8]) -> Result<(), Errno> {
    if path.is_empty() {
        return Err(Errno::NOENT);
    }
    if path.ends_with(b"/") {
        pending.push(b".".to_vec());
    }
    let components = path.split(|&byte| byte == b'/').filter(|c| !c.is_empty());
    pending.extend(components.rev().map(<[u8]>::to_vec));
    if pending.len() > COMPONENTS_MAX {
        Err(Errno::NAMETOOLONG)
    } else {
        Ok(())
    }
}
