//! Open files and their operations, below what users see.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};

use super::buffer::{IoBuf, IoBufMut};
use super::metadata::Metadata;
use super::op::close::Close;
use super::op::link::Link;
use super::op::make_dir::MakeDir;
use super::op::open::Open;
use super::op::read::Read;
use super::op::rename::Rename;
use super::op::set_len::SetLen;
use super::op::stat::{Stat, What};
use super::op::symlink::Symlink;
use super::op::sync::Sync;
use super::op::unlink::Unlink;
use super::op::write::{At, Write};
use super::order::Order;
use super::run::Run;

/// A descriptor, and the order of what changes its file.
pub(super) struct Opened {
    pub(super) fd: OwnedFd,
    pub(super) order: Order,
}

/// An open file. Clones are the same one.
///
/// It is closed with the last clone and the last operation that is under way. Operations that change it are carried out one
/// at a time, in the order in which they were first polled.
#[derive(Clone)]
pub struct OpenFile(Arc<Opened>);

/// How a file is opened: the flags of open(2), and the mode of a file that is made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenHow {
    /// It may be read.
    pub read: bool,
    /// It may be written.
    pub write: bool,
    /// It is written at its end only.
    pub append: bool,
    /// It is made empty.
    pub truncate: bool,
    /// It is made if it is not there.
    pub create: bool,
    /// It is made, and must not be there.
    pub create_new: bool,
    /// Its content does not go through the page cache.
    pub direct: bool,
    /// Further flags of open(2), but for the access mode.
    pub custom_flags: i32,
    /// Permissions of a file that is made, before the process's mask is applied.
    pub mode: u32,
}

impl Default for OpenHow {
    /// Nothing is allowed, and a file that is made has mode 666 (octal).
    fn default() -> Self {
        Self {
            read: false,
            write: false,
            append: false,
            truncate: false,
            create: false,
            create_new: false,
            direct: false,
            custom_flags: 0,
            mode: 0o666,
        }
    }
}

impl OpenHow {
    /// As `std::fs::OpenOptions` has it.
    fn flags(&self) -> io::Result<OFlags> {
        let invalid = |text: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        let writes = self.write || self.append;
        let access = match (self.read, writes) {
            (true, false) => OFlags::RDONLY,
            (false, true) => OFlags::WRONLY,
            (true, true) => OFlags::RDWR,
            (false, false) => return invalid("expected one of read, write and append"),
        };
        if !writes && (self.truncate || self.create || self.create_new) {
            return invalid("a file that is created or truncated has to be opened for writing");
        }
        if self.append && self.truncate && !self.create_new {
            return invalid("a file can't be truncated and opened for appending");
        }
        let mut flags = OFlags::CLOEXEC
            | access
            | OFlags::from_bits_retain(self.custom_flags as _).difference(OFlags::RWMODE);
        flags.set(OFlags::APPEND, self.append);
        flags.set(OFlags::CREATE, self.create || self.create_new);
        flags.set(OFlags::EXCL, self.create_new);
        flags.set(OFlags::TRUNC, self.truncate && !self.create_new);
        flags.set(OFlags::DIRECT, self.direct);
        Ok(flags)
    }
}

fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            "a path can't contain a NUL byte",
        )
    })
}

/// The kernel's offsets have a sign.
fn check_offset(offset: u64) -> io::Result<()> {
    if i64::try_from(offset).is_ok() {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("expected an offset up to {}, got {offset}", i64::MAX),
    ))
}

/// Opens a file.
///
/// # Errors
/// `InvalidInput` if the combination makes no sense, or the path has a NUL byte; else what open(2) says.
pub async fn open(path: &Path, how: &OpenHow) -> io::Result<OpenFile> {
    let open = Open {
        path: c_path(path)?,
        flags: how.flags()?,
        mode: Mode::from_raw_mode(how.mode),
    };
    Ok(Run::new(open).await?.into())
}

/// What is known of the file that a path leads to, or of the symbolic link itself.
///
/// # Errors
/// What statx(2) says.
pub async fn metadata(path: &Path, follow: bool) -> io::Result<Metadata> {
    let path = c_path(path)?;
    Run::new(Stat::new(What::Path { path, follow })).await
}

