//! Limits on the number of items inside a set of instances.
//!
//! An item takes a permit when it enters the set over an edge. The permit belongs to the item's
//! flow, so everything that is sent for the item inside the set holds it, too. An edge that leaves
//! the set drops the permit. The permit is free when nothing of the item is left inside. A cycle
//! inside the set can therefore not fill up with items from outside.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::edge::{Edge, Erased, Inlet, Push, Wait};
use super::flows::Flow;
use super::keepers::Keepers;
use super::proxy::{Detour, Interposed};
use super::via::{Via, WhenFull};
use crate::stage::{BuildError, Edges, Reason};
use crate::sync::Limit;

/// Returns an input port for edges that cross the border of a set: into the set with this limit, or
/// only out of a set. Both ports are an `Arc<dyn Inlet<T>>`.
pub(crate) fn cross<T: Send + 'static>(inlet: &Erased, limit: Option<&Limit>) -> Box<Erased> {
    let inlet: Option<&Arc<dyn Inlet<T>>> = inlet.downcast_ref();
    let bordered: Arc<dyn Inlet<T>> = Arc::new(Bordered {
        inlet: Arc::clone(inlet.expect("it is the port's own")),
        limit: limit.cloned(),
    });
    Box::new(bordered)
}

/// An input port for edges that cross the border of a set.
struct Bordered<T> {
    inlet: Arc<dyn Inlet<T>>,
    limit: Option<Limit>,
}

impl<T: Send + 'static> Inlet<T> for Bordered<T> {
    fn connect(
        &self,
        edges: &Edges<'_>,
        via: &Via,
        keepers: &Arc<Keepers>,
    ) -> Result<Edge<T>, BuildError> {
        let edge = self.inlet.connect(edges, via, keepers)?.into_any();
        let waits = via.when_full == WhenFull::Wait;
        let border: Arc<dyn Push<T>> = Arc::new(Border::new(edge, self.limit.clone(), waits));
        Ok(Edge::from(border))
    }

    fn outside(&self) -> Arc<dyn Push<T>> {
        Arc::new(Border::new(self.inlet.outside(), self.limit.clone(), true))
    }

    fn interpose(&self, detour: &Detour<'_>, to: &dyn Inlet<T>) -> Result<Interposed, BuildError> {
        self.inlet.interpose(detour, to)
    }
}

/// The end of an edge that crosses the border of a set.
struct Border<T> {
    edge: Arc<dyn Push<T>>,
    /// The limit of the set that the edge leads into; `None` if the edge only leads out of a set.
    limit: Option<Limit>,
    /// True if an item waits for a permit. An edge that sheds waits for nothing.
    waits: bool,
    /// The items that wait for a permit. A newer item may not pass them.
    waiting: Arc<AtomicUsize>,
}

impl<T> Border<T> {
    fn new(edge: Arc<dyn Push<T>>, limit: Option<Limit>, waits: bool) -> Self {
        Self {
            edge,
            limit,
            waits,
            waiting: Arc::default(),
        }
    }
}

impl<T: Send + 'static> Push<T> for Border<T> {
    fn push(&self, flow: Flow, item: T) -> Option<Wait<'_>> {
        let flow = flow.without_permit();
        let Some(limit) = &self.limit else {
            return self.edge.push(flow, item);
        };
        // Relaxed: only the sender itself has to see its earlier sends.
        if self.waiting.load(Ordering::Relaxed) == 0
            && let Some(permit) = limit.try_acquire()
        {
            return self.edge.push(flow.with_permit(permit), item);
        }
        if !self.waits {
            return self.edge.end(flow, item, Reason::Shed);
        }
        let waiting = Waiting::new(&self.waiting);
        Some(Box::pin(async move {
            let permit = limit.acquire().await;
            drop(waiting);
            if let Some(wait) = self.edge.push(flow.with_permit(permit), item) {
                wait.await;
            }
        }))
    }

    fn offer(&self, flow: Flow, item: T) -> bool {
        let flow = flow.without_permit();
        match &self.limit {
            None => self.edge.offer(flow, item),
            Some(limit) => match limit.try_acquire() {
                Some(permit) => self.edge.offer(flow.with_permit(permit), item),
                None => {
                    drop(self.edge.end(flow, item, Reason::Shed));
                    true
                }
            },
        }
    }

    fn end(&self, flow: Flow, item: T, why: Reason) -> Option<Wait<'static>> {
        self.edge.end(flow.without_permit(), item, why)
    }
}

/// An item that waits, for a permit or for its turn.
pub(super) struct Waiting(Arc<AtomicUsize>);

impl Waiting {
    pub(super) fn new(all: &Arc<AtomicUsize>) -> Self {
        all.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(all))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
