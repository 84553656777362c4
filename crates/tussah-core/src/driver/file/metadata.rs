//! What is known of a file.

use std::fmt;
use std::time::{Duration, SystemTime};

use rustix::fs::{FileType as Type, Statx, StatxFlags, StatxTimestamp};

/// What is known of a file: what `std::fs::Metadata` has, in plain fields.
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
    /// Its length, in bytes.
    pub len: u64,
    /// Its type, and who may do what with it: `st_mode`.
    pub mode: u32,
    /// The device that it is on: `st_dev`.
    pub device: u64,
    /// Its number on the device.
    pub inode: u64,
    /// How many names it has.
    pub links: u64,
    /// The number of the user that it belongs to.
    pub user: u32,
    /// The number of the group that it belongs to.
    pub group: u32,
    /// How much of the device it takes, in units of 512 bytes.
    pub blocks: u64,
    /// How long reads and writes should be, in bytes.
    pub block_len: u32,
    /// When its content was last changed.
    pub modified: SystemTime,
    /// When it was last read, as far as the file system keeps account of that.
    pub accessed: SystemTime,
    /// When something of what stands here was last changed.
    pub changed: SystemTime,
    /// When it was made, if the file system knows.
    pub created: Option<SystemTime>,
}

/// What kind of file it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum FileType {
    /// A file with content.
    File,
    /// A directory.
    Directory,
    /// A name for another path.
    Symlink,
    /// A pipe with a name.
    Fifo,
    /// A socket.
    Socket,
    /// A device that is read and written in characters.
    CharacterDevice,
    /// A device that is read and written in blocks.
    BlockDevice,
    /// None of these.
    Other,
}

impl FileType {
    /// Whether it is a file with content.
    #[must_use]
    pub fn is_file(self) -> bool {
        self == Self::File
    }

    /// Whether it is a directory.
    #[must_use]
    pub fn is_dir(self) -> bool {
        self == Self::Directory
    }

    /// Whether it is a symbolic link.
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

    /// What kind of file it is.
    #[must_use]
    pub fn file_type(&self) -> FileType {
        FileType::of(self.mode)
    }

    /// Whether it is a file with content.
    #[must_use]
    pub fn is_file(&self) -> bool {
        self.file_type().is_file()
    }

    /// Whether it is a directory.
    #[must_use]
    pub fn is_dir(&self) -> bool {
        self.file_type().is_dir()
    }

    /// Whether it is a symbolic link.
    #[must_use]
    pub fn is_symlink(&self) -> bool {
        self.file_type().is_symlink()
    }

    /// Who may do what with it: the lower twelve bits of the mode.
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

/// Saturates where `SystemTime` ends.
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
