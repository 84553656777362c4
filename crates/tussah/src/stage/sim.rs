//! A simulator of one stage, for controllers: what is shipped on a virtual clock, and handlers that are models.
//!
//! The queue, the admission, the accounting of servlets and the controllers are those of a real stage; nothing of them is modelled. Modelled are:
//!
//! - **arrivals**: a Poisson process whose rate changes at given times, and bursts;
//! - **the handler**: it takes the events of its batch one by one, computes for each, and then may wait for each, without a CPU; a batch is
//!   answered when it ends;
//! - **CPUs**: in an async stage, servlets that are ready take turns in the order in which they became ready, and each keeps its CPU until it waits or has ended
//!   its run of batches, as threads of a runtime do; in a blocking stage all servlets that compute share the CPUs evenly, as OS threads do
//!   (processor sharing);
//! - **a color**: *hot* events are handled one at a time, their waits included; a servlet whose event has to wait for that computes nothing.
//!
//! Two runs with the same seed are the same, and two controllers with the same seed see the same arrivals with the same
//! service times.
//!
//! # Examples
//! How long is the queue of a stage at 80 % of what it can do, and at twice that?
//! ```
//! use tussah::stage::control::Threshold;
//! use tussah::stage::sim::{Arrivals, End, Service, Simulation, Time};
//!
//! let simulation = Simulation {
//!     until_ns: 400_000_000,
//!     arrivals: Arrivals::steps(&[(0, 16_000.0), (200_000_000, 40_000.0)]),
//!     services: vec![(0, Service::computing(Time::Exponential(100_000.0)))],
//!     ..Simulation::default()
//! };
//! let (mut served, mut rejected) = (0, 0);
//! let ticks = simulation.run(vec![Box::new(Threshold::new(50))], 1, |outcome| match outcome.end {
//!     End::Served => served += 1,
//!     _ => rejected += 1,
//! });
//! assert!((6_000..7_300).contains(&served) && rejected > 3_000);
//! assert!(ticks[..19].iter().all(|tick| tick.queue_len <= 50));
//! assert!(ticks[25..].iter().any(|tick| tick.queue_len >= 45));
//! ```

mod cpus;
mod engine;
mod plan;
mod random;
mod servlet;
#[cfg(test)]
mod tests;

pub use self::plan::{Plan, Planned};
pub use self::random::{Random, Time};

use super::control::Controller;
use super::event::Class;

/// A stage, and what happens to it. Times are in nanoseconds of virtual time, from the beginning of the run.
#[derive(Clone, PartialEq, Debug)]
pub struct Simulation {
    /// When the run ends; what is queued or in service then has no outcome.
    pub until_ns: u64,
    /// How many CPUs there are, and as many workers; at least one.
    pub workers: usize,
    /// Whether servlets are OS threads.
    pub blocking: bool,
    /// Whether the stage is keyed by color instead of having handlers wait for each other: then servlets take only what is not hot, while a hot event is
    /// in service.
    pub keyed: bool,
    /// How many servlets may be at work at once in the beginning; at least one.
    pub servlets: usize,
    /// How many at most.
    pub servlets_max: usize,
    /// The most events in a batch; at least one.
    pub batch_max: usize,
    /// The most events in the queue; at least one.
    pub queue_max: u64,
    /// What arrives.
    pub arrivals: Arrivals,
    /// What events take that arrive from a time on.
    pub services: Vec<(u64, Service)>,
    /// How fast the CPUs are from a time on; 1.0 is as fast as `services` say, and how they begin.
    pub speeds: Vec<(u64, f64)>,
    /// What a rejection takes of a CPU, also that of an event which is shed, in nanoseconds. Rejections come before everything else that waits for a CPU.
    pub rejection_ns: u64,
    /// What part of its computing a degraded event takes; 1.0 stands for a stage without a degradation hook.
    pub degraded: f64,
    /// How far apart the ticks are that [`run`](Self::run) returns; at least one.
    pub tick_ns: u64,
}

impl Default for Simulation {
    /// An async stage with two workers, and the bounds that a stage has unless it is built otherwise, that nothing happens to for a second.
    fn default() -> Self {
        Self {
            until_ns: 1_000_000_000,
            workers: 2,
            blocking: false,
            keyed: false,
            servlets: 2,
            servlets_max: 1000,
            batch_max: 100,
            queue_max: 1024,
            arrivals: Arrivals::default(),
            services: vec![(0, Service::computing(Time::Constant(100_000.0)))],
            speeds: Vec::new(),
            rejection_ns: 0,
            degraded: 1.0,
            tick_ns: 10_000_000,
        }
    }
}

