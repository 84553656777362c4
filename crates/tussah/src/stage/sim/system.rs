//! Simulations of several stages: chains, fan-out and cycles with retries, resources that stages
//! share, and clients that time out, retry and leave.
//!
//! A system has the same kinds of parts as a [`Simulation`](super::Simulation), but any number of
//! stages, which share the CPUs. The model of a handler is a list of [steps](Step).
//!
//! # Examples
//! In this example, a web stage calls a backend stage, which has eight connections to a database.
//! Clients give up after 200 ms and retry twice. The load is 1.4 times the capacity:
//! ```
//! use std::time::Duration;
//! use tussah::stage::control::AutoTarget;
//! use tussah::stage::sim::system::{Backoff, Clients, SimStage, Step, System};
//! use tussah::stage::sim::{Arrivals, Distribution, EventEnd};
//!
//! let ms = |ms: f64| Distribution::Exponential(ms * 1e6);
//! let system = System {
//!     until_ns: 2_000_000_000,
//!     resources: vec![vec![(0, 8)]],
//!     stages: vec![
//!         SimStage::new(vec![Step::Compute(ms(0.1)), Step::Call(vec![1], Backoff::never())]),
//!         SimStage::new(vec![Step::Hold(0, ms(10.0))]),
//!     ],
//!     clients: vec![Clients {
//!         arrivals: Arrivals::steps(&[(0, 1120.0)]),
//!         timeout_ns: 200_000_000,
//!         backoff: Backoff { retries: 2, ..Backoff::never() },
//!         ..Clients::default()
//!     }],
//!     ..System::default()
//! };
//! let auto = |_| vec![Box::new(AutoTarget::new(Duration::from_millis(100))) as _];
//! let mut served = 0;
//! system.run(auto, 1, |outcome| served += u32::from(outcome.end == EventEnd::Served));
//! assert!(served > 1_200, "{served}");
//! ```

#[cfg(test)]
mod tests;

use super::engine::Engine;
use super::{Arrivals, Distribution, Outcome, Service};
use crate::stage::control::Controller;

/// A set of stages with their resources and their clients. Times are in nanoseconds of virtual time
/// since the start of the run.
#[derive(Clone, PartialEq, Debug)]
pub struct System {
    /// The end of the run. Requests that are open at the end of the run have no outcome.
    pub until_ns: u64,
    /// The number of CPUs, which is also the number of workers; at least 1.
    pub workers: usize,
    /// True if the stages are blocking: their servlets are OS threads.
    pub blocking: bool,
    /// The stages. Steps and clients refer to a stage by its index.
    pub stages: Vec<SimStage>,
    /// The resources. Each entry of a resource holds a start time and the number of permits from
    /// then on; before the first entry, permits are unlimited. Steps refer to a resource by its
    /// index.
    pub resources: Vec<Vec<(u64, usize)>>,
    /// True if the resources are [`Limit`](crate::sync::Limit)s, so that a stage knows which of its
    /// servlets wait for a permit.
    pub limits: bool,
    /// The clients.
    pub clients: Vec<Clients>,
    /// The speeds of the CPUs. Each entry holds a start time and the speed that applies from then
    /// on. The initial speed is 1.0; all CPU times are specified for this speed.
    pub speeds: Vec<(u64, f64)>,
    /// The CPU time for rejecting or shedding an event, in nanoseconds. Rejections take precedence
    /// over all other work that waits for a CPU.
    pub rejection_ns: u64,
}

impl Default for System {
    /// A system with two workers that runs for one second, without stages or clients.
    fn default() -> Self {
        Self {
            until_ns: 1_000_000_000,
            workers: 2,
            blocking: false,
            stages: Vec::new(),
            resources: Vec::new(),
            limits: false,
            clients: Vec::new(),
            speeds: Vec::new(),
            rejection_ns: 0,
        }
    }
}

/// A stage of a [`System`].
#[derive(Clone, PartialEq, Debug)]
pub struct SimStage {
    /// The handler's steps for each event. Each entry holds a start time and the steps that apply
    /// from then on.
    pub steps: Vec<(u64, Vec<Step>)>,
    /// The initial limit on the number of busy servlets; at least 1.
    pub servlets: usize,
    /// The highest value to which controllers can set the limit on busy servlets; at least 1.
    pub servlets_max: usize,
    /// The maximum number of events in a batch; at least 1.
    pub batch_max: usize,
    /// The maximum number of events in the queue; at least 1.
    pub queue_max: u64,
    /// The shares of up to 8 classes. If this list is empty, events are served in order of class
    /// priority.
    pub class_shares: Vec<u32>,
    /// True if the stage is keyed by color. In a keyed stage, while a hot event is in service,
    /// servlets take only events that are not hot, so no servlet waits for the color.
    pub keyed: bool,
    /// The factor by which degradation multiplies the CPU time of an event. Use 1.0 for a stage
    /// without a degradation function.
    pub degraded: f64,
    /// True if the handler skips events whose client no longer waits for the answer.
    pub skips_abandoned: bool,
    /// True if a servlet also waits until all events that descend from its event have ended, as in
    /// a stage built with [`whole_path`](crate::stage::StageBuilder::whole_path).
    pub whole_path: bool,
}

