//! The worker's loop: takes a runnable color and runs its turn; otherwise searches, then sleeps.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::context::Worker;
use super::interval::Interval;
use super::median::toward_median;
use super::pin::pin_to_cpu;
use super::remote::{Counters, Remote};
use super::steal::Watch;
use crate::color::cell::ColorCell;
use crate::driver::Events;
use crate::event::{self, Node};
use crate::loom::atomic::Ordering;
use crate::policy::{Policy, Priorities};
use crate::quietly::{Guarded, quietly};
use crate::runtime::Shared;
use crate::time::TimerContext;

/// On average one turn in this many is measured, and more if turns are long.
const TURNS_PER_SAMPLE_MAX: u64 = 64;

/// The number of turns after which a busy worker asks its driver, at its next look at the clock.
const TURNS_PER_LOOK: u64 = 16;

/// The time, in nanoseconds, after which a look at the clock includes the driver.
const LOOK_NS: u64 = 500_000;

/// A worker with this many colors to run takes few reports, at most one per two turns. The others
/// wait in the driver, so that data read for a report is cached when its event runs.
const QUEUE_FULL: usize = 64;

/// The number of rounds over all workers for which a searcher spins before it sleeps. The second
/// value is for a worker with a driver, which does not see its reports while it spins.
const SEARCH_ROUNDS: [u32; 2] = if cfg!(loom) { [1; 2] } else { [32, 2] };

/// The longest sleep of a worker if the kernel has not taken all of its file operations.
const FLUSH_AGAIN: Duration = Duration::from_millis(1);

/// Runs until the worker is asked to stop.
pub(crate) fn main(shared: Arc<Shared>, remote: Arc<Remote>, index: usize) {
    remote.bind();
    if shared.pin {
        pin_to_cpu(index);
    }
    let seed = shared.world.seed ^ (index as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let worker = Worker::new(shared, remote, index, seed);
    let _timers = crate::time::enter(TimerContext {
        shard: worker.remote.shard.clone(),
        local: true,
    });
    worker.enter(|| Loop::new(&worker).run());
}

/// Makes the worker's policy, or the default policy if the user's function panics.
fn make_policy(worker: &Worker) -> Guarded<Box<dyn Policy>> {
    let mut policy: Box<dyn Policy> = Box::new(Priorities);
    quietly(|| policy = (worker.handle.shared.policy)());
    Guarded::new(policy)
}

struct Loop<'a> {
    worker: &'a Worker,
    watch: Watch,
    policy: Guarded<Box<dyn Policy>>,
    /// True if the worker counts as a searcher. It begins as one: its starter called `Idle::add`.
    searching: bool,
    /// The last reports of the driver.
    events: Events,
    /// True if the worker has just slept in its driver, which has nothing new to report.
    looked: bool,
    /// The last result of `choose`.
    last: *const Node,
    /// The interval between looks at the clock.
    interval: Interval,
    /// The number of turns until the next one that is measured.
    until_sample: u64,
    /// The last look at the driver: the number of turns begun and ended by then, and the time.
    looked_turns: u64,
    looked_ns: u64,
}

impl<'a> Loop<'a> {
    fn new(worker: &'a Worker) -> Self {
        Self {
            worker,
            watch: Watch::new(),
            policy: make_policy(worker),
            searching: true,
            events: Events::new(),
            looked: false,
            last: std::ptr::null(),
            interval: Interval::new(),
            until_sample: 0,
            looked_turns: worker.remote.turns(),
            looked_ns: 0,
        }
    }

    fn run(&mut self) {
        // One frame serves all turns, because panics are rare and turns are not.
        while let Err(payload) = catch_unwind(AssertUnwindSafe(|| self.run_turns())) {
            self.recover(payload);
        }
        let shared = &self.worker.handle.shared;
        if shared.has_idlers() {
            // They may count on this worker (`runtime/idlers.rs`). Other workers take its queue.
            shared.wake_idlers();
        }
        if !self.searching {
            shared.idle.start_search();
        }
        // No other worker knows of the entries that the last events left in the ring.
        self.worker.remote.files.flush_last();
        shared.worker_ended(self.worker);
    }

    /// Ends the turn of a posted event that panicked. Its color goes to the end of the queue.
    #[cold]
    fn recover(&mut self, payload: Box<dyn Any + Send>) {
        let worker = self.worker;
        if !worker.remote.is_in_event() {
            // The panic is a defect of ours.
            resume_unwind(payload);
        }
        worker.caught(payload);
        if let Some(cell) = worker.end_turn() {
            worker.requeue(ColorCell::node(cell));
        }
        // The event's time is part of the total but belongs to no color: the turn was not measured.
        self.end_turn(false);
    }

