//! How a file is opened.

use std::io;
use std::path::Path;

use tussah_core::file::{self, OpenHow};

use super::file::File;
use crate::io_error::context;

/// How a file is opened: what `std::fs::OpenOptions` has, and direct I/O.
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
    /// Nothing is allowed yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the file may be read. Default: no.
    pub fn read(&mut self, read: bool) -> &mut Self {
        self.how.read = read;
        self
    }

    /// Whether the file may be written. Default: no.
    pub fn write(&mut self, write: bool) -> &mut Self {
        self.how.write = write;
        self
    }

    /// Whether every write goes to the end, also one with an offset. Default: no. [`File::append`] does so for one write.
    pub fn append(&mut self, append: bool) -> &mut Self {
        self.how.append = append;
        self
    }

    /// Whether the file is made empty. Default: no.
    pub fn truncate(&mut self, truncate: bool) -> &mut Self {
        self.how.truncate = truncate;
        self
    }

    /// Whether the file is made if it is not there. Default: no.
    pub fn create(&mut self, create: bool) -> &mut Self {
        self.how.create = create;
        self
    }

    /// Whether the file is made, and must not be there. Default: no.
    pub fn create_new(&mut self, create_new: bool) -> &mut Self {
        self.how.create_new = create_new;
        self
    }

    /// Whether reads and writes go to the device and not through the page cache (`O_DIRECT`): then the offset, the length and
    /// the address of a buffer have to be multiples of what the file system asks for; see
    /// [`AlignedBuf`](super::AlignedBuf). Default: no.
    pub fn direct(&mut self, direct: bool) -> &mut Self {
        self.how.direct = direct;
        self
    }

    /// Further flags of open(2); the access mode in them is ignored. Default: 0.
    pub fn custom_flags(&mut self, flags: i32) -> &mut Self {
        self.how.custom_flags = flags;
        self
    }

    /// The permissions of a file that is made, before the process's mask is applied. Default: 666, octal.
    pub fn mode(&mut self, mode: u32) -> &mut Self {
        self.how.mode = mode;
        self
    }

    /// Opens a file.
    ///
    /// # Errors
    /// `InvalidInput` if the options contradict each other, or the path has a NUL byte; else what open(2) says.
    ///
    /// # Panics
    /// Outside of a runtime.
    ///
    /// # Cancellation
    /// A descriptor that comes too late is closed. The file may have been made, or made empty.
    pub async fn open(&self, path: impl AsRef<Path>) -> io::Result<File> {
        let path = path.as_ref();
        match file::open(path, &self.how).await {
            Ok(open) => Ok(File::new(open, path)),
            Err(error) => Err(context(error, "open", path.display())),
        }
    }
}
