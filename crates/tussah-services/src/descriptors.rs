//! The limit on the open files of this process.

use rustix::io;
use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the soft limit to the hard limit.
///
/// # Errors
/// Returns the error if the kernel refuses; the limit is then unchanged.
pub(crate) fn raise() -> io::Result<()> {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return Ok(());
    }
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit)
}