    /// Runs until the worker is asked to stop.
    fn run_turns(&mut self) {
        let worker = self.worker;
        while !worker.remote.stop.load(Ordering::Acquire) {
            if let Some(node) = self.next() {
                if self.searching {
                    self.searching = false;
                    worker.handle.shared.stop_search(worker);
                }
                self.turn(node);
                continue;
            }
            if !self.searching {
                if self.look_before_searching() {
                    continue;
                }
                self.searching = true;
                worker.handle.shared.idle.start_search();
            }
            if !self.search() && !self.wake_idlers() {
                self.sleep();
            }
        }
    }

    /// Returns the next runnable color of this worker.
    #[inline]
    fn next(&mut self) -> Option<std::ptr::NonNull<Node>> {
        let remote = &*self.worker.remote;
        if !remote.injector.is_empty() {
            for node in remote.injector.take_all() {
                self.worker.requeue(node);
            }
        }
        if remote.running.is_due() {
            self.tick();
        }
        if self.worker.handle.shared.chooses.load(Ordering::Relaxed) {
            return self.choose();
        }
        // SAFETY: this is the worker that owns the ring.
        unsafe { remote.ring.pop() }
    }

    #[cold]
    fn choose(&mut self) -> Option<std::ptr::NonNull<Node>> {
        let remote = &*self.worker.remote;
        // SAFETY: this is the worker that owns the ring.
        let node = remote
            .window
            .choose(&mut **self.policy, self.last, || unsafe {
                remote.ring.pop()
            });
        self.last = node.map_or(std::ptr::null(), |node| node.as_ptr().cast_const());
        node
    }

    /// Runs one node, and measures some of the turns.
    #[inline]
    fn turn(&mut self, node: std::ptr::NonNull<Node>) {
        let worker = self.worker;
        worker.start_turn();
        if self.until_sample == 0 {
            self.sample();
        }
        self.until_sample -= 1;
        // SAFETY: the node came out of a queue that this worker owns or has stolen from.
        let colored = unsafe { event::run_turn(node, worker) };
        self.end_turn(colored);
    }

    #[inline]
    fn end_turn(&self, colored: bool) {
        let worker = self.worker;
        worker.remote.count_turn();
        if worker.measured_since.get() != 0 {
            self.measured(colored);
        }
    }

    /// Measures the turn that begins, and chooses at random the next turn to measure, so that no
    /// pattern of turns stays hidden.
    #[cold]
    fn sample(&mut self) {
        let worker = self.worker;
        // Long turns are measured more often: at least one of every interval's number of events.
        let mean = self.interval.length().min(TURNS_PER_SAMPLE_MAX);
        self.until_sample = 1 + worker.random() % (2 * mean - 1);
        worker.weight.set(self.until_sample);
        worker
            .measured_since
            .set(worker.handle.shared.now_ns().max(1));
    }

    /// Looks at the clock, and at everything that may have arrived in the meantime.
    #[cold]
    fn tick(&mut self) {
        let worker = self.worker;
        let shared = &worker.handle.shared;
        let mut now_ns = 0;
        worker.remote.running.look(|events| {
            now_ns = shared.now_ns();
            self.interval.next(events, now_ns)
        });
        self.fire(shared.tick_at(now_ns));
        shared.flush_orphans(worker.index);
        self.watch.relieve(worker, now_ns);
        self.look_if_due(now_ns);
    }

    /// Wakes the waiters of timers that are due.
    fn fire(&self, now_tick: u64) {
        let remote = &self.worker.remote;
        let _waking = remote.begin_wakes();
        remote.shard.fire(now_tick);
        self.worker.handle.shared.fire_orphans();
    }

    /// Takes the completions of file operations, and occasionally asks the driver.
    fn look_if_due(&mut self, now_ns: u64) {
        let remote = &self.worker.remote;
        let since_ns = now_ns.saturating_sub(self.looked_ns);
        // Each turn has begun and ended.
        let turns = (remote.turns() - self.looked_turns) / 2;
        if self.looked || turns >= TURNS_PER_LOOK || since_ns >= LOOK_NS {
            self.looked_ns = now_ns;
            self.looked_turns = remote.turns();
            self.look(turns as usize / 2);
        } else {
            let _waking = remote.begin_wakes();
            remote.files.serve();
        }
    }

