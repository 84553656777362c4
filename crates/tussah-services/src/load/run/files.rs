//! The file set of SPECweb99: names, sizes, contents, and popularity.
//!
//! A directory has 36 files in four classes of nine. Each file is 102 to 921,600 bytes long; the
//! files of a directory take up 4.88 MiB in total. The classes get 35, 50, 14 and 1 % of the
//! requests. Within a class, the popularity follows Zipf's law: file 5 is the most popular,
//! followed by 4, 6, 3, 7, 2, 8, 9 and 1. The popularity of directories also follows Zipf's law,
//! the first directory being the most popular. The figures are from Nahum, "Deconstructing
//! SPECweb99", 2002. The frequencies within a class are those in Nahum's table, from 35.3 % for
//! file 5 to 3.9 % for file 1.

mod generate;

pub use generate::{Made, generate};

use fastrand::Rng;

/// The number of files in a directory.
pub const FILES: usize = CLASSES * PER_CLASS;

const CLASSES: usize = 4;
const PER_CLASS: usize = 9;

/// The length of the first file of each class, in bytes; the lengths of the others are multiples of
/// it.
const STEPS: [u64; CLASSES] = [102, 1_024, 10_240, 102_400];

/// The total length of the files in a directory, in bytes.
pub const DIRECTORY_BYTES: u64 = 45 * (102 + 1_024 + 10_240 + 102_400);

/// The share of each class in the requests.
const SHARES: [f64; CLASSES] = [0.35, 0.50, 0.14, 0.01];

/// The rank of each file within its class.
const RANKS: [u32; PER_CLASS] = [9, 6, 4, 2, 1, 3, 5, 7, 8];

/// The number of directories in the set of the SEDA paper (SOSP 2001), section 5.1: "3.31 GB".
const DIRECTORIES_SEDA: usize = 678;

/// Bound, in directories: the maximum of a set of files, because the number of a directory has five
/// digits.
const DIRECTORIES_MAX: usize = 100_000;

/// A set of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSet {
    /// The number of directories, at least 1.
    directories: usize,
}

impl FileSet {
    /// Returns a file set that consists of `directories` directories.
    ///
    /// # Errors
    /// If `directories` is less than 1 or greater than 100,000, returns an error message that
    /// states what was expected.
    pub fn of(directories: usize) -> Result<Self, String> {
        match directories {
            1..=DIRECTORIES_MAX => Ok(Self { directories }),
            _ => Err(format!(
                "expected 1 to {DIRECTORIES_MAX} directories, and so 5.2MB to 512GB, not {directories}"
            )),
        }
    }

    /// Returns the largest set that does not exceed the given size, where 1 MB counts as 1 MiB:
    /// `100MB` gives 20 directories of 4.88 MiB. As an exception, `3.3GB` gives the set of the SEDA
    /// paper, which is slightly larger than 3.3 GB.
    ///
    /// # Errors
    /// If the string is not a size such as `100MB`, or the size is out of range, returns an error
    /// message that states what was expected.
    pub fn of_size(text: &str) -> Result<Self, String> {
        let bytes = crate::units::size(text)?;
        // 100 MB hold 20 directories of 4.88 MiB, by the usual calculation.
        match bytes {
            3_300_000_000 => Self::of(DIRECTORIES_SEDA),
            _ => Self::of((bytes as f64 * 1.048_576 / DIRECTORY_BYTES as f64) as usize),
        }
    }

    /// Returns the number of directories.
    #[must_use]
    pub fn directories(self) -> usize {
        self.directories
    }

    /// Returns the number of files.
    #[must_use]
    pub fn files(self) -> usize {
        self.directories * FILES
    }

    /// Returns the total size of the files, in bytes.
    #[must_use]
    pub fn bytes(self) -> u64 {
        self.directories as u64 * DIRECTORY_BYTES
    }
}

/// A file of a set, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::load) struct FileNumber(pub(in crate::load) u32);

impl FileNumber {
    fn new(directory: usize, class: usize, file: usize) -> Self {
        Self((directory * FILES + class * PER_CLASS + file) as u32)
    }

