//! Conversion of Unix socket addresses between the system's and the standard library's form.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::SocketAddr;
use std::path::Path;

use rustix::net::{SocketAddrAny, SocketAddrUnix};

/// The maximum length of an address in memory, in bytes (`sizeof(struct sockaddr_un)`).
const ADDRESS_LEN_MAX: usize = 2 + 108;

/// Converts an address to the system's form.
pub(super) fn to_any(address: &SocketAddr) -> io::Result<SocketAddrAny> {
    let unix = if let Some(path) = address.as_pathname() {
        SocketAddrUnix::new(path)?
    } else if let Some(name) = address.as_abstract_name() {
        SocketAddrUnix::new_abstract_name(name)?
    } else {
        SocketAddrUnix::new_unnamed()
    };
    Ok(unix.into())
}

/// Returns the address of a path.
///
/// # Errors
/// Returns `InvalidInput` if the path is longer than 107 bytes or contains a NUL byte.
pub(super) fn of_path(path: &Path) -> io::Result<SocketAddr> {
    SocketAddr::from_pathname(path)
}

/// Converts an address to the standard library's form. No address, or one that the standard library
/// cannot represent, becomes the unnamed address.
///
/// A path may take up all 108 bytes, and the system then counts a NUL byte after them. A peer may
/// choose such a path, and must not be able to cause harm with it.
///
/// # Errors
/// Returns an error if the address belongs to another family.
pub(super) fn from_any(address: Option<SocketAddrAny>) -> io::Result<SocketAddr> {
    let fits = |address: &SocketAddrAny| address.addr_len() as usize <= ADDRESS_LEN_MAX;
    let unix = address
        .filter(fits)
        .map(SocketAddrUnix::try_from)
        .transpose()?;
    let Some(unix) = unix else {
        return SocketAddr::from_pathname("");
    };
    // A missing name arrives as an empty name.
    if let Some(name) = unix.abstract_name()
        && !name.is_empty()
    {
        return SocketAddr::from_abstract_name(name);
    }
    let path = unix.path_bytes().unwrap_or_default();
    SocketAddr::from_pathname(OsStr::from_bytes(path)).or_else(|_| SocketAddr::from_pathname(""))
}

/// An address in an error message.
pub(crate) struct Shown<'a>(pub(crate) &'a SocketAddr);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = self.0.as_pathname() {
            path.display().fmt(f)
        } else if let Some(name) = self.0.as_abstract_name() {
            write!(f, "@{}", name.escape_ascii())
        } else {
            f.write_str("an unnamed socket")
        }
    }
}

/// Extends the error for an address in use, because possibly only its file remains.
pub(super) fn in_use(error: io::Error, address: &SocketAddr) -> io::Error {
    if error.kind() != io::ErrorKind::AddrInUse || address.as_pathname().is_none() {
        return error;
    }
    let text = format!("{error}: the file exists already; remove it if no process listens there");
    io::Error::new(io::ErrorKind::AddrInUse, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_come_back() {
        let check = |address: SocketAddr, text: &str| {
            let any = to_any(&address).expect("it is an address");
            let back = from_any(Some(any)).expect("it is a Unix address");
            assert_eq!(back.as_pathname(), address.as_pathname());
            assert_eq!(back.as_abstract_name(), address.as_abstract_name());
            assert_eq!(back.is_unnamed(), address.is_unnamed());
            assert_eq!(Shown(&back).to_string(), text);
        };
        let path = SocketAddr::from_pathname("/tmp/x y").expect("a path");
        check(path, "/tmp/x y");
        let name = SocketAddr::from_abstract_name(b"a\0b").expect("a name");
        check(name, "@a\\x00b");
        let none = from_any(None).expect("no name");
        check(none, "an unnamed socket");
        of_path(Path::new(&"x".repeat(108))).expect_err("it is too long");
    }
}
