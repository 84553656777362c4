//! File metadata.

use std::fmt;
use std::time::{Duration, SystemTime};

use rustix::fs::{FileType as Type, Statx, StatxFlags, StatxTimestamp};

/// The metadata of a file, like `std::fs::Metadata`, but with public fields.
///
/// # Examples
/// ```
/// # mod tussah { pub mod fs {
/// #     use tussah_core::file::{self, Metadata};
/// #     pub async fn metadata(path: &str) -> std::io::Result<Metadata> { file::metadata(path.as_ref(), true).await }
/// # } }
/// # let runtime = tussah_core::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(async {
/// let metadata = tussah::fs::metadata("/").await?;
/// assert!(metadata.is_dir());
/// # std::io::Result::Ok(())
/// # })?;
/// # std::io::Result::Ok(())
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metadata {
    /// The length, in bytes.
    pub len: u64,
    /// The file type and the permissions (`st_mode`).
    pub mode: u32,
    /// The number of the device that contains the file (`st_dev`).
    pub device: u64,
    /// The inode number on the device.
    pub inode: u64,
    /// The number of hard links.
    pub links: u64,
    /// The user ID of the owner.
    pub user: u32,
    /// The group ID of the file.
    pub group: u32,
    /// The space that the file occupies on the device, in units of 512 bytes.
    pub blocks: u64,
    /// The preferred length of reads and writes, in bytes.
    pub block_len: u32,
    /// The time of the last change to the content.
    pub modified: SystemTime,
    /// The time of the last read, as far as the file system records it.
    pub accessed: SystemTime,
    /// The time of the last change to the metadata.
    pub changed: SystemTime,
    /// The time of creation, if the file system records it.
    pub created: Option<SystemTime>,
}

/// The type of a file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum FileType {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A character device.
    CharacterDevice,
    /// A block device.
    BlockDevice,
    /// Any other type.
    Other,
}

impl FileType {
    /// Returns whether this is a regular file.
    #[must_use]
    pub fn is_file(self) -> bool {
        self == Self::File
    }

    /// Returns whether this is a directory.
    #[must_use]
    pub fn is_dir(self) -> bool {
        self == Self::Directory
    }

    /// Returns whether this is a symbolic link.
    #[must_use]
    pub fn is_symlink(self) -> bool {
        self == Self::Symlink
    }

    fn of(mode: u32) -> Self {
        match Type::from_raw_mode(mode) {
            Type::RegularFile => Self::File,
            Type::Directory => Self::Directory,
            Type::Symlink => Self::Symlink,
            Type::Fifo => Self::Fifo,
            Type::Socket => Self::Socket,
            Type::CharacterDevice => Self::CharacterDevice,
            Type::BlockDevice => Self::BlockDevice,
            _ => Self::Other,
        }
    }
}

impl From<std::fs::FileType> for FileType {
    fn from(file_type: std::fs::FileType) -> Self {
        use std::os::unix::fs::FileTypeExt;
        match file_type {
            other if other.is_file() => Self::File,
            other if other.is_dir() => Self::Directory,
            other if other.is_symlink() => Self::Symlink,
            other if other.is_fifo() => Self::Fifo,
            other if other.is_socket() => Self::Socket,
            other if other.is_char_device() => Self::CharacterDevice,
            other if other.is_block_device() => Self::BlockDevice,
            _ => Self::Other,
        }
    }
}

impl Metadata {
    pub(super) fn new(statx: &Statx) -> Self {
        let created = statx.stx_mask & StatxFlags::BTIME.bits() != 0;
        Self {
            len: statx.stx_size,
            mode: u32::from(statx.stx_mode),
            device: rustix::fs::makedev(statx.stx_dev_major, statx.stx_dev_minor),
            inode: statx.stx_ino,
            links: u64::from(statx.stx_nlink),
            user: statx.stx_uid,
            group: statx.stx_gid,
            blocks: statx.stx_blocks,
            block_len: statx.stx_blksize,
            modified: time(statx.stx_mtime),
            accessed: time(statx.stx_atime),
            changed: time(statx.stx_ctime),
            created: created.then(|| time(statx.stx_btime)),
        }
    }

    /// Returns the type of the file.
    #[must_use]
    pub fn file_type(&self) -> FileType {
        FileType::of(self.mode)
    }

    /// Returns whether this is a regular file.
    #[must_use]
    pub fn is_file(&self) -> bool {
        self.file_type().is_file()
    }

    /// Returns whether this is a directory.
    #[must_use]
    pub fn is_dir(&self) -> bool {
        self.file_type().is_dir()
    }

    /// Returns whether this is a symbolic link.
    #[must_use]
    pub fn is_symlink(&self) -> bool {
        self.file_type().is_symlink()
    }

    /// Returns the permissions: the lower twelve bits of the mode.
    #[must_use]
    pub fn permissions(&self) -> u32 {
        self.mode & 0o7777
    }
}

impl fmt::Debug for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metadata")
            .field("file_type", &self.file_type())
            .field("permissions", &format_args!("{:o}", self.permissions()))
            .field("len", &self.len)
            .field("modified", &self.modified)
            .finish_non_exhaustive()
    }
}

/// Converts a time stamp. A time outside of the range of `SystemTime` becomes the epoch.
fn time(time: StatxTimestamp) -> SystemTime {
    let epoch = SystemTime::UNIX_EPOCH;
    let seconds = Duration::from_secs(time.tv_sec.unsigned_abs());
    let whole = if time.tv_sec < 0 {
        epoch.checked_sub(seconds)
    } else {
        epoch.checked_add(seconds)
    };
    let nanoseconds = Duration::from_nanos(u64::from(time.tv_nsec));
    whole
        .and_then(|whole| whole.checked_add(nanoseconds))
        .unwrap_or(epoch)
}
