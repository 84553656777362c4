//! The reasons why a stage refuses an event, or why an event ends without being handled.

use std::fmt;

/// The reason why a stage refused an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Refusal {
    /// The queue is full, or already contains the maximum number of events of the same class.
    Full,
    /// The queue already contains the maximum number of events with the same key.
    KeyFull,
    /// The controller with this name rejected the event.
    Rejected(&'static str),
    /// The stage no longer admits events.
    Closed,
}

/// The reason why a stage did not take an event immediately. It is not always a refusal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NotTaken {
    Refused(Refusal),
    /// The controller admits the event after it has been degraded.
    Degrade,
    /// Events of this sender pass a proxy, which has no room now.
    Proxied,
}

impl NotTaken {
    /// Returns whether the sender can wait for room in the queue.
    pub(crate) fn is_full(self) -> bool {
        matches!(self, NotTaken::Refused(Refusal::Full | Refusal::KeyFull))
    }

    /// Returns whether the sender can wait.
    pub(crate) fn can_wait(self) -> bool {
        self.is_full() || self == NotTaken::Proxied
    }

    /// Returns the reason for a sender that does not wait.
    pub(crate) fn refusal(self) -> Refusal {
        match self {
            NotTaken::Refused(why) => why,
            NotTaken::Degrade | NotTaken::Proxied => Refusal::Full,
        }
    }
}

impl From<Refusal> for NotTaken {
    fn from(why: Refusal) -> Self {
        NotTaken::Refused(why)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Full => f.write_str("its queue is full"),
            Refusal::KeyFull => f.write_str("the queue of its key is full"),
            Refusal::Rejected(name) => write!(f, "rejected by `{name}`"),
            Refusal::Closed => f.write_str("the stage is closed"),
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
    /// The event's [`CancelHandle`](super::CancelHandle) cancelled the event, either before a
    /// handler took it or while the handler ran. If the handler was running, the stage dropped the
    /// handler's future.
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
