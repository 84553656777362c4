//! The sends of unhandled items, to the ports `dropped`.

use std::sync::Arc;
use std::task::{Context, Waker};

use tussah_core::quietly;

use super::edge::{Edge, Wait};
use super::flows::Flow;
use super::keepers::Keepers;
use super::outlet::Outlet;
use super::via::Via;

impl<T: Send + 'static> Outlet<T> {
    /// Sends an item without waiting.
    pub(super) fn offer(&self, flow: &Flow, item: T) {
        let Some((last, others)) = self.edges.split_last() else {
            return;
        };
        for edge in others {
            let clone = self.clone.expect("items of several edges can be cloned");
            // A panic of the module may be unwinding, which a panic of the clone must not leave.
            quietly(|| self.offer_by(edge, flow, clone(&item)));
        }
        self.offer_by(last, flow, item);
    }

    fn offer_by(&self, edge: &Edge<T>, flow: &Flow, item: T) {
        if !edge.offer(flow.clone(), item) {
            self.keepers.lose(&self.owner, self.name);
        }
    }

    /// Sends an unhandled item. If there is no room for it, and it may wait, returns a future that
    /// waits for room; if the future is dropped, the item is lost.
    pub(super) fn push_later(&self, flow: &Flow, item: T) -> Option<Wait<'static>> {
        let calls = |(_, via): &(_, Via)| via.is_call;
        if !self.waits || self.planned.iter().any(calls) {
            self.offer(flow, item);
            return None;
        }
        let (edges, clone, flow) = (Arc::clone(&self.edges), self.clone, flow.clone());
        let mut unsent = Unsent {
            owner: Arc::clone(&self.owner),
            port: self.name,
            keepers: Arc::clone(&self.keepers),
            is_sent: false,
        };
        let mut wait: Wait<'static> = Box::pin(async move {
            let mut waits = Vec::new();
            if let Some((last, others)) = edges.split_last() {
                for edge in others {
                    let clone = clone.expect("items of several edges can be cloned");
                    waits.extend(edge.push(&flow, clone(&item)));
                }
                waits.extend(last.push(&flow, item));
            }
            for wait in waits {
                wait.await;
            }
            unsent.sent();
        });
        // The first poll sends the item if there is room, and takes a place among the waiting
        // senders otherwise.
        let first = wait.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        first.is_pending().then_some(wait)
    }
}

/// An unhandled item that is not sent yet. Dropping this counts the item as lost.
struct Unsent {
    owner: Arc<str>,
    port: &'static str,
    keepers: Arc<Keepers>,
    is_sent: bool,
}

impl Unsent {
    fn sent(&mut self) {
        self.is_sent = true;
    }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        if !self.is_sent {
            self.keepers.lose(&self.owner, self.port);
        }
    }
}
