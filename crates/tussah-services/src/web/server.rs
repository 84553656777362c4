//! What all stages of a server share.

use std::hash::BuildHasher as _;
use std::path::PathBuf;

use std::sync::Arc;
use std::time::Duration;

use super::clock::Clock;

/// What all stages share. It doesn't change.
pub(crate) struct Server {
    pub(crate) clock: Arc<Clock>,
    pub(crate) limits: Limits,
    pub(crate) cache_bytes: usize,
    pub(crate) root: PathBuf,
    pub(crate) shards: usize,
    pub(crate) hasher: foldhash::fast::RandomState,
}

impl Server {
    /// Pages that were looked at since this second need not be looked at again.
    #[inline]
    pub(crate) fn fresh_s(&self) -> u64 {
        self.clock.passed_s().saturating_sub(1)
    }

    #[inline]
    pub(crate) fn hash(&self, path: &[u8]) -> u64 {
        self.hasher.hash_one(path)
    }

    #[inline]
    pub(crate) fn shard_of(&self, hash: u64) -> usize {
        // The table takes other bits.
        (hash >> 20) as usize % self.shards
    }
}

/// Bounds and time limits.
pub(crate) struct Limits {
    pub(crate) connections_max: u64,
    pub(crate) idle_max: Duration,
    pub(crate) head_max: Duration,
    pub(crate) stall_max: Duration,
    pub(crate) linger_max: Duration,
}
