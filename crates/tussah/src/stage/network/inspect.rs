//! A view of a stage that is independent of its event type, for the network.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use super::governing::Load;
use crate::stage::event::Reason;
use crate::stage::observe::StageStats;
use crate::stage::run::Shared;
use crate::stage::state::{Digest, Gate, State};

/// The requests of a network to its stages.
pub(crate) trait Inspect: Any + Send + Sync {
    /// Returns the stage's statistics and all its response times.
    fn stats_and_responses(self: Arc<Self>) -> (StageStats, Digest);

    /// Returns the stage's statistics.
    fn stats(self: Arc<Self>) -> StageStats;

    /// Returns the stage's load for the governor; `None` if it has no servlets.
    fn load(&self) -> Option<Load> {
        None
    }

    /// Sets the maximum number of servlets at work, whatever the controllers want; surplus servlets
    /// stop after their batch. Returns the number of servlets at work.
    fn set_cap(self: Arc<Self>, _servlets: usize) -> usize {
        0
    }

    /// Gives the back edge from the stage with this number its own room.
    fn set_back_room(self: Arc<Self>, _from: u32, _credits: u64) {}

    /// Resumes the stage if it is paused.
    fn resume(self: Arc<Self>) {}

    /// Stops admission, and waits until all admitted events have been handled.
    fn drain(self: Arc<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::ready(()))
    }

    /// Waits until nothing is queued and no batch is running.
    fn emptied(self: Arc<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::ready(()))
    }

    /// Stops new batches until the returned value is dropped. Waits until the running batches have
    /// ended.
    fn hold(self: Arc<Self>) -> Pin<Box<dyn Future<Output = Box<dyn Any + Send>> + Send>> {
        Box::pin(std::future::ready(Box::new(()) as _))
    }

    /// Stops admission, and drops all queued events. Returns their number.
    fn close(self: Arc<Self>) -> u64 {
        0
    }

    /// Closes the stage and makes the network forget it, because the runtime has ended.
    fn leave(self: Arc<Self>) {}

    /// Closes the stage if it is paused or has no handler, because nothing can resume it after the
    /// end of its network.
    fn abandon(self: Arc<Self>) {}

    /// Forgets the proxies for events of the stage with this number, and those for which it serves
    /// as a proxy.
    fn forget_routes(&self, _gone: u32) {}
}

impl<E: Send + 'static> Shared<E> {
    /// Returns the stage's statistics together with other data from the same moment. Controllers
    /// that are due decide first.
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
            rejected: state.counts.refused + state.counts.shed + state.counts.expired,
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

    fn emptied(self: Arc<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move { self.settled().await })
    }

    fn hold(self: Arc<Self>) -> Pin<Box<dyn Future<Output = Box<dyn Any + Send>> + Send>> {
        Box::pin(async move {
            let held = Shared::hold(&self);
            self.nothing_runs().await;
            Box::new(held) as _
        })
    }

    fn close(self: Arc<Self>) -> u64 {
        Self::close(&self)
    }

    fn leave(self: Arc<Self>) {
        Self::close(&self);
        if let Some(network) = self.network.upgrade() {
            network.remove(self.id);
        }
    }

    fn abandon(self: Arc<Self>) {
        let mut inner = self.lock();
        if inner.state.gate == Gate::Paused || !inner.state.has_handler {
            inner.state.close(Reason::ShutDown);
        }
        self.release(inner);
    }

    fn forget_routes(&self, gone: u32) {
        self.lock().state.set_back_room(gone, 0);
        self.forget(|route| route.from == gone || route.by == gone);
    }
}
