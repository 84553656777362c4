//! What looking up a path in a site gives.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::Stat;
use rustix::io::Errno;
use tussah_wire::http::encoding::Coding;

use super::entity_tag::EntityTag;

/// What is at a path.
#[derive(Debug)]
pub enum Found {
    /// A regular file, open for reading.
    File(Opened),
    /// A directory without the slash at its end.
    Redirect {
        /// The path with the slash, percent-encoded, with exactly one slash in front: never another
        /// host's address. The query is the caller's to append.
        location: String,
    },
    /// The page that lists a directory, of the type [`LISTING_TYPE`](super::LISTING_TYPE).
    Listing(Vec<u8>),
}

/// Why there is nothing to be had at a path.
#[derive(Debug)]
pub enum Missing {
    /// Nothing is there, or nothing that may be seen: hidden files, and links that leave the root. 404.
    NotFound,
    /// The process has no right to read it. 403.
    Forbidden,
    /// A socket, pipe or device. 403.
    NotAFile,
    /// The kernel would have to wait for a disk: look it up where waiting harms nobody.
    /// Only [`Site::try_look_up`](super::Site::try_look_up) says this.
    WouldBlock,
    /// The disk failed, or there are no more descriptors: 500 or 503.
    Io(io::Error),
}

impl From<Errno> for Missing {
    fn from(error: Errno) -> Self {
        match error {
            // A link that leaves the root is XDEV, one that may not be followed is LOOP, and a path
            // that the system can't even look for is INVAL or NAMETOOLONG.
            Errno::NOENT
            | Errno::NOTDIR
            | Errno::LOOP
            | Errno::XDEV
            | Errno::NAMETOOLONG
            | Errno::INVAL => Self::NotFound,
            Errno::ACCESS | Errno::PERM => Self::Forbidden,
            Errno::NXIO | Errno::NODEV => Self::NotAFile,
            Errno::AGAIN => Self::WouldBlock,
            other => Self::Io(other.into()),
        }
    }
}

/// A regular file that is open for reading.
#[derive(Debug)]
pub struct Opened {
    /// At its beginning. Reading blocks as with any file.
    pub file: File,
    /// What is told about it.
    pub meta: Meta,
}

/// What a response tells about a file.
#[derive(Clone, Debug)]
pub struct Meta {
    /// In bytes, when it was opened. It may have been made shorter since.
    pub len: u64,
    /// When its content last changed.
    pub modified: SystemTime,
    /// Strong: another content has another tag, unless it has the same length and its file was
    /// changed in place within one tick of the file system's clock.
    pub etag: EntityTag,
    /// The file system that it lies in. Two of these may have files with the same tag.
    pub(crate) device: u64,
    /// The value of `Content-Type`, charset included.
    pub media_type: Arc<str>,
    /// The coding of the bytes in the file, for `Content-Encoding`.
    pub coding: Option<Coding>,
    /// Whether other acceptable codings would have given another file. If not, the answer is the
    /// same for every set of them; if so, it needs `Vary: Accept-Encoding`.
    pub vary: bool,
}

impl Meta {
    pub(crate) fn new(stat: &Stat, media_type: Arc<str>) -> Self {
        Self {
            len: stat.st_size.cast_unsigned(),
            modified: modified(stat),
            etag: EntityTag::new(stat),
            device: stat.st_dev,
            media_type,
            coding: None,
            vary: false,
        }
    }
}

/// When the content of a file last changed.
pub(super) fn modified(stat: &Stat) -> SystemTime {
    let nanos = Duration::from_nanos(stat.st_mtime_nsec);
    let seconds = Duration::from_secs(stat.st_mtime.unsigned_abs());
    let whole = if stat.st_mtime < 0 {
        UNIX_EPOCH.checked_sub(seconds)
    } else {
        UNIX_EPOCH.checked_add(seconds)
    };
    // A file system may hold any number; one that is no date counts as none.
    whole
        .and_then(|whole| whole.checked_add(nanos))
        .unwrap_or(UNIX_EPOCH)
}
