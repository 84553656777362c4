//! The options of an edge.

use std::time::Duration;

/// Bound, in items: the default capacity of an edge.
const ROOM: u64 = 1024;

/// The options of an edge: its kind (queue or call), its capacity, the action to take when the
/// receiver's queue is full, and a delay.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tussah::flow::{Via, WhenFull};
///
/// let retry = Via::queue(100).when_full(WhenFull::Shed).after(Duration::from_millis(50));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Via {
    pub(crate) is_call: bool,
    pub(crate) room: u64,
    pub(crate) when_full: WhenFull,
    pub(crate) after: Duration,
}

/// The action to take for an item that arrives when the queue is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum WhenFull {
    /// Wait until the queue has free space.
    Wait,
    /// Drop the item, and send it to the receiver's `dropped` port. If the queue behind this port
    /// is full, the sender waits for it, unless such a wait could close a cycle. In that case the
    /// item is lost; a warning in the log reports the loss. An edge with this policy may close a
    /// cycle of edges; part of the queue is then reserved for items of this edge.
    Shed,
    /// Drop the oldest item in the queue, send it to the receiver's `dropped` port as
    /// [`Shed`](Self::Shed) does, and queue the new item. If the receiver keeps state for each
    /// flow, the dropped item is instead the oldest item of some flow, and not always the oldest
    /// one in the queue. An edge with this policy may close a cycle of edges; part of the queue is
    /// then reserved for items of this edge.
    DropOldest,
}

impl Via {
    /// Creates options for an edge that uses the receiver's queue, with a capacity of `room` items;
    /// 0 counts as 1. While the queue is full, senders wait.
    ///
    /// All edges to a receiver share the receiver's queue, whose capacity is the largest `room` of
    /// these edges. If an edge closes a cycle and can shed or drop items, the queue can hold `room`
    /// additional items of that edge.
    #[must_use]
    pub fn queue(room: u64) -> Self {
        Self {
            is_call: false,
            room,
            when_full: WhenFull::Wait,
            after: Duration::ZERO,
        }
    }

    /// Creates options for an edge that calls the receiver in the sender's servlet, without a
    /// queue.
    #[must_use]
    pub fn call() -> Self {
        Self {
            is_call: true,
            ..Self::default()
        }
    }

    /// Returns whether a sender may wait for the receiver.
    pub(crate) fn waits(&self) -> bool {
        self.is_call || self.when_full == WhenFull::Wait
    }

    /// Sets the action to take for an item that arrives when the receiver's queue is full.
    #[must_use]
    pub fn when_full(mut self, when_full: WhenFull) -> Self {
        self.when_full = when_full;
        self
    }

    /// Delays each item by `delay`. The items keep their order. An edge with a queue delays at most
    /// `room` items at a time (see [`queue`](Self::queue)); an edge that calls its receiver delays
    /// at most 1024. Further items go to the `dropped` port of the receiver.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.after = delay;
        self
    }
}

impl Default for Via {
    /// Returns options for an edge with a queue and a capacity of 1024 items.
    fn default() -> Self {
        Self::queue(ROOM)
    }
}
