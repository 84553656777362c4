//! Operations on paths.

use std::io;
use std::path::{Path, PathBuf};

use tussah_core::file::{self, Metadata};

use crate::io_error::context;

/// Adds the path to an error.
fn on<T>(path: &Path, operation: &'static str, result: io::Result<T>) -> io::Result<T> {
    result.map_err(|error| context(error, operation, path.display()))
}

/// Adds both paths to an error.
fn on_both<T>(
    from: &Path,
    to: &Path,
    operation: &'static str,
    result: io::Result<T>,
) -> io::Result<T> {
    result.map_err(|error| {
        let both = format!("{} to {}", from.display(), to.display());
        context(error, operation, both)
    })
}

/// Calls a function of `std::fs` on the blocking pool, for operations that io_uring does not have.
async fn call<T: Send + 'static>(
    path: &Path,
    operation: &'static str,
    f: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let owned = path.to_owned();
    on(path, operation, file::call(move || f(&owned)).await)
}

/// Returns the metadata of a file, following symbolic links.
///
/// # Errors
/// Returns any error from statx(2).
///
/// # Panics
/// Panics if polled outside a runtime.
///
/// # Examples
/// ```
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// assert!(tussah::fs::metadata("/").await?.is_dir());
/// let error = tussah::fs::metadata("/no/such").await.expect_err("it is not there");
/// assert_eq!(error.to_string(), "stat /no/such: No such file or directory (os error 2)");
/// # std::io::Result::Ok(())
/// # })).expect("no panic")?;
/// # std::io::Result::Ok(())
/// ```
pub async fn metadata(path: impl AsRef<Path>) -> io::Result<Metadata> {
    let path = path.as_ref();
    on(path, "stat", file::metadata(path, true).await)
}

/// Returns the metadata of a file or, if the path is a symbolic link, of the link itself.
///
/// # Errors
/// Returns any error from statx(2).
///
/// # Panics
/// Panics if polled outside a runtime.
pub async fn symlink_metadata(path: impl AsRef<Path>) -> io::Result<Metadata> {
    let path = path.as_ref();
    on(path, "stat", file::metadata(path, false).await)
}

/// Returns whether a path exists, following symbolic links.
///
/// # Errors
/// Returns any error from statx(2) other than `NotFound`.
///
/// # Panics
/// Panics if polled outside a runtime.
pub async fn exists(path: impl AsRef<Path>) -> io::Result<bool> {
    match metadata(path).await {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Renames a file, replacing any file at the new path.
///
/// # Errors
/// Returns any error from rename(2).
///
/// # Panics
/// Panics if polled outside a runtime.
///
/// # Cancellation
/// Dropping the future does not stop the operation.
///
/// # Examples
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let place = directory.path().to_owned();
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// use tussah::fs;
/// let (new, path) = (place.join("settings.new"), place.join("settings"));
/// fs::write(&new, "level = 3").await?;
/// fs::rename(&new, &path).await?; // readers see either the old content or the new
/// assert!(!fs::exists(&new).await?);
/// # std::io::Result::Ok(())
/// # })).expect("no panic")?;
/// # std::io::Result::Ok(())
/// ```
pub async fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    let (from, to) = (from.as_ref(), to.as_ref());
    on_both(from, to, "rename", file::rename(from, to).await)
}

/// Creates a hard link to a file.
///
/// # Errors
/// Returns any error from link(2).
///
/// # Panics
/// Panics if polled outside a runtime.
///
/// # Cancellation
/// Dropping the future does not stop the operation.
pub async fn hard_link(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    let (from, to) = (from.as_ref(), to.as_ref());
    on_both(from, to, "link", file::hard_link(from, to).await)
}

/// Creates a symbolic link at `path` that points to `target`, which need not exist.
///
/// # Errors
/// Returns any error from symlink(2).
///
/// # Panics
/// Panics if polled outside a runtime.
///
/// # Cancellation
/// Dropping the future does not stop the operation.
///
/// # Examples
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let place = directory.path().to_owned();
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// use tussah::fs;
/// let link = place.join("current");
/// fs::symlink("version-2", &link).await?;
/// assert_eq!(fs::read_link(&link).await?.to_str(), Some("version-2"));
/// assert!(fs::symlink_metadata(&link).await?.is_symlink());
/// # std::io::Result::Ok(())
/// # })).expect("no panic")?;
/// # std::io::Result::Ok(())
/// ```
pub async fn symlink(target: impl AsRef<Path>, path: impl AsRef<Path>) -> io::Result<()> {
    let (target, path) = (target.as_ref(), path.as_ref());
    let result = file::symlink(target, path).await;
    on_both(path, target, "make a symbolic link of", result)
}

/// Removes a file's name. The system deletes the contents once the file has no other name and no
/// process has it open.
///
/// # Errors
/// Returns any error from unlink(2).
///
/// # Panics
/// Panics if polled outside a runtime.
///
/// # Cancellation
/// Dropping the future does not stop the operation.
pub async fn remove_file(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    on(path, "remove", file::remove_file(path).await)
}

/// Removes an empty directory.
///
/// # Errors
/// Returns any error from rmdir(2).
///
/// # Panics
/// Panics if polled outside a runtime.
///
/// # Cancellation
/// Dropping the future does not stop the operation.
pub async fn remove_dir(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    on(path, "remove", file::remove_dir(path).await)
}

/// Removes a directory and everything in it. If the path is a symbolic link, removes only the link.
///
/// # Errors
/// Returns the first error. After an error, some of the contents may already have been removed.
///
/// # Panics
/// Panics if polled outside a runtime.
///
/// # Cancellation
/// An operation that has started continues after the future is dropped, unless the runtime's
/// shutdown reaches its deadline first.
pub async fn remove_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    call(path.as_ref(), "remove", |path| {
        std::fs::remove_dir_all(path)
    })
    .await
}

