//! The number of open files that a run needs.

/// Bound, in descriptors: the maximum number that the process needs in addition to its
/// connections. A run does not start if the hard limit is too low for both.
const BESIDE_MAX: u64 = 64;

/// Raises the soft limit to the hard limit.
///
/// # Errors
/// Returns a sentence with advice if the hard limit is too low for this number of connections.
pub(in crate::load) fn allow(connections: usize) -> Result<(), String> {
    // After a failure the limit is unchanged, and the check below decides. An unknown limit passes.
    let _ = crate::descriptors::raise();
    judge(crate::descriptors::limit().ok(), connections)
}

fn judge(limit: Option<u64>, connections: usize) -> Result<(), String> {
    let needed = connections as u64 + BESIDE_MAX;
    match limit {
        Some(limit) if limit < needed => Err(format!(
            "{connections} connections need {needed} descriptors, but the hard limit is {limit}: raise it (as root: `ulimit -Hn {needed}`, \
             `prlimit --nofile={needed} tussah ..`, or /etc/security/limits.conf), or use at most {} connections",
            limit.saturating_sub(BESIDE_MAX)
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits() {
        assert_eq!(judge(None, 10_000), Ok(()));
        assert_eq!(judge(Some(1024), 960), Ok(()));
        let error = judge(Some(1024), 961).expect_err("it is one too many");
        assert!(error.contains("need 1025 descriptors"), "{error}");
        assert!(error.contains("at most 960 connections"), "{error}");
    }
}
