//! The worker's loop: take a runnable color, run its turn; with nothing to take, search, then sleep.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::context::Worker;
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

/// Bound, in turns: twice as many may pass before a worker looks at its timers, if turns are short; so many on average.
const TURNS_PER_TICK_MAX: u64 = 64;

/// Bound, in nanoseconds: turns of the measured average length that may pass before a worker looks at its timers.
const TICK_NS: u64 = 50_000;

/// Bound, in turns: so many pass before a worker that has more to run asks its driver, a system call; who is reported comes last anyway.
const TURNS_PER_LOOK: u64 = 16;

/// Bound, in nanoseconds: as long as that takes at most, unless one turn takes longer.
const LOOK_NS: u64 = 500_000;

/// Bound, in colors: a worker that has so many to run takes few reports, half as many as it had turns: the others may as well wait in the
/// driver, and what is read is still in the processor's cache when it is answered.
const QUEUE_FULL: usize = 64;

/// Bound, in rounds over all workers: how long a searcher spins before it sleeps; and one that sleeps in its driver, whose reports it does not see meanwhile.
const SEARCH_ROUNDS: [u32; 2] = if cfg!(loom) { [1; 2] } else { [32, 2] };

/// How long a worker sleeps at most if the kernel has not taken all operations on files.
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

/// The worker's policy; the default one if the user's function panics.
fn make_policy(worker: &Worker) -> Guarded<Box<dyn Policy>> {
    let mut policy: Box<dyn Policy> = Box::new(Priorities);
    quietly(|| policy = (worker.handle.shared.policy)());
    Guarded::new(policy)
}

