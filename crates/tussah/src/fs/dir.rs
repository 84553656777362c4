//! What is in a directory.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::Stream;
use tussah_core::file::{self, FileType};

use crate::io_error::context;

/// Bound, in entries: as many are fetched at once by the blocking pool, some 20 KB; a job for each would cost more than it does.
const BATCH: usize = 128;

/// What is in a directory: made by [`read_dir`]. Also a `Stream`.
#[must_use = "a directory is read as its entries are asked for"]
pub struct ReadDir {
    path: Arc<Path>,
    batch: VecDeque<io::Result<DirEntry>>,
    /// Where the next batch comes from; `None` after the last.
    source: Option<Source>,
}

enum Source {
    Ready(std::fs::ReadDir),
    /// Kept here so that an entry is not lost with the future of `next`.
    Fetching(Pin<Box<dyn Future<Output = io::Result<Batch>> + Send + Sync>>),
}

/// Entries, and where the next ones come from.
type Batch = (VecDeque<io::Result<DirEntry>>, Option<std::fs::ReadDir>);

/// One entry of a directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DirEntry {
    path: PathBuf,
    file_type: FileType,
}

impl DirEntry {
    /// The directory's path with the entry's name.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The entry's name.
    #[must_use]
    pub fn file_name(&self) -> &OsStr {
        self.path
            .file_name()
            .expect("an entry's path ends with its name")
    }

    /// What kind of file it is; of a symbolic link, that it is one.
    #[must_use]
    pub fn file_type(&self) -> FileType {
        self.file_type
    }
}

/// Opens a directory to be read. The entries are fetched in batches on the blocking pool, in no certain order, and without `.` and `..`.
///
/// # Errors
/// What opendir(3) says.
///
/// # Panics
/// Outside of a runtime.
///
/// # Examples
/// ```
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// let mut entries = tussah::fs::read_dir("src").await?;
/// let mut found = false;
/// while let Some(entry) = entries.next().await {
///     found |= entry?.file_name() == "lib.rs";
/// }
/// assert!(found);
/// # std::io::Result::Ok(())
/// # })).expect("no panic")?;
/// # std::io::Result::Ok(())
/// ```
pub async fn read_dir(path: impl AsRef<Path>) -> io::Result<ReadDir> {
    let path: Arc<Path> = path.as_ref().into();
    let opened = file::call({
        let path = path.clone();
        move || fetch(std::fs::read_dir(path)?)
    });
    match opened.await {
        Ok((batch, source)) => Ok(ReadDir {
            batch: batch
                .into_iter()
                .map(|entry| entry.map_err(|error| context(error, "read", path.display())))
                .collect(),
            source: source.map(Source::Ready),
            path,
        }),
        Err(error) => Err(context(error, "open", path.display())),
    }
}

/// The next batch.
fn fetch(mut source: std::fs::ReadDir) -> io::Result<Batch> {
    let entries = source.by_ref().take(BATCH);
    let batch: VecDeque<_> = entries
        .map(|entry| {
            let entry = entry?;
            Ok(DirEntry {
                path: entry.path(),
                file_type: entry.file_type()?.into(),
            })
        })
        .collect();
    let more = batch.len() == BATCH;
    Ok((batch, more.then_some(source)))
}

impl ReadDir {
    /// The next entry; `None` after the last.
    ///
    /// # Errors
    /// What readdir(3) says; after that, there may be more entries.
    ///
    /// # Panics
    /// Outside of a runtime.
    ///
    /// # Cancellation
    /// No entry is lost.
    pub async fn next(&mut self) -> Option<io::Result<DirEntry>> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }
}

impl Stream for ReadDir {
    type Item = io::Result<DirEntry>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
    ) -> Poll<Option<io::Result<DirEntry>>> {
        loop {
            if let Some(entry) = self.batch.pop_front() {
                return Poll::Ready(Some(
                    entry.map_err(|error| context(error, "read", self.path.display())),
                ));
            }
            match self.source.take() {
                None => return Poll::Ready(None),
                Some(Source::Ready(source)) => {
                    let batch = Box::pin(file::call(move || fetch(source)));
                    self.source = Some(Source::Fetching(batch));
                }
                Some(Source::Fetching(mut batch)) => {
                    let Poll::Ready(fetched) = batch.as_mut().poll(task) else {
                        self.source = Some(Source::Fetching(batch));
                        return Poll::Pending;
                    };
                    match fetched {
                        Ok((batch, source)) => {
                            self.batch = batch;
                            self.source = source.map(Source::Ready);
                        }
                        Err(error) => self.batch.push_back(Err(error)),
                    }
                }
            }
        }
    }
}

impl fmt::Debug for ReadDir {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReadDir").field(&self.path).finish()
    }
}