    fn class_and_file(self) -> (usize, usize) {
        let within = self.0 as usize % FILES;
        (within / PER_CLASS, within % PER_CLASS)
    }

    /// Returns the name, such as `dir00007/class2_4`; files of a class are counted from 0.
    pub(in crate::load) fn path(self) -> String {
        let (class, file) = self.class_and_file();
        format!("dir{:05}/class{class}_{file}", self.0 as usize / FILES)
    }

    /// Returns the length in bytes.
    pub(in crate::load) fn len(self) -> u64 {
        let (class, file) = self.class_and_file();
        STEPS[class] * (file as u64 + 1)
    }

    /// Returns the contents from the beginning.
    pub(in crate::load) fn contents(self) -> Contents {
        Contents {
            random: Rng::with_seed(u64::from(self.0) << 32),
            rest: [0; 8],
            rest_len: 0,
        }
    }
}

/// A stream of the bytes of a file: printable characters, which are determined by its number.
#[derive(Clone, Debug)]
pub(in crate::load) struct Contents {
    random: Rng,
    /// The unused part of the last word, at its end.
    rest: [u8; 8],
    rest_len: usize,
}

impl Contents {
    fn word(&mut self) -> [u8; 8] {
        // Six bits of each byte select a character from space to underscore.
        let word = (self.random.u64(..) & 0x3f3f_3f3f_3f3f_3f3f) + 0x2020_2020_2020_2020;
        word.to_le_bytes()
    }

    /// Calls `each` with the next `len` bytes, in pieces, until it returns false. Returns whether
    /// it never returned false.
    fn pieces(&mut self, len: usize, mut each: impl FnMut(usize, &[u8]) -> bool) -> bool {
        let mut at = 0;
        while at < len {
            if self.rest_len == 0 {
                self.rest = self.word();
                self.rest_len = 8;
            }
            let take = self.rest_len.min(len - at);
            let from = 8 - self.rest_len;
            if !each(at, &self.rest[from..from + take]) {
                return false;
            }
            self.rest_len -= take;
            at += take;
        }
        true
    }

    /// Fills a buffer with the next bytes.
    pub(in crate::load) fn fill(&mut self, buffer: &mut [u8]) {
        self.pieces(buffer.len(), |at, piece| {
            buffer[at..at + piece.len()].copy_from_slice(piece);
            true
        });
    }

    /// Returns whether these are the next bytes.
    pub(in crate::load) fn continues(&mut self, bytes: &[u8]) -> bool {
        self.pieces(bytes.len(), |at, piece| {
            bytes[at..at + piece.len()] == *piece
        })
    }
}

/// A random choice of files by the popularity of SPECweb99.
#[derive(Debug)]
pub(in crate::load) struct Popularity {
    /// For each directory, the cumulative share up to that directory.
    directories: Vec<f64>,
    /// For each file of a directory, the cumulative share up to that file.
    files: Vec<f64>,
}

impl Popularity {
    pub(in crate::load) fn of(set: FileSet) -> Self {
        let zipf = (1..=set.directories).map(|rank| 1.0 / rank as f64);
        let files = (0..FILES).map(|at| SHARES[at / PER_CLASS] / f64::from(RANKS[at % PER_CLASS]));
        Self {
            directories: cumulative(zipf),
            files: cumulative(files),
        }
    }

    pub(in crate::load) fn pick(&self, random: &mut Rng) -> FileNumber {
        let directory = sample(&self.directories, random.f64());
        let within = sample(&self.files, random.f64());
        FileNumber::new(directory, within / PER_CLASS, within % PER_CLASS)
    }
}

/// Returns the cumulative sums of the weights, scaled so that the last is 1.
pub(super) fn cumulative(weights: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut sums: Vec<f64> = weights
        .scan(0.0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        })
        .collect();
    let all = sums.last().copied().expect("there is at least one weight");
    sums.iter_mut().for_each(|sum| *sum /= all);
    sums
}

/// Returns the first index whose sum exceeds a number from 0 to below 1.
pub(super) fn sample(sums: &[f64], at: f64) -> usize {
    sums.partition_point(|&sum| sum <= at).min(sums.len() - 1)
}

#[cfg(test)]
mod tests;
