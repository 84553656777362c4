//! A simulator of stages, for testing controllers: real stages on a virtual clock, with models of
//! their handlers.
//!
//! A [`Simulation`] has one stage, whose handler is a [`Service`]. A [`System`] has several stages;
//! each of its handlers is modeled by a list of [steps](system::Step). Both kinds of simulation run
//! on the same engine.
//!
//! Queues, admission, controllers and the accounting of servlets use the code of real stages. Only
//! these parts are models:
//!
//! - **[arrivals](Arrivals)**: a Poisson process whose rate changes at given times, bursts, and
//!   clients that wait for each response;
//! - **the handler**: it takes the events of its batch one by one. For each event, the handler uses
//!   a CPU, and may then wait without using one. All events of a batch are answered when the batch
//!   ends;
//! - **CPUs**: in an async stage, ready servlets take turns in the order in which they became
//!   ready. Like a thread of a runtime, each servlet keeps its CPU until it waits or its run of
//!   batches ends. In a blocking stage, servlets are OS threads, and all servlets that need a CPU
//!   share the CPUs evenly (processor sharing);
//! - **a color**: *hot* events are handled one at a time, including their waits. A servlet that
//!   waits for the color uses no CPU.
//!
//! Two runs with the same seed are identical. Runs with the same seed but different controllers
//! have the same arrivals and planned service times. Only retries, and events of clients in a
//! closed loop, depend on the responses.
//!
//! # Examples
//! This example measures the queue length of a stage at 80 % of its capacity, and at twice its
//! capacity:
//! ```
//! use tussah::stage::control::policy::Threshold;
//! use tussah::stage::sim::{Arrivals, Distribution, EventEnd, Service, Simulation};
//!
//! let simulation = Simulation {
//!     until_ns: 400_000_000,
//!     arrivals: Arrivals::steps(&[(0, 16_000.0), (200_000_000, 40_000.0)]),
//!     services: vec![(0, Service::computing(Distribution::Exponential(100_000.0)))],
//!     ..Simulation::default()
//! };
//! let (mut served, mut rejected) = (0, 0);
//! let ticks = simulation.run(vec![Box::new(Threshold::new(50))], 1, |outcome| match outcome.end {
//!     EventEnd::Served => served += 1,
//!     _ => rejected += 1,
//! });
//! assert!((6_000..7_300).contains(&served) && rejected > 3_000);
//! assert!(ticks[..19].iter().all(|tick| tick.queue_len <= 50));
//! assert!(ticks[25..].iter().any(|tick| tick.queue_len >= 45));
//! ```

mod clients;
mod cpus;
mod engine;
mod path;
mod plan;
mod random;
mod servlet;
mod stage;
mod steps;
pub mod system;
#[cfg(test)]
mod tests;

pub use self::plan::{Planned, Schedule};
pub use self::random::{Distribution, Random};

use self::engine::Engine;
use self::system::{Clients, SimStage, Step, System};
use super::control::Controller;
use super::event::Class;

/// A simulated stage with its load and its handler. Times are in nanoseconds of virtual time since
/// the start of the run.
#[derive(Clone, PartialEq, Debug)]
pub struct Simulation {
    /// The end of the run. Events that are queued or in service at the end of the run have no
    /// outcome.
    pub until_ns: u64,
    /// The number of CPUs, which is also the number of workers; at least 1.
    pub workers: usize,
    /// True if the stage is blocking: its servlets are OS threads.
    pub blocking: bool,
    /// True if the stage is keyed by color. In a keyed stage, while a hot event is in service,
    /// servlets take only events that are not hot, so no servlet waits for the color.
    pub keyed: bool,
    /// The initial limit on the number of busy servlets; at least 1.
    pub servlets: usize,
    /// The highest value to which controllers can set the limit on busy servlets.
    pub servlets_max: usize,
    /// The maximum number of events in a batch; at least 1.
    pub batch_max: usize,
    /// The maximum number of events in the queue; at least 1.
    pub queue_max: u64,
    /// The arrivals.
    pub arrivals: Arrivals,
    /// The models of the handler. Each entry holds a start time and the model that applies from
    /// then on.
    pub services: Vec<(u64, Service)>,
    /// The speeds of the CPUs. Each entry holds a start time and the speed that applies from then
    /// on. The initial speed is 1.0; the CPU times in `services` are specified for this speed.
    pub speeds: Vec<(u64, f64)>,
    /// The number of permits of a resource. Each entry holds a start time and the number of permits
    /// from then on; before the first entry, permits are unlimited. The handler
    /// [holds](Service::hold) one permit for each event.
    pub permits: Vec<(u64, usize)>,
    /// True if the permits are those of a [`Limit`](crate::sync::Limit), so that the stage knows
    /// which servlets wait for one.
    pub limits: bool,
    /// The CPU time for rejecting or shedding an event, in nanoseconds. Rejections take precedence
    /// over all other work that waits for a CPU.
    pub rejection_ns: u64,
    /// The factor by which degradation multiplies the CPU time of an event. Use 1.0 for a stage
    /// without a degradation function.
    pub degraded: f64,
    /// The interval between the ticks that [`run`](Self::run) returns, in nanoseconds; at least 1.
    pub tick_ns: u64,
}

