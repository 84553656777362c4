//! How many posts are queued in a color, and how many may be.

use super::cell::ColorCell;
use crate::loom::atomic::{AtomicU32, Ordering};

/// Bound, in events: posts queued in one color unless its options say otherwise; enough to ride out a burst, little enough
/// to notice before memory ends.
pub(crate) const DEPTH_MAX: u32 = 1 << 20;

/// Two counts that wrap around, whose sum is the number of posts that are queued, so that the holder of the token needs no
/// read-modify-write.
pub(super) struct Depth {
    /// Posted by the holder of the token, less all that was taken out; the holder alone writes it.
    local: AtomicU32,
    /// Posted by others.
    remote: AtomicU32,
    /// Most posts that may be queued.
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
    /// Counts a post. The caller has the token.
    #[inline]
    pub(super) fn count_local(&self) {
        self.local.store(
            self.local.load(Ordering::Relaxed).wrapping_add(1),
            Ordering::Relaxed,
        );
    }

    /// Counts a post of somebody without the token.
    #[inline]
    pub(super) fn count_remote(&self) {
        self.remote.fetch_add(1, Ordering::Relaxed);
    }
}

impl ColorCell {
    /// Sets how many posts may be queued.
    pub(crate) fn set_depth_max(&self, events: u32) {
        self.depth.max.store(events, Ordering::Relaxed);
    }

    /// Posts that are queued.
    #[inline]
    pub(crate) fn depth(&self) -> u32 {
        // `local` first: what it says was taken out was posted before, so the sum is not negative.
        let local = self.depth.local.load(Ordering::Acquire); // pairs with the Release in `count_taken`
        local.wrapping_add(self.depth.remote.load(Ordering::Relaxed))
    }

    /// Whether one more post may be queued; else gives the limit. Posters that ask at the same moment may each get the last
    /// place.
    #[inline]
    pub(super) fn admit(&self) -> Result<(), u32> {
        let max = self.depth.max.load(Ordering::Relaxed);
        if self.depth() < max { Ok(()) } else { Err(max) }
    }

    /// Counts a post that was taken out. The caller has the token.
    #[inline]
    pub(crate) fn count_taken(&self) {
        let local = &self.depth.local;
        local.store(
            local.load(Ordering::Relaxed).wrapping_sub(1),
            Ordering::Release,
        );
    }
}
