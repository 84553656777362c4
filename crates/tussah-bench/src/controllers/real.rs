//! The same scenarios on a real runtime, to check that the simulator ranks controllers as a real
//! runtime does.
//!
//! An OS thread offers the events of a plan when they are due, whatever has become of earlier
//! events. It also sends for the clients of a closed loop. A handler computes by spinning for the
//! planned time, and waits by sleeping, so a response takes longer than planned if the OS takes its
//! CPU away. Rejections have their real cost. The results include the lost CPU time. If it exceeds
//! a few percent on a busy machine, `chrt -f 10 tussah-bench ...` gives the benchmark its CPUs.

mod boxed;
mod lost;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tussah::Runtime;
use tussah::stage::control::{Controller, Settings};
use tussah::stage::sim::{EventEnd, Outcome, Planned, Service, Simulation, Tick};
use tussah::stage::{Batch, Event, Handler, Network, Sender, Stage};
use tussah::sync::{Limit, Semaphore};

use self::boxed::Boxed;
pub use self::lost::Lost;
use super::contender::Contender;
use super::scenario::Scenario;
use super::score::{Score, Scorer};

/// The longest scenario that runs by default; longer scenarios run only by name.
pub const RUN_NS_MAX: u64 = 60_000_000_000;

/// The sending thread sleeps if nothing is due for longer than this. A shorter sleep would make it
/// late.
const AWAKE: Duration = Duration::from_micros(200);

/// Fits the scenario to a machine with this many CPUs, of which the sending thread takes one. With
/// fewer workers, the arrival rate is lower.
pub fn fitted(scenario: &Scenario, cpus: usize) -> Scenario {
    let mut fitted = scenario.clone();
    let simulation = &mut fitted.simulation;
    // Holding a permit needs no worker.
    let holds = !simulation.permits.is_empty();
    // Effects that need several workers keep two; the sending thread then shares a CPU.
    let hot = simulation.services.iter().any(|s| s.1.hot_share > 0.0);
    let workers = (cpus - 1).clamp(if hot { 2 } else { 1 }, simulation.workers.max(1));
    if workers == simulation.workers || hot || holds || simulation.blocking {
        simulation.workers = workers;
        simulation.servlets = simulation.servlets.min(workers);
        return fitted;
    }
    let part = workers as f64 / simulation.workers as f64;
    simulation.workers = workers;
    simulation.servlets = workers;
    if simulation.servlets_max < Simulation::default().servlets_max {
        simulation.servlets_max = (simulation.servlets_max as f64 * part).ceil() as usize;
    }
    for (_, rate) in &mut simulation.arrivals.rates {
        *rate *= part;
    }
    let clients = &mut simulation.arrivals.clients;
    *clients = (f64::from(*clients) * part).ceil() as u32;
    fitted.capacity *= part;
    fitted.ideal *= part;
    fitted.ideal_worth *= part;
    fitted
}

/// Runs a scenario once with a contender that takes part in it. Adds to `lost` the CPU time that
/// other programs took.
pub fn run(
    scenario: &Scenario,
    contender: &Contender,
    seed: u64,
    lost: &mut Lost,
) -> Option<Score> {
    let controllers = contender.controllers(scenario)?;
    let runtime = Runtime::builder()
        .workers(scenario.simulation.workers)
        .build()
        .expect("the OS gives us a few threads");
    let permits = scenario.simulation.permits.first();
    let mut permits = [permits.map_or(UNLIMITED, |permits| permits.1), UNLIMITED];
    if scenario.simulation.limits {
        permits.reverse();
    }
    let world = Arc::new(World {
        start: Instant::now(),
        simulation: scenario.simulation.clone(),
        outcomes: Mutex::default(),
        sends: Mutex::new(vec![Reverse(0); scenario.simulation.arrivals.clients as usize].into()),
        color: async_lock::Mutex::new(()),
        permits: Semaphore::new(permits[0]),
        limit: Limit::new("permits", permits[1]),
        planned_ns: AtomicU64::new(0),
        computed_ns: AtomicU64::new(0),
    });
    let network = Network::on(runtime.handle(), "controllers");
    let ticks = if scenario.simulation.blocking {
        let stage = blocking(&network, controllers, &world);
        let ticks = send_all(&world, &stage, &stage.sender(), seed);
        runtime.block_on(stage.destroy(Duration::ZERO));
        ticks
    } else {
        let stage = waiting(&network, controllers, &world);
        let ticks = send_all(&world, &stage, &stage.sender(), seed);
        runtime.block_on(stage.destroy(Duration::ZERO));
        ticks
    };
    lost.planned_ns += world.planned_ns.load(Ordering::Relaxed);
    lost.computed_ns += world.computed_ns.load(Ordering::Relaxed);
    let mut scorer = Scorer::new(scenario);
    let until_ns = scenario.simulation.until_ns;
    let mut outcomes = std::mem::take(&mut *world.outcomes.lock());
    outcomes.retain(|outcome| outcome.ended_ns < until_ns);
    outcomes.sort_by_key(|outcome| outcome.ended_ns);
    outcomes.iter().for_each(|outcome| scorer.see(outcome));
    Some(scorer.score(&ticks))
}

