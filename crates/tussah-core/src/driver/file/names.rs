//! Operations on paths.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::Mode;

use super::metadata::Metadata;
use super::op::link::Link;
use super::op::make_dir::MakeDir;
use super::op::rename::Rename;
use super::op::stat::{Stat, What};
use super::op::symlink::Symlink;
use super::op::unlink::Unlink;
use super::run::Run;

/// Returns the metadata of the file at a path. If the path is a symbolic link and `follow` is
/// false, returns the metadata of the link itself.
///
/// # Errors
/// Returns any error from statx(2).
pub async fn metadata(path: &Path, follow: bool) -> io::Result<Metadata> {
    let path = c_path(path)?;
    Run::new(Stat::new(What::Path { path, follow })).await
}

/// Renames a file; see rename(2).
///
/// # Errors
/// Returns any error from rename(2).
pub async fn rename(from: &Path, to: &Path) -> io::Result<()> {
    let (from, to) = (c_path(from)?, c_path(to)?);
    Run::new(Rename { from, to }).await
}

/// Creates a hard link; see link(2).
///
/// # Errors
/// Returns any error from link(2).
pub async fn hard_link(from: &Path, to: &Path) -> io::Result<()> {
    let (from, to) = (c_path(from)?, c_path(to)?);
    Run::new(Link { from, to }).await
}

/// Creates a symbolic link; see symlink(2).
///
/// # Errors
/// Returns any error from symlink(2).
pub async fn symlink(target: &Path, path: &Path) -> io::Result<()> {
    let (target, path) = (c_path(target)?, c_path(path)?);
    Run::new(Symlink { target, path }).await
}

/// Creates a directory; see mkdir(2).
///
/// # Errors
/// Returns any error from mkdir(2).
pub async fn create_dir(path: &Path, mode: u32) -> io::Result<()> {
    let path = c_path(path)?;
    let mode = Mode::from_raw_mode(mode);
    Run::new(MakeDir { path, mode }).await
}

/// Removes a file; see unlink(2).
///
/// # Errors
/// Returns any error from unlink(2).
pub async fn remove_file(path: &Path) -> io::Result<()> {
    let path = c_path(path)?;
    let directory = false;
    Run::new(Unlink { path, directory }).await
}

/// Removes an empty directory; see rmdir(2).
///
/// # Errors
/// Returns any error from rmdir(2).
pub async fn remove_dir(path: &Path) -> io::Result<()> {
    let path = c_path(path)?;
    let directory = true;
    Run::new(Unlink { path, directory }).await
}

/// Converts a path to the form that the kernel accepts.
pub(super) fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            "a path can't contain a NUL byte",
        )
    })
}