impl Default for Simulation {
    /// An async stage with two workers and the default bounds of a stage, which runs for one second
    /// without arrivals.
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
            services: vec![(0, Service::computing(Distribution::Constant(100_000.0)))],
            speeds: Vec::new(),
            permits: Vec::new(),
            limits: false,
            rejection_ns: 0,
            degraded: 1.0,
            tick_ns: 10_000_000,
        }
    }
}

/// The arrivals at a stage. Clients in an open loop send events at times that do not depend on
/// responses. Clients in a closed loop wait for each response.
#[derive(Clone, PartialEq, Debug)]
pub struct Arrivals {
    /// The arrival rates. Each entry holds a start time, in nanoseconds, and the number of arrivals
    /// per second from then on.
    pub rates: Vec<(u64, f64)>,
    /// The bursts. Each entry holds a time and the number of events that arrive at that time.
    pub bursts: Vec<(u64, u32)>,
    /// The number of clients in a closed loop, whose events arrive in addition to those of `rates`
    /// and `bursts`. Each client sends its first event within the first millisecond. After each
    /// response, a client pauses and then sends its next event.
    pub clients: u32,
    /// The time for which a client in a closed loop pauses after a response that is not a
    /// rejection.
    pub pause: Distribution,
    /// The time between a rejection and the client's next attempt, in nanoseconds.
    pub retry_ns: u64,
    /// True if the stage computes a `Retry-After`, like a web server, and clients use it instead of
    /// `retry_ns`. Once per second, the stage divides the number of events queued and in service by
    /// the number handled in the last second. `Retry-After` is the quotient, rounded up to whole
    /// seconds, but at least 1 and at most 60 seconds. A client waits for a random time between one
    /// and two times `Retry-After`.
    pub told: bool,
    /// The relative frequencies of the classes; entries beyond
    /// [`CLASSES_MAX`](crate::stage::CLASSES_MAX) are ignored.
    pub classes: Vec<f64>,
    /// The number of users, at least 1. Each event is equally likely to come from any user.
    pub users: u16,
    /// True if each event has a cohort, which is the number of the event's user.
    pub cohorts: bool,
    /// The cost of each event, in credits of the queue; at least 1.
    pub credits: u32,
}

impl Default for Arrivals {
    /// No arrivals, one class, and 16 users without cohorts. If clients in a closed loop are added,
    /// they do not pause, and retry one second after a rejection.
    fn default() -> Self {
        Self {
            rates: Vec::new(),
            bursts: Vec::new(),
            clients: 0,
            pause: Distribution::Constant(0.0),
            retry_ns: 1_000_000_000,
            told: false,
            classes: vec![1.0],
            users: 16,
            cohorts: false,
            credits: 1,
        }
    }
}

impl Arrivals {
    /// Returns arrivals of a single class. Each entry of `rates` holds a start time, in
    /// nanoseconds, and the number of arrivals per second from then on.
    #[must_use]
    pub fn steps(rates: &[(u64, f64)]) -> Self {
        Self {
            rates: rates.to_vec(),
            ..Self::default()
        }
    }
}

/// The model of a handler. For each event, the handler uses a CPU; for some events, it then also
/// waits.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Service {
    /// The CPU time per event.
    pub compute: Distribution,
    /// The additional CPU time per batch, in nanoseconds.
    pub batch_ns: u64,
    /// The waiting time per event, after the CPU time.
    pub wait: Distribution,
    /// The time for which the handler holds a permit for each event, between `compute` and `wait`.
    /// The handler uses no CPU while it holds the permit. Permits are granted in order of request.
    pub hold: Distribution,
    /// The share of events for which the handler also waits, as `wait` specifies, after the CPU
    /// time.
    pub wait_share: f64,
    /// The share of hot events. Hot events are handled one at a time.
    pub hot_share: f64,
    /// The share of events that fail; the handler waits for `timeout_ns` before such an event
    /// fails.
    pub fail_share: f64,
    /// The waiting time of a failing event, in nanoseconds.
    pub timeout_ns: u64,
}

impl Service {
    /// Returns the model of a handler that uses a CPU and never waits.
    #[must_use]
    pub fn computing(compute: Distribution) -> Self {
        Self {
            compute,
            batch_ns: 0,
            wait: Distribution::Constant(0.0),
            hold: Distribution::Constant(0.0),
            wait_share: 0.0,
            hot_share: 0.0,
            fail_share: 0.0,
            timeout_ns: 0,
        }
    }
}