/// What arrives at a stage.
#[derive(Clone, PartialEq, Debug)]
pub struct Arrivals {
    /// Arrivals a second from a time on.
    pub rates: Vec<(u64, f64)>,
    /// How many arrive at once, and when.
    pub bursts: Vec<(u64, u32)>,
    /// How likely each class is, as weights; at most as many as a stage may have classes.
    pub classes: Vec<f64>,
    /// How many users there are, each as likely as the next; at least one.
    pub users: u16,
    /// Whether the stage is told who the user is, as the event's cohort.
    pub cohorts: bool,
}

impl Default for Arrivals {
    /// Nothing arrives; what would is of one class and one of 16 users that the stage is not told.
    fn default() -> Self {
        Self {
            rates: Vec::new(),
            bursts: Vec::new(),
            classes: vec![1.0],
            users: 16,
            cohorts: false,
        }
    }
}

impl Arrivals {
    /// Arrivals of one class with these rates a second, each from a time on.
    #[must_use]
    pub fn steps(rates: &[(u64, f64)]) -> Self {
        Self {
            rates: rates.to_vec(),
            ..Self::default()
        }
    }
}

/// What a handler does for an event: it computes, and then it may wait.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Service {
    /// How long it computes for an event.
    pub compute: Time,
    /// What it computes for each batch besides, in nanoseconds.
    pub batch_ns: u64,
    /// How long it waits for an event.
    pub wait: Time,
    /// What share of the events it waits for.
    pub wait_share: f64,
    /// What share of the events is hot: handled one at a time.
    pub hot_share: f64,
    /// What share of the events fails, after waiting for `timeout_ns`.
    pub fail_share: f64,
    /// How long an event takes to fail, in nanoseconds.
    pub timeout_ns: u64,
}

impl Service {
    /// A handler that only computes.
    #[must_use]
    pub fn computing(compute: Time) -> Self {
        Self {
            compute,
            batch_ns: 0,
            wait: Time::Constant(0.0),
            wait_share: 0.0,
            hot_share: 0.0,
            fail_share: 0.0,
            timeout_ns: 0,
        }
    }
}

/// What became of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Its class.
    pub class: Class,
    /// Its user.
    pub user: u16,
    /// Whether it was hot.
    pub hot: bool,
    /// When it arrived.
    pub arrived_ns: u64,
    /// When it was answered or rejected.
    pub ended_ns: u64,
    /// How it ended.
    pub end: End,
}

impl Outcome {
    /// The time from its arrival to its end, in nanoseconds.
    #[must_use]
    pub fn response_ns(&self) -> u64 {
        self.ended_ns - self.arrived_ns
    }
}

/// How an event ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// Its batch ended.
    Served,
    /// Its batch ended, but it had failed.
    Failed,
    /// It was not let into the queue.
    Rejected,
    /// It was taken out of the queue and dropped.
    Shed,
}

/// How the stage is at one time, and what happened in the time of a tick before.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Tick {
    /// When.
    pub at_ns: u64,
    /// Events in the queue.
    pub queue_len: u64,
    /// How many servlets may be at work.
    pub servlets: usize,
    /// How many servlets are at work.
    pub busy: usize,
    /// The most events that a batch may have.
    pub batch: usize,
    /// The threshold of the queue.
    pub threshold: u64,
    /// Events that arrived.
    pub arrived: u64,
    /// Events that were not let in or were dropped.
    pub rejected: u64,
    /// Events that were answered.
    pub served: u64,
    /// The mean response of those, in nanoseconds; 0 if there are none.
    pub response_mean_ns: u64,
    /// The longest response of those, in nanoseconds.
    pub response_max_ns: u64,
}

impl Simulation {
    /// What arrives, and what it takes: the same for one seed, whoever controls the stage.
    #[must_use]
    pub fn plan(&self, seed: u64) -> Plan<'_> {
        Plan::new(self, seed)
    }

    /// Runs the stage with these controllers; `tell` is told of each event as it ends. What no controller owns stays as it is in the beginning.
    pub fn run(
        &self,
        controllers: Vec<Box<dyn Controller>>,
        seed: u64,
        tell: impl FnMut(&Outcome),
    ) -> Vec<Tick> {
        engine::Engine::new(self, controllers, seed, tell).run()
    }
}
