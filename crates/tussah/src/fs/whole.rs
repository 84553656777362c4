//! Operations on whole files.

use std::io;
use std::path::Path;

use tussah_core::file::{self, IoBuf};

use super::file::File;
use crate::io_error::context;

/// The bytes read at a time when a file's length is unknown or wrong.
const CHUNK: usize = 64 * 1024;

/// Reads a whole file.
///
/// # Errors
/// Returns `OutOfMemory` if the contents do not fit into memory, or any error from [`File::open`],
/// [`File::len`], [`File::read_at`] and [`File::close`].
///
/// # Panics
/// Panics if polled outside a runtime.
///
/// # Examples
/// ```
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// let text = tussah::fs::read("Cargo.toml").await?;
/// assert!(text.starts_with(b"[package]"));
/// # std::io::Result::Ok(())
/// # })).expect("no panic")?;
/// # std::io::Result::Ok(())
/// ```
pub async fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let file = File::open(path).await?;
    let len = usize::try_from(file.len().await?).unwrap_or(usize::MAX);
    let mut content = Vec::new();
    // One more byte, to detect the end. Some files report a length of 0 although they are not
    // empty.
    let mut room = len.saturating_add(1).max(CHUNK.min(512));
    loop {
        let mut chunk = Vec::new();
        if let Err(error) = chunk.try_reserve_exact(room) {
            let error = io::Error::new(io::ErrorKind::OutOfMemory, error);
            return Err(context(error, "read", file.path().display()));
        }
        let room_had = chunk.capacity();
        let (read, chunk) = file.read_full(chunk, content.len() as u64).await;
        let read = read?;
        if content.is_empty() {
            content = chunk;
        } else {
            content.extend_from_slice(&chunk);
        }
        if read < room_had {
            break;
        }
        room = content.len().max(CHUNK);
    }
    file.close().await?;
    Ok(content)
}

/// Reads a whole file as UTF-8.
///
/// # Errors
/// Returns `InvalidData` if the file is not valid UTF-8, or any error from [`read`].
///
/// # Panics
/// Panics if polled outside a runtime.
pub async fn read_to_string(path: impl AsRef<Path>) -> io::Result<String> {
    let path = path.as_ref();
    String::from_utf8(read(path).await?).map_err(|error| {
        let error = io::Error::new(io::ErrorKind::InvalidData, error.utf8_error());
        context(error, "read", path.display())
    })
}

/// Writes a whole file: creates it, or replaces its contents if it already exists.
///
/// # Errors
/// Returns any error from [`File::create`], [`File::write_all_at`] and [`File::close`]. After an
/// error, the file may contain only part of the contents.
///
/// # Panics
/// Panics if polled outside a runtime.
///
/// # Cancellation
/// If the future is dropped, the file may be empty, or contain some or all of the contents.
pub async fn write(path: impl AsRef<Path>, content: impl IoBuf) -> io::Result<()> {
    let file = File::create(path).await?;
    file.write_all_at(content, 0).await.0?;
    file.close().await
}

/// Copies the contents and permissions of a file, and returns the number of bytes copied. An OS
/// thread of the blocking pool makes the copy with `std::fs::copy`.
///
/// # Errors
/// Returns any error from `std::fs::copy`.
///
/// # Panics
/// Panics if polled outside a runtime.
///
/// # Cancellation
/// A copy that has started continues after the future is dropped, unless the runtime's shutdown
/// reaches its deadline first.
///
/// # Examples
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let place = directory.path().to_owned();
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// use tussah::fs;
/// let (from, to) = (place.join("a"), place.join("b"));
/// fs::write(&from, "content").await?;
/// assert_eq!(fs::copy(&from, &to).await?, 7);
/// assert_eq!(fs::read_to_string(&to).await?, "content");
/// # std::io::Result::Ok(())
/// # })).expect("no panic")?;
/// # std::io::Result::Ok(())
/// ```
pub async fn copy(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<u64> {
    let (from, to) = (from.as_ref(), to.as_ref());
    let (owned_from, owned_to) = (from.to_owned(), to.to_owned());
    let copied = file::call(move || std::fs::copy(owned_from, owned_to)).await;
    copied.map_err(|error| {
        let both = format!("{} to {}", from.display(), to.display());
        context(error, "copy", both)
    })
}
