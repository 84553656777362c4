//! The limit on the open files of this process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Bound, in descriptors: what a process has open beside what its workload asks for.
const BESIDE_MAX: u64 = 256;

/// Lets this process have `count` descriptors beside its usual ones.
///
/// # Errors
///
/// The hard limit is lower, and this process may not raise it. The error says how many are possible.
pub fn allow(count: usize) -> Result<(), String> {
    let wanted = count as u64 + BESIDE_MAX;
    let limit = getrlimit(Resource::Nofile);
    // No limit is `None`, which is the least in the order of options.
    if limit.current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    let raised = Rlimit {
        current: Some(wanted),
        maximum: limit.maximum.map(|maximum| maximum.max(wanted)),
    };
    setrlimit(Resource::Nofile, raised).map_err(|error| {
        let maximum = limit.maximum.unwrap_or(u64::MAX);
        format!(
            "{wanted} open files are needed and {maximum} are possible ({error}): raise the hard limit \
             (`ulimit -Hn`, as root; at most /proc/sys/fs/nr_open), or ask for less",
        )
    })
}
