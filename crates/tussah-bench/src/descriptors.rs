//! The limit on the open files of this process.
//!
//! `tussah-services` has functions for the same limit, but this crate also builds without
//! `tussah-services` and `tussah`.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Bound, in descriptors: the maximum number that a process has open in addition to those of its
/// workload.
const BESIDE_MAX: u64 = 256;

/// The error of a limit that is too low.
#[derive(Debug)]
pub struct TooFew {
    wanted: usize,
    /// The number of descriptors that the limit allows, in addition to the usual ones.
    pub possible: usize,
    error: rustix::io::Errno,
}

impl std::fmt::Display for TooFew {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} open files are needed and {} are possible ({}); raise the hard limit (ulimit -Hn, up to \
             /proc/sys/fs/nr_open), or ask for less",
            self.wanted, self.possible, self.error
        )
    }
}

/// Lets this process open `count` descriptors in addition to its usual ones.
///
/// # Errors
///
/// Returns an error if the hard limit is lower and this process may not raise it.
pub fn allow(count: usize) -> Result<(), TooFew> {
    let wanted = count as u64 + BESIDE_MAX;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    let raised = Rlimit {
        current: Some(wanted),
        maximum: limit.maximum.map(|maximum| maximum.max(wanted)),
    };
    setrlimit(Resource::Nofile, raised).map_err(|error| {
        let possible = limit.maximum.unwrap_or(u64::MAX).saturating_sub(BESIDE_MAX);
        TooFew {
            wanted: count,
            possible: possible as usize,
            error,
        }
    })
}
