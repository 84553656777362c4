//! The served files: one file, or a set like that of SPECweb99, with the popularity of each.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fastrand::Rng;

/// A file of the site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The path in a URL.
    pub path: String,
    /// The length, in bytes.
    pub len: usize,
}

/// A folder of files, with the popularity of each.
#[derive(Debug)]
pub struct Site {
    /// The path of the folder.
    pub folder: PathBuf,
    /// The files.
    pub pages: Vec<Page>,
    /// The cumulative probability of each page: the probability of a request for it or a page
    /// before it. The last value is 1.
    pub cumulative: Vec<f64>,
}

/// The classes of files in SPECweb99: the unit of length in bytes and the share of the requests.
const CLASSES: [(usize, f64); 4] = [(102, 0.35), (1024, 0.50), (10_240, 0.14), (102_400, 0.01)];

/// The shares of the files of 1 to 9 units among the requests for their class.
const FILES: [f64; 9] = [
    0.039, 0.059, 0.088, 0.178, 0.353, 0.118, 0.071, 0.050, 0.044,
];

/// The number of files in a folder of the set.
pub const FILES_OF_FOLDER: usize = CLASSES.len() * FILES.len();
/// Their size in bytes.
pub const BYTES_OF_FOLDER: u64 = 45 * (102 + 1024 + 10_240 + 102_400);

/// The number of folders in the set of 100 MB.
pub const FOLDERS: usize = 20;
/// The number of folders in the set of 3.3 GB of the SEDA paper (SOSP 2001), section 5.1.
pub const FOLDERS_SEDA: usize = 678;

impl Site {
    /// Writes one file of `len` bytes, `/file`.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder cannot be written.
    pub fn one_file(folder: &Path, len: usize) -> io::Result<Site> {
        let path = "/file".to_owned();
        Site::write(folder, vec![(Page { path, len }, 1.0)])
    }

    /// Writes a set like that of SPECweb99: `folders` folders, each with 36 files of 102 bytes to
    /// 900 KB. The first folder gets twice as many requests as the second, three times as many as
    /// the third, and so on.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder cannot be written.
    pub fn files(folder: &Path, folders: usize) -> io::Result<Site> {
        let mut pages = Vec::new();
        for at in 0..folders {
            for (class, (unit, of_class)) in CLASSES.iter().enumerate() {
                for (file, of_file) in FILES.iter().enumerate() {
                    let path = format!("/dir{at:05}/class{class}_{file}");
                    let len = unit * (file + 1);
                    let weight = of_class * of_file / (at + 1) as f64;
                    pages.push((Page { path, len }, weight));
                }
            }
        }
        Site::write(folder, pages)
    }

    /// Writes files of the given lengths, each with its popularity.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder cannot be written.
    pub fn write(folder: &Path, pages: Vec<(Page, f64)>) -> io::Result<Site> {
        let mut random = Rng::with_seed(99);
        for (page, _) in &pages {
            let file = folder.join(&page.path[1..]);
            if fs::metadata(&file).is_ok_and(|there| there.len() == page.len as u64) {
                continue;
            }
            if let Some(parent) = file.parent() {
                fs::create_dir_all(parent)?;
            }
            let bytes = (0..page.len.div_ceil(8)).flat_map(|_| random.u64(..).to_ne_bytes());
            let bytes: Vec<u8> = bytes.take(page.len).collect();
            fs::write(file, bytes)?;
        }
        let sum: f64 = pages.iter().map(|(_, weight)| weight).sum();
        let mut below = 0.0;
        let cumulative = pages.iter().map(|(_, weight)| {
            below += weight / sum;
            below
        });
        Ok(Site {
            folder: folder.to_owned(),
            cumulative: cumulative.collect(),
            pages: pages.into_iter().map(|(page, _)| page).collect(),
        })
    }

    /// Drops the files from the page cache, so that the next reader reads them from the disk.
    ///
    /// # Errors
    ///
    /// Returns an error if a file no longer exists.
    pub fn forget(&self) -> io::Result<()> {
        for page in &self.pages {
            let file = fs::File::open(self.folder.join(&page.path[1..]))?;
            // Data that has not been written stays in memory.
            file.sync_data()?;
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
        }
        Ok(())
    }

    /// Returns the page that a client requests next.
    pub fn pick(&self, random: &mut Rng) -> usize {
        if self.pages.len() == 1 {
            return 0;
        }
        let chosen = random.f64();
        let at = self.cumulative.partition_point(|below| *below <= chosen);
        at.min(self.pages.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_its_size_and_its_shares() {
        let folder = std::env::temp_dir().join(format!("tussah-bench-site-{}", std::process::id()));
        let site = Site::files(&folder, 2).unwrap();
        let bytes: usize = site.pages.iter().map(|page| page.len).sum();
        assert!((9_000_000..16_000_000).contains(&bytes), "{bytes}");
        let page = &site.pages[4];
        assert_eq!((page.path.as_str(), page.len), ("/dir00000/class0_4", 510));
        assert_eq!(
            fs::metadata(folder.join("dir00000/class0_4"))
                .unwrap()
                .len(),
            510
        );
        fs::remove_dir_all(&folder).unwrap();

        let mut random = Rng::with_seed(1);
        let mut small = 0;
        for _ in 0..10_000 {
            small += usize::from(site.pages[site.pick(&mut random)].path.contains("class0"));
        }
        assert!((3300..3700).contains(&small), "{small}");
    }
}
