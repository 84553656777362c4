//! The queue of a file's writes: one at a time, in the order in which they were first polled.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::cell::Operate;
use crate::runtime::Handle;

/// The writes of one file that wait, and whether one is under way.
///
/// Bound, in operations: one a future, since a future that is dropped takes its operation out.
#[derive(Default)]
pub(super) struct Order {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// An operation is under way. It ends with a call of `next`.
    busy: bool,
    tickets: u64,
    /// By ticket, so in the order of arrival.
    waiting: BTreeMap<u64, Waiting>,
}

/// An operation, and the runtime that is to run it.
type Waiting = (Arc<dyn Operate>, Handle);

impl Order {
    /// Lets the caller begin at once, or takes what it makes as its place in the queue.
    pub(super) fn wait<O: Operate + 'static>(
        &self,
        waiting: impl FnOnce() -> (Arc<O>, Handle),
    ) -> Option<u64> {
        let mut inner = self.inner.lock();
        if !inner.busy {
            inner.busy = true;
            return None;
        }
        let (operation, handle) = waiting();
        let ticket = inner.tickets;
        inner.tickets += 1;
        inner.waiting.insert(ticket, (operation, handle));
        Some(ticket)
    }

    /// Takes an operation out that has not had its turn.
    pub(super) fn remove(&self, ticket: u64) -> Option<Waiting> {
        self.inner.lock().waiting.remove(&ticket)
    }

    /// The operation that was under way has ended: the next one begins. A loop, and not one inside of the other, so that
    /// any number of operations may end without having begun.
    pub(super) fn next(&self) {
        loop {
            let next = {
                let mut inner = self.inner.lock();
                let next = inner.waiting.pop_first();
                inner.busy = next.is_some();
                next
            };
            let Some((_, (operation, handle))) = next else {
                return;
            };
            if operation.launch(&handle) {
                return;
            }
        }
    }
}
