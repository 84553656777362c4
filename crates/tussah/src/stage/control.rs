//! The interface between a stage and its controllers: samples in, settings out.
//!
//! A controller must not sleep, read a clock or draw a random number. The stage passes the current
//! time and random numbers to its controllers, so a test can choose both. Any OS thread that uses
//! the stage, for example to queue an event, may call the stage's controllers. This OS thread holds
//! the stage's lock during the call. A controller must therefore return quickly and must not call
//! the stage. An idle stage does not call its controllers.
//!
//! Each setting has one owner: a stage cannot be built if two controllers own the same setting.

mod admission;
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
mod scarce;
#[cfg(test)]
mod testing;
mod why;

use std::fmt;
use std::ops::BitOr;
use std::time::Duration;

pub use self::admission::{Admission, Arrival, Departure, KeyLoad, Verdict};
pub use self::auto::{
    AutoServlets, AutoTarget, Memory, Mode, Observed, Switch, auto, auto_besides,
};
pub use self::predict::Predict;
pub use self::rule::Rule;
pub use self::sample::{ClassSample, Sample, Servlets};
pub use self::scarce::{LimitUse, Resource};
pub use self::why::Why;
pub use super::run::{Applicant, Permits, ThreadManager};

pub(crate) use self::defaults::{controllers, one_owner, owned};

use super::event::Class;

/// A policy that adjusts the settings of one stage while the stage runs.
///
/// If a controller panics, the stage stops calling it. The settings that the controller owns then
/// keep their current values. If the controller owned admission, the stage then admits every event
/// that fits into the queue.
///
/// # Examples
/// This controller allows one servlet, and one more for each hundred queued events, up to eight in
/// total:
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

    /// Returns the settings that the controller owns. The stage ignores any other setting that
    /// [`sample`](Self::sample) returns.
    fn owns(&self) -> Owns;

    /// Returns how often the stage passes a sample to the controller.
    fn cadence(&self) -> Cadence;

    /// Returns whether the controller reads the response times in [`ClassSample`]. If this method
    /// returns false, the response times in the controller's samples are zero.
    fn looks_at_responses(&self) -> bool {
        false
    }

    /// Returns whether the stage must currently call [`on_dequeue`](Self::on_dequeue). The stage
    /// checks this condition once per batch.
    fn looks_at_departures(&self) -> bool {
        true
    }

    /// Receives a sample, and returns the settings to change. `now_ns` is the time in nanoseconds
    /// since the process created its first network.
    fn sample(&mut self, sample: &Sample<'_>, now_ns: u64) -> Settings;

    /// Returns how the stage treats queued events while the handlers of all its busy servlets are
    /// waiting. The stage calls this method initially and after each sample, and only on the
    /// controller that owns [`Owns::SERVLETS`].
    fn while_all_wait(&self) -> WhileAllWait {
        WhileAllWait::Hold
    }

    /// Returns the controller's current admission rule for events of `class`. The log shows this
    /// rule. The stage calls this method before and after each sample, and only on the controller
    /// that owns [`Owns::ADMISSION`].
    fn rule(&self, _class: Class) -> Rule {
        Rule::All
    }

    /// Returns the latency target that the controller currently aims for, if it has one. The
    /// effective target can exceed the configured target. The stage calls this method before and
    /// after each sample and for its statistics, and only on the controller that owns
    /// [`Owns::ADMISSION`].
    fn effective_target(&self) -> Option<Duration> {
        None
    }

    /// Returns the number of events that the controller would have rejected or shed if it had not
    /// been in [observe mode](Mode::Observe). The stage calls this method only on the controller
    /// that owns [`Owns::ADMISSION`].
    fn would_reject(&self) -> u64 {
        0
    }

    /// Decides whether to admit an arriving event. The stage calls this method only on the
    /// controller that owns [`Owns::ADMISSION`], and only for events that fit into the queue.
    ///
    /// A sender of many events may request admission for several events of one class in advance,
    /// and then send fewer. The controller may therefore admit events that never arrive.
    fn on_enqueue(&mut self, _arrival: &Arrival) -> Admission {
        Admission::Admit
    }

    /// Returns the number of events to admit in one step, at most `most`. The parameter `most` is
    /// the number of arriving events, and `first` describes the first of them. Each event costs one
    /// credit, and its sender has set no cohort.
    ///
    /// The stage calls [`on_enqueue`](Self::on_enqueue) for each of the remaining events. The
    /// default implementation returns 0, so the stage calls `on_enqueue` for every event. The
    /// returned number must not include an event that `on_enqueue` would reject.
    fn on_enqueue_many(&mut self, _first: &Arrival, _most: u64) -> u64 {
        0
    }

    /// Returns whether a queued event is overdue, that is, whether [`on_dequeue`](Self::on_dequeue)
    /// would shed the event if the event left the queue now. The stage sheds an overdue event
    /// without waiting for a servlet to take it. If an event is overdue, every event of its class
    /// that has been queued for longer must also be overdue.
    ///
    /// The stage calls this method while [`looks_at_departures`](Self::looks_at_departures) returns
    /// true. Each time a servlet takes events, the stage calls this method for the oldest event of
    /// every class except class 0. At each sample, the stage also calls this method with a sojourn
    /// time of `u64::MAX`. If the call with `u64::MAX` returns true, the stage also checks the
    /// oldest event of each class every 25 ms. Keyed stages never call this method.
    fn is_overdue(&self, _departure: &Departure) -> bool {
        false
    }

    /// Decides whether to serve an event that leaves the queue. The stage calls this method only on
    /// the controller that owns [`Owns::ADMISSION`].
    fn on_dequeue(&mut self, _departure: &Departure) -> Verdict {
        Verdict::Serve
    }
}

