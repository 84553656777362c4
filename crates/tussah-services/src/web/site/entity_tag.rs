//! Entity tags (RFC 9110, section 8.8.3) of files.

use std::fmt;
use std::io::Write;

use rustix::fs::Stat;

/// The maximum length of a tag, in bytes: three numbers of 64 bits in hexadecimal, with their
/// separators. The tag is stored in its owner.
const TAG_MAX: usize = 3 * 16 + 4;

/// A strong entity tag, including its quotes. The tag of a file consists of the time of its last
/// change (`ctime`), its length and its inode number.
///
/// The modification time is not sufficient, because a program that copies files can set it. A tag
/// with the modification time instead of `ctime` could be the same for two versions of a file. Only
/// the kernel sets `ctime`, and it does so whenever the contents, the length or the times of the
/// file change.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct EntityTag {
    bytes: [u8; TAG_MAX],
    len: u8,
}

impl EntityTag {
    pub(super) fn new(stat: &Stat) -> Self {
        let nanos = stat.st_ctime.wrapping_mul(1_000_000_000).cast_unsigned();
        let nanos = nanos.wrapping_add(stat.st_ctime_nsec);
        let mut bytes = [0; TAG_MAX];
        let mut rest = &mut bytes[..];
        write!(rest, "\"{nanos:x}-{:x}-{:x}\"", stat.st_size, stat.st_ino)
            .expect("three numbers of 64 bits fit");
        let len = u8::try_from(TAG_MAX - rest.len()).expect("a tag is short");
        Self { bytes, len }
    }

    /// Returns the tag as it appears in a header field, including the quotes.
    #[must_use]
    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.bytes[..usize::from(self.len)]).expect("a tag is ASCII")
    }
}

impl fmt::Debug for EntityTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn the_largest_numbers_fit() {
        let file = tempfile::tempfile().expect("a file");
        let mut stat = rustix::fs::fstat(file.as_fd()).expect("stat");
        (stat.st_ctime, stat.st_ctime_nsec, stat.st_size, stat.st_ino) = (0, 255, 0, 1);
        assert_eq!(EntityTag::new(&stat).as_str(), "\"ff-0-1\"");
        (stat.st_ctime, stat.st_ctime_nsec, stat.st_size, stat.st_ino) = (-1, 0, -1, u64::MAX);
        let expected = "\"ffffffffc4653600-ffffffffffffffff-ffffffffffffffff\"";
        assert_eq!(EntityTag::new(&stat).as_str(), expected);
    }
}
