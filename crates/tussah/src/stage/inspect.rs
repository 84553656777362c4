//! A stage as its network sees it, whatever its events are.

use std::any::Any;

use super::digest::Digest;
use super::shared::Shared;
use super::stats::StageStats;

/// What a network asks its stages.
pub(crate) trait Inspect: Any + Send + Sync {
    /// What the stage does and has done, and all its responses.
    fn stats_and_responses(&self) -> (StageStats, Digest);

    /// What the stage does, and has done.
    fn stats(&self) -> StageStats;
}

impl<E: Send + 'static> Inspect for Shared<E> {
    fn stats_and_responses(&self) -> (StageStats, Digest) {
        let now_ns = self.time.now_ns();
        let called = self.calls.sum();
        let mut inner = self.lock();
        let stats = StageStats::of(&self.name, &mut inner.state, called, now_ns);
        (stats, inner.state.responses.clone())
    }

    fn stats(&self) -> StageStats {
        let now_ns = self.time.now_ns();
        let called = self.calls.sum();
        StageStats::of(&self.name, &mut self.lock().state, called, now_ns)
    }
}