/// The number of permits if they are not scarce.
const UNLIMITED: usize = usize::MAX >> 3;

/// State that the handlers of a run share.
struct World {
    start: Instant,
    simulation: Simulation,
    outcomes: Mutex<Vec<Outcome>>,
    /// The times at which closed-loop clients without a request in flight send next.
    sends: Mutex<BinaryHeap<Reverse<u64>>>,
    /// The lock of the hot color.
    color: async_lock::Mutex<()>,
    /// The permits, one of which a handler holds; the stage knows of the waits for the second ones.
    permits: Semaphore,
    limit: Limit,
    /// The planned and the actual computing time of all handlers.
    planned_ns: AtomicU64,
    computed_ns: AtomicU64,
}

/// Returns the value that applies at this time.
fn at<T: Copy>(sorted: &[(u64, T)], now_ns: u64) -> Option<T> {
    let begun = sorted.partition_point(|(since_ns, _)| *since_ns <= now_ns);
    begun.checked_sub(1).map(|at| sorted[at].1)
}

impl World {
    fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// Computes for `ns` nanoseconds of a CPU at its current speed.
    fn compute(&self, ns: u64) {
        let begun = Instant::now();
        let speed = at(&self.simulation.speeds, self.now_ns()).unwrap_or(1.0);
        let time = Duration::from_nanos((ns as f64 / speed) as u64);
        while begun.elapsed() < time {
            std::hint::spin_loop();
        }
        let computed_ns = begun.elapsed().as_nanos() as u64;
        self.computed_ns.fetch_add(computed_ns, Ordering::Relaxed);
        let planned_ns = time.as_nanos() as u64;
        self.planned_ns.fetch_add(planned_ns, Ordering::Relaxed);
    }

    fn begin_batch(&self) {
        let service: Option<Service> = at(&self.simulation.services, self.now_ns());
        let batch_ns = service.map_or(0, |service| service.batch_ns);
        if batch_ns > 0 {
            self.compute(batch_ns);
        }
    }

    fn outcome(&self, planned: &Planned, end: EventEnd) -> Outcome {
        Outcome {
            clients: 0,
            class: planned.class,
            user: planned.user,
            hot: planned.hot,
            attempts: 1,
            arrived_ns: planned.at_ns,
            last_ns: planned.at_ns,
            ended_ns: self.now_ns().max(planned.at_ns),
            end,
        }
    }

    fn send_again(&self, planned: &Planned, after_ns: u64) {
        if planned.client {
            let at_ns = self.now_ns().saturating_add(after_ns);
            self.sends.lock().push(Reverse(at_ns));
        }
    }

    fn reject(&self, planned: &Planned, end: EventEnd) {
        let outcome = self.outcome(planned, end);
        self.outcomes.lock().push(outcome);
        self.send_again(planned, self.simulation.arrivals.retry_ns);
    }

    fn end_batch(&self, done: &[Planned]) {
        done.iter().for_each(|planned| self.send_again(planned, 0));
        let mut outcomes = self.outcomes.lock();
        outcomes.extend(done.iter().map(|planned| {
            let end = if planned.fails {
                EventEnd::Failed
            } else {
                EventEnd::Served
            };
            self.outcome(planned, end)
        }));
    }
}

/// A handler that waits like the runtime's threads.
struct Waiting(Arc<World>);

impl Handler for Waiting {
    type Event = Planned;

    async fn handle(&self, batch: &mut Batch<Planned>) {
        let Self(world) = self;
        let mut done = Vec::with_capacity(batch.len());
        world.begin_batch();
        while let Some(planned) = batch.next() {
            let color = if planned.hot {
                Some(world.color.lock().await)
            } else {
                None
            };
            world.compute(planned.compute_ns);
            if planned.hold_ns > 0 {
                let _permit = world.permits.acquire().await;
                let _permit = world.limit.acquire().await;
                tussah::time::sleep(Duration::from_nanos(planned.hold_ns)).await;
            }
            if planned.wait_ns > 0 {
                tussah::time::sleep(Duration::from_nanos(planned.wait_ns)).await;
            }
            drop(color);
            batch.fail(u64::from(planned.fails));
            done.push(planned);
        }
        world.end_batch(&done);
    }
}

