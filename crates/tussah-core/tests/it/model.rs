//! The whole scheduler against a sequential model: random programs run on a real runtime. Each
//! result must be one that events, run one after the other in an order that the promises allow,
//! could have produced.

mod actor;
mod history;
mod program;

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Barrier, Once, Weak, mpsc};
use std::time::Duration;

use fastrand::Rng;
use parking_lot::Mutex;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};
use tussah_core::time::{Clock, ManualClock};
use tussah_core::{Candidate, JoinHandle, Policy, Runtime};

use actor::{Actor, Planned, REQUEST_DROPPED, SPAWN_REFUSED, World};
use history::{History, Node, Value};
use program::{Choice, Finish, Program, Root, VALUES};

/// The number of programs to try, unless `PROPTEST_CASES` sets it.
const CASES: u32 = 200;

/// How often each program runs: the scheduler decides differently each time.
const RUNS: usize = 3;

/// The same while a program that failed is minimized: it has to fail again to be kept.
const RUNS_TO_SHRINK: usize = 60;

/// A guard against hangs: a run takes milliseconds.
const HANG: Duration = Duration::from_secs(60);

/// The same while a program that hung is minimized. Each try that hangs keeps its OS threads.
const HANG_TO_SHRINK: Duration = Duration::from_secs(10);

/// Silences the panics that a shutdown causes in every other program.
fn hide_expected_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let text = info.payload().downcast_ref::<&str>();
            if !text.is_some_and(|text| [REQUEST_DROPPED, SPAWN_REFUSED].contains(text)) {
                print(info);
            }
        }));
    });
}

#[test]
fn random_programs_do_what_a_sequential_model_allows() {
    hide_expected_panics();
    let mut config = Config {
        failure_persistence: None,
        max_shrink_iters: 2_000,
        ..Config::default()
    };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = CASES;
    }
    let seed = match config.rng_seed {
        RngSeed::Random => RandomState::new().hash_one(0),
        RngSeed::Fixed(seed) => seed,
    };
    config.rng_seed = RngSeed::Fixed(seed);
    let (failed, hangs) = (AtomicBool::new(false), AtomicU32::new(0));
    let result = TestRunner::new(config).run(&program::program(), |program| {
        let (runs, limit) = if failed.load(Ordering::Relaxed) {
            (RUNS_TO_SHRINK, HANG_TO_SHRINK)
        } else {
            (RUNS, HANG)
        };
        // A hang costs its limit each time. A few tries are enough to reach a smaller program.
        if hangs.load(Ordering::Relaxed) > 8 {
            return Ok(());
        }
        let outcome = guarded(program, runs, limit);
        failed.fetch_or(outcome.is_err(), Ordering::Relaxed);
        outcome.map_err(|failure| match failure {
            Failure::Wrong(failures) => TestCaseError::fail(failures.join("\n")),
            Failure::Hang(failures) => {
                hangs.fetch_add(1, Ordering::Relaxed);
                let failures = failures.join("\n");
                TestCaseError::fail(format!("no end after {limit:?}\n{failures}"))
            }
        })
    });
    if let Err(TestError::Fail(reason, program)) = result {
        panic!("found with PROPTEST_RNG_SEED={seed}\n{program:?}\n{reason}");
    }
    result.expect("no program is rejected");
}

/// A contradiction of the promises.
enum Failure {
    Wrong(Vec<String>),
    /// The run did not end. Contains the contradictions until then.
    Hang(Vec<String>),
}