/// The outcome of an event in a [`Simulation`], or of a client's request to a [`System`]. The
/// outcome of a request covers all of its attempts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// The index in [`System::clients`] of the kind of client that sent the event.
    pub clients: usize,
    /// The class of the event.
    pub class: Class,
    /// The number of the user who sent the event.
    pub user: u16,
    /// True if the event was hot.
    pub hot: bool,
    /// The number of attempts, including the first.
    pub attempts: u32,
    /// The time of the first attempt, when the event arrived.
    pub arrived_ns: u64,
    /// The time of the last attempt.
    pub last_ns: u64,
    /// The time at which the event was answered or rejected, or at which its client left.
    pub ended_ns: u64,
    /// The result of the last attempt.
    pub end: EventEnd,
}

impl Outcome {
    /// Returns the time from the arrival of the event to its end, in nanoseconds.
    #[must_use]
    pub fn response_ns(&self) -> u64 {
        self.ended_ns - self.arrived_ns
    }
}

/// The result of an attempt to have an event handled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventEnd {
    /// The event's batch ended.
    Served,
    /// The event's batch ended, and the event failed.
    Failed,
    /// The queue did not admit the event.
    Rejected,
    /// The event was removed from the queue and dropped.
    Shed,
    /// The client stopped waiting for a response.
    TimedOut,
}

/// A snapshot of the stage's state, with the stage's counters since the previous tick.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Tick {
    /// The time of the tick.
    pub at_ns: u64,
    /// The number of events in the queue.
    pub queue_len: u64,
    /// The current limit on the number of busy servlets.
    pub servlets: usize,
    /// The number of busy servlets.
    pub busy: usize,
    /// The current maximum number of events in a batch.
    pub batch: usize,
    /// The current threshold: the maximum number of credits in the queue.
    pub threshold: u64,
    /// The number of events that arrived since the previous tick.
    pub arrived: u64,
    /// The number of events that were rejected or shed since the previous tick.
    pub rejected: u64,
    /// The number of events that were answered since the previous tick.
    pub served: u64,
    /// The mean response time of the answered events, in nanoseconds; 0 if there are none.
    pub response_mean_ns: u64,
    /// The longest response time of the answered events, in nanoseconds.
    pub response_max_ns: u64,
}

impl Simulation {
    /// Returns the arrivals and their service times, excluding the events of clients in a closed
    /// loop. For a given simulation, the result depends only on the seed, not on controllers.
    #[must_use]
    pub fn plan(&self, seed: u64) -> Schedule<'_> {
        Schedule::new(&self.arrivals, &self.services, self.until_ns, seed)
    }

    /// Runs the stage with these controllers, and calls `tell` with the outcome of each event.
    /// Returns one tick for each interval of `tick_ns`.
    ///
    /// If no controller owns a setting, the setting keeps its initial value.
    pub fn run(
        &self,
        controllers: Vec<Box<dyn Controller>>,
        seed: u64,
        tell: impl FnMut(&Outcome),
    ) -> Vec<Tick> {
        let system = self.system();
        let mut engine = Engine::new(&system, once(controllers), seed, tell);
        engine.run(self.tick_ns.max(1));
        engine.into_ticks()
    }

    /// Runs the stage with these controllers, and returns the log of their decisions.
    #[cfg(test)]
    pub(crate) fn log(
        &self,
        controllers: Vec<Box<dyn Controller>>,
        seed: u64,
    ) -> super::control::log::Log {
        let system = self.system();
        let mut engine = Engine::new(&system, once(controllers), seed, |_| {});
        engine.run(u64::MAX);
        engine.into_log()
    }

    /// Returns the same stage as a system of its own.
    fn system(&self) -> System {
        System {
            until_ns: self.until_ns,
            workers: self.workers,
            blocking: self.blocking,
            stages: vec![SimStage {
                servlets: self.servlets,
                servlets_max: self.servlets_max,
                batch_max: self.batch_max,
                queue_max: self.queue_max,
                keyed: self.keyed,
                degraded: self.degraded,
                ..SimStage::new(vec![Step::Serve])
            }],
            resources: vec![self.permits.clone()],
            limits: self.limits,
            clients: vec![Clients {
                arrivals: self.arrivals.clone(),
                services: self.services.clone(),
                ..Clients::default()
            }],
            speeds: self.speeds.clone(),
            rejection_ns: self.rejection_ns,
        }
    }
}

/// Returns a function that gives these controllers to the only stage.
fn once(controllers: Vec<Box<dyn Controller>>) -> impl FnMut(usize) -> Vec<Box<dyn Controller>> {
    let mut controllers = Some(controllers);
    move |_| controllers.take().unwrap_or_default()
}
