//! The result of looking up a path in a site.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::Stat;
use rustix::io::Errno;
use tussah_wire::http::encoding::Coding;

use super::entity_tag::EntityTag;

/// The result of looking up a path.
#[derive(Debug)]
pub enum Found {
    /// A regular file, open for reading.
    File(Opened),
    /// A script, which is a regular file that the process can read.
    Script {
        /// The decoded path of the script. The script's path differs from the requested path if the
        /// script is an index file or the fallback.
        path: Vec<u8>,
    },
    /// A directory whose path in the request lacks the final slash.
    Redirect {
        /// The percent-encoded path with the final slash. The location has exactly one leading
        /// slash, so it never names another host. The caller must append the query of the request.
        location: String,
    },
    /// A page that lists a directory; its media type is [`LISTING_TYPE`](super::LISTING_TYPE).
    Listing(Vec<u8>),
}

/// The reason why a path cannot be served.
#[derive(Debug)]
pub enum Missing {
    /// The file does not exist, is hidden, or can be reached only through a link out of the root.
    /// The status is 404.
    NotFound,
    /// The process has no permission to read the file. The status is 403.
    Forbidden,
    /// The path names a socket, pipe or device. The status is 403.
    NotAFile,
    /// The lookup would have to wait for a disk; repeat it where blocking is allowed. Only
    /// [`Site::try_look_up`](super::Site::try_look_up) returns this.
    WouldBlock,
    /// The disk failed (status 500), or memory or file descriptors ran out (status 503).
    Io(io::Error),
}

/// Returns whether the system lacks descriptors or memory.
pub(crate) fn is_exhausted(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM)
    )
}

impl From<Errno> for Missing {
    fn from(error: Errno) -> Self {
        match error {
            // XDEV is a link that leaves the root, LOOP is a link that may not be followed, and
            // INVAL or NAMETOOLONG is a path that the system rejects.
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
    /// The file, positioned at its beginning. A read may block, as with any file.
    pub file: File,
    /// The metadata.
    pub meta: Meta,
}

/// The metadata of a file that is served.
#[derive(Clone, Debug)]
pub struct Meta {
    /// The length in bytes when the file was opened. The file may have become shorter since it was
    /// opened.
    pub len: u64,
    /// The time at which the contents last changed.
    pub modified: SystemTime,
    /// A strong tag: different contents have different tags, unless the file was changed in place,
    /// to contents of the same length, within one tick of the file system's clock.
    pub etag: EntityTag,
    /// The file system of the file. Files in different file systems may have the same tag.
    pub(crate) device: u64,
    /// The value of `Content-Type`, including the charset.
    pub media_type: Arc<str>,
    /// The content coding of the bytes in the file, for `Content-Encoding`.
    pub coding: Option<Coding>,
    /// True if the codings that a client accepts determine which file it receives. If this field is
    /// true, the response needs `Vary: Accept-Encoding`; if it is false, all clients receive the
    /// same file.
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

/// Returns the time of the last change of a file's contents.
pub(super) fn modified(stat: &Stat) -> SystemTime {
    let nanos = Duration::from_nanos(stat.st_mtime_nsec);
    let seconds = Duration::from_secs(stat.st_mtime.unsigned_abs());
    let whole = if stat.st_mtime < 0 {
        UNIX_EPOCH.checked_sub(seconds)
    } else {
        UNIX_EPOCH.checked_add(seconds)
    };
    // A file system may store any number; a number that is not a date counts as none.
    whole
        .and_then(|whole| whole.checked_add(nanos))
        .unwrap_or(UNIX_EPOCH)
}
