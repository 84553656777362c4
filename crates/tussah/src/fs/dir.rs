//! Reading directories.

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

/// The maximum number of entries that one job of the blocking pool fetches, about 20 KB. One job
/// per entry would cost more than the entry itself.
const BATCH: usize = 128;

/// The entries of a directory, returned by [`read_dir`]. This type also implements `Stream`.
#[must_use = "entries are read only on request"]
pub struct ReadDir {
    path: Arc<Path>,
    batch: VecDeque<io::Result<DirEntry>>,
    /// The source of the next batch; `None` after the last one.
    source: Option<Source>,
}

enum Source {
    Ready(std::fs::ReadDir),
    /// Kept here so that dropping the future of `next` loses no entry.
    Fetching(Pin<Box<dyn Future<Output = io::Result<Batch>> + Send + Sync>>),
}

/// A batch of entries and the source of the next batch.
type Batch = (VecDeque<io::Result<DirEntry>>, Option<std::fs::ReadDir>);

/// One entry of a directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DirEntry {
    path: PathBuf,
    file_type: FileType,
}

impl DirEntry {
    /// Returns the directory's path joined with the entry's name.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the entry's name.
    #[must_use]
    pub fn file_name(&self) -> &OsStr {
        self.path
            .file_name()
            .expect("an entry's path ends with its name")
    }

    /// Returns the file type. Symbolic links are not followed.
    #[must_use]
    pub fn file_type(&self) -> FileType {
        self.file_type
    }
}

/// Opens a directory for reading. The blocking pool fetches the entries in batches, in no
/// particular order, and without `.` and `..`.
///
/// # Errors
/// Returns any error from opendir(3).
///
/// # Panics
/// Panics if polled outside a runtime.
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
        move || loop {
            match std::fs::read_dir(&path) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                opened => break fetch(opened?),
            }
        }
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

/// Fetches the next batch.
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
    /// Returns the next entry, or `None` after the last one.
    ///
    /// # Errors
    /// Returns any error from readdir(3). More entries may follow an error.
    ///
    /// # Panics
    /// Panics if polled outside a runtime.
    ///
    /// # Cancellation
    /// If the future is dropped, no entry is lost.
    pub async fn next(&mut self) -> Option<io::Result<DirEntry>> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }
}

impl Stream for ReadDir {
    type Item = io::Result<DirEntry>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
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
                    let Poll::Ready(fetched) = batch.as_mut().poll(cx) else {
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
