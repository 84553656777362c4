//! Opening beneath a directory one component at a time, where the kernel has no openat2(2).
//!
//! Every component is opened without following a link, and links are followed by hand. `..` goes back to
//! the descriptor that one came from and never asks the file system for a parent, so that nobody who
//! moves directories or puts links in their place gets the walk out of the root.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, fstat, openat, readlinkat};
use rustix::io::Errno;

/// Bound, in links: how many are followed for one path, as in the kernel (path_resolution(7)).
const LINKS_MAX: usize = 40;

/// Bound, in components: how many are walked for one path with the links on it, each a descriptor while it lasts.
const COMPONENTS_MAX: usize = 256;

/// Opens what is at a relative path and never anything outside of the root.
///
/// # Errors
/// As openat2(2) with `RESOLVE_BENEATH`, and `RESOLVE_NO_SYMLINKS` unless links are followed.
pub(super) fn open_beneath(
    root: BorrowedFd<'_>,
    path: &[u8],
    flags: OFlags,
    follow_links: bool,
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
                if !follow_links || links > LINKS_MAX {
                    return Err(Errno::LOOP);
                }
                let target = readlinkat(&there, "", Vec::new())?.into_bytes();
                if target.starts_with(b"/") {
                    return Err(Errno::XDEV);
                }
                push(&mut pending, &target)?;
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

/// Puts the components of a path before those that are pending. One that ends with a slash ends
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
