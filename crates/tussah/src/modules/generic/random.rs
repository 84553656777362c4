//! Random numbers from a seed.

use std::sync::atomic::{AtomicU64, Ordering};

/// A generator of random numbers (SplitMix64), which several threads may use.
pub(super) struct Random(AtomicU64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// Draws a number of at least 0 and less than 1.
    pub(super) fn share(&self) -> f64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        // Relaxed: the state protects nothing else.
        let mut bits = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        let high = u32::try_from(bits >> 32).expect("half of the bits are left");
        f64::from(high) / (f64::from(u32::MAX) + 1.0)
    }
}
