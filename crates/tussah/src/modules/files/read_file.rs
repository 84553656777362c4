//! A module that reads whole files.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::root::Root;
use crate::flow::{Out, Size, module};
use crate::modules::Attempt;

/// The contents and the path of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Contents {
    /// The path of the file, as requested.
    pub path: PathBuf,
    /// The contents of the file.
    pub bytes: Vec<u8>,
}

/// Reads whole files.
///
/// | parameter | kind | meaning |
/// |---|---|---|
/// | `root` | path, optional | the directory of the files; paths that start with `/` or lead out of it by `..` are refused |
/// | `longest` | size, default 16 MiB | the maximum size of a file |
///
/// | port | items | meaning |
/// |---|---|---|
/// | input `run` | `PathBuf` | the path of a file to read |
/// | input `again` | [`Attempt<PathBuf>`] | a path to retry |
/// | output `out` | [`Contents`] | the contents and the path of the file |
/// | outputs `failed` and `again_failed` | [`Attempt<PathBuf>`] | the path of a file that could not be read, for [`Retry`](crate::modules::Retry) |
///
/// The module follows symbolic links, and reads up to 20 files at a time, on OS threads of the
/// blocking pool.
#[module]
pub struct ReadFile {
    root: Root,
    longest: u64,
}

/// Bound, in bytes: the default maximum size of a file. Reading a larger file fails.
const FILE_MAX: u64 = 16 << 20;

#[module(blocking)]
impl ReadFile {
    fn init(root: Option<PathBuf>, longest: Option<Size>) -> Result<Self, String> {
        let longest = longest.map_or(FILE_MAX, |size| size.0);
        let root = Root::new(root)?;
        Ok(Self { root, longest })
    }

    fn run(&self, path: PathBuf, out: &impl Out<Contents>) -> Result<(), Attempt<PathBuf>> {
        match self.read(&path) {
            Ok(bytes) => out.send(Contents { path, bytes }),
            Err(why) => return Err(Attempt::first(path, why)),
        }
        Ok(())
    }

    #[port]
    fn again(
        &self,
        attempt: Attempt<PathBuf>,
        out: &impl Out<Contents>,
    ) -> Result<(), Attempt<PathBuf>> {
        let bytes = match self.read(&attempt.item) {
            Ok(bytes) => bytes,
            Err(why) => return Err(attempt.failed(why)),
        };
        let path = attempt.item;
        out.send(Contents { path, bytes });
        Ok(())
    }
}

impl ReadFile {
    fn read(&self, path: &Path) -> Result<Vec<u8>, String> {
        let whole = self.root.join(path)?;
        let fails = |error| format!("cannot read {}: {error}", whole.display());
        let file = std::fs::File::open(&whole).map_err(fails)?;
        let mut bytes = Vec::new();
        // A file may grow while it is read, so its length is not asked for.
        let read = file
            .take(self.longest.saturating_add(1))
            .read_to_end(&mut bytes);
        read.map_err(fails)?;
        if bytes.len() as u64 > self.longest {
            let longest = self.longest;
            return Err(format!("{} has more than {longest} bytes", whole.display()));
        }
        Ok(bytes)
    }
}
