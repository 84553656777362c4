//! Open files, the basis of the public file types.

use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::Mode;

use super::buffer::{IoBuf, IoBufMut, Memory};
use super::cached::{Cached, Tried};
use super::metadata::Metadata;
use super::names::c_path;
use super::op::close::Close;
use super::op::open::Open;
use super::op::read::Read;
use super::op::set_len::SetLen;
use super::op::stat::{Stat, What};
use super::op::sync::Sync;
use super::op::write::{At, Write};
use super::open_how::OpenHow;
use super::order::Order;
use super::run::Run;
use crate::driver::spend_bytes;
use crate::runtime::Handle;
use crate::thread::coop;

/// A descriptor, and the order of the operations that change its file.
pub(super) struct Opened {
    pub(super) fd: OwnedFd,
    pub(super) order: Arc<Order>,
    cached: Cached,
}

/// An open file. Clones share the same descriptor.
///
/// The file is closed when the last clone has been dropped and the last operation in flight has
/// ended. The operations that change the file run one at a time, in the order of their first polls.
#[derive(Clone)]
pub struct OpenFile(Arc<Opened>);

/// Checks that an offset fits the kernel's signed type.
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
/// Returns `InvalidInput` if the flags contradict each other or the path contains a NUL byte, and
/// otherwise any error from open(2).
pub async fn open(path: &Path, how: &OpenHow) -> io::Result<OpenFile> {
    let open = Open {
        path: c_path(path)?,
        flags: how.flags()?,
        mode: Mode::from_raw_mode(how.mode),
    };
    Ok(Run::new(open).await?.into())
}

impl OpenFile {
    /// Reads into a buffer. If `whole` is true, repeats the read until the buffer is full or the
    /// file ends; otherwise reads once. Bytes in the page cache are read immediately.
    ///
    /// # Errors
    /// Returns `InvalidInput` if the offset exceeds `i64::MAX`, and otherwise any error from
    /// pread(2).
    pub async fn read<B: IoBufMut>(
        &self,
        mut buffer: B,
        offset: u64,
        whole: bool,
    ) -> (io::Result<usize>, B) {
        if let Err(error) = check_offset(offset) {
            return (Err(error), buffer);
        }
        // Panics outside of a runtime, before anything is read.
        Handle::with_current(|_| ());
        poll_fn(|context| coop::poll_budget(context)).await;
        let room = Memory::of_mut(&mut buffer);
        let tried = self.0.cached.read(&self.0.fd, &room, offset);
        let (read, mut buffer) = match tried {
            Tried::All(read) => (Ok(read), buffer),
            Tried::Part(done) => {
                Run::new(Read::new(self.0.clone(), buffer, offset, whole, done)).await
            }
        };
        if let Ok(read) = read {
            spend_bytes(read);
            // SAFETY: this number of bytes was written, and never more than the buffer has room
            // for.
            unsafe { buffer.set_filled(read) };
        }
        (read, buffer)
    }

    /// Writes a buffer after all earlier changes to the file. If `whole` is true, repeats the write
    /// until the whole buffer is written; otherwise writes once.
    ///
    /// # Errors
    /// Returns the same errors as [`read`](Self::read), with the errors of pwrite(2) in place of
    /// those of pread(2).
    pub async fn write<B: IoBuf>(&self, buffer: B, at: At, whole: bool) -> (io::Result<usize>, B) {
        if let At::Offset(offset) = at
            && let Err(error) = check_offset(offset)
        {
            return (Err(error), buffer);
        }
        let file = self.0.clone();
        Run::in_order(Write::new(file, buffer, at, whole), &self.0).await
    }

    /// Flushes the file to the device after all earlier changes to the file; see fsync(2) and
    /// fdatasync(2).
    ///
    /// # Errors
    /// Returns any error from fsync(2) or fdatasync(2).
    pub async fn sync(&self, data_only: bool) -> io::Result<()> {
        let file = self.0.clone();
        Run::in_order(Sync { file, data_only }, &self.0).await
    }

    /// Sets the length of the file after all earlier changes to the file; see ftruncate(2).
    ///
    /// # Errors
    /// Returns `InvalidInput` if the length exceeds `i64::MAX`, and otherwise any error from
    /// ftruncate(2).
    pub async fn set_len(&self, len: u64) -> io::Result<()> {
        check_offset(len)?;
        let file = self.0.clone();
        Run::in_order(SetLen { file, len }, &self.0).await
    }

    /// Returns the metadata of the file.
    ///
    /// # Errors
    /// Returns any error from statx(2).
    pub async fn metadata(&self) -> io::Result<Metadata> {
        Run::new(Stat::new(What::File(self.0.clone()))).await
    }

    /// Closes the file if this is its last clone and no operation is in flight. Otherwise, the file
    /// is closed once its last clone has been dropped and its last operation has ended.
    ///
    /// # Errors
    /// Returns any error from close(2). The file is closed even if close(2) returns an error.
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
            cached: Cached::of(&fd),
            fd,
            order: Arc::default(),
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
