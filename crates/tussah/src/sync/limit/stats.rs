//! The statistics of a limit.

use std::sync::Arc;

use crate::stage::observe::Digest;

/// The state of a [`Limit`](super::Limit) at one moment, and its counters since it was created.
#[derive(Clone, Debug)]
pub struct LimitStats {
    /// The name of the limit.
    pub name: Arc<str>,
    /// The number of permits.
    pub permits: usize,
    /// The number of permits in use. After a call to
    /// [`Limit::set_permits`](super::Limit::set_permits), `in_use` can exceed `permits` for a
    /// while.
    pub in_use: usize,
    /// The number of futures that wait for a permit.
    pub waiting: usize,
    /// The number of permits acquired so far.
    pub acquired: u64,
    /// A histogram of the times for which futures waited for their permits. If a permit was free
    /// immediately, the wait counts as zero. Futures that were dropped before they got a permit are
    /// not counted.
    pub wait: Digest,
    /// A histogram of the times for which permits were held. A permit is counted only after it has
    /// been returned.
    pub hold: Digest,
    /// The statistics of each class, class 0 first; a limit without shares has one class.
    pub classes: Vec<LimitClassStats>,
}

/// The state of one class of a [`Limit`](super::Limit) at one moment, and its counters since the
/// limit was created.
#[derive(Clone, Debug)]
pub struct LimitClassStats {
    /// The number of permits in use.
    pub in_use: usize,
    /// The number of futures that wait for a permit.
    pub waiting: usize,
    /// The number of permits acquired so far.
    pub acquired: u64,
    /// A histogram of the times for which futures waited for a permit, as in
    /// [`LimitStats::wait`].
    pub wait: Digest,
}
