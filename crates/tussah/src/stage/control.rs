//! The interface of a stage's controllers: a controller receives samples and answers with settings.
//!
//! A controller never sleeps, reads a clock or draws a random number: time and randomness are
//! parameters, so that a controller can be simulated. The stage calls a controller under the
//! stage's lock, from the OS thread that queues an event or ends a batch. So a controller must be
//! short, and must not call the stage. A stage in which nothing happens calls no controller.
//!
//! Each setting has one owner: building a stage fails if two controllers own the same setting.

mod auto;
mod cost;
mod defaults;
mod knee;
pub mod log;
#[cfg(test)]
mod odd;
pub mod policy;
mod predict;
pub mod process;
mod rule;
mod sample;
#[cfg(test)]
mod testing;
mod why;

use std::fmt;
use std::ops::BitOr;
use std::time::Duration;

pub use self::auto::{AutoServlets, AutoTarget, Mode, Observed, Switch, auto, auto_besides};
pub use self::predict::Predict;
pub use self::rule::Rule;
pub use self::sample::{ClassSample, Sample, Servlets};
pub use self::why::Why;
pub use super::run::{Applicant, Permits, ThreadManager};

pub(crate) use self::defaults::{controllers, one_owner, owned};

use super::event::Class;

/// A policy that decides settings of one stage.
///
/// The stage no longer calls a controller that has panicked: the controller's settings stay as they
/// are, and the stage admits all events.
///
/// # Examples
/// A controller that gives a stage one more servlet for each hundred queued events, up to eight:
/// ```
/// use tussah::stage::control::{Cadence, Controller, Owns, Sample, Settings};
///
/// struct ByLength;
///
/// impl Controller for ByLength {
///     fn name(&self) -> &'static str {
///         "by-length"
///     }
///     fn owns(&self) -> Owns {
///         Owns::SERVLETS
///     }
///     fn cadence(&self) -> Cadence {
///         Cadence::every_ns(10_000_000)
///     }
///     fn sample(&mut self, sample: &Sample<'_>, _now_ns: u64) -> Settings {
///         let servlets = (1 + sample.queue_len / 100).min(8);
///         Settings { servlets: Some(servlets as usize), ..Settings::default() }
///     }
/// }
/// ```
pub trait Controller: Send + 'static {
    /// Returns the name of the controller in logs and tables.
    fn name(&self) -> &'static str;

    /// Returns the settings that the controller decides. The stage ignores any other setting that
    /// the controller returns.
    fn owns(&self) -> Owns;

    /// Returns how often the controller receives a sample.
    fn cadence(&self) -> Cadence;

    /// Returns whether the controller reads the responses in [`ClassSample`]. If not, the responses
    /// stay zero, because collecting them costs a little for each batch.
    fn looks_at_responses(&self) -> bool {
        false
    }

    /// Returns whether the stage has to call [`on_dequeue`](Self::on_dequeue) now. The stage calls
    /// this once for each batch.
    fn looks_at_departures(&self) -> bool {
        true
    }

    /// Receives a sample, and returns the settings to change. `now_ns` counts from the start of the
    /// stage's network.
    fn sample(&mut self, sample: &Sample<'_>, now_ns: u64) -> Settings;

    /// Returns the rule by which the controller admits events of a class now, for the log. The
    /// stage calls this only on the owner of [`Owns::ADMISSION`], before and after a sample.
    fn rule(&self, _class: Class) -> Rule {
        Rule::All
    }

    /// Returns the latency target that the controller works towards now, if it has one. It may
    /// exceed the configured target. The stage calls this only on the owner of [`Owns::ADMISSION`],
    /// before and after a sample.
    fn effective_target(&self) -> Option<Duration> {
        None
    }

    /// Returns how many events the controller would have rejected while it only
    /// [observed](Mode::Observe). The stage calls this only on the owner of [`Owns::ADMISSION`].
    fn would_reject(&self) -> u64 {
        0
    }

    /// Decides whether an arriving event is admitted. The stage calls this only on the owner of
    /// [`Owns::ADMISSION`], for an event that the queue's own bounds allow.
    ///
    /// A sender of many events asks for several events of a class ahead of time, and gives back
    /// what it does not need. So the controller may admit more events than arrive, but never fewer.
    fn on_enqueue(&mut self, _arrival: &Arrival) -> Admission {
        Admission::Admit
    }

    /// Returns how many of `most` consecutive events are admitted immediately. These events cost
    /// one credit each and belong to no cohort; `first` is the first of them.
    ///
    /// The stage calls [`on_enqueue`](Self::on_enqueue) for the other events; by default, these are
    /// all events. Count only events that `on_enqueue` would admit.
    fn on_enqueue_many(&mut self, _first: &Arrival, _most: u64) -> u64 {
        0
    }

    /// Returns whether to shed a queued event before its turn, because
    /// [`on_dequeue`](Self::on_dequeue) would shed it if it left the queue now. If an event is
    /// overdue, every event that was queued for longer must be overdue, too.
    ///
    /// The stage asks about the oldest event of each class except the highest, each time that a
    /// servlet takes events, while [`looks_at_departures`](Self::looks_at_departures) is true. It
    /// also asks about each class every 25 ms, if a sample has shown that events can be overdue:
    /// the answer is then true for a sojourn of `u64::MAX`. Keyed stages never ask.
    fn is_overdue(&self, _departure: &Departure) -> bool {
        false
    }

    /// Decides whether an event that leaves the queue is served. The stage calls this only on the
    /// owner of [`Owns::ADMISSION`].
    fn on_dequeue(&mut self, _departure: &Departure) -> Verdict {
        Verdict::Serve
    }
}

