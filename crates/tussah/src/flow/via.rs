//! The options of an edge.

use std::time::Duration;

/// Bound, in items: the default room of an edge.
const ROOM: u64 = 1024;

/// The options of an edge: its kind (queue or call), its capacity, the action to take if the
/// receiver has no room for an item, and a delay.
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

/// The action to take if a queue has no room for an item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum WhenFull {
    /// Wait for room.
    Wait,
    /// Drop the item, and send it to the receiver's `dropped` port. An edge with this policy may
    /// close a cycle of edges; part of the queue is then reserved for items of this edge.
    Shed,
    /// Drop the oldest item in the queue to make room, and send the dropped item to the `dropped`
    /// port of the receiver. If the receiver keeps state for each flow, the dropped item is the
    /// oldest one of its flow, but not always the oldest one in the queue. An edge with this policy
    /// may close a cycle of edges; part of the queue is then reserved for items of this edge.
    DropOldest,
}

impl Via {
    /// Creates options for an edge that uses the receiver's queue, with room for `room` items; 0
    /// counts as 1. While the queue is full, senders wait.
    ///
    /// All edges to a receiver share the receiver's queue, whose capacity is the largest `room` of
    /// these edges. If an edge closes a cycle and can shed or drop items, the queue has additional
    /// room for `room` items of that edge.
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

    /// Sets the action to take if there is no room for an item.
    #[must_use]
    pub fn when_full(mut self, when_full: WhenFull) -> Self {
        self.when_full = when_full;
        self
    }

    /// Delays each item by `delay`. The items keep their order. Delayed items also take up room; an
    /// edge that calls its receiver has room for 1024 delayed items. An item for which there is no
    /// room goes to the `dropped` port of the receiver.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.after = delay;
        self
    }
}

impl Default for Via {
    /// Returns options for an edge with a queue that has room for 1024 items.
    fn default() -> Self {
        Self::queue(ROOM)
    }
}
