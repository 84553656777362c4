//! The reasons why a stage refuses an event, or why an event ends without being handled.

use std::fmt;

/// The reason why a stage refused an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Refusal {
    /// The queue has no room for the event, or no room for its class.
    Full,
    /// The queue contains too many events with the same key.
    KeyFull,
    /// The controller with this name rejected the event.
    Rejected(&'static str),
    /// The stage no longer admits events.
    Closed,
    #[doc(hidden)]
    Degrade,
    #[doc(hidden)]
    Proxied,
}

impl Refusal {
    pub(crate) fn is_full(self) -> bool {
        matches!(self, Refusal::Full | Refusal::KeyFull)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Full => f.write_str("its queue is full"),
            Refusal::KeyFull => f.write_str("the queue of its key is full"),
            Refusal::Rejected(name) => write!(f, "turned away by `{name}`"),
            Refusal::Closed => f.write_str("the stage is closed"),
            Refusal::Degrade => f.write_str("to be degraded"),
            Refusal::Proxied => f.write_str("its proxy's queue is full"),
        }
    }
}

/// The reason why an event ended without being handled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Reason {
    /// A controller removed the event from the queue, or the sender's policy dropped it.
    Shed,
    /// The event's deadline passed before a handler took it.
    Expired,
    /// The event's [`CancelHandle`](super::CancelHandle) cancelled it, before a handler took it or
    /// together with the handler's future.
    Cancelled,
    /// The handler panicked after taking the event.
    Panicked,
    /// The stage was destroyed, or its runtime shut down.
    ShutDown,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::Shed => "shed",
            Reason::Expired => "expired: its deadline passed before a handler took it",
            Reason::Cancelled => "cancelled",
            Reason::Panicked => "its handler panicked",
            Reason::ShutDown => "its stage was shut down",
        })
    }
}
