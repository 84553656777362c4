//! What a controller of a stage is: it is shown samples, and answers with settings.
//!
//! A controller never sleeps, never reads a clock and never draws a random number: time and randomness are handed to it, so
//! that it can be simulated. It is called under the stage's lock, by whoever queues or ends a batch; so it must be short, and must not
//! call the stage. A stage in which nothing happens calls nobody.
//!
//! Each setting has one owner: two controllers that own the same are refused when the stage is built.

pub mod aspen;
mod auto;
mod by_class;
pub mod cinnamon;
pub mod codel;
mod cost;
pub mod gradient;
mod input_rate;
pub mod log;
#[cfg(test)]
mod odd;
mod outgoing_bound;
pub mod predict;
pub mod process;
pub mod red;
pub mod response_mean;
pub mod response_p90;
mod rule;
mod sample;
pub mod seda_batch;
pub mod seda_servlets;
#[cfg(test)]
mod testing;
mod threshold;

use std::fmt;
use std::ops::BitOr;

pub use self::aspen::Aspen;
pub use self::auto::{AutoServlets, auto};
pub use self::by_class::ByClass;
pub use self::cinnamon::Cinnamon;
pub use self::codel::Codel;
pub use self::gradient::Gradient;
pub use self::input_rate::InputRate;
pub use self::log::Log;
pub use self::outgoing_bound::OutgoingBound;
pub use self::predict::Predict;
pub use self::process::Governor;
pub use self::red::Red;
pub use self::response_mean::ResponseMean;
pub use self::response_p90::ResponseP90;
pub use self::rule::Rule;
pub use self::sample::{ClassSample, Sample, Servlets};
pub use self::seda_batch::SedaBatch;
pub use self::seda_servlets::SedaServlets;
pub use self::threshold::Threshold;

use super::event::Class;

/// Decides settings of one stage.
///
/// One that panics decides nothing any more: its settings stay as they are, and it lets everything in.
///
/// # Examples
/// A controller that lets a stage have one servlet more for each hundred events that are queued, up to eight:
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
    /// What the controller is called in logs and tables.
    fn name(&self) -> &'static str;

    /// The settings that it decides; others that it returns are ignored.
    fn owns(&self) -> Owns;

    /// How often it wants to be shown a sample.
    fn cadence(&self) -> Cadence;

    /// Whether it reads the responses in [`ClassSample`]; they stay zero if not, since to keep them costs a little for each batch.
    fn looks_at_responses(&self) -> bool {
        false
    }

    /// Whether [`on_dequeue`](Self::on_dequeue) has to be asked now; itself asked once for each batch.
    fn looks_at_departures(&self) -> bool {
        true
    }

    /// Looks at the stage and says what to change. `now_ns` counts from the start of the stage's network.
    fn sample(&mut self, sample: &Sample<'_>, now_ns: u64) -> Settings;

    /// By what it lets events of a class in now, for the log; asked only of the owner of [`Owns::ADMISSION`], before and after a sample.
    fn rule(&self, _class: Class) -> Rule {
        Rule::All
    }

    /// Whether an event that arrives is let in; asked only of the owner of [`Owns::ADMISSION`], after the queue's own bounds.
    ///
    /// A sender that sends many events asks for several of a class ahead of time, and gives back what it did not need; so
    /// more may be let in here than arrive, but never fewer.
    fn on_enqueue(&mut self, _arrival: &Arrival) -> Admission {
        Admission::Admit
    }

    /// How many of `most` events are let in at once, that come one after the other, cost one credit each, are of no cohort, and of which `first` is
    /// the first. For the others, [`on_enqueue`](Self::on_enqueue) is asked; unless a controller says otherwise, for all. Only if it admits.
    fn on_enqueue_many(&mut self, _first: &Arrival, _most: u64) -> u64 {
        0
    }

    /// Whether an event that higher classes pass over is to be shed although it is not its turn: it would be shed if it left the queue now. Asked of the
    /// oldest events of classes other than the highest, when [`looks_at_departures`](Self::looks_at_departures) says so, each time that a servlet takes
    /// something; not of stages by key.
    fn is_overdue(&self, _departure: &Departure) -> bool {
        false
    }

    /// Whether an event that leaves the queue is served; asked only of the owner of [`Owns::ADMISSION`].
    fn on_dequeue(&mut self, _departure: &Departure) -> Verdict {
        Verdict::Serve
    }
}

