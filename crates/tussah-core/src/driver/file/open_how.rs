//! Options for opening a file.

use std::io;

use rustix::fs::OFlags;

/// Options for opening a file: the flags of open(2), and the mode of a created file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenHow {
    /// Allows reading.
    pub read: bool,
    /// Allows writing.
    pub write: bool,
    /// Makes every write append to the file.
    pub append: bool,
    /// Truncates the file.
    pub truncate: bool,
    /// Creates the file if it does not exist.
    pub create: bool,
    /// Creates the file; opening fails if the file already exists.
    pub create_new: bool,
    /// Bypasses the page cache.
    pub direct: bool,
    /// Additional flags for open(2); the bits of the access mode are ignored.
    pub custom_flags: i32,
    /// The permissions of a created file, before the process's umask applies.
    pub mode: u32,
}

impl Default for OpenHow {
    /// Allows nothing; a created file gets mode 666 (octal).
    fn default() -> Self {
        Self {
            read: false,
            write: false,
            append: false,
            truncate: false,
            create: false,
            create_new: false,
            direct: false,
            custom_flags: 0,
            mode: 0o666,
        }
    }
}

impl OpenHow {
    /// Returns the flags, by the rules of `std::fs::OpenOptions`.
    pub(super) fn flags(&self) -> io::Result<OFlags> {
        let invalid = |text: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        let writes = self.write || self.append;
        let access = match (self.read, writes) {
            (true, false) => OFlags::RDONLY,
            (false, true) => OFlags::WRONLY,
            (true, true) => OFlags::RDWR,
            (false, false) => return invalid("expected one of read, write and append"),
        };
        if !writes && (self.truncate || self.create || self.create_new) {
            return invalid("a file that is created or truncated has to be opened for writing");
        }
        if self.append && self.truncate && !self.create_new {
            return invalid("a file can't be truncated and opened for appending");
        }
        let mut flags = OFlags::CLOEXEC
            | access
            | OFlags::from_bits_retain(self.custom_flags as _).difference(OFlags::RWMODE);
        let truncate = self.truncate && !self.create_new;
        // Flags are only added: a flag set in `custom_flags` alone stays.
        for (asked, flag) in [
            (self.append, OFlags::APPEND),
            (self.create || self.create_new, OFlags::CREATE),
            (self.create_new, OFlags::EXCL),
            (truncate, OFlags::TRUNC),
            (self.direct, OFlags::DIRECT),
        ] {
            flags.set(flag, asked || flags.contains(flag));
        }
        Ok(flags)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_flags_stay_as_they_are_asked_for() {
        let further = OFlags::DIRECT | OFlags::APPEND | OFlags::NOATIME;
        let how = OpenHow {
            write: true,
            custom_flags: (further | OFlags::RDWR).bits() as i32,
            ..OpenHow::default()
        };
        let flags = how.flags().expect("it makes sense");
        assert_eq!(flags, OFlags::CLOEXEC | OFlags::WRONLY | further);
    }
}
