//! The instances that keep state for each flow, and the end of their graph.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Poll;

use tussah_core::Notify;

use super::flows::Flow;

/// The instances of a graph that keep state for each flow.
#[derive(Default)]
pub struct Keepers {
    pub(super) list: Vec<Keeper>,
    /// The number of flows that are closed and have not ended, and of items that edges delay.
    pub(super) unsettled: AtomicU64,
    settled: Notify,
    is_draining: AtomicBool,
    is_halted: AtomicBool,
    halted: Notify,
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
        // Release: with the Acquire in `is_halted`. A thread that reads it needs no notification.
        self.is_halted.store(true, Ordering::Release);
        self.halted.notify_waiters();
    }

    pub(crate) fn is_halted(&self) -> bool {
        self.is_halted.load(Ordering::Acquire)
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
        let (mut future, mut halted) = (pin!(future), pin!(None));
        let polled = poll_fn(|cx| {
            if let Poll::Ready(output) = future.as_mut().poll(cx) {
                return Poll::Ready(Some(output));
            }
            if halted.is_none() {
                halted.set(Some(self.halted()));
            }
            let halted = halted.as_mut().as_pin_mut();
            halted.expect("it is set").poll(cx).map(|()| None)
        });
        polled.await
    }

    /// Records that an edge starts to delay an item.
    pub(crate) fn delay(&self) {
        self.unsettled.fetch_add(1, Ordering::Relaxed);
    }

    /// Records that an item is no longer delayed, or that a closed flow has ended.
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