/// A set of settings.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Owns(u8);

impl Owns {
    /// No settings: the controller only observes.
    pub const NOTHING: Owns = Owns(0);
    /// The limit on the number of busy servlets.
    pub const SERVLETS: Owns = Owns(1);
    /// The maximum number of events in a batch.
    pub const BATCH: Owns = Owns(2);
    /// Admission: the threshold and the order of the queue, and the decisions about arriving and
    /// departing events ([`Controller::on_enqueue`] and [`Controller::on_dequeue`]).
    pub const ADMISSION: Owns = Owns(4);
    /// The minimum time between two consecutive reads, across all sockets of a set; see
    /// [`Sockets::control_reads`](super::net::Sockets::control_reads).
    pub const PACE: Owns = Owns(8);
    /// The maximum number of bytes in the write queue of each socket; see
    /// [`Sockets::control_writes`](super::net::Sockets::control_writes).
    pub const OUTGOING: Owns = Owns(16);

    /// The settings that the controllers of a stage can decide.
    pub(crate) const STAGE: Owns = Owns(7);

    /// Returns whether the set contains every setting in `other`.
    #[must_use]
    pub fn has(self, other: Owns) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the settings that are in both sets.
    #[must_use]
    pub fn both(self, other: Owns) -> Owns {
        Owns(self.0 & other.0)
    }

    /// Returns the settings that are in this set but not in `other`.
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

/// The conditions under which a controller receives a sample. The interval must have elapsed since
/// the last sample, and at least one of the two event counts must have been reached. A count of
/// zero is ignored. If both counts are zero, only the interval matters, and it is at least 1 ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cadence {
    /// The minimum time between two samples, in nanoseconds.
    pub interval_ns: u64,
    /// The minimum number of events that arrive between two samples.
    pub arrived: u64,
    /// The minimum number of events, including failed ones, that finish between two samples.
    pub finished: u64,
}

impl Cadence {
    /// Returns a cadence of one sample per interval; `interval_ns` is in nanoseconds.
    #[must_use]
    pub const fn every_ns(interval_ns: u64) -> Self {
        Self {
            interval_ns,
            arrived: 0,
            finished: 0,
        }
    }
}

/// The changes that a controller requests. `None` leaves a setting unchanged. The stage clamps each
/// value to its range.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Settings {
    /// The limit on the number of busy servlets; from one to `Servlets::max`.
    pub servlets: Option<usize>,
    /// The maximum number of events in a batch; from one to the maximum set for the stage.
    pub batch: Option<usize>,
    /// The maximum number of credits in the queue; from one to the maximum set for the stage.
    pub threshold: Option<u64>,
    /// The order in which events of one class are served.
    pub order: Option<Order>,
    /// The minimum time between two consecutive reads, in nanoseconds, across all sockets of a set;
    /// 0 for no minimum.
    pub pace_ns: Option<u64>,
    /// The maximum number of bytes in the write queue of each socket; at most the bound in the
    /// sockets' options.
    pub outgoing_max: Option<u64>,
    /// The reason for the change, if the numbers in the sample do not show it.
    pub why: Why,
}

/// The treatment of queued events while the limit on busy servlets is reached and the handlers of
/// all busy servlets are waiting. A handler that has waited counts as waiting until its batch ends.
/// A handler that waits only for a worker, or for capacity in another stage's queue, does not count
/// as waiting.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WhileAllWait {
    /// The events stay in the queue until a servlet finishes its batch.
    #[default]
    Hold,
    /// If no event ends for 100 ms, or for eight times the mean service time if that is longer, the
    /// stage uses more servlets than the limit allows. Without the additional servlets, handlers
    /// that wait for queued events could wait forever.
    BeginLater,
    /// If no event ends for 5 ms, or for eight times the mean computing time if that is longer, the
    /// stage uses more servlets than the limit allows. Choose this variant if the limit serves only
    /// to share the workers: a waiting handler occupies no worker. In a blocking stage, the time is
    /// always 5 ms, because such a stage cannot measure how long its handlers compute.
    BeginSoon,
}

/// The order in which the events of one class leave the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Order {
    /// Oldest first.
    #[default]
    Fifo,
    /// Newest first. In a keyed stage, this order applies among keys, never within a key.
    Lifo,
}
