//! A stage as its network sees it, whatever its events are.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use super::digest::Digest;
use super::governing::Load;
use super::shared::Shared;
use super::state::{Gate, State};
use super::stats::StageStats;

/// What a network asks its stages.
pub(crate) trait Inspect: Any + Send + Sync {
    /// What the stage does and has done, and all its responses.
    fn stats_and_responses(self: Arc<Self>) -> (StageStats, Digest);

    /// What the stage does, and has done.
    fn stats(self: Arc<Self>) -> StageStats;

    /// What the governor has to know of the stage; nothing if there are no servlets to be governed.
    fn load(&self) -> Option<Load> {
        None
    }

    /// Has at most so many servlets at work, whatever the controllers want; those that are too many rest after their batch. Returns how many are at work.
    fn set_cap(self: Arc<Self>, _servlets: usize) -> usize {
        0
    }

    /// Gives the edge back from the stage of this number room of its own.
    fn set_back_room(self: Arc<Self>, _from: u32, _credits: u64) {}

    /// Goes on if it is paused.
    fn resume(self: Arc<Self>) {}

    /// Lets nothing in any more, and waits until everything that was let in is handled; at once if nothing is ever let in.
    fn drain(self: Arc<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::ready(()))
    }

    /// Lets nothing in any more, and drops what is queued; says how much that was.
    fn close(self: Arc<Self>) -> u64 {
        0
    }

    /// Forgets the proxies for what the stage of this number sends, and those that it is.
    fn forget_routes(&self, _gone: u32) {}
}

impl<E: Send + 'static> Shared<E> {
    /// What the stage does and has done, with what else there is to know at that moment. Its controllers decide then, if they are due.
    fn stats_with<T>(self: Arc<Self>, more: impl FnOnce(&State<E>) -> T) -> (StageStats, T) {
        let now_ns = self.time.now_ns();
        let called = self.calls.sum();
        let mut inner = self.lock();
        let stats = StageStats::of(&self.name, &mut inner.state, called, now_ns);
        let more = more(&inner.state);
        self.release(inner);
        (stats, more)
    }
}

impl<E: Send + 'static> Inspect for Shared<E> {
    fn stats_and_responses(self: Arc<Self>) -> (StageStats, Digest) {
        self.stats_with(|state| state.responses.clone())
    }

    fn stats(self: Arc<Self>) -> StageStats {
        self.stats_with(|_| ()).0
    }

    fn load(&self) -> Option<Load> {
        let inner = self.lock();
        let state = &inner.state;
        let (stages, others): (Vec<_>, Vec<_>) =
            inner.senders.stages().partition(|stage| *stage != 0);
        Some(Load {
            rank: self.rank,
            busy: state.servlets.busy,
            wanted: state.servlets.target,
            allowed: state.allowed(),
            cap: state.cap,
            queue_len: state.credits(),
            turned_away: state.counts.refused + state.counts.shed + state.counts.expired,
            service_ns: state.counts.service_ns,
            held_up: stages,
            holds_up_others: !others.is_empty(),
        })
    }

    fn set_cap(self: Arc<Self>, servlets: usize) -> usize {
        let mut inner = self.lock();
        let busy = inner.state.servlets.busy;
        if inner.state.cap != servlets {
            inner.state.cap = servlets;
            self.release(inner);
        }
        busy
    }

    fn set_back_room(self: Arc<Self>, from: u32, credits: u64) {
        let mut inner = self.lock();
        inner.state.set_back_room(from, credits);
        inner.state.freed = true;
        self.release(inner);
    }

    fn resume(self: Arc<Self>) {
        self.set_gate(Gate::Paused, Gate::Open);
    }

    fn drain(self: Arc<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.close_for_draining();
        Box::pin(async move { self.settled().await })
    }

    fn close(self: Arc<Self>) -> u64 {
        Self::close(&self)
    }

    fn forget_routes(&self, gone: u32) {
        self.lock().state.set_back_room(gone, 0);
        self.forget(|route| route.from == gone || route.by == gone);
    }
}
