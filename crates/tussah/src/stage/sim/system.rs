//! A simulator of several stages: chains, fan-out and cycles with retries, resources that stages
//! share, and clients that time out, retry and leave.
//!
//! As in [`Simulation`](super::Simulation), the queues, the admission, the accounting of servlets
//! and the controllers are the code of real stages, on a virtual clock. All stages share the CPUs.
//! A handler takes one event at a time, and its model is a list of [steps](Step).
//!
//! # Examples
//! A web stage calls a backend stage, which has eight connections to a database. Clients give up
//! after 200 ms and retry twice. The load is 1.4 times the capacity:
//! ```
//! use std::time::Duration;
//! use tussah::stage::control::AutoTarget;
//! use tussah::stage::sim::Distribution;
//! use tussah::stage::sim::system::{Clients, RequestEnd, Backoff, SimStage, Step, System};
//!
//! let ms = |ms: f64| Distribution::Exponential(ms * 1e6);
//! let system = System {
//!     until_ns: 2_000_000_000,
//!     resources: vec![8],
//!     stages: vec![
//!         SimStage::new(vec![Step::Compute(ms(0.1)), Step::Call(vec![1], Backoff::never())]),
//!         SimStage::new(vec![Step::Hold(0, ms(10.0))]),
//!     ],
//!     clients: vec![Clients {
//!         rates: vec![(0, 1120.0)],
//!         timeout_ns: 200_000_000,
//!         backoff: Backoff { retries: 2, ..Backoff::never() },
//!         ..Clients::default()
//!     }],
//!     ..System::default()
//! };
//! let auto = |_| vec![Box::new(AutoTarget::new(Duration::from_millis(100))) as _];
//! let mut answered = 0;
//! system.run(auto, 1, |outcome| answered += u32::from(outcome.end == RequestEnd::Answered));
//! assert!(answered > 1_200, "{answered}");
//! ```

mod engine;
mod servlet;
#[cfg(test)]
mod tests;

use super::Distribution;
use crate::stage::control::Controller;

/// A set of stages with their resources and their clients. Times are in nanoseconds of virtual time
/// since the start of the run.
#[derive(Clone, PartialEq, Debug)]
pub struct System {
    /// The end of the run. Requests that are still open then have no outcome.
    pub until_ns: u64,
    /// The number of CPUs, which is also the number of workers; at least 1.
    pub workers: usize,
    /// The stages. Steps and clients refer to a stage by its index.
    pub stages: Vec<SimStage>,
    /// The number of permits of each resource. Steps refer to a resource by its index.
    pub resources: Vec<usize>,
    /// The clients.
    pub clients: Vec<Clients>,
}

impl Default for System {
    /// Two workers for one second, without stages or clients.
    fn default() -> Self {
        Self {
            until_ns: 1_000_000_000,
            workers: 2,
            stages: Vec::new(),
            resources: Vec::new(),
            clients: Vec::new(),
        }
    }
}

/// A stage of a [`System`].
#[derive(Clone, PartialEq, Debug)]
pub struct SimStage {
    /// The steps of the handler for each event, each entry from its start time on.
    pub steps: Vec<(u64, Vec<Step>)>,
    /// The maximum number of servlets that may be busy at the same time, which is also the initial
    /// number; at least 1.
    pub servlets_max: usize,
    /// The maximum number of events in the queue; at least 1.
    pub queue_max: u64,
    /// True if the handler skips events whose client has left.
    pub skips_abandoned: bool,
}

impl SimStage {
    /// Creates a stage with up to 1,000 servlets and 10,000 queued events, whose handler always
    /// takes the same steps.
    #[must_use]
    pub fn new(steps: Vec<Step>) -> Self {
        Self {
            steps: vec![(0, steps)],
            servlets_max: 1000,
            queue_max: 10_000,
            skips_abandoned: false,
        }
    }
}

/// A step of a handler.
#[derive(Clone, PartialEq, Debug)]
pub enum Step {
    /// Computes.
    Compute(Distribution),
    /// Waits, and needs no CPU in the meantime.
    Wait(Distribution),
    /// Waits for a permit of the resource with this index, holds it for some time without a CPU,
    /// and returns it. Permits are granted in order of request.
    Hold(usize, Distribution),
    /// Ends the event as failed, with this probability.
    Fail(f64),
    /// Sends one event to each of these stages, and does not wait for them. An event that a stage
    /// refuses is lost.
    Send(Vec<usize>),
    /// Hands the request on to this stage, which answers it. If the stage refuses it, the request
    /// is rejected.
    Forward(usize),
    /// Calls each of these stages at the same time, and waits until all calls have ended. If one of
    /// them was refused, shed or failed, the step is repeated as the back-off says. After the last
    /// retry, the event has failed.
    Call(Vec<usize>, Backoff),
}

