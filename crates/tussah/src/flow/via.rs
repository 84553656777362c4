//! The way of an edge.

use std::time::Duration;

/// Bound, in items: the default room of an edge.
const ROOM: u64 = 1024;

/// The way of an edge: by a queue, or by a call.
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

/// The treatment of an item for which a queue has no room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum WhenFull {
    /// The sender waits for room.
    Wait,
    /// The item ends, and goes to the receiver's port `dropped`. Such an edge may be part of a
    /// cycle, where it has room of its own.
    Shed,
    /// The oldest item in the queue ends instead, and goes to the receiver's port `dropped`. In the
    /// queue of an instance that keeps state for each flow, this is the oldest item of some flow.
    /// Such an edge may be part of a cycle, too.
    DropOldest,
}

impl Via {
    /// Returns the way by the queue of the receiver, which gets room for at least `room` items. A
    /// sender waits while the queue is full.
    #[must_use]
    pub fn queue(room: u64) -> Self {
        Self {
            is_call: false,
            room,
            when_full: WhenFull::Wait,
            after: Duration::ZERO,
        }
    }

    /// Returns the way by a call in the sender's servlet, without a queue.
    #[must_use]
    pub fn call() -> Self {
        Self {
            is_call: true,
            ..Self::queue(0)
        }
    }

    /// Sets what happens to an item for which there is no room.
    #[must_use]
    pub fn when_full(mut self, when_full: WhenFull) -> Self {
        self.when_full = when_full;
        self
    }

    /// Delays each item by this time. Delayed items also need room. If there is no room for an
    /// item, it is dropped: it goes to the receiver's port `dropped`.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.after = delay;
        self
    }
}

impl Default for Via {
    /// Returns the way by a queue with room for 1024 items.
    fn default() -> Self {
        Self::queue(ROOM)
    }
}
