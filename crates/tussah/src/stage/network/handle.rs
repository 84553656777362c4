//! The handle of a stage, for inspecting and changing it while it runs.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::Network;
use super::inspect::Inspect;
use crate::stage::control::{Settings, log::Log};
use crate::stage::observe::StageStats;
use crate::stage::run::Shared;
use crate::stage::send::Sender;
use crate::stage::state::Gate;

/// The placeholder that a [`Stage`] handle contains if the type of the stage's handler is not
/// known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErasedHost;

/// A handle to a stage that takes events of type `E`. The handle is cheap to clone.
///
/// If the type of the stage's handler is known, `C` is the type of the host that owns the handler.
/// A call edge to the stage then costs no more than a direct call to the handler.
pub struct Stage<E, C = ErasedHost> {
    pub(crate) shared: Arc<Shared<E>>,
    pub(crate) host: C,
    pub(crate) network: Network,
    pub(crate) id: u32,
}

impl<E, C: Clone> Clone for Stage<E, C> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            host: self.host.clone(),
            network: self.network.clone(),
            id: self.id,
        }
    }
}

impl<E, C> fmt::Debug for Stage<E, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stage")
            .field("name", &self.shared.name)
            .finish_non_exhaustive()
    }
}

impl<E: Send + 'static, C> Stage<E, C> {
    /// Returns the stage's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Returns a sender for code outside stages. In a stage, use [`Edges`](crate::stage::Edges)
    /// instead, so that the graph shows an edge.
    #[must_use]
    pub fn sender(&self) -> Sender<E> {
        Sender {
            stage: Arc::clone(&self.shared),
            from: 0,
            offers: false,
        }
    }

    /// Returns the stage's current state and its counters.
    #[must_use]
    pub fn stats(&self) -> StageStats {
        Inspect::stats(Arc::clone(&self.shared))
    }

    /// Returns the log of the stage's controllers.
    #[must_use]
    pub fn log(&self) -> Log {
        self.shared.lock().state.log.clone()
    }

    /// Changes settings immediately, within the stage's bounds. Controllers may later change the
    /// settings that they own.
    pub fn retune(&self, settings: Settings) {
        let mut inner = self.shared.lock();
        inner.state.retune(settings);
        self.shared.release(inner);
    }

    /// Changes the maximum number of credits in the queue; 0 counts as 1. Events that are already
    /// queued stay in the queue, even if they exceed the new maximum.
    pub fn set_queue_max(&self, credits: u64) {
        let mut inner = self.shared.lock();
        inner.state.set_queue_max(credits);
        self.shared.release(inner);
    }

    /// Pauses the stage: no further batch starts. The stage still queues arriving events, and
    /// handles them after it [resumes](Self::resume). Queued events still end if they are
    /// cancelled, if their deadline passes or if the stage is closed.
    pub fn pause(&self) {
        self.shared.set_gate(Gate::Open, Gate::Paused);
    }

    /// Resumes the stage after [`pause`](Self::pause).
    pub fn resume(&self) {
        self.shared.set_gate(Gate::Paused, Gate::Open);
    }

    /// Stops admission, and waits until all admitted events have been handled.
    ///
    /// A paused stage resumes. If the stage has queued events but no handler yet
    /// ([`Declared`](crate::stage::Declared)), this method waits until the stage gets a handler,
    /// which may never happen. [`destroy`](Self::destroy) waits only for a limited time.
    ///
    /// Do not call this method from the stage's own handler, because the handler would wait for
    /// itself. [`Network::drain`] drains all stages.
    ///
    /// # Cancellation
    /// If the future is dropped, the stage continues draining: it handles its queued events, and
    /// admits no new events.
    pub async fn drain(&self) {
        self.shared.close_for_draining();
        self.settled().await;
    }

    /// Waits until nothing is queued and no batch is running. If the stage is [paused](Self::pause)
    /// with queued events, this method waits until the stage resumes. Do not call this method from
    /// the stage's own handler, because the handler would wait for itself.
    pub async fn settled(&self) {
        self.shared.settled().await;
    }

    /// Drains the stage for up to `within`, then drops the remaining events, calls their drop
    /// callbacks, and removes the stage from the network. The stage's name is then free again, and
    /// its senders get errors. Returns the number of dropped events.
    ///
    /// Running batches still complete. The time limit is measured by the clock of the stage's
    /// runtime, even if the caller runs in another runtime.
    ///
    /// # Cancellation
    /// If the future is dropped while the stage drains, the stage continues draining and stays in
    /// the network under its name. To remove the stage, call `destroy` again on a clone of this
    /// handle or on a handle from [`Network::find`].
    pub async fn destroy(self, within: Duration) -> u64 {
        if !within.is_zero() {
            self.shared.close_for_draining();
            let stage = Arc::clone(&self.shared);
            let settled = async move { crate::time::timeout(within, stage.settled()).await };
            // The stage is now closed in any case. A runtime that has ended has no timers, and has
            // closed the stage.
            if let Ok(settled) = self.shared.runtime.try_spawn(settled) {
                let _ = settled.await;
            }
        }
        let dropped = self.shared.close();
        self.network.remove(self.id);
        dropped
    }
}