/// The rule by which a caller or a client retries.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Backoff {
    /// The maximum number of retries of a request.
    pub retries: u32,
    /// The time before the first retry, in nanoseconds.
    pub first_ns: u64,
    /// The factor by which each further time is longer; 1.0 for equal times.
    pub factor: f64,
    /// The part of each time, from 0.0 to 1.0, that is multiplied by a random number from 0 to 1.
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
    fn before_ns(&self, retry: u32, unit: f64) -> u64 {
        let exponent = i32::try_from(retry).unwrap_or(i32::MAX);
        let ns = self.first_ns as f64 * self.factor.powi(exponent);
        (ns * (1.0 - self.jitter * unit)) as u64 // saturates
    }
}

/// Clients of one kind. Each sends requests to a stage.
#[derive(Clone, PartialEq, Debug)]
pub struct Clients {
    /// The index of the stage that receives the requests.
    pub stage: usize,
    /// The rates of new clients, each of which makes one request. Each entry holds a start time and
    /// the number of clients per second from then on.
    pub rates: Vec<(u64, f64)>,
    /// The number of clients in a closed loop. Each makes its next request when the last one has
    /// ended and its pause is over.
    pub closed: u32,
    /// The pause of a client in a closed loop.
    pub pause: Distribution,
    /// The time after which a client stops waiting for an answer; `u64::MAX` for never. The work on
    /// its request goes on.
    pub timeout_ns: u64,
    /// The retries after a rejection, a failure or a timeout. A client without retries left leaves.
    pub backoff: Backoff,
    /// The `Retry-After` of a rejection, in nanoseconds, for clients that obey it: they retry after
    /// this time, or after that of the back-off if it is longer.
    pub retry_after_ns: u64,
}

impl Default for Clients {
    /// No clients. They would send to the first stage, wait forever and never retry.
    fn default() -> Self {
        Self {
            stage: 0,
            rates: Vec::new(),
            closed: 0,
            pause: Distribution::Constant(0.0),
            timeout_ns: u64::MAX,
            backoff: Backoff::never(),
            retry_after_ns: 0,
        }
    }
}

/// The outcome of a client's request, retries included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestOutcome {
    /// The index of the client's kind.
    pub clients: usize,
    /// The number of attempts; at least 1.
    pub attempts: u32,
    /// The time of the first attempt.
    pub begun_ns: u64,
    /// The time of the last attempt.
    pub last_ns: u64,
    /// The time at which the client had its answer, or left.
    pub ended_ns: u64,
    /// The end of the last attempt.
    pub end: RequestEnd,
}

/// The end of a client's request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestEnd {
    /// The client got its answer.
    Answered,
    /// The answer was a failure.
    Failed,
    /// A stage refused or shed the request.
    Rejected,
    /// The client did not wait any longer.
    TimedOut,
}

/// The counters of a stage at the end of a run, in events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StageTotals {
    /// The number of events offered to the stage.
    pub arrived: u64,
    /// The number of events that the stage refused or shed.
    pub rejected: u64,
    /// The number of events that were handled, failed ones included.
    pub handled: u64,
    /// The number of handled events that failed.
    pub failed: u64,
    /// The number of events that were handled for a client that had left.
    pub wasted: u64,
}

impl System {
    /// Runs the system, and calls `tell` with the outcome of each request. `controllers` returns
    /// the controllers of the stage with this index. Returns the counters of the stages.
    ///
    /// Two runs with the same seed are identical.
    ///
    /// # Panics
    /// Panics if a step or a client refers to a stage or a resource that does not exist.
    pub fn run(
        &self,
        controllers: impl FnMut(usize) -> Vec<Box<dyn Controller>>,
        seed: u64,
        tell: impl FnMut(&RequestOutcome),
    ) -> Vec<StageTotals> {
        engine::Engine::new(self, controllers, seed, tell).run()
    }
}
