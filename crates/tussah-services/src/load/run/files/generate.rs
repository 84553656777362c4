//! Writes a file set to disk.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;

use super::{DIRECTORY_BYTES, FILES, FileNumber, FileSet};

/// The number of bytes in a write.
const PIECE: usize = 64 * 1024;

/// The number of bytes of an existing file to compare.
const LOOKED_AT: usize = 64;

/// The result of [`generate`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Made {
    /// Files that were written.
    pub written: usize,
    /// Files that already existed.
    pub kept: usize,
}

/// Writes a file set into a directory, and creates the directory if necessary.
///
/// Files that are already complete are kept, so that an interrupted call can be repeated. After
/// each directory, the function calls `progress` with the number of complete directories.
///
/// # Errors
/// Returns the error from the operating system, with the path of the file. If the disk is full, the
/// error states how much more space the rest of the set needs.
pub fn generate(set: FileSet, root: &Path, mut progress: impl FnMut(usize)) -> io::Result<Made> {
    let mut made = Made::default();
    let mut buffer = vec![0; PIECE];
    for directory in 0..set.directories {
        let first = directory * FILES;
        let path = root.join(format!("dir{directory:05}"));
        fs::create_dir_all(&path).map_err(|error| failed(error, &path, set, directory))?;
        for number in first..first + FILES {
            let file = FileNumber(number as u32);
            let path = root.join(file.path());
            let written = write(file, &path, &mut buffer);
            match written.map_err(|error| failed(error, &path, set, directory))? {
                true => made.written += 1,
                false => made.kept += 1,
            }
        }
        progress(directory + 1);
    }
    Ok(made)
}

/// Adds the path to an error.
fn failed(error: io::Error, path: &Path, set: FileSet, directories: usize) -> io::Error {
    let kind = error.kind();
    let path = path.display();
    let text = match kind {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => format!(
            "the disk is full at {path}: {} directories are complete, and the other {} need up to {} more; free some space and \
             repeat the command, which continues from there",
            directories,
            set.directories - directories,
            crate::units::show_bytes(
                ((set.directories - directories) as u64 * DIRECTORY_BYTES) as f64
            )
        ),
        _ => format!("{path}: {error}"),
    };
    io::Error::new(kind, text)
}

/// Writes a file unless it exists.
fn write(file: FileNumber, path: &Path, buffer: &mut [u8]) -> io::Result<bool> {
    if is_there(file, path) {
        return Ok(false);
    }
    let mut output = File::create(path)?;
    let mut contents = file.contents();
    let mut left = file.len();
    while left > 0 {
        let piece = left.min(PIECE as u64);
        let bytes = &mut buffer[..piece as usize];
        contents.fill(bytes);
        output.write_all(bytes)?;
        left -= piece;
    }
    Ok(true)
}

/// Returns whether a file has the right length and beginning. An interrupted file is too short.
fn is_there(file: FileNumber, path: &Path) -> bool {
    let begins = || -> io::Result<bool> {
        let mut input = File::open(path)?;
        if input.metadata()?.len() != file.len() {
            return Ok(false);
        }
        let mut bytes = [0; LOOKED_AT];
        input.read_exact(&mut bytes)?;
        Ok(file.contents().continues(&bytes))
    };
    begins().unwrap_or(false)
}

impl FileSet {
    /// Returns the file set that [`generate`] wrote into a directory.
    ///
    /// # Errors
    /// Returns an error message that states what is missing.
    pub fn in_directory(root: &Path) -> Result<Self, String> {
        let mut directories = 0usize;
        while root.join(format!("dir{directories:05}")).is_dir() {
            directories += 1;
        }
        let missing = |path: &Path| {
            format!(
                "{} does not exist; create the set with `tussah load files --size 100MB {}`",
                path.display(),
                root.display()
            )
        };
        let Some(last) = directories.checked_sub(1) else {
            return Err(missing(&root.join("dir00000")));
        };
        for number in [0, last * FILES + FILES - 1] {
            let file = FileNumber(number as u32);
            let path = root.join(file.path());
            if !is_there(file, &path) {
                return Err(missing(&path));
            }
        }
        Self::of(directories)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_once_and_repairs() {
        let root = tempfile::tempdir().expect("a directory");
        let root = root.path();
        assert!(FileSet::in_directory(root).is_err());
        let set = FileSet::of(1).expect("a set");
        let mut seen = Vec::new();
        let made = generate(set, root, |done| seen.push(done)).expect("there is room");
        assert_eq!((made.written, made.kept, seen), (36, 0, vec![1]));
        assert_eq!(FileSet::in_directory(root), Ok(set));
        let cut = root.join("dir00000/class1_3");
        let whole = fs::read(&cut).expect("it was written");
        assert_eq!(whole.len(), 4096);
        fs::write(&cut, &whole[..4000]).expect("it can be cut");
        let other = root.join("dir00000/class2_0");
        fs::write(&other, vec![b'x'; 10_240]).expect("it can be written over");
        let made = generate(set, root, |_| {}).expect("there is room");
        assert_eq!((made.written, made.kept), (2, 34));
        assert_eq!(fs::read(&cut).expect("it is there"), whole);
    }

    #[test]
    fn a_directory_that_cannot_be_made() {
        let root = tempfile::tempdir().expect("a directory");
        let taken = root.path().join("file");
        fs::write(&taken, "").expect("it can be written");
        let set = FileSet::of(1).expect("a set");
        let error = generate(set, &taken, |_| {}).expect_err("it is a file");
        assert!(error.to_string().contains("file/dir00000"), "{error}");
    }

    #[test]
    fn a_full_disk_reports_the_missing_space() {
        let set = FileSet::of(3).expect("a set");
        let full = io::Error::from(ErrorKind::StorageFull);
        let error = failed(full, Path::new("/x/dir00001/class0_0"), set, 1);
        let text = error.to_string();
        assert!(text.contains("/x/dir00001/class0_0"), "{text}");
        assert!(text.contains("other 2 need up to 10.2 MB"), "{text}");
    }
}
