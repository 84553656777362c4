//! The work of a servlet between two visits to its stage's queue.

use std::sync::Arc;

use crate::stage::control::Order;
use crate::stage::event::{Batch, Event, Path, Reason};

/// The cause of a handler's wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum WaitsFor {
    /// Anything but the causes below.
    #[default]
    Other,
    /// Room in another stage.
    Room,
    /// A permit of a [`Limit`](crate::sync::Limit).
    Permit,
}

/// The work of a servlet between two visits to the queue.
pub(crate) struct Run<E> {
    /// Events that have been taken but are not in the servlet's batch yet.
    pub(crate) ahead: Batch<E>,
    /// The maximum number of events in a batch.
    pub(crate) limit: usize,
    /// The end of the queue from which the events were taken.
    pub(crate) order: Order,
    /// In a keyed stage, the keys that are busy with this run, and the number of events taken from
    /// each. The events in `ahead` are in the same order.
    pub(crate) keys: Vec<(usize, usize)>,
    /// The number of these keys whose events have gone to the batch.
    pub(super) begun: usize,
    /// Events that were shed or had expired. Their drop callbacks run under no lock.
    pub(crate) dropped: Vec<(Event<E>, Reason)>,
    /// The number of events in `dropped` that the stage still counts as undelivered.
    pub(crate) undelivered: u64,
    pub(crate) begun_ns: u64,
    /// The time at which the handler last began to compute.
    pub(crate) resumed_ns: u64,
    /// The time that the handler had computed before that.
    pub(crate) compute_ns: u64,
    /// The cause of the handler's wait, and the cause that the stage counts.
    pub(crate) waits_for: WaitsFor,
    pub(crate) counted: WaitsFor,
    /// The times for which the handler has waited for room in other stages, and for permits.
    pub(crate) held_up_ns: u64,
    pub(crate) limited_ns: u64,
    /// The number of batches for which the handler has acquired a permit of a scarce limit.
    pub(crate) permits: u64,
    /// True if the handler has yielded; below, the time for which it has been ready and waited for
    /// a worker.
    pub(crate) yielded: bool,
    pub(crate) ready_ns: u64,
    /// True if the handler has only yielded since it has counted as waiting.
    pub(crate) only_yields: bool,
    pub(crate) batches: u64,
    /// True if each sent event has its own send time instead of that of the run, because handling
    /// an event takes long.
    pub(crate) exact: bool,
    /// True if batches have one event and no key, so that a cancellation may drop the handler.
    pub(crate) one_by_one: bool,
    /// True if the stage counts the handler as waiting.
    pub(crate) waits: bool,
    /// The trace of the event that a waiting handler took last; 0 means none.
    pub(crate) trace: u64,
    /// The path of that event.
    pub(crate) path: Option<Arc<Path>>,
    pub(super) taken: u64,
}

impl<E> Default for Run<E> {
    fn default() -> Self {
        Self {
            ahead: Batch::default(),
            limit: 1,
            order: Order::Fifo,
            keys: Vec::new(),
            begun: 0,
            dropped: Vec::new(),
            undelivered: 0,
            begun_ns: 0,
            resumed_ns: 0,
            compute_ns: 0,
            waits_for: WaitsFor::Other,
            counted: WaitsFor::Other,
            held_up_ns: 0,
            limited_ns: 0,
            permits: 0,
            yielded: false,
            ready_ns: 0,
            only_yields: false,
            batches: 0,
            exact: false,
            one_by_one: false,
            waits: false,
            trace: 0,
            path: None,
            taken: 0,
        }
    }
}

impl<E> Run<E> {
    /// Returns whether events have been taken that have not finished.
    pub(crate) fn is_open(&self) -> bool {
        self.taken > 0
    }

    /// Moves the events of the next batch to `batch`. In a keyed stage, they have the same key.
    #[inline]
    pub(crate) fn fill(&mut self, batch: &mut Batch<E>) {
        let mut limit = self.limit;
        if let Some(&(_, events)) = self.keys.get(self.begun) {
            limit = events;
            self.begun += 1;
        }
        batch.fill(&mut self.ahead, limit);
    }

    /// Returns the key whose class paid for the events. With several classes, a run has one key.
    pub(super) fn paying_key(&self) -> Option<usize> {
        self.keys.first().map(|key| key.0)
    }

    /// Counts a batch that has ended.
    #[inline]
    pub(crate) fn ended(&mut self) {
        self.batches += 1;
    }
}
