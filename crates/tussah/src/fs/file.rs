//! An open file.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tussah_core::file::{At, IoBuf, IoBufMut, Metadata, OpenFile};

use super::options::OpenOptions;
use crate::io_error::context;

/// An open file, read and written at offsets. Clones are the same open file, and cheap.
///
/// The file is closed with the last clone and the last operation that is under way; [`close`](Self::close) does so without blocking,
/// and tells of errors. Dropping the last clone closes it on the spot, as with `std`, which may block where closing writes what was
/// delayed, as on a network's file system. What the operations have in common, such as their order, says the [module](super).
///
/// # Examples
/// ```
/// use tussah::fs::File;
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("numbers");
/// # std::fs::write(&path, "0123456789")?;
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// let file = File::open(&path).await?;
/// let (read, buffer) = file.read_at(Vec::with_capacity(4), 3).await;
/// assert_eq!((read?, &buffer[..]), (4, &b"3456"[..]));
/// # std::io::Result::Ok(())
/// # })).expect("no panic")?;
/// # std::io::Result::Ok(())
/// ```
#[derive(Clone)]
pub struct File {
    open: OpenFile,
    /// For errors; of one that was not opened here, a description.
    path: Arc<Path>,
}

impl File {
    pub(super) fn new(open: OpenFile, path: &Path) -> Self {
        let path = path.into();
        Self { open, path }
    }