/// A set of settings.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Owns(u8);

impl Owns {
    /// No setting: the controller only observes.
    pub const NOTHING: Owns = Owns(0);
    /// The number of servlets that may be at work.
    pub const SERVLETS: Owns = Owns(1);
    /// The maximum number of events in a batch.
    pub const BATCH: Owns = Owns(2);
    /// Admission: the queue's threshold, its order, and the hooks of [`Controller`] for arrivals
    /// and departures.
    pub const ADMISSION: Owns = Owns(4);
    /// The time between two reads of sockets; see
    /// [`Sockets::control_reads`](super::net::Sockets::control_reads).
    pub const PACE: Owns = Owns(8);
    /// The bound on the data queued to be written to each peer of sockets; see
    /// [`Sockets::control_writes`](super::net::Sockets::control_writes).
    pub const OUTGOING: Owns = Owns(16);

    /// The settings that the controllers of a stage can decide.
    pub(crate) const STAGE: Owns = Owns(7);

    /// Returns whether the set contains all of `other`.
    #[must_use]
    pub fn has(self, other: Owns) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the settings in both sets.
    #[must_use]
    pub fn both(self, other: Owns) -> Owns {
        Owns(self.0 & other.0)
    }

    /// Returns the settings that are in this set only.
    #[must_use]
    pub fn without(self, other: Owns) -> Owns {
        Owns(self.0 & !other.0)
    }
}

impl BitOr for Owns {
    type Output = Owns;

    fn bitor(self, other: Owns) -> Owns {
        Owns(self.0 | other.0)
    }
}

impl fmt::Display for Owns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (Self::SERVLETS, "servlets"),
            (Self::BATCH, "batch"),
            (Self::ADMISSION, "admission"),
            (Self::PACE, "pace of reads"),
            (Self::OUTGOING, "bound on outgoing bytes"),
        ];
        let mut first = true;
        for (one, name) in names {
            if self.has(one) {
                f.write_str(if first { "" } else { ", " })?;
                f.write_str(name)?;
                first = false;
            }
        }
        f.write_str(if first { "nothing" } else { "" })
    }
}

impl fmt::Debug for Owns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owns({self})")
    }
}

/// The times at which a controller receives a sample: when the interval has passed since the last
/// sample, and one of the counts has been reached. A count of zero is ignored. If both are zero,
/// the interval alone decides, and is at least 1 ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cadence {
    /// The shortest time between two samples, in nanoseconds.
    pub interval_ns: u64,
    /// The number of events offered.
    pub arrived: u64,
    /// The number of events finished.
    pub finished: u64,
}

impl Cadence {
    /// Returns a cadence with a sample after each interval of this length, in nanoseconds.
    #[must_use]
    pub const fn every_ns(interval_ns: u64) -> Self {
        Self {
            interval_ns,
            arrived: 0,
            finished: 0,
        }
    }
}

/// The changes that a controller asks for; `None` leaves a setting as it is. The stage clamps
/// values into their ranges.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Settings {
    /// The number of servlets that may be at work at the same time; from one to `Servlets::max`.
    pub servlets: Option<usize>,
    /// The maximum number of events in a batch; from one to the stage's own bound.
    pub batch: Option<usize>,
    /// The maximum number of credits in the queue; from one to the stage's own bound.
    pub threshold: Option<u64>,
    /// The end of the queue from which events are served next.
    pub order: Option<Order>,
    /// For sockets: the shortest time between two reads, in nanoseconds; 0 means none.
    pub pace_ns: Option<u64>,
    /// For sockets: the number of bytes that may be queued to be written to each peer, at most the
    /// sockets' own bound.
    pub outgoing_max: Option<u64>,
    /// The reason, if the numbers of the sample do not show it.
    pub why: Why,
}

/// The order in which the events of one class leave the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Order {
    /// The oldest first.
    #[default]
    Fifo,
    /// The newest first. In a keyed stage, this order applies among keys, never within one key.
    Lifo,
}

/// An event that arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// The class of the event.
    pub class: Class,
    /// The cost of the event.
    pub credits: u32,
    /// The cohort: a number that the sender gave the event, or a random one. It is the same for all
    /// events of a user, so that all events of a user are rejected or served together.
    pub cohort: u16,
    /// Credits in the queue, without this event.
    pub queue_len: u64,
    /// The part of `queue_len` that is served before the event: the credits of its class and of the
    /// classes above it.
    pub ahead: u64,
    /// Events in service.
    pub in_service: u64,
    /// The time of the arrival, in nanoseconds since the process created its first network.
    pub now_ns: u64,
    /// A random number of 64 bits.
    pub random: u64,
}

/// An event that leaves the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Departure {
    /// The class of the event.
    pub class: Class,
    /// The time that the event was queued, in nanoseconds.
    pub sojourn_ns: u64,
    /// Credits that stay in the queue.
    pub queue_len: u64,
    /// The time of the departure, in nanoseconds since the process created its first network.
    pub now_ns: u64,
}

/// The decision about an event that arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// The event is queued.
    Admit,
    /// The stage's degradation hook reduces the event, and then it is queued. Without a hook, it is
    /// queued unchanged.
    Degrade,
    /// The event goes back to its sender.
    Reject,
}

/// The decision about an event that leaves the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The event is served.
    Serve,
    /// The event is dropped, and its drop callback receives the reason.
    Shed,
}
