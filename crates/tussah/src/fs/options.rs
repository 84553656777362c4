//! Options for opening files.

use std::io;
use std::path::Path;

use tussah_core::file::{self, OpenHow};

use super::file::File;
use crate::io_error::context;

/// Options for opening a file, like those of `std::fs::OpenOptions`, plus direct I/O.
///
/// # Examples
/// ```
/// use tussah::fs::OpenOptions;
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("log");
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// let log = OpenOptions::new().append(true).create(true).open(&path).await?;
/// log.append("first line\n").await.0?;
/// assert_eq!(log.len().await?, 11);
/// # std::io::Result::Ok(())
/// # })).expect("no panic")?;
/// # std::io::Result::Ok(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    how: OpenHow,
}

impl OpenOptions {
    /// Creates options with default values, which permit neither reading nor writing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether the file is opened for reading. Default: false.
    pub fn read(&mut self, read: bool) -> &mut Self {
        self.how.read = read;
        self
    }

    /// Sets whether the file is opened for writing. Default: false.
    pub fn write(&mut self, write: bool) -> &mut Self {
        self.how.write = write;
        self
    }

    /// Sets whether all writes, even those with an offset, append to the end of the file. Default:
    /// false. If only some writes should append, use [`File::append`] instead.
    pub fn append(&mut self, append: bool) -> &mut Self {
        self.how.append = append;
        self
    }

    /// Sets whether an existing file is truncated when it is opened. Default: false.
    pub fn truncate(&mut self, truncate: bool) -> &mut Self {
        self.how.truncate = truncate;
        self
    }

    /// Sets whether the file is created if it does not exist. Default: false.
    pub fn create(&mut self, create: bool) -> &mut Self {
        self.how.create = create;
        self
    }

    /// Sets whether the file must be new. If true, [`open`](Self::open) creates the file, or fails
    /// if the file already exists. Default: false.
    pub fn create_new(&mut self, create_new: bool) -> &mut Self {
        self.how.create_new = create_new;
        self
    }

    /// Sets whether I/O bypasses the page cache (`O_DIRECT`). With direct I/O, the address and
    /// length of each buffer, as well as the file offset, must be multiples of the file system's
    /// alignment; see [`AlignedBuf`](super::AlignedBuf). Default: false.
    pub fn direct(&mut self, direct: bool) -> &mut Self {
        self.how.direct = direct;
        self
    }

    /// Sets additional flags for open(2). Any access mode in `flags` is ignored. Default: 0.
    pub fn custom_flags(&mut self, flags: i32) -> &mut Self {
        self.how.custom_flags = flags;
        self
    }

    /// Sets the permissions of a newly created file, before the umask is applied. Default: 0o666.
    pub fn mode(&mut self, mode: u32) -> &mut Self {
        self.how.mode = mode;
        self
    }

    /// Opens a file.
    ///
    /// # Errors
    /// Returns `InvalidInput` if the options contradict each other or the path contains a NUL byte,
    /// and otherwise any error from open(2).
    ///
    /// # Panics
    /// Panics if polled outside a runtime.
    ///
    /// # Cancellation
    /// The system may open the file, and thereby create or truncate it, even after the future is
    /// dropped. In this case, the file is closed immediately.
    pub async fn open(&self, path: impl AsRef<Path>) -> io::Result<File> {
        let path = path.as_ref();
        match file::open(path, &self.how).await {
            Ok(open) => Ok(File::new(open, path)),
            Err(error) => Err(context(error, "open", path.display())),
        }
    }
}