struct Loop<'a> {
    worker: &'a Worker,
    watch: Watch,
    policy: Guarded<Box<dyn Policy>>,
    /// Counted as a searcher. A worker begins as one: `Idle::add` was called by whoever started it.
    searching: bool,
    /// What the driver reported last.
    events: Events,
    /// The worker has just slept in its driver, which has nothing new to report.
    looked: bool,
    /// What `choose` gave last.
    last: *const Node,
    /// Turns until the next look at the clock.
    until_tick: u64,
    turns_per_tick: u64,
    turn_mean_ns: u64,
    /// Turns since the driver was asked, and when that was.
    turns_since_look: u64,
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
            until_tick: 0,
            turns_per_tick: 1,
            turn_mean_ns: 0,
            turns_since_look: TURNS_PER_LOOK,
            looked_ns: 0,
        }
    }

    fn run(&mut self) {
        // One frame for all turns: what panics is rare, what runs is not.
        while let Err(payload) = catch_unwind(AssertUnwindSafe(|| self.run_turns())) {
            self.recover(payload);
        }
        let shared = &self.worker.handle.shared;
        if shared.has_idlers() {
            // They may count on this worker, see `runtime/idlers.rs`; what it has queued goes to the others.
            shared.wake_idlers();
        }
        if !self.searching {
            shared.idle.start_search();
        }
        // Nobody else knows of what the last events have left in the queue.
        self.worker.remote.files.flush_last();
        shared.worker_ended(self.worker);
    }

    /// A posted event has panicked, which ends its color's turn: the color goes to the end of the queue.
    #[cold]
    fn recover(&mut self, payload: Box<dyn Any + Send>) {
        let worker = self.worker;
        if !worker.remote.is_in_event() {
            // A defect of ours.
            resume_unwind(payload);
        }
        worker.caught(payload);
        if let Some(cell) = worker.end_turn() {
            worker.requeue(ColorCell::node(cell));
        }
        // What it took is in the total, but no color's: nobody has measured the turn.
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

    /// The next runnable color of this worker.
    #[inline]
    fn next(&mut self) -> Option<std::ptr::NonNull<Node>> {
        let remote = &*self.worker.remote;
        if !remote.injector.is_empty() {
            for node in remote.injector.take_all() {
                self.worker.requeue(node);
            }
        }
        if self.until_tick == 0 {
            self.tick();
        }
        self.until_tick -= 1;
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

    /// Runs one node, and measures it if it is the first one since the last look at the clock.
    #[inline]
    fn turn(&mut self, node: std::ptr::NonNull<Node>) {
        let worker = self.worker;
        worker.start_turn();
        // SAFETY: the node came out of a queue that this worker owns or has stolen from.
        let colored = unsafe { event::run_turn(node, worker) };
        self.end_turn(colored);
    }

    #[inline]
    fn end_turn(&mut self, colored: bool) {
        let worker = self.worker;
        worker.remote.count_turn();
        if worker.measured_since.get() != 0 {
            self.measured(colored);
        }
    }

    /// Fires timers and has the next turn measured.
    #[cold]
    fn tick(&mut self) {
        let worker = self.worker;
        let shared = &worker.handle.shared;
        let mut now_ns = shared.now_ns();
        let fired = self.fire(shared.tick_at(now_ns));
        shared.flush_orphans(worker.index);
        let reported = self.look_if_due(now_ns);
        if fired + reported > 0 {
            // The time that these took is not the next turn's.
            now_ns = shared.now_ns();
        }
        // A part of the ticks is skipped at random, so that no pattern of turns hides from the measurement.
        self.until_tick = self.turns_per_tick;
        if self.turns_per_tick > 1 {
            self.until_tick = 1 + worker.random() % (2 * self.turns_per_tick);
        }
        self.turns_since_look += self.until_tick;
        worker.weight.set(self.until_tick);
        worker.measured_since.set(now_ns.max(1));
    }

    /// Wakes those whose timers have run out; says how many of this worker's.
    fn fire(&self, now_tick: u64) -> usize {
        let remote = &self.worker.remote;
        let _waking = remote.begin_wakes();
        let fired = remote.shard.fire(now_tick);
        self.worker.handle.shared.fire_orphans();
        fired
    }

    /// What files have completed is always there to be seen; the driver is asked now and then.
    fn look_if_due(&mut self, now_ns: u64) -> usize {
        let since_ns = now_ns.saturating_sub(self.looked_ns);
        if self.looked || self.turns_since_look >= TURNS_PER_LOOK || since_ns >= LOOK_NS {
            self.looked_ns = now_ns;
            let turns = std::mem::take(&mut self.turns_since_look);
            return self.look(turns as usize / 2);
        }
        let _waking = self.worker.remote.begin_wakes();
        self.worker.remote.files.serve()
    }

    /// Passes on what the driver has to report, as far as the queue has room, but at least so much; says how much.
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

    /// What this worker's driver has to report comes before what others have: it is there already, and the others need not
    /// know that this one was out of work. An only worker need not ask: it is about to sleep in its driver.
    ///
    /// What a ring has completed comes before that: of a file whose pages are in memory, all of it, at the moment in which
    /// it was handed over. The driver is asked at the next tick.
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
        self.until_tick = 0;
        true
    }

    /// Ends a measurement: learns how long turns are.
    #[cold]
    fn measured(&mut self, colored: bool) {
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
        median.store(
            toward_median(median.load(Ordering::Relaxed), took),
            Ordering::Relaxed,
        );
        // An exponentially weighted mean over some eight samples, in which the system's running something else for once
        // counts for little.
        let took = took.min(8 * self.turn_mean_ns + 1_000);
        self.turn_mean_ns = self.turn_mean_ns - self.turn_mean_ns / 8 + took / 8;
        self.turns_per_tick = (TICK_NS / self.turn_mean_ns.max(1)).clamp(1, TURNS_PER_TICK_MAX);
    }

    /// Looks for work elsewhere; true if there may be some here now.
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

    /// With nothing to run: if somebody waits for that, and the driver has nothing to report either, wakes them; true if there may
    /// be something to run now.
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

    /// Parks until there may be work. See README.md for why no event is slept through.
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
                // What the kernel does not take now is offered again soon.
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
            // As one that counts as awake.
            let _waking = worker.remote.begin_wakes();
            shared.dispatch(&mut self.events, worker.random());
        }
        self.until_tick = 0;
    }
}
