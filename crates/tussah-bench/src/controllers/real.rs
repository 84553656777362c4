//! The same scenarios on a real runtime, open loop: to see whether the simulator ranks controllers as real stages do.
//!
//! The events of a plan are offered when they are due, by a thread of its own, whatever has become of those before. A handler computes by spinning until as
//! much time has passed as the plan says, and waits by sleeping; so an answer takes longer than planned where the OS takes its CPU away. Rejections cost what
//! they really cost. How much was taken is told with the figures; where it is more than a few percent, on a machine with other work, `chrt -f 10 tussah-bench ...`
//! gives the benchmark its CPUs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tussah::Runtime;
use tussah::stage::control::{
    Admission, Arrival, Cadence, Controller, Departure, Owns, Rule, Sample, Settings, Verdict,
};
use tussah::stage::sim::{End, Outcome, Planned, Service, Simulation, Tick};
use tussah::stage::{Batch, Class, Event, Handler, Network, Sender, Stage};

use super::contender::Contender;
use super::scenario::Scenario;
use super::score::{Score, Scorer};

/// A run takes so long in reality; scenarios that take longer have to be asked for by name.
pub const RUN_NS_MAX: u64 = 60_000_000_000;

/// What the thread that sends needs to be on time: when nothing is due for longer than this, it sleeps.
const AWAKE: Duration = Duration::from_micros(200);

/// The scenario for a machine with so many CPUs, of which one is for who sends: with fewer workers, less arrives.
pub fn fitted(scenario: &Scenario, cpus: usize) -> Scenario {
    let mut fitted = scenario.clone();
    let simulation = &mut fitted.simulation;
    // What shows only on several workers keeps two, and who sends shares a CPU.
    let hot = simulation.services.iter().any(|s| s.1.hot_share > 0.0);
    let workers = (cpus - 1).clamp(if hot { 2 } else { 1 }, simulation.workers.max(1));
    if workers == simulation.workers || hot || simulation.blocking {
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
    fitted.capacity *= part;
    fitted.ideal *= part;
    fitted.ideal_worth *= part;
    fitted
}

/// Runs a scenario once with a contender that takes part in it. Adds to `lost` what others took of the CPUs.
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
    let world = Arc::new(World {
        start: Instant::now(),
        simulation: scenario.simulation.clone(),
        outcomes: Mutex::default(),
        color: async_lock::Mutex::new(()),
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

/// How long handlers were to compute, and how long they did: longer, where others had their CPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lost {
    planned_ns: u64,
    computed_ns: u64,
}

impl Lost {
    /// By what part longer.
    pub fn part(self) -> f64 {
        self.computed_ns as f64 / (self.planned_ns as f64).max(1.0) - 1.0
    }
}

/// What the handlers of a run share.
struct World {
    start: Instant,
    simulation: Simulation,
    outcomes: Mutex<Vec<Outcome>>,
    /// Who handles a hot event.
    color: async_lock::Mutex<()>,
    /// How long handlers were to compute, and did.
    planned_ns: AtomicU64,
    computed_ns: AtomicU64,
}

/// What holds at this time.
fn at<T: Copy>(sorted: &[(u64, T)], now_ns: u64) -> Option<T> {
    let begun = sorted.partition_point(|(since_ns, _)| *since_ns <= now_ns);
    begun.checked_sub(1).map(|at| sorted[at].1)
}

impl World {
    fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// Computes for so long on a CPU that is as fast as it is now.
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

    fn outcome(&self, planned: &Planned, end: End) -> Outcome {
        Outcome {
            class: planned.class,
            user: planned.user,
            hot: planned.hot,
            arrived_ns: planned.at_ns,
            ended_ns: self.now_ns().max(planned.at_ns),
            end,
        }
    }

    fn end_batch(&self, done: &[Planned]) {
        let mut outcomes = self.outcomes.lock();
        outcomes.extend(done.iter().map(|planned| {
            let end = if planned.fails {
                End::Failed
            } else {
                End::Served
            };
            self.outcome(planned, end)
        }));
    }
}

/// A handler that waits as threads of the runtime do.
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
) -> tussah::stage::Builder<Planned> {
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
        .on_drop(move |planned: Planned, _| {
            let outcome = dropped.outcome(&planned, End::Shed);
            dropped.outcomes.lock().push(outcome);
        });
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

/// Sends each event when it is due, and looks at the stage from time to time.
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
    for planned in simulation.plan(seed) {
        wait_until(world, planned.at_ns);
        let mut event = Event::new(planned).class(planned.class);
        if simulation.arrivals.cohorts {
            event = event.cohort(planned.user);
        }
        if sender.try_send(event).is_err() {
            let outcome = world.outcome(&planned, End::Rejected);
            world.outcomes.lock().push(outcome);
        }
        look(planned.at_ns, &mut ticks);
    }
    wait_until(world, simulation.until_ns);
    look(simulation.until_ns, &mut ticks);
    ticks
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

/// A controller whose type is not known.
struct Boxed(Box<dyn Controller>);

impl Controller for Boxed {
    fn name(&self) -> &'static str {
        self.0.name()
    }
    fn owns(&self) -> Owns {
        self.0.owns()
    }
    fn cadence(&self) -> Cadence {
        self.0.cadence()
    }
    fn looks_at_responses(&self) -> bool {
        self.0.looks_at_responses()
    }
    fn looks_at_departures(&self) -> bool {
        self.0.looks_at_departures()
    }
    fn sample(&mut self, sample: &Sample<'_>, now_ns: u64) -> Settings {
        self.0.sample(sample, now_ns)
    }
    fn rule(&self, class: Class) -> Rule {
        self.0.rule(class)
    }
    fn on_enqueue_many(&mut self, first: &Arrival, most: u64) -> u64 {
        self.0.on_enqueue_many(first, most)
    }
    fn on_enqueue(&mut self, arrival: &Arrival) -> Admission {
        self.0.on_enqueue(arrival)
    }
    fn is_overdue(&self, departure: &Departure) -> bool {
        self.0.is_overdue(departure)
    }
    fn on_dequeue(&mut self, departure: &Departure) -> Verdict {
        self.0.on_dequeue(departure)
    }
}
