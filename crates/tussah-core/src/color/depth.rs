//! The number of posts queued in a color, and its limit.

use super::cell::ColorCell;
use crate::loom::atomic::{AtomicU32, Ordering};

/// Bound, in events: the posts queued in one color, unless its options set another limit; a further
/// post fails. The bound is enough for a burst, and is reached well before memory runs out.
pub(crate) const DEPTH_MAX: u32 = 1 << 20;

/// Two wrapping counters whose sum is the number of queued posts. Separate counters spare the
/// holder of the token a read-modify-write.
pub(super) struct Depth {
    /// Posts made by the holder of the token, minus all posts taken out. Only the holder writes it.
    local: AtomicU32,
    /// Posts made without the token.
    remote: AtomicU32,
    /// Limit on queued posts.
    max: AtomicU32,
}

impl Default for Depth {
    fn default() -> Self {
        Self {
            local: AtomicU32::new(0),
            remote: AtomicU32::new(0),
            max: AtomicU32::new(DEPTH_MAX),
        }
    }
}

impl Depth {
    /// Counts a post. The caller holds the token.
    #[inline]
    pub(super) fn count_local(&self) {
        self.local.store(
            self.local.load(Ordering::Relaxed).wrapping_add(1),
            Ordering::Relaxed,
        );
    }

    /// Counts a post made without the token.
    #[inline]
    pub(super) fn count_remote(&self) {
        self.remote.fetch_add(1, Ordering::Relaxed);
    }
}

impl ColorCell {
    /// Sets the limit on queued posts.
    pub(crate) fn set_depth_max(&self, events: u32) {
        self.depth.max.store(events, Ordering::Relaxed);
    }

    /// Returns the number of queued posts.
    #[inline]
    pub(crate) fn depth(&self) -> u32 {
        // `local` is read first: by then, `remote` contains the post of each removal that `local`
        // counts, so the sum cannot be negative.
        let local = self.depth.local.load(Ordering::Acquire); // pairs with the Release in `count_taken`
        local.wrapping_add(self.depth.remote.load(Ordering::Relaxed))
    }

    /// Succeeds if one more post may be queued; otherwise fails with the limit. Concurrent posters
    /// may each take the last free place.
    #[inline]
    pub(super) fn admit(&self) -> Result<(), u32> {
        let max = self.depth.max.load(Ordering::Relaxed);
        if self.depth() < max { Ok(()) } else { Err(max) }
    }

    /// Counts a post that was taken out. The caller holds the token.
    #[inline]
    pub(crate) fn count_taken(&self) {
        let local = &self.depth.local;
        local.store(
            local.load(Ordering::Relaxed).wrapping_sub(1),
            Ordering::Release,
        );
    }
}