fn builder(
    network: &Network,
    controllers: Vec<Box<dyn Controller>>,
    world: &Arc<World>,
) -> tussah::stage::StageBuilder<Planned> {
    let simulation = &world.simulation;
    let dropped = Arc::clone(world);
    let mut builder = network
        .stage("stage")
        .queue(simulation.queue_max)
        .batch(simulation.batch_max)
        .servlets(simulation.servlets_max)
        .classes(simulation.arrivals.classes.len())
        .settings(Settings {
            servlets: Some(simulation.servlets),
            ..Settings::default()
        })
        .manual()
        .on_drop(move |planned: Planned, _| dropped.reject(&planned, EventEnd::Shed));
    for controller in controllers {
        builder = builder.controller(Boxed(controller));
    }
    builder
}

fn waiting(
    network: &Network,
    controllers: Vec<Box<dyn Controller>>,
    world: &Arc<World>,
) -> Stage<Planned> {
    let handler = Waiting(Arc::clone(world));
    builder(network, controllers, world)
        .handler(|_| Ok(handler))
        .expect("there is but one stage");
    network.find("stage").expect("it was just made")
}

fn blocking(
    network: &Network,
    controllers: Vec<Box<dyn Controller>>,
    world: &Arc<World>,
) -> Stage<Planned> {
    let world_of = Arc::clone(world);
    let handler = move |batch: &mut Batch<Planned>| {
        let mut done = Vec::with_capacity(batch.len());
        world_of.begin_batch();
        while let Some(planned) = batch.next() {
            world_of.compute(planned.compute_ns);
            if planned.wait_ns > 0 {
                std::thread::sleep(Duration::from_nanos(planned.wait_ns));
            }
            batch.fail(u64::from(planned.fails));
            done.push(planned);
        }
        world_of.end_batch(&done);
    };
    builder(network, controllers, world)
        .blocking(|_| Ok(handler))
        .expect("there is but one stage")
}

/// Sends each event when it is due, and samples the stage from time to time.
fn send_all(
    world: &World,
    stage: &Stage<Planned>,
    sender: &Sender<Planned>,
    seed: u64,
) -> Vec<Tick> {
    let simulation = &world.simulation;
    let mut ticks = Vec::new();
    let look = |at_ns: u64, ticks: &mut Vec<Tick>| {
        while (ticks.len() as u64 + 1) * simulation.tick_ns <= at_ns {
            let stats = stage.stats();
            ticks.push(Tick {
                at_ns: (ticks.len() as u64 + 1) * simulation.tick_ns,
                queue_len: stats.queue_len,
                servlets: stats.servlets.target,
                busy: stats.servlets.busy,
                batch: stats.batch_max,
                threshold: stats.threshold,
                ..Tick::default()
            });
        }
    };
    let mut plan = simulation.plan(seed).peekable();
    let mut clients = simulation.plan(!seed);
    let until_ns = simulation.until_ns;
    loop {
        let due_ns = plan.peek().map_or(until_ns, |planned| planned.at_ns);
        let planned = match wait_for_client(world, due_ns) {
            Some(now_ns) => clients.client(now_ns),
            None if due_ns < until_ns => plan.next().expect("it was just seen"),
            None => break,
        };
        let mut event = Event::new(planned).class(planned.class);
        if simulation.arrivals.cohorts {
            event = event.cohort(planned.user);
        }
        if sender.try_send(event).is_err() {
            world.reject(&planned, EventEnd::Rejected);
        }
        look(planned.at_ns, &mut ticks);
    }
    look(until_ns, &mut ticks);
    ticks
}

/// Waits until a closed-loop client sends, and returns that time. Returns `None` if something else
/// is due earlier.
fn wait_for_client(world: &World, due_ns: u64) -> Option<u64> {
    if world.simulation.arrivals.clients == 0 {
        wait_until(world, due_ns);
        return None;
    }
    loop {
        let now_ns = world.now_ns();
        let mut sends = world.sends.lock();
        if sends.peek().is_some_and(|at_ns| at_ns.0 <= now_ns) {
            sends.pop();
            return Some(now_ns);
        }
        drop(sends);
        if now_ns >= due_ns {
            return None;
        }
        // A response may arrive at any time.
        std::thread::sleep(AWAKE);
    }
}

fn wait_until(world: &World, at_ns: u64) {
    loop {
        let left_ns = at_ns.saturating_sub(world.now_ns());
        if left_ns == 0 {
            return;
        }
        let left = Duration::from_nanos(left_ns);
        if left > AWAKE {
            std::thread::sleep(left - AWAKE);
        } else {
            std::hint::spin_loop();
        }
    }
}
