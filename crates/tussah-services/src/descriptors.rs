//! The limit on the open files of this process.

use std::io;

// Not by rustix, whose `getrlimit` panics where a filter forbids the call.
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Returns the soft limit.
///
/// # Errors
/// Returns an error if a filter forbids the call.
pub(crate) fn limit() -> io::Result<u64> {
    Ok(getrlimit(Resource::RLIMIT_NOFILE)?.0)
}

/// Raises the soft limit to the hard limit.
///
/// # Errors
/// Returns the error if the kernel refuses; the limit is then unchanged.
pub(crate) fn raise() -> io::Result<()> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft == hard {
        return Ok(());
    }
    Ok(setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?)
}
