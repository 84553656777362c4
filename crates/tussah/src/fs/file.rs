//! An open file.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tussah_core::file::{At, IoBuf, IoBufMut, Metadata, OpenFile};

use super::options::OpenOptions;
use crate::io_error::context;

/// An open file, which is read and written at byte offsets. Clones are cheap and refer to the same
/// open file.
///
/// The file is closed when the last clone has been dropped and the last operation has ended. If no
/// operation is in progress, dropping the last clone closes the file synchronously, as in `std`.
/// Closing can block while the system writes out buffered data, for example to a network file
/// system. [`close`](Self::close) closes the file without blocking, and returns any error. See the
/// [module documentation](super) for the properties that all operations share, such as their order.
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
    /// The path for error messages. For a descriptor that was not opened here, a description of it.
    path: Arc<Path>,
}

impl File {
    pub(super) fn new(open: OpenFile, path: &Path) -> Self {
        let path = path.into();
        Self { open, path }
    }

    /// Opens an existing file for reading.
    ///
    /// # Errors
    /// Same as [`OpenOptions::open`].
    ///
    /// # Panics
    /// Panics if polled outside a runtime.
    pub async fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        OpenOptions::new().read(true).open(path).await
    }

    /// Opens a file for writing. If the file does not exist, creates it; otherwise truncates it.
    ///
    /// # Errors
    /// Same as [`OpenOptions::open`].
    ///
    /// # Panics
    /// Panics if polled outside a runtime.
    pub async fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        options.open(path).await
    }

    /// Creates [`OpenOptions`] for opening a file.
    #[must_use]
    pub fn options() -> OpenOptions {
        OpenOptions::new()
    }

    /// Returns the path that was used to open the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn context<T>(&self, result: io::Result<T>, operation: &'static str) -> io::Result<T> {
        result.map_err(|error| context(error, operation, self.path.display()))
    }

    /// Reads once at byte offset `offset`, and returns the buffer. The read may return fewer bytes
    /// than fit into the buffer, and returns 0 bytes at the end of the file.
    ///
    /// If the buffer is a `Vec`, it is overwritten from its start, up to its capacity, and then
    /// contains exactly the bytes read. After an error, the buffer's contents are unspecified.
    ///
    /// # Errors
    /// Returns `InvalidInput` if the offset exceeds `i64::MAX`, and otherwise any error from
    /// pread(2).
    ///
    /// # Panics
    /// Panics if polled outside a runtime.
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
    /// Returns `UnexpectedEof` if the file ends first, and otherwise any error from
    /// [`read_at`](Self::read_at).
    ///
    /// # Panics
    /// Panics if polled outside a runtime.
    ///
    /// # Cancellation
    /// Same as [`read_at`](Self::read_at).
    pub async fn read_exact_at<B: IoBufMut>(&self, buffer: B, offset: u64) -> (io::Result<()>, B) {
        let (result, buffer) = self.read_full(buffer, offset).await;
        let expected = buffer.capacity();
        let result = result.and_then(|read| {
            if read == expected {
                return Ok(());
            }
            let text = format!("expected {expected} bytes, but the file ends after {read}");
            let error = io::Error::new(io::ErrorKind::UnexpectedEof, text);
            self.context(Err(error), "read")
        });
        (result, buffer)
    }

    /// Reads until the buffer is full or the file ends.
    pub(super) async fn read_full<B: IoBufMut>(
        &self,
        buffer: B,
        offset: u64,
    ) -> (io::Result<usize>, B) {
        let (result, buffer) = self.open.read(buffer, offset, true).await;
        (self.context(result, "read"), buffer)
    }

    /// Writes once at byte offset `offset`, after all earlier changes to the file, and returns the
    /// buffer. The system may write only a part of the buffer.
    ///
    /// # Errors
    /// Returns `InvalidInput` if the offset exceeds `i64::MAX`, and otherwise any error from
    /// pwrite(2).
    ///
    /// # Panics
    /// Panics if polled outside a runtime.
    ///
    /// # Cancellation
    /// If the future is dropped after the write has started, the write is completed. The buffer is
    /// dropped when the kernel no longer uses it.
    pub async fn write_at<B: IoBuf>(&self, buffer: B, offset: u64) -> (io::Result<usize>, B) {
        let (result, buffer) = self.open.write(buffer, At::Offset(offset), false).await;
        (self.context(result, "write"), buffer)
    }

    /// Writes the whole buffer, after all earlier changes to the file. If the system writes the
    /// buffer in several parts, no other write through this `File` comes between them.
    ///
    /// # Errors
    /// Returns any error from [`write_at`](Self::write_at), or `WriteZero` if the system accepts no
    /// more bytes. After an error, part of the buffer may have been written.
    ///
    /// # Panics
    /// Panics if polled outside a runtime.
    ///
    /// # Cancellation
    /// Same as [`write_at`](Self::write_at).
    pub async fn write_all_at<B: IoBuf>(&self, buffer: B, offset: u64) -> (io::Result<()>, B) {
        self.write_all(buffer, At::Offset(offset)).await
    }

    /// Appends the whole buffer to the file, after all earlier changes to the file. The end of the
    /// file is determined when the write starts.
    ///
    /// # Errors
    /// Same as [`write_all_at`](Self::write_all_at).
    ///
    /// # Panics
    /// Panics if polled outside a runtime.
    ///
    /// # Cancellation
    /// Same as [`write_at`](Self::write_at).
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
            let text = format!("expected to write {expected} bytes, but the system took {written}");
            Err(io::Error::new(io::ErrorKind::WriteZero, text))
        });
        (self.context(result, "write"), buffer)
    }

    /// Flushes all data and metadata of the file to the device, after all earlier changes to the
    /// file.
    ///
    /// # Errors
    /// Returns any error from fsync(2).
    ///
    /// # Panics
    /// Panics if polled outside a runtime.
    pub async fn sync_all(&self) -> io::Result<()> {
        self.context(self.open.sync(false).await, "sync")
    }

    /// Flushes the file's data to the device, after all earlier changes to the file. Flushes no
    /// metadata except what is needed to read the data back.
    ///
    /// # Errors
    /// Returns any error from fdatasync(2).
    ///
    /// # Panics
    /// Panics if polled outside a runtime.
    pub async fn sync_data(&self) -> io::Result<()> {
        self.context(self.open.sync(true).await, "sync")
    }

    /// Truncates the file to `len` bytes, or extends it with zeros, after all earlier changes to
    /// it.
    ///
    /// # Errors
    /// Returns `InvalidInput` if the length exceeds `i64::MAX`, and otherwise any error from
    /// ftruncate(2).
    ///
    /// # Panics
    /// Panics if polled outside a runtime.
    pub async fn set_len(&self, len: u64) -> io::Result<()> {
        self.context(self.open.set_len(len).await, "set the length of")
    }

    /// Returns the metadata of the file.
    ///
    /// # Errors
    /// Returns any error from statx(2).
    ///
    /// # Panics
    /// Panics if polled outside a runtime.
    pub async fn metadata(&self) -> io::Result<Metadata> {
        self.context(self.open.metadata().await, "stat")
    }

    /// Returns the length of the file, in bytes.
    ///
    /// # Errors
    /// Same as [`metadata`](Self::metadata).
    ///
    /// # Panics
    /// Panics if polled outside a runtime.
    pub async fn len(&self) -> io::Result<u64> {
        Ok(self.metadata().await?.len)
    }

    /// Closes the file if no other clone is left and no operation is in progress. Otherwise, the
    /// file is closed when its last clone has been dropped and its last operation has ended.
    ///
    /// # Errors
    /// Returns any error from close(2); on some file systems, such an error means that an earlier
    /// write failed. The file is closed even after an error.
    ///
    /// # Panics
    /// Panics if polled outside a runtime.
    ///
    /// # Cancellation
    /// Dropping the future does not prevent the file from being closed.
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

/// Takes ownership of an open descriptor. Errors name the descriptor instead of a path.
impl From<OwnedFd> for File {
    fn from(fd: OwnedFd) -> Self {
        let path = PathBuf::from(format!("descriptor {}", fd.as_raw_fd()));
        Self::new(fd.into(), &path)
    }
}

/// Takes ownership of an open file. Errors name the descriptor instead of a path.
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
