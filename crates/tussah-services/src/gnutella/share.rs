//! The files that a router shares.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::Path;

use tussah_wire::http::encoding::Codings;

use super::running::GnutellaError;
use crate::web::site::{Found, Missing, Opened, Site, SiteOptions};

/// Bound, in files: the maximum number of shared files; further files are not shared. Each needs
/// about 200 bytes.
const FILES_MAX: usize = 100_000;
/// Bound, in entries: the maximum number of directory entries that the router examines to find the
/// files that it shares.
const ENTRIES_MAX: usize = 1_000_000;
/// Bound, in words: the maximum number in a query. Further words are ignored.
const WORDS_MAX: usize = 16;

/// The files that a router shares, as they were when it started.
pub(super) struct Share {
    site: Site,
    files: Vec<File>,
    /// The numbers of the files whose names have a word, in order.
    words: HashMap<String, Vec<u32>>,
    kilobytes: u32,
}

/// A file that is shared.
#[derive(Debug)]
pub(super) struct File {
    /// The path inside the directory, beginning with a slash.
    path: String,
    pub(super) name: String,
    pub(super) len: u64,
}

impl Share {
    /// Lists the files of a directory and of those inside it. Names that begin with a dot, or that
    /// are not UTF-8, are not shared.
    pub(super) fn open(root: Option<&Path>) -> Result<Self, GnutellaError> {
        let mut share = Self {
            site: Site::empty(),
            files: Vec::new(),
            words: HashMap::new(),
            kilobytes: 0,
        };
        let Some(root) = root else { return Ok(share) };
        let options = SiteOptions {
            precompressed: Codings::NONE,
            ..SiteOptions::default()
        };
        share.site = Site::open(root, options).map_err(GnutellaError::Share)?;
        let mut directories = vec![String::new()];
        let (mut entries, mut bytes) = (0, 0);
        while let Some(directory) = directories.pop() {
            let path = root.join(directory.trim_start_matches('/'));
            let failed = |error: io::Error| {
                let path = path.display();
                GnutellaError::Start(format!("cannot list the files in {path}: {error}"))
            };
            let is_private = |error: &io::Error| {
                use io::ErrorKind::{NotFound, PermissionDenied};
                !directory.is_empty() && matches!(error.kind(), NotFound | PermissionDenied)
            };
            let all = match fs::read_dir(&path) {
                Ok(all) => all,
                Err(error) if is_private(&error) => {
                    tracing::warn!(path = %path.display(), %error, "cannot share a directory");
                    continue;
                }
                Err(error) => return Err(failed(error)),
            };
            for entry in all {
                entries += 1;
                let entry = entry.map_err(failed)?;
                let kind = entry.file_type().map_err(failed)?;
                let Ok(name) = entry.file_name().into_string() else {
                    continue;
                };
                if name.starts_with('.') {
                    continue;
                }
                let path = format!("{directory}/{name}");
                if kind.is_dir() {
                    directories.push(path);
                } else if kind.is_file() {
                    let len = match entry.metadata() {
                        Ok(meta) => meta.len(),
                        // It has been removed in the meantime.
                        Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                        Err(error) => return Err(failed(error)),
                    };
                    bytes += len;
                    share.files.push(File { path, name, len });
                }
                if entries >= ENTRIES_MAX || share.files.len() >= FILES_MAX {
                    let (files, root) = (share.files.len(), root.display());
                    tracing::warn!("only {files} files of {root} are shared: there are more");
                    directories.clear();
                    break;
                }
            }
        }
        share.kilobytes = u32::try_from(bytes / 1000).unwrap_or(u32::MAX);
        // The numbers do not depend on the order of the directory.
        share.files.sort_by(|a, b| a.path.cmp(&b.path));
        share.index();
        Ok(share)
    }

    fn index(&mut self) {
        for (number, file) in (0..).zip(&self.files) {
            for word in words(&file.name) {
                let numbers = self.words.entry(word).or_default();
                if numbers.last() != Some(&number) {
                    numbers.push(number);
                }
            }
        }
    }

    /// Returns the number of files.
    pub(super) fn files(&self) -> u32 {
        self.files.len() as u32
    }

    /// Returns the length of all files together, in kilobytes.
    pub(super) fn kilobytes(&self) -> u32 {
        self.kilobytes
    }

    /// Returns the files whose names have all words of a query, with their numbers.
    pub(super) fn find(&self, criteria: &[u8]) -> impl Iterator<Item = (u32, &File)> {
        let text = String::from_utf8_lossy(criteria);
        let lists: Vec<_> = words(&text).take(WORDS_MAX).collect();
        let lists = lists.iter().map(|word| self.words.get(word));
        // A word that no file has finds nothing.
        let mut lists: Vec<&Vec<u32>> = lists.collect::<Option<_>>().unwrap_or_default();
        lists.sort_by_key(|list| list.len());
        let mut lists = lists.into_iter();
        let shortest = lists.next().into_iter().flatten();
        let others: Vec<_> = lists.collect();
        shortest
            .filter(move |number| others.iter().all(|list| list.binary_search(number).is_ok()))
            .map(|number| (*number, &self.files[*number as usize]))
    }

    /// Opens the file with this number and this name. This may wait for a disk.
    ///
    /// # Errors
    /// Returns an error if there is no such file, or if it cannot be opened.
    pub(super) fn open_file(&self, number: u32, name: &str) -> Result<Opened, Missing> {
        let file = self.files.get(number as usize);
        let file = file.filter(|file| file.name == name);
        let file = file.ok_or(Missing::NotFound)?;
        match self.site.look_up(file.path.as_bytes(), Codings::NONE)? {
            Found::File(opened) => Ok(opened),
            _ => Err(Missing::Io(io::ErrorKind::IsADirectory.into())),
        }
    }
}

/// Returns the words of a string, in lower case.
fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_by_words() {
        let directory = tempfile::tempdir().expect("there is room");
        let root = directory.path();
        fs::create_dir(root.join("sub")).expect("there is room");
        for name in [
            "Wild_Silk.mp3",
            "wild silk (2).ogg",
            "sub/silk-road.txt",
            ".wild",
        ] {
            fs::write(root.join(name), "silk").expect("there is room");
        }
        let share = Share::open(Some(root)).expect("it exists");
        let check = |criteria: &str, expected: &[&str]| {
            let found = share.find(criteria.as_bytes());
            let names: Vec<_> = found.map(|(_, file)| &*file.name).collect();
            assert_eq!(names, expected, "{criteria}");
        };
        check(
            "SILK",
            &["Wild_Silk.mp3", "silk-road.txt", "wild silk (2).ogg"],
        );
        check("silk wild", &["Wild_Silk.mp3", "wild silk (2).ogg"]);
        check("wild silk mp3", &["Wild_Silk.mp3"]);
        check("wild mp4", &[]);
        check("sil", &[]);
        check("", &[]);
        check(" \u{fffd}", &[]);
        assert_eq!((share.files(), share.kilobytes()), (3, 0));
        let name = |number| share.files[number as usize].name.clone();
        for number in 0..3 {
            let opened = share.open_file(number, &name(number)).expect("it exists");
            assert_eq!(opened.meta.len, 4);
        }
        for (number, name) in [(0, "silk-road.txt"), (3, "Wild_Silk.mp3")] {
            let missing = share.open_file(number, name);
            assert!(matches!(missing, Err(Missing::NotFound)));
        }
    }
}
