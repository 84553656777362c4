//! What is done with paths.

use std::io;
use std::path::{Path, PathBuf};

use tussah_core::file::{self, Metadata};

use crate::io_error::context;

/// Names the path in an error.
fn on<T>(path: &Path, operation: &'static str, result: io::Result<T>) -> io::Result<T> {
    result.map_err(|error| context(error, operation, path.display()))
}

/// Names both paths in an error.
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

/// Calls a function of `std::fs` on the pool: what the ring has no operation for.
async fn call<T: Send + 'static>(
    path: &Path,
    operation: &'static str,
    f: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let owned = path.to_owned();
    on(path, operation, file::call(move || f(&owned)).await)
}

/// What is known of the file that a path leads to.
///
/// # Errors
/// What statx(2) says.
///
/// # Panics
/// Outside of a runtime.
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

/// What is known of a file, of a symbolic link itself.
///
/// # Errors
/// What statx(2) says.
///
/// # Panics
/// Outside of a runtime.
pub async fn symlink_metadata(path: impl AsRef<Path>) -> io::Result<Metadata> {
    let path = path.as_ref();
    on(path, "stat", file::metadata(path, false).await)
}

/// Whether a path leads to something.
///
/// # Errors
/// If that can't be found out: what statx(2) says, but for `NotFound`.
///
/// # Panics
/// Outside of a runtime.
pub async fn exists(path: impl AsRef<Path>) -> io::Result<bool> {
    match metadata(path).await {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Gives a file another name, in place of what has it.
///
/// # Errors
/// What rename(2) says.
///
/// # Panics
/// Outside of a runtime.
///
/// # Cancellation
/// It is carried out.
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
/// fs::rename(&new, &path).await?; // whoever opens it finds the old content or the new one
/// assert!(!fs::exists(&new).await?);
/// # std::io::Result::Ok(())
/// # })).expect("no panic")?;
/// # std::io::Result::Ok(())
/// ```
pub async fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    let (from, to) = (from.as_ref(), to.as_ref());
    on_both(from, to, "rename", file::rename(from, to).await)
}

/// Gives a file a further name.
///
/// # Errors
/// What link(2) says.
///
/// # Panics
/// Outside of a runtime.
///
/// # Cancellation
/// It is carried out.
pub async fn hard_link(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    let (from, to) = (from.as_ref(), to.as_ref());
    on_both(from, to, "link", file::hard_link(from, to).await)
}

/// Makes `path` a name for `target`, which need not be there.
///
/// # Errors
/// What symlink(2) says.
///
/// # Panics
/// Outside of a runtime.
///
/// # Cancellation
/// It is carried out.
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

/// Removes a file's name, and the file if it has no other and nobody has it open.
///
/// # Errors
/// What unlink(2) says.
///
/// # Panics
/// Outside of a runtime.
///
/// # Cancellation
/// It is carried out.
pub async fn remove_file(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    on(path, "remove", file::remove_file(path).await)
}

/// Removes an empty directory.
///
/// # Errors
/// What rmdir(2) says.
///
/// # Panics
/// Outside of a runtime.
///
/// # Cancellation
/// It is carried out.
pub async fn remove_dir(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    on(path, "remove", file::remove_dir(path).await)
}

/// Removes a directory with all that is in it; of a symbolic link, the link.
///
/// # Errors
/// The first that comes; a part may have been removed.
///
/// # Panics
/// Outside of a runtime.
///
/// # Cancellation
/// It is carried out if it has begun, unless the shutdown of the runtime gives it up at its deadline.
pub async fn remove_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    call(path.as_ref(), "remove", |path| {
        std::fs::remove_dir_all(path)
    })
    .await
}

/// Makes a directory.
///
/// # Errors
/// What mkdir(2) says.
///
/// # Panics
/// Outside of a runtime.
///
/// # Cancellation
/// It is carried out.
pub async fn create_dir(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    on(
        path,
        "make the directory",
        file::create_dir(path, 0o777).await,
    )
}

/// Makes a directory, and those above it that are not there.
///
/// # Errors
/// The first that comes; a part may have been made.
///
/// # Panics
/// Outside of a runtime.
///
/// # Cancellation
/// It is carried out if it has begun, unless the shutdown of the runtime gives it up at its deadline.
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
/// fs::create_dir_all(&path).await?; // it is there already
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

/// What a symbolic link leads to.
///
/// # Errors
/// What readlink(2) says.
///
/// # Panics
/// Outside of a runtime.
pub async fn read_link(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    call(path.as_ref(), "read the link", |path| {
        std::fs::read_link(path)
    })
    .await
}

/// The path without symbolic links, `.` and `..`, from the root on.
///
/// # Errors
/// What realpath(3) says.
///
/// # Panics
/// Outside of a runtime.
pub async fn canonicalize(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    call(path.as_ref(), "canonicalize", |path| {
        std::fs::canonicalize(path)
    })
    .await
}

/// Sets who may do what with a file: the lower twelve bits of the mode, as [`Metadata::permissions`] gives them.
///
/// # Errors
/// What chmod(2) says.
///
/// # Panics
/// Outside of a runtime.
///
/// # Cancellation
/// It is carried out if it has begun, unless the shutdown of the runtime gives it up at its deadline.
pub async fn set_permissions(path: impl AsRef<Path>, permissions: u32) -> io::Result<()> {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;
    call(path.as_ref(), "set the permissions of", move |path| {
        std::fs::set_permissions(path, Permissions::from_mode(permissions))
    })
    .await
}
