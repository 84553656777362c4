//! Files opened by instances, with a check that no two instances use one file in conflicting ways.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

/// A file opened by an instance of a module.
///
/// Several instances may read the same file, or several may append to it. Any other combination is
/// a conflict: the later attempt to open the file fails with an error that names both instances.
/// Conflicts are detected only between regular files opened with this type.
///
/// # Examples
/// ```
/// use tussah::flow::OpenFile;
///
/// # let folder = std::env::temp_dir().join(format!("tussah-open-file-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// let path = folder.join("log");
/// let log = OpenFile::append(&path)?;
/// assert!(OpenFile::append(&path).is_ok());
/// assert!(OpenFile::read(&path).is_err());
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct OpenFile {
    file: File,
    path: PathBuf,
    number: u64,
}

/// The device and the number of a file.
type Inode = (u64, u64);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Use {
    Read,
    Append,
    Create,
}

impl Use {
    fn verb(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Append => "append to",
            Self::Create => "create",
        }
    }

    fn present(self) -> &'static str {
        match self {
            Self::Read => "reads",
            Self::Append => "appends to",
            Self::Create => "writes",
        }
    }
}

/// A use of a file by an instance.
struct Claim {
    number: u64,
    inode: Inode,
    of: Use,
    instance: Option<Arc<str>>,
}

/// The uses of the files that are open, and the number of the last one.
static CLAIMS: Mutex<(u64, Vec<Claim>)> = Mutex::new((0, Vec::new()));

thread_local! {
    /// The instance that is being created.
    static MAKING: RefCell<Option<Arc<str>>> = const { RefCell::new(None) };
}

/// Calls `f`, which creates this instance.
pub(crate) fn making<R>(instance: Option<Arc<str>>, f: impl FnOnce() -> R) -> R {
    /// Restores the name, also after a panic.
    struct Restore(Option<Arc<str>>);

    impl Drop for Restore {
        fn drop(&mut self) {
            MAKING.set(self.0.take());
        }
    }

    let _restore = Restore(MAKING.replace(instance));
    f()
}

impl OpenFile {
    /// Opens a file for reading.
    ///
    /// # Errors
    /// Returns the path and the reason if the file cannot be opened, or if another instance writes
    /// to it.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, String> {
        Self::open(path.as_ref(), Use::Read)
    }

    /// Opens a file for appending, and creates it if it does not exist.
    ///
    /// # Errors
    /// Returns the path and the reason if the file cannot be opened, or if another instance has
    /// opened it for anything other than appending.
    pub fn append(path: impl AsRef<Path>) -> Result<Self, String> {
        Self::open(path.as_ref(), Use::Append)
    }

    /// Creates an empty file for writing. If the file exists, it is truncated.
    ///
    /// # Errors
    /// Returns the path and the reason if the file cannot be opened, or if another instance uses
    /// it.
    pub fn create(path: impl AsRef<Path>) -> Result<Self, String> {
        Self::open(path.as_ref(), Use::Create)
    }

    fn open(path: &Path, of: Use) -> Result<Self, String> {
        let mut options = File::options();
        match of {
            Use::Read => options.read(true),
            Use::Append => options.append(true).create(true),
            // The file is truncated once it is certain that no other instance uses it.
            Use::Create => options.write(true).create(true).truncate(false),
        };
        let fails = |error| context(of.verb(), path, &error);
        let file = options.open(path).map_err(fails)?;
        let metadata = file.metadata().map_err(fails)?;
        if metadata.is_dir() {
            return Err(fails(io::ErrorKind::IsADirectory.into()));
        }
        let is_regular = metadata.is_file();
        let inode = (metadata.dev(), metadata.ino());
        let number = claim(inode, of, is_regular, path)?;
        let this = Self {
            file,
            path: path.to_owned(),
            number,
        };
        if of == Use::Create && is_regular {
            this.file.set_len(0).map_err(fails)?;
        }
        Ok(this)
    }

    /// Returns the file.
    #[must_use]
    pub fn get(&self) -> &File {
        &self.file
    }

    /// Returns the path that was used to open the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns an error message: `cannot VERB PATH: ..`.
    #[must_use]
    pub fn context(&self, verb: &str, error: &io::Error) -> String {
        context(verb, &self.path, error)
    }
}

fn context(verb: &str, path: &Path, error: &io::Error) -> String {
    format!("cannot {verb} {}: {error}", path.display())
}

/// Records that the instance being created uses a file. Devices and pipes have no conflicts.
fn claim(inode: Inode, of: Use, is_regular: bool, path: &Path) -> Result<u64, String> {
    let instance = MAKING.with_borrow(Clone::clone);
    let mut claims = CLAIMS.lock();
    let (last, all) = &mut *claims;
    let is_same = |other: &Claim| match (&other.instance, &instance) {
        // An instance that is created again still has its old files for a moment.
        (Some(other), Some(this)) => Arc::ptr_eq(other, this),
        _ => false,
    };
    let conflicts = |other: &&Claim| {
        let agrees = other.of == of && of != Use::Create;
        is_regular && other.inode == inode && !agrees && !is_same(other)
    };
    if let Some(other) = all.iter().find(conflicts) {
        let name = |instance: &Option<Arc<str>>| match instance {
            Some(name) => format!("the instance `{name}`"),
            None => "code outside of a graph".to_owned(),
        };
        return Err(format!(
            "cannot {} {}: {} {} it already, which conflicts with {}",
            of.verb(),
            path.display(),
            name(&other.instance),
            other.of.present(),
            name(&instance)
        ));
    }
    *last += 1;
    all.push(Claim {
        number: *last,
        inode,
        of,
        instance,
    });
    Ok(*last)
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        let mut claims = CLAIMS.lock();
        claims.1.retain(|claim| claim.number != self.number);
    }
}