/// Runs a program several times on an OS thread that may hang.
fn guarded(program: Program, runs: usize, limit: Duration) -> Result<(), Failure> {
    let (sender, receiver) = mpsc::channel();
    let seen = Arc::new(Mutex::new(Weak::new()));
    let see = seen.clone();
    let runner = std::thread::spawn(move || {
        for _ in 0..runs {
            let failures = run(&program, &see);
            let last = !failures.is_empty();
            if sender.send(failures).is_err() || last {
                break;
            }
        }
    });
    for _ in 0..runs {
        match receiver.recv_timeout(limit) {
            Ok(failures) if failures.is_empty() => {}
            Ok(failures) => return Err(Failure::Wrong(failures)),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                let world = seen.lock().upgrade();
                return Err(Failure::Hang(
                    world.map_or(Vec::new(), |world| world.history.failures()),
                ));
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
    }
    match runner.join() {
        Ok(()) => Ok(()),
        Err(_) => Err(Failure::Wrong(vec![
            "the runner panicked; see above".into(),
        ])),
    }
}

/// Runs a program once. Returns the contradictions of the promises.
fn run(program: &Program, see: &Mutex<Weak<World>>) -> Vec<String> {
    let manual = program.manual_clock.then(Clock::manual);
    let clock = manual.as_ref().map_or_else(Clock::real, ManualClock::clock);
    let runtime = start(program, &clock);
    let drops = Arc::new(AtomicU32::new(0));
    let world = Arc::new(World {
        handle: runtime.handle().clone(),
        clock,
        values: (0..VALUES)
            .map(|_| tussah_core::Colored::new_in(&runtime, Value::new(drops.clone())))
            .collect(),
        history: History::default(),
        begun: 0.into(),
        ending: false.into(),
        outside_sleeps: matches!(program.finish, Finish::Drained),
    });
    *see.lock() = Arc::downgrade(&world);
    let over = Arc::new(AtomicBool::new(false));
    let mover = manual.map(|manual| {
        let over = over.clone();
        std::thread::spawn(move || move_on(&manual, &over))
    });
    let mut roots = Roots::start(&world, program);
    match program.finish {
        Finish::Drained => roots.join(),
        Finish::Draining(ops) | Finish::Now(ops) => roots.reach(ops),
    }
    let drain = match program.finish {
        Finish::Drained | Finish::Draining(_) => HANG,
        Finish::Now(_) => Duration::ZERO,
    };
    // Seen through the signal by which an actor learns that the shutdown has begun: see
    // `World::is_ending`.
    world.ending.store(true, Ordering::Relaxed);
    let report = runtime.shutdown(drain);
    roots.join();
    drop(roots);
    over.store(true, Ordering::Relaxed);
    if let Some(mover) = mover {
        mover.join().expect("the clock can be moved");
    }
    if report.workers_stuck > 0 {
        // The operating system has not let a worker run for a second: there is no promise for its
        // queue.
        return Vec::new();
    }
    let kept = Arc::strong_count(&world) - 1;
    if kept > 0 {
        // The steps of their actors are missing.
        let mut failures = world.history.failures();
        failures.push(format!("{kept} closures and futures were not dropped"));
        return failures;
    }
    let stats = world.handle.stats();
    let panics = stats.workers.iter().map(|worker| worker.panics).sum();
    let all_ran = matches!(program.finish, Finish::Drained);
    let mut failures = world.history.check(all_ran, panics);
    if !drain.is_zero() && !report.drained {
        failures.push("the shutdown did not drain".into());
    }
    drop(world);
    let drops = drops.load(Ordering::Relaxed);
    if drops as usize != VALUES {
        failures.push(format!("{drops} of {VALUES} values were dropped"));
    }
    failures
}

fn move_on(clock: &ManualClock, over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        clock.advance(Duration::from_millis(1));
        std::thread::yield_now();
    }
}

fn start(program: &Program, clock: &Clock) -> Runtime {
    let builder = Runtime::builder()
        .workers(program.workers)
        .stealing(program.stealing)
        .steal_delay(Duration::from_micros(program.steal_delay_us))
        .seed(program.seed)
        .clock(clock.clone())
        .no_watchdog();
    let builder = match program.choice {
        Choice::Default => builder,
        Choice::Newest => builder.policy(|| Newest),
        Choice::Wild(seed) => builder.policy(move || Wild(Rng::with_seed(seed))),
    };
    builder.build().expect("workers start")
}

struct Newest;

impl Policy for Newest {
    fn choose(&mut self, candidates: &[Candidate]) -> usize {
        candidates.len() - 1
    }
}

/// A random choice. Now and then it is out of range, or a panic.
struct Wild(Rng);

impl Policy for Wild {
    fn choose(&mut self, candidates: &[Candidate]) -> usize {
        if self.0.u8(..16) == 0 {
            std::panic::resume_unwind(Box::new("no choice"));
        }
        self.0.usize(..=candidates.len())
    }
}

/// The initial actors, and the one that began them.
struct Roots {
    main: Actor,
    world: Arc<World>,
    outside: Vec<std::thread::JoinHandle<()>>,
    threads: Vec<(u32, JoinHandle<Node>)>,
}

impl Roots {
    fn start(world: &Arc<World>, program: &Program) -> Self {
        let mut roots = Self {
            main: Actor::outside(world),
            world: world.clone(),
            outside: Vec::new(),
            threads: Vec::new(),
        };
        let is_outside = |root: &&Root| matches!(root, Root::Outside(_));
        let outside = program.roots.iter().filter(is_outside).count();
        // Together, so that they contend.
        let together = Arc::new(Barrier::new(outside + 1));
        for root in &program.roots {
            if let Root::Outside(body) = root {
                let (world, body, together) = (world.clone(), body.clone(), together.clone());
                roots.outside.push(std::thread::spawn(move || {
                    let mut actor = Actor::outside(&world);
                    together.wait();
                    world.handle.block_on(actor.run_async(&body));
                }));
            }
        }
        together.wait();
        for root in &program.roots {
            match root {
                Root::Outside(_) => {}
                Root::Thread(home, body) => {
                    roots.threads.extend(roots.main.spawn(*home, body));
                }
                Root::Event(site, body) => {
                    let post = program::Action::Post(*site, body.clone());
                    roots.main.run(&[post]);
                }
            }
        }
        roots
    }

    /// Waits until this many operations have begun, or only events remain.
    fn reach(&self, ops: usize) {
        while self.world.begun.load(Ordering::Relaxed) < ops
            && !(self.outside.iter().all(|root| root.is_finished())
                && self.threads.iter().all(|(_, root)| root.is_finished()))
        {
            std::thread::yield_now();
        }
    }

    fn join(&mut self) {
        for root in self.outside.drain(..) {
            let planned = |thrown: &Box<dyn std::any::Any + Send>| thrown.is::<Planned>();
            if root.join().is_err_and(|thrown| !planned(&thrown)) {
                self.world.history.fail("an actor panicked".into());
            }
        }
        for (child, root) in self.threads.drain(..) {
            let result = self.world.handle.block_on(root);
            self.main.joined(child, result, false);
        }
    }
}