/// Creates a directory.
///
/// # Errors
/// Returns any error from mkdir(2).
///
/// # Panics
/// Panics if polled outside a runtime.
///
/// # Cancellation
/// Dropping the future does not stop the operation.
pub async fn create_dir(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    on(
        path,
        "make the directory",
        file::create_dir(path, 0o777).await,
    )
}

/// Creates a directory and all missing parent directories.
///
/// # Errors
/// Returns the first error. After an error, some of the directories may already have been created.
///
/// # Panics
/// Panics if polled outside a runtime.
///
/// # Cancellation
/// An operation that has started continues after the future is dropped, unless the runtime's
/// shutdown reaches its deadline first.
///
/// # Examples
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let place = directory.path().to_owned();
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// use tussah::fs;
/// let path = place.join("var/log/demo");
/// fs::create_dir_all(&path).await?;
/// fs::create_dir_all(&path).await?; // it exists already
/// assert!(fs::metadata(&path).await?.is_dir());
/// # std::io::Result::Ok(())
/// # })).expect("no panic")?;
/// # std::io::Result::Ok(())
/// ```
pub async fn create_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    call(path.as_ref(), "make the directory", |path| {
        std::fs::create_dir_all(path)
    })
    .await
}

/// Returns the target of a symbolic link.
///
/// # Errors
/// Returns any error from readlink(2).
///
/// # Panics
/// Panics if polled outside a runtime.
pub async fn read_link(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    call(path.as_ref(), "read the link", |path| {
        std::fs::read_link(path)
    })
    .await
}

/// Returns the absolute form of a path, without symbolic links, `.` or `..`.
///
/// # Errors
/// Returns any error from realpath(3).
///
/// # Panics
/// Panics if polled outside a runtime.
pub async fn canonicalize(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    call(path.as_ref(), "canonicalize", |path| {
        std::fs::canonicalize(path)
    })
    .await
}

/// Sets the permissions of a file: the lower twelve bits of the mode, as returned by
/// [`Metadata::permissions`].
///
/// # Errors
/// Returns any error from chmod(2).
///
/// # Panics
/// Panics if polled outside a runtime.
///
/// # Cancellation
/// An operation that has started continues after the future is dropped, unless the runtime's
/// shutdown reaches its deadline first.
pub async fn set_permissions(path: impl AsRef<Path>, permissions: u32) -> io::Result<()> {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;
    call(path.as_ref(), "set the permissions of", move |path| {
        std::fs::set_permissions(path, Permissions::from_mode(permissions))
    })
    .await
}
