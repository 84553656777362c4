//! The CPU time that other programs took.

/// The planned and the actual computing time of handlers. The actual time is longer if other
/// programs used the CPUs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lost {
    pub(super) planned_ns: u64,
    pub(super) computed_ns: u64,
}

impl Lost {
    /// Returns the fraction by which the actual time exceeds the plan.
    pub fn part(self) -> f64 {
        self.computed_ns as f64 / (self.planned_ns as f64).max(1.0) - 1.0
    }
}
