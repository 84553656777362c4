//! The instances that keep state for each flow, and the end of their graph.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::Poll;

use parking_lot::Mutex;
use tussah_core::Notify;

use super::flows::Flow;

/// The instances of a graph that keep state for each flow.
#[derive(Default)]
pub struct Keepers {
    pub(super) list: Vec<Keeper>,
    /// The number of flows that are closed and have not ended, and of items that edges delay.
    pub(super) unsettled: AtomicU64,
    /// Of these, the number of delayed items.
    delayed: AtomicU64,
    settled: Notify,
    is_draining: AtomicBool,
    is_halted: AtomicBool,
    halted: Notify,
    /// The number of items that each port `dropped` could not pass on, since the last report.
    lost: Mutex<BTreeMap<String, u64>>,
}

/// An instance that keeps state for each flow. The function is set if the instance handles the end
/// of a flow.
pub(super) type Keeper = OnceLock<Box<dyn Fn(Flow) + Send + Sync>>;

impl Keepers {
    pub(crate) fn new(keepers: usize) -> Self {
        Self {
            list: (0..keepers).map(|_| Keeper::new()).collect(),
            ..Self::default()
        }
    }

    /// Sets the function that handles the end of a flow in the instance with this number.
    pub(crate) fn on_end(&self, number: usize, end: impl Fn(Flow) + Send + Sync + 'static) {
        let first = self.list[number].set(Box::new(end));
        assert!(first.is_ok(), "an instance is installed once");
    }

    /// Records that no more items arrive from outside.
    pub(crate) fn drain(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }

    /// Ends everything that only waits: calls of modules, alarms, and delayed items.
    pub(crate) fn halt(&self) {
        // SeqCst: with the load in `is_halted`. A thread that reads it needs no notification.
        self.is_halted.store(true, Ordering::SeqCst);
        self.halted.notify_waiters();
    }

    pub(crate) fn is_halted(&self) -> bool {
        // SeqCst: with the store in `halt`.
        self.is_halted.load(Ordering::SeqCst)
    }

    /// Counts an item for which the receiver of this port had no room. Reports the first loss; the
    /// end of the graph reports the number.
    #[cold]
    pub(crate) fn lose(&self, instance: &str, port: &str) {
        let mut lost = self.lost.lock();
        let items = lost.entry(format!("{instance}.{port}")).or_default();
        *items += 1;
        let is_first = *items == 1;
        drop(lost);
        if is_first {
            tracing::warn!(
                target: "tussah", instance, port,
                "an item was lost: the receiver of the port had no room; the end of the graph \
                 reports the number of lost items"
            );
        }
    }

    /// Returns the number of lost items of each port, and counts from 0 again.
    pub(crate) fn take_lost(&self) -> BTreeMap<String, u64> {
        std::mem::take(&mut *self.lost.lock())
    }

    /// Waits until the graph is halted.
    pub(crate) async fn halted(&self) {
        let halted = self.halted.notified();
        if !self.is_halted() {
            halted.await;
        }
    }

    /// Polls a future to its end, or drops it when the graph is halted. A future that never waits
    /// always ends.
    pub(crate) async fn unless_halted<F: Future>(&self, future: F) -> Option<F::Output> {
        self.unless_cancelled(&Sends::default(), future).await
    }

    /// Polls the future of a call to its end, or drops it when the graph is halted and none of the
    /// call's sends waits for room. If it were dropped between two sends, its item would be dropped
    /// although a part of the output has arrived. The wait ends: receivers close after their
    /// senders.
    pub(crate) async fn unless_cancelled<F: Future>(
        &self,
        sends: &Sends,
        future: F,
    ) -> Option<F::Output> {
        let (mut future, mut halted) = (pin!(future), pin!(None));
        let polled = poll_fn(|cx| {
            if let Poll::Ready(output) = future.as_mut().poll(cx) {
                return Poll::Ready(Some(output));
            }
            if sends.are_waiting() {
                return Poll::Pending;
            }
            if halted.is_none() {
                halted.set(Some(self.halted()));
            }
            let halted = halted.as_mut().as_pin_mut();
            halted.expect("it is set").poll(cx).map(|()| None)
        });
        polled.await
    }

    /// Records that an edge starts to delay an item. It may only do so if the graph is not halted
    /// afterwards.
    pub(crate) fn delay(&self) {
        self.unsettled.fetch_add(1, Ordering::Relaxed);
        // SeqCst: with the load in `undelayed`. Either this edge sees that the graph is halted, or
        // the halted graph waits for the item.
        self.delayed.fetch_add(1, Ordering::SeqCst);
    }

    /// Records that an item is no longer delayed.
    pub(crate) fn undelay(&self) {
        // SeqCst: with the load in `undelayed`, so that what was sent before has arrived.
        if self.delayed.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.settled.notify_waiters();
        }
        self.settle();
    }

    /// Waits until a halted graph delays no item, and never will again.
    pub(crate) async fn undelayed(&self) {
        loop {
            let settled = self.settled.notified();
            // SeqCst: with the changes in `delay` and `undelay`.
            if self.delayed.load(Ordering::SeqCst) == 0 {
                return;
            }
            settled.await;
        }
    }

    /// Records that a closed flow has ended, or a delay.
    pub(crate) fn settle(&self) {
        // Release: with the Acquire in `are_settled`, so that what was sent before has arrived.
        if self.unsettled.fetch_sub(1, Ordering::Release) == 1 {
            self.settled.notify_waiters();
        }
    }

    /// Returns whether all flows that were closed have ended, and no edge delays an item.
    pub(crate) fn are_settled(&self) -> bool {
        self.unsettled.load(Ordering::Acquire) == 0
    }

    /// Waits until all flows that were closed have ended, and no edge delays an item.
    pub(crate) async fn settled(&self) {
        loop {
            let settled = self.settled.notified();
            if self.are_settled() {
                return;
            }
            settled.await;
        }
    }
}

/// The number of sends, within one async call, that are waiting for a receiver to accept an item.
#[derive(Default)]
pub struct Sends(AtomicUsize);

impl Sends {
    /// Records that a send waits, until the returned value is dropped.
    pub(super) fn wait(&self) -> impl Drop + Send {
        // Relaxed: the thread that polls the call is the only user.
        self.0.fetch_add(1, Ordering::Relaxed);
        Waits(self)
    }

    fn are_waiting(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

struct Waits<'a>(&'a Sends);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