impl SimStage {
    /// Creates a stage whose handler takes one event at a time, and performs `steps` for each. The
    /// stage has at most 1,000 busy servlets, and its queue holds at most 10,000 events.
    #[must_use]
    pub fn new(steps: Vec<Step>) -> Self {
        Self {
            steps: vec![(0, steps)],
            servlets: 1000,
            servlets_max: 1000,
            batch_max: 1,
            queue_max: 10_000,
            class_shares: Vec::new(),
            keyed: false,
            degraded: 1.0,
            skips_abandoned: false,
            whole_path: false,
        }
    }
}

/// A step of a handler.
#[derive(Clone, PartialEq, Debug)]
pub enum Step {
    /// Does the work that was planned for the request when it arrived ([`Clients::services`]): uses
    /// a CPU, holds a permit of the first resource, waits, and perhaps fails.
    Serve,
    /// Uses a CPU for this time.
    Compute(Distribution),
    /// Waits without using a CPU.
    Wait(Distribution),
    /// Waits for a permit of the resource with this index, holds the permit for some time without
    /// using a CPU, and returns the permit. Permits are granted in order of request.
    Hold(usize, Distribution),
    /// Fails the event with this probability. A failed event skips its remaining steps.
    Fail(f64),
    /// Sends one event to each of these stages, and does not wait until the events have been
    /// handled. An event that a stage refuses is lost.
    Send(Vec<usize>),
    /// Forwards the request to this stage, which answers it. If the stage refuses the request, the
    /// client gets a rejection.
    Forward(usize),
    /// Calls these stages concurrently, and waits until all calls have ended. If any call is
    /// refused or shed, or fails, the whole step is retried as [`Backoff`] specifies, including the
    /// calls that succeeded. If the last retry also fails, the event fails.
    Call(Vec<usize>, Backoff),
}

/// The rule for the retries of a caller or a client.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Backoff {
    /// The maximum number of retries, not including the first attempt.
    pub retries: u32,
    /// The delay before the first retry, in nanoseconds.
    pub first_ns: u64,
    /// The factor by which the delay grows with each further retry; 1.0 for a constant delay.
    pub factor: f64,
    /// The maximum fraction, from 0.0 to 1.0, by which each delay is randomly shortened.
    pub jitter: f64,
}

impl Backoff {
    /// Creates a rule without retries.
    #[must_use]
    pub fn never() -> Self {
        Self {
            retries: 0,
            first_ns: 0,
            factor: 1.0,
            jitter: 0.0,
        }
    }

    /// Returns the time before the retry with this number, counted from 0. `unit` is a random
    /// number from 0 to 1.
    pub(super) fn before_ns(&self, retry: u32, unit: f64) -> u64 {
        let exponent = i32::try_from(retry).unwrap_or(i32::MAX);
        let ns = self.first_ns as f64 * self.factor.powi(exponent);
        (ns * (1.0 - self.jitter * unit)) as u64 // saturates
    }
}

/// Clients of one kind, which send requests to a stage.
#[derive(Clone, PartialEq, Debug)]
pub struct Clients {
    /// The index of the stage that receives the requests.
    pub stage: usize,
    /// The clients and the times of their requests. Each client in an open loop sends one request.
    pub arrivals: Arrivals,
    /// The work of each request in the step [`Serve`](Step::Serve). Each entry holds a start time
    /// and the work of requests that arrive from then on.
    pub services: Vec<(u64, Service)>,
    /// The time after which a client stops waiting for an answer; `u64::MAX` for never. After this
    /// timeout, stages continue to work on the client's request unless they
    /// [skip](SimStage::skips_abandoned) abandoned requests.
    pub timeout_ns: u64,
    /// The rule for retries after a rejection, a failure or a timeout. A client that has used all
    /// its retries leaves. After a rejection, the client waits for the delay of this rule or for
    /// [`Arrivals::retry_ns`], whichever is longer.
    pub backoff: Backoff,
}

impl Default for Clients {
    /// No clients. If clients are added, they send to the first stage, never time out and never
    /// retry.
    fn default() -> Self {
        Self {
            stage: 0,
            arrivals: Arrivals::default(),
            services: Vec::new(),
            timeout_ns: u64::MAX,
            backoff: Backoff::never(),
        }
    }
}

/// The counters of a stage at the end of a run, in events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StageTotals {
    /// The number of events offered to the stage.
    pub arrived: u64,
    /// The number of events that the stage refused or shed.
    pub rejected: u64,
    /// The number of events that were handled, including failed events.
    pub handled: u64,
    /// The number of handled events that failed.
    pub failed: u64,
    /// The number of events that were handled for clients that no longer waited.
    pub wasted: u64,
}

impl System {
    /// Runs the system, and calls `tell` with the outcome of each request. For each stage,
    /// `controllers` receives the stage's index and returns the stage's controllers. Returns the
    /// counters of each stage.
    ///
    /// Two runs with the same seed are identical.
    ///
    /// # Panics
    /// Panics if a step or a client refers to a stage or a resource that does not exist.
    pub fn run(
        &self,
        controllers: impl FnMut(usize) -> Vec<Box<dyn Controller>>,
        seed: u64,
        tell: impl FnMut(&Outcome),
    ) -> Vec<StageTotals> {
        let mut engine = Engine::new(self, controllers, seed, tell);
        engine.run(u64::MAX);
        engine.into_totals()
    }
}