/// A set of settings.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Owns(u8);

impl Owns {
    /// None: a controller that only looks.
    pub const NOTHING: Owns = Owns(0);
    /// How many servlets the stage may have at work.
    pub const SERVLETS: Owns = Owns(1);
    /// How many events a batch has at most.
    pub const BATCH: Owns = Owns(2);
    /// Who is let in: the queue's threshold, its order, and the two hooks of [`Controller`].
    pub const ADMISSION: Owns = Owns(4);
    /// The time between two reads; of sockets, see [`Sockets::control_reads`](super::net::Sockets::control_reads).
    pub const PACE: Owns = Owns(8);
    /// How much may be queued to be written to each peer; of sockets, see [`Sockets::control_writes`](super::net::Sockets::control_writes).
    pub const OUTGOING: Owns = Owns(16);

    /// What the controllers of a stage can decide.
    pub(crate) const STAGE: Owns = Owns(7);

    /// True if all of `other` is in it.
    #[must_use]
    pub fn has(self, other: Owns) -> bool {
        self.0 & other.0 == other.0
    }

    /// What is in both.
    #[must_use]
    pub fn both(self, other: Owns) -> Owns {
        Owns(self.0 & other.0)
    }

    /// What is in this one only.
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

/// When a controller is shown the next sample: as soon as one of these has come since the last, and the interval has passed.
/// Zero of events stands for "never by this"; with both zero the interval alone decides, and it is at least 1 ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cadence {
    /// The shortest time between two samples, in nanoseconds.
    pub interval_ns: u64,
    /// So many events offered.
    pub arrived: u64,
    /// So many events finished.
    pub finished: u64,
}

impl Cadence {
    /// A sample each time that so much time has passed, in nanoseconds.
    #[must_use]
    pub const fn every_ns(interval_ns: u64) -> Self {
        Self {
            interval_ns,
            arrived: 0,
            finished: 0,
        }
    }
}

/// What a controller wants changed; `None` leaves a setting as it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Settings {
    /// How many servlets may be at work at once; at least one, at most `Servlets::max`, else it is made so.
    pub servlets: Option<usize>,
    /// The most events in a batch; at least one, at most the stage's own bound, else it is made so.
    pub batch: Option<usize>,
    /// How many credits the queue holds at most; at least one, at most the stage's own bound, else it is made so.
    pub threshold: Option<u64>,
    /// Which end of the queue is served next.
    pub order: Option<Order>,
    /// Of sockets: the shortest time between two reads, in nanoseconds; 0 is none.
    pub pace_ns: Option<u64>,
    /// Of sockets: how many bytes may be queued to be written to each peer, at most the sockets' own bound.
    pub outgoing_max: Option<u64>,
}

/// In which order the events of one class leave the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Order {
    /// The oldest first.
    #[default]
    Fifo,
    /// The newest first. In a keyed stage this chooses among keys, never within one.
    Lifo,
}

/// An event that arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// Its class.
    pub class: Class,
    /// What it costs.
    pub credits: u32,
    /// A number that its sender gave it, or a random one: the same of one user each time, so that a user is rejected or served as a whole.
    pub cohort: u16,
    /// Credits in the queue, without this event.
    pub queue_len: u64,
    /// Of these, credits of its class and of the classes above it, which are served before it.
    pub ahead: u64,
    /// Events in service.
    pub in_service: u64,
    /// When, in nanoseconds since the network's start.
    pub now_ns: u64,
    /// A random number of 64 bits.
    pub random: u64,
}

/// An event that leaves the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Departure {
    /// Its class.
    pub class: Class,
    /// How long it was queued, in nanoseconds.
    pub sojourn_ns: u64,
    /// Credits that stay in the queue.
    pub queue_len: u64,
    /// When, in nanoseconds since the network's start.
    pub now_ns: u64,
}

/// What happens to an event that arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// It is queued.
    Admit,
    /// It is made smaller by the stage's degradation hook and queued; where there is no hook, it is queued as it is.
    Degrade,
    /// It goes back to its sender.
    Reject,
}

/// What happens to an event that leaves the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It is served.
    Serve,
    /// It is dropped; its drop callback is told so.
    Shed,
}
