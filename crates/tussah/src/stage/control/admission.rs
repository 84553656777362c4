//! The events that a controller decides about, and its decisions.

use crate::stage::event::Class;

/// An arriving event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// The class of the event.
    pub class: Class,
    /// The cost of the event, in credits.
    pub credits: u32,
    /// The cohort of the event: the number that its sender set, or else a random number. If a
    /// sender gives all events of a user the same cohort, a controller can admit or reject them
    /// together.
    pub cohort: u16,
    /// The number of credits in the queue, without this event.
    pub queue_len: u64,
    /// The part of `queue_len` that the stage serves before this event: the credits of queued
    /// events of the same class and of classes with smaller numbers. If the classes have shares,
    /// this is the part that the stage will have served when all queued events of the same class
    /// have left the queue. In a keyed stage, this is instead the number of credits that the stage
    /// serves before this event, if the keys take turns and their queues stay as long as they are.
    /// An event of a busy key waits for its key, and does not count for other keys.
    pub ahead: u64,
    /// The events of the same key. `None` if the stage has no keys, or does not count the events of
    /// each key.
    pub key: Option<KeyLoad>,
    /// The number of events in service.
    pub in_service: u64,
    /// The time of the arrival, in nanoseconds since the process created its first network.
    pub now_ns: u64,
    /// A random 64-bit number.
    pub random: u64,
}

/// The events of one key, since the key last had no events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KeyLoad {
    /// The number of queued events, plus one if events of the key are in service.
    pub events: u64,
    /// The expected service time of an event, in nanoseconds, as estimated from earlier events of
    /// the key and of the stage.
    pub service_ns: u64,
    /// The number of events that have arrived, including rejected ones.
    pub arrived: u64,
    /// The number of these events whose service has ended.
    pub ended: u64,
    /// The number of these events that the controller has rejected.
    pub rejected: u64,
}

/// An event that is leaving the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Departure {
    /// The class of the event.
    pub class: Class,
    /// The time that the event spent in the queue, in nanoseconds.
    pub sojourn_ns: u64,
    /// The number of credits that remain in the queue.
    pub queue_len: u64,
    /// The events of the same key, including this one; see [`Arrival::key`].
    pub key: Option<KeyLoad>,
    /// The time of the departure, in nanoseconds since the process created its first network.
    pub now_ns: u64,
}

/// The decision about an arriving event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// Queue the event.
    Admit,
    /// Degrade the event with the function set by
    /// [`StageBuilder::degrade`](crate::stage::StageBuilder::degrade), then queue the event. If
    /// the stage has no such function, queue the event unchanged.
    Degrade,
    /// Return the event to its sender.
    Reject,
}

/// The decision about an event that is leaving the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Serve the event.
    Serve,
    /// Drop the event, and pass the reason to its drop callback.
    Shed,
}