    /// Dispatches as many reports as the queue has room for, at least `least`. Returns how many.
    fn look(&mut self, least: usize) -> usize {
        let worker = self.worker;
        let _waking = worker.remote.begin_wakes();
        let ended = worker.remote.files.serve();
        let reported = match worker.handle.shared.used_driver(worker.index) {
            Some(driver) if !std::mem::take(&mut self.looked) => {
                let room = QUEUE_FULL.saturating_sub(worker.remote.queue_len());
                self.events.take_at_most(room.max(least));
                driver.look(&mut self.events);
                let shared = &worker.handle.shared;
                shared.dispatch(&mut self.events, worker.random())
            }
            _ => 0,
        };
        ended + reported
    }

    /// Checks this worker's own ring and driver, which no other worker does, before it searches. A
    /// lone worker need not ask its driver: it will sleep there. File operations come first, since
    /// some complete at once; the driver is asked at the next tick.
    fn look_before_searching(&mut self) -> bool {
        let remote = &self.worker.remote;
        if remote.files.is_busy() {
            let _waking = remote.begin_wakes();
            if remote.files.serve() > 0 {
                return true;
            }
        }
        if self.worker.handle.shared.places() < 2 || self.look(0) == 0 {
            return false;
        }
        self.looked = true;
        self.worker.remote.running.interrupt();
        true
    }

    /// Ends a measurement, and learns how long turns are.
    #[cold]
    fn measured(&self, colored: bool) {
        let worker = self.worker;
        let since = worker.measured_since.replace(0);
        let took = match worker.measured_ns.replace(0) {
            0 => worker.handle.shared.now_ns().saturating_sub(since),
            took => took,
        };
        if !colored {
            worker
                .remote
                .profile
                .lock()
                .add_uncolored(took.saturating_mul(worker.weight.get()));
        }
        let median = &worker.remote.turn_ns;
        let next = toward_median(median.load(Ordering::Relaxed), took);
        median.store(next, Ordering::Relaxed);
    }

    /// Looks for work elsewhere. Returns true if there may be work on this worker now.
    fn search(&mut self) -> bool {
        let worker = self.worker;
        self.fire(worker.handle.shared.world.clock.now_tick());
        let waking = worker.remote.begin_wakes();
        worker.remote.files.serve();
        drop(waking);
        let alone = worker.handle.shared.places() < 2;
        let rounds = SEARCH_ROUNDS[usize::from(worker.remote.driver().is_some())];
        for _ in 0..if alone { 1 } else { rounds } {
            if self.watch.steal(worker)
                || worker.remote.queue_len() > 0
                || !worker.remote.injector.is_empty()
            {
                return true;
            }
            std::hint::spin_loop();
        }
        false
    }

    /// Wakes the threads that wait for an idle worker, unless the driver has reports. Returns true
    /// if there may be something to run now.
    #[inline]
    fn wake_idlers(&mut self) -> bool {
        let shared = &self.worker.handle.shared;
        if !shared.has_idlers() {
            return false;
        }
        if self.look(0) == 0 {
            shared.wake_idlers();
        }
        true
    }

    /// Parks until there may be work. `README.md` proves that it misses no event.
    fn sleep(&mut self) {
        let worker = self.worker;
        let shared = &worker.handle.shared;
        let watch = shared.idle.park(worker.index);
        if worker.remote.injector.is_empty() && !worker.remote.stop.load(Ordering::Acquire) {
            let timer = shared.until_timers(&worker.remote.shard);
            if timer != Some(Duration::ZERO) {
                let delay = (watch && shared.stealing).then_some(shared.steal_delay);
                let limit = timer.map_or(delay, |timer| {
                    Some(delay.map_or(timer, |delay| delay.min(timer)))
                });
                Counters::add(&worker.remote.counters.parks, 1);
                // Operations that the kernel does not take now are offered again soon.
                let flushed = shared.flush_files(worker.index);
                let limit = if flushed {
                    limit
                } else {
                    Some(limit.map_or(FLUSH_AGAIN, |limit| limit.min(FLUSH_AGAIN)))
                };
                self.events.take_at_most(QUEUE_FULL);
                worker.remote.park(limit, &mut self.events);
            }
        }
        shared.idle.unpark(worker.index);
        if !self.events.is_empty() {
            self.looked = true;
            // This comes after `unpark`, so that the worker counts as awake.
            let _waking = worker.remote.begin_wakes();
            shared.dispatch(&mut self.events, worker.random());
        }
        let running = &worker.remote.running;
        self.interval.restart(running.events());
        running.interrupt();
    }
}