/// See rename(2).
///
/// # Errors
/// What it says.
pub async fn rename(from: &Path, to: &Path) -> io::Result<()> {
    let (from, to) = (c_path(from)?, c_path(to)?);
    Run::new(Rename { from, to }).await
}

/// See link(2).
///
/// # Errors
/// What it says.
pub async fn hard_link(from: &Path, to: &Path) -> io::Result<()> {
    let (from, to) = (c_path(from)?, c_path(to)?);
    Run::new(Link { from, to }).await
}

/// See symlink(2).
///
/// # Errors
/// What it says.
pub async fn symlink(target: &Path, path: &Path) -> io::Result<()> {
    let (target, path) = (c_path(target)?, c_path(path)?);
    Run::new(Symlink { target, path }).await
}

/// See mkdir(2).
///
/// # Errors
/// What it says.
pub async fn create_dir(path: &Path, mode: u32) -> io::Result<()> {
    let path = c_path(path)?;
    let mode = Mode::from_raw_mode(mode);
    Run::new(MakeDir { path, mode }).await
}

/// See unlink(2).
///
/// # Errors
/// What it says.
pub async fn remove_file(path: &Path) -> io::Result<()> {
    let path = c_path(path)?;
    let directory = false;
    Run::new(Unlink { path, directory }).await
}

/// See rmdir(2).
///
/// # Errors
/// What it says.
pub async fn remove_dir(path: &Path) -> io::Result<()> {
    let path = c_path(path)?;
    let directory = true;
    Run::new(Unlink { path, directory }).await
}

impl OpenFile {
    /// Reads into a buffer: once, or until it is full or the file ends.
    ///
    /// # Errors
    /// `InvalidInput` if the offset has no sign bit to spare; else what pread(2) says.
    pub async fn read<B: IoBufMut>(
        &self,
        buffer: B,
        offset: u64,
        whole: bool,
    ) -> (io::Result<usize>, B) {
        if let Err(error) = check_offset(offset) {
            return (Err(error), buffer);
        }
        let file = self.0.clone();
        let done = 0;
        Run::new(Read {
            file,
            buffer,
            offset,
            whole,
            done,
        })
        .await
    }

    /// Writes a buffer, once or until all is written, in its turn.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub async fn write<B: IoBuf>(&self, buffer: B, at: At, whole: bool) -> (io::Result<usize>, B) {
        if let At::Offset(offset) = at
            && let Err(error) = check_offset(offset)
        {
            return (Err(error), buffer);
        }
        let file = self.0.clone();
        let done = 0;
        let write = Write {
            file,
            buffer,
            at,
            whole,
            done,
        };
        Run::in_order(write, &self.0).await
    }

    /// See fsync(2) and fdatasync(2); in its turn.
    ///
    /// # Errors
    /// What they say.
    pub async fn sync(&self, data_only: bool) -> io::Result<()> {
        let file = self.0.clone();
        Run::in_order(Sync { file, data_only }, &self.0).await
    }

    /// See ftruncate(2); in its turn.
    ///
    /// # Errors
    /// What it says.
    pub async fn set_len(&self, len: u64) -> io::Result<()> {
        check_offset(len)?;
        let file = self.0.clone();
        Run::in_order(SetLen { file, len }, &self.0).await
    }

    /// What is known of the file.
    ///
    /// # Errors
    /// What statx(2) says.
    pub async fn metadata(&self) -> io::Result<Metadata> {
        Run::new(Stat::new(What::File(self.0.clone()))).await
    }

    /// Closes the file, if this is its last clone and nothing is under way; else that is left to who is last.
    ///
    /// # Errors
    /// What close(2) says. The file is closed all the same.
    pub async fn close(self) -> io::Result<()> {
        match Arc::try_unwrap(self.0) {
            Ok(opened) => Run::new(Close::new(opened.fd)).await,
            Err(_) => Ok(()),
        }
    }
}

impl From<OwnedFd> for OpenFile {
    fn from(fd: OwnedFd) -> Self {
        Self(Arc::new(Opened {
            fd,
            order: Order::default(),
        }))
    }
}

impl AsFd for OpenFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.fd.as_fd()
    }
}

impl std::fmt::Debug for OpenFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("OpenFile").field(&self.0.fd).finish()
    }
}
