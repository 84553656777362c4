//! A stage as it is held, looked at and changed while it runs.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::control::{Log, Settings};
use super::inspect::Inspect;
use super::network::Network;
use super::sender::Sender;
use super::shared::Shared;
use super::state::Gate;
use super::stats::StageStats;

/// Stands for a handler whose type is not known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Any;

/// A stage that takes events `E`. Cheap to clone.
///
/// `C` is where its handler lives, if that is known: then calls to it cost no more than a call of the handler.
pub struct Stage<E, C = Any> {
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
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// A sender for whoever is not a stage. Stages make theirs by [`Edges`](super::Edges), which the graph shows.
    #[must_use]
    pub fn sender(&self) -> Sender<E> {
        Sender {
            stage: Arc::clone(&self.shared),
            from: 0,
            offers: false,
        }
    }

    /// What it does, and has done.
    #[must_use]
    pub fn stats(&self) -> StageStats {
        Inspect::stats(Arc::clone(&self.shared))
    }

    /// What its controllers decided last, and on what grounds.
    #[must_use]
    pub fn log(&self) -> Log {
        self.shared.lock().state.log.clone()
    }

    /// Changes settings now, within the stage's bounds. A controller that owns one of them may change it again.
    pub fn retune(&self, settings: Settings) {
        let mut inner = self.shared.lock();
        inner.state.retune(settings);
        self.shared.release(inner);
    }

    /// Changes how many credits the queue holds at most. What is queued stays.
    pub fn set_queue_max(&self, credits: u64) {
        let mut inner = self.shared.lock();
        inner.state.set_queue_max(credits);
        self.shared.release(inner);
    }

    /// Has no further batch begun. Events are still queued, and are held until the stage [goes on](Self::resume) or ends, also beyond the end of its runtime.
    pub fn pause(&self) {
        self.shared.set_gate(Gate::Open, Gate::Paused);
    }

    /// Goes on after [`pause`](Self::pause).
    pub fn resume(&self) {
        self.shared.set_gate(Gate::Paused, Gate::Open);
    }

    /// Lets nothing in any more, and waits until everything that was let in is handled. A paused stage goes on. One that has no handler yet
    /// ([`Declared`](super::Declared)) is waited for until it has one: if it never gets one and anything is queued, for ever. [`destroy`](Self::destroy) does not.
    ///
    /// To be called from outside of the stage: its own handler would wait for itself. All stages are drained by [`Network::drain`].
    ///
    /// # Cancellation
    /// The stage goes on draining if the future is dropped: what is queued is handled, and nothing more is let in.
    pub async fn drain(&self) {
        self.shared.close_for_draining();
        self.settled().await;
    }

    /// Waits until nothing is queued and no batch runs; of a stage that is [paused](Self::pause) with events in its queue, until it goes on.
    /// Not for the stage's own handler, as [`drain`](Self::drain).
    pub async fn settled(&self) {
        self.shared.settled().await;
    }

    /// Drains the stage for at most so long, drops what is left with its callbacks, and forgets it: its name is free again, and its senders are told that
    /// it is closed. Batches that run go on to their end, by themselves. Returns how many events were dropped.
    ///
    /// # Cancellation
    /// If the future is dropped while the stage drains, it goes on draining, and stays in the network, with its name: another `destroy`, by a clone of this handle
    /// or by one that [`Network::find`] gives, ends it.
    pub async fn destroy(self, within: Duration) -> u64 {
        if !within.is_zero() {
            self.shared.close_for_draining();
            // Either way it is closed now.
            let _ = crate::time::timeout(within, self.settled()).await;
        }
        let dropped = self.shared.close();
        self.network.remove(self.id);
        dropped
    }
}