    /// Opens a file that is there, to be read.
    ///
    /// # Errors
    /// As [`OpenOptions::open`].
    ///
    /// # Panics
    /// Outside of a runtime.
    pub async fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        OpenOptions::new().read(true).open(path).await
    }

    /// Opens a file to be written, which is made if it is not there, and else made empty.
    ///
    /// # Errors
    /// As [`OpenOptions::open`].
    ///
    /// # Panics
    /// Outside of a runtime.
    pub async fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        options.open(path).await
    }

    /// How a file is to be opened: the beginning of what [`OpenOptions::open`] ends.
    #[must_use]
    pub fn options() -> OpenOptions {
        OpenOptions::new()
    }

    /// The path that it was opened by.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn context<T>(&self, result: io::Result<T>, operation: &'static str) -> io::Result<T> {
        result.map_err(|error| context(error, operation, self.path.display()))
    }

    /// Reads once, from `offset` bytes behind the beginning, as much as there is room for or less; 0 bytes at the end of the
    /// file. Gives the buffer back.
    ///
    /// A `Vec` is read into from its beginning up to its capacity, and then holds just what was read. After an error the
    /// content of a buffer is unspecified.
    ///
    /// # Errors
    /// `InvalidInput` if the offset is larger than `i64::MAX`; else what pread(2) says.
    ///
    /// # Panics
    /// Outside of a runtime.
    ///
    /// # Cancellation
    /// The buffer is dropped when the kernel no longer uses it.
    pub async fn read_at<B: IoBufMut>(&self, buffer: B, offset: u64) -> (io::Result<usize>, B) {
        let (result, buffer) = self.open.read(buffer, offset, false).await;
        (self.context(result, "read"), buffer)
    }

    /// Reads until the buffer is full.
    ///
    /// # Errors
    /// `UnexpectedEof` if the file ends before; else as [`read_at`](Self::read_at).
    ///
    /// # Panics
    /// Outside of a runtime.
    ///
    /// # Cancellation
    /// As [`read_at`](Self::read_at).
    pub async fn read_exact_at<B: IoBufMut>(&self, buffer: B, offset: u64) -> (io::Result<()>, B) {
        let (result, buffer) = self.read_full(buffer, offset).await;
        let expected = buffer.capacity();
        let result = result.and_then(|read| {
            if read == expected {
                return Ok(());
            }
            let text = format!("expected {expected} bytes, and the file ends after {read}");
            let error = io::Error::new(io::ErrorKind::UnexpectedEof, text);
            self.context(Err(error), "read")
        });
        (result, buffer)
    }

    /// Reads until the buffer is full, or the file ends.
    pub(super) async fn read_full<B: IoBufMut>(
        &self,
        buffer: B,
        offset: u64,
    ) -> (io::Result<usize>, B) {
        let (result, buffer) = self.open.read(buffer, offset, true).await;
        (self.context(result, "read"), buffer)
    }

    /// Writes once, at `offset` bytes behind the beginning, the buffer or a part of it, and gives the buffer back. In the file's order.
    ///
    /// # Errors
    /// `InvalidInput` if the offset is larger than `i64::MAX`; else what pwrite(2) says.
    ///
    /// # Panics
    /// Outside of a runtime.
    ///
    /// # Cancellation
    /// The write is carried out if it has begun; the buffer is dropped when the kernel no longer uses it.
    pub async fn write_at<B: IoBuf>(&self, buffer: B, offset: u64) -> (io::Result<usize>, B) {
        let (result, buffer) = self.open.write(buffer, At::Offset(offset), false).await;
        (self.context(result, "write"), buffer)
    }

    /// Writes all of the buffer, with no other write of this file in between. In the file's order.
    ///
    /// # Errors
    /// As [`write_at`](Self::write_at); a part may have been written. `WriteZero` if the system takes no more.
    ///
    /// # Panics
    /// Outside of a runtime.
    ///
    /// # Cancellation
    /// As [`write_at`](Self::write_at).
    pub async fn write_all_at<B: IoBuf>(&self, buffer: B, offset: u64) -> (io::Result<()>, B) {
        self.write_all(buffer, At::Offset(offset)).await
    }

    /// Writes all of the buffer behind what is in the file when it is carried out. In the file's order.
    ///
    /// # Errors
    /// As [`write_all_at`](Self::write_all_at).
    ///
    /// # Panics
    /// Outside of a runtime.
    ///
    /// # Cancellation
    /// As [`write_at`](Self::write_at).
    pub async fn append<B: IoBuf>(&self, buffer: B) -> (io::Result<()>, B) {
        self.write_all(buffer, At::End).await
    }

    async fn write_all<B: IoBuf>(&self, buffer: B, at: At) -> (io::Result<()>, B) {
        let (result, buffer) = self.open.write(buffer, at, true).await;
        let expected = buffer.bytes().len();
        let result = result.and_then(|written| {
            if written == expected {
                return Ok(());
            }
            let text = format!("expected to write {expected} bytes, and {written} were taken");
            Err(io::Error::new(io::ErrorKind::WriteZero, text))
        });
        (self.context(result, "write"), buffer)
    }

    /// Waits until all that was written, and all that is known of the file, is on the device. In the file's order.
    ///
    /// # Errors
    /// What fsync(2) says.
    ///
    /// # Panics
    /// Outside of a runtime.
    pub async fn sync_all(&self) -> io::Result<()> {
        self.context(self.open.sync(false).await, "sync")
    }

    /// Waits until all that was written can be read back from the device, without what is not needed for that. In the file's
    /// order.
    ///
    /// # Errors
    /// What fdatasync(2) says.
    ///
    /// # Panics
    /// Outside of a runtime.
    pub async fn sync_data(&self) -> io::Result<()> {
        self.context(self.open.sync(true).await, "sync")
    }

    /// Cuts the file off after so many bytes, or fills it up with zeros. In the file's order.
    ///
    /// # Errors
    /// `InvalidInput` if the length is larger than `i64::MAX`; else what ftruncate(2) says.
    ///
    /// # Panics
    /// Outside of a runtime.
    pub async fn set_len(&self, len: u64) -> io::Result<()> {
        self.context(self.open.set_len(len).await, "set the length of")
    }

    /// What is known of the file.
    ///
    /// # Errors
    /// What statx(2) says.
    ///
    /// # Panics
    /// Outside of a runtime.
    pub async fn metadata(&self) -> io::Result<Metadata> {
        self.context(self.open.metadata().await, "stat")
    }

    /// The length of the file, in bytes.
    ///
    /// # Errors
    /// As [`metadata`](Self::metadata).
    ///
    /// # Panics
    /// Outside of a runtime.
    pub async fn len(&self) -> io::Result<u64> {
        Ok(self.metadata().await?.len)
    }

    /// Closes the file, if no clone is left and nothing is under way; else that is left to the last of these.
    ///
    /// # Errors
    /// What close(2) says: on some file systems, that an earlier write failed. The file is closed all the same.
    ///
    /// # Panics
    /// Outside of a runtime.
    ///
    /// # Cancellation
    /// The file is closed.
    pub async fn close(self) -> io::Result<()> {
        let Self { open, path } = self;
        let closed = open.close().await;
        closed.map_err(|error| context(error, "close", path.display()))
    }
}

impl AsFd for File {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.open.as_fd()
    }
}

/// What errors name is then the descriptor.
impl From<OwnedFd> for File {
    fn from(fd: OwnedFd) -> Self {
        let path = PathBuf::from(format!("descriptor {}", fd.as_raw_fd()));
        Self::new(fd.into(), &path)
    }
}

/// What errors name is then the descriptor.
impl From<std::fs::File> for File {
    fn from(file: std::fs::File) -> Self {
        OwnedFd::from(file).into()
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("File")
            .field("path", &self.path)
            .field("fd", &self.as_fd().as_raw_fd())
            .finish()
    }
}
