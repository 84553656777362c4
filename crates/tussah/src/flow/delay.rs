//! Edges that delay their items.

use std::collections::VecDeque;
use std::mem::{replace, take};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tussah_core::Handle;

use super::edge::{Push, Wait};
use super::flows::Flow;
use super::keepers::Keepers;
use super::via::Via;
use crate::stage::Reason;
use crate::time::{now, sleep_until};

/// An edge that delays its items. One thread waits for all of them, so that they keep their order.
pub(crate) struct Delayed<T> {
    shared: Arc<Shared<T>>,
    runtime: Handle,
}

struct Shared<T> {
    edge: Arc<dyn Push<T>>,
    after: Duration,
    /// Bound, in items: the maximum number of delayed items, as set by the capacity of the
    /// edge. Further items are shed.
    room: usize,
    line: Mutex<Line<T>>,
    keepers: Arc<Keepers>,
}

struct Line<T> {
    /// The items with the times at which they go on.
    items: VecDeque<(Instant, Flow, T)>,
    /// True while the thread sends the first item, which is no longer in the line.
    is_sending: bool,
    /// True if there is a thread.
    is_served: bool,
}

impl<T: Send + 'static> Delayed<T> {
    pub(crate) fn new(
        edge: Arc<dyn Push<T>>,
        via: &Via,
        keepers: &Arc<Keepers>,
        runtime: &Handle,
    ) -> Self {
        let shared = Shared {
            edge,
            after: via.after,
            room: usize::try_from(via.room).unwrap_or(usize::MAX).max(1),
            line: Mutex::new(Line {
                items: VecDeque::new(),
                is_sending: false,
                is_served: false,
            }),
            keepers: Arc::clone(keepers),
        };
        Self {
            shared: Arc::new(shared),
            runtime: runtime.clone(),
        }
    }
}

impl<T: Send + 'static> Push<T> for Delayed<T> {
    fn push(&self, flow: Flow, item: T) -> Option<Wait<'_>> {
        let Self { shared, runtime } = self;
        let mut line = shared.line.lock();
        if line.items.len() + usize::from(line.is_sending) >= shared.room {
            drop(line);
            return shared.edge.end(flow, item, Reason::Shed);
        }
        shared.keepers.delay();
        if shared.keepers.is_halted() {
            drop(line);
            let wait = shared.edge.end(flow, item, Reason::ShutDown);
            shared.keepers.undelay();
            return wait;
        }
        line.items.push_back((now() + shared.after, flow, item));
        let is_served = replace(&mut line.is_served, true);
        drop(line);
        if !is_served {
            let serving = Serving {
                shared: Arc::clone(shared),
                is_over: false,
            };
            // A runtime that has ended drops the items, which then end.
            drop(runtime.try_spawn(async move { serving.serve().await }));
        }
        None
    }

    fn offer(&self, flow: Flow, item: T) -> bool {
        // If the item is shed, its receiver reports a loss itself.
        drop(self.push(flow, item));
        true
    }

    fn end(&self, flow: Flow, item: T, why: Reason) -> Option<Wait<'static>> {
        self.shared.edge.end(flow, item, why)
    }
}

/// The thread that sends the items, each at its time. If it is dropped earlier, the items end.
struct Serving<T: Send + 'static> {
    shared: Arc<Shared<T>>,
    /// True if the line has another thread or none.
    is_over: bool,
}

impl<T: Send + 'static> Serving<T> {
    async fn serve(mut self) {
        while let Some(at) = self.next() {
            let keepers = &self.shared.keepers;
            if keepers.unless_halted(sleep_until(at)).await.is_none() {
                return;
            }
            let (flow, item) = self.take();
            if let Some(wait) = self.shared.edge.push(flow, item) {
                wait.await;
            }
            self.shared.line.lock().is_sending = false;
            self.shared.keepers.undelay();
        }
    }

    /// Returns the time of the first item. Without an item, the line needs no thread.
    fn next(&mut self) -> Option<Instant> {
        let mut line = self.shared.line.lock();
        let first = line.items.front().map(|(at, ..)| *at);
        line.is_served = first.is_some();
        self.is_over = first.is_none();
        first
    }

    fn take(&self) -> (Flow, T) {
        let mut line = self.shared.line.lock();
        line.is_sending = true;
        let first = line.items.pop_front();
        let (_, flow, item) = first.expect("only this thread takes items");
        (flow, item)
    }
}

impl<T: Send + 'static> Drop for Serving<T> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let mut line = self.shared.line.lock();
        let (items, was_sending) = (take(&mut line.items), take(&mut line.is_sending));
        line.is_served = false;
        drop(line);
        let ended = items.len() + usize::from(was_sending);
        for (_, flow, item) in items {
            drop(self.shared.edge.end(flow, item, Reason::ShutDown));
        }
        (0..ended).for_each(|_| self.shared.keepers.undelay());
    }
}
