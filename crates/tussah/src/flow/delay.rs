//! Edges that delay their items.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tussah_core::Handle;

use super::edge::{Push, Wait};
use super::flows::Flow;
use super::keepers::Keepers;
use super::via::Via;
use crate::stage::Reason;
use crate::time::sleep;

/// An edge that delays its items. Each item waits in a thread of its own.
pub(crate) struct Delayed<T> {
    edge: Arc<dyn Push<T>>,
    after: Duration,
    /// Bound, in items: the number of delayed items.
    room: u64,
    waiting: Arc<AtomicU64>,
    keepers: Arc<Keepers>,
    runtime: Handle,
}

impl<T> Delayed<T> {
    pub(crate) fn new(
        edge: Arc<dyn Push<T>>,
        via: &Via,
        keepers: &Arc<Keepers>,
        runtime: &Handle,
    ) -> Self {
        Self {
            edge,
            after: via.after,
            room: via.room.max(1),
            waiting: Arc::default(),
            keepers: Arc::clone(keepers),
            runtime: runtime.clone(),
        }
    }
}

impl<T: Send + 'static> Push<T> for Delayed<T> {
    fn push(&self, flow: Flow, item: T) -> Option<Wait<'_>> {
        // Relaxed: the counter protects nothing else.
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= self.room {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            self.edge.end(flow, item, Reason::Shed);
            return None;
        }
        self.keepers.delay();
        let mut delayed = Waiting {
            edge: Arc::clone(&self.edge),
            item: Some((flow, item)),
            waiting: Arc::clone(&self.waiting),
            keepers: Arc::clone(&self.keepers),
        };
        let (after, keepers) = (self.after, Arc::clone(&self.keepers));
        let later = async move {
            if keepers.unless_halted(sleep(after)).await.is_some() {
                delayed.send().await;
            }
        };
        // A runtime or a graph that ends drops the item, which then ends.
        drop(self.runtime.try_spawn(later));
        None
    }

    fn offer(&self, flow: Flow, item: T) {
        // Nothing waits here.
        drop(self.push(flow, item));
    }

    fn end(&self, flow: Flow, item: T, why: Reason) {
        self.edge.end(flow, item, why);
    }
}

/// An item that waits for its time.
struct Waiting<T> {
    edge: Arc<dyn Push<T>>,
    item: Option<(Flow, T)>,
    waiting: Arc<AtomicU64>,
    keepers: Arc<Keepers>,
}

impl<T> Waiting<T> {
    async fn send(&mut self) {
        if let Some((flow, item)) = self.item.take()
            && let Some(wait) = self.edge.push(flow, item)
        {
            wait.await;
        }
    }
}

impl<T> Drop for Waiting<T> {
    fn drop(&mut self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        if let Some((flow, item)) = self.item.take() {
            self.edge.end(flow, item, Reason::ShutDown);
        }
        self.keepers.settle();
    }
}
