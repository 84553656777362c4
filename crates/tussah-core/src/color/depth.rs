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
        Self { local: AtomicU32::new(0), remote: AtomicU32::new(0), max: AtomicU32::new(DEPTH_MAX) }
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

    /// Counts a post that the holder of the token is about to make, unless the color is full: then gives the limit.
    #[inline]
    pub(super) fn admit_local(&self) -> Result<(), u32> {
        self.admit()?;
        let local = &self.depth.local;
        local.store(local.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        Ok(())
    }

    /// The same for anybody. Posters that ask at the same moment may each get the last place.
    pub(super) fn admit_remote(&self) -> Result<(), u32> {
        self.admit()?;
        self.depth.remote.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    #[inline]
    fn admit(&self) -> Result<(), u32> {
        let max = self.depth.max.load(Ordering::Relaxed);
        if self.depth() < max { Ok(()) } else { Err(max) }
    }

    /// Counts a post that was taken out. The caller has the token.
    #[inline]
    pub(crate) fn count_taken(&self) {
        let local = &self.depth.local;
        local.store(local.load(Ordering::Relaxed).wrapping_sub(1), Ordering::Release);
    }
}
