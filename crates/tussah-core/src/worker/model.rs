//! Scaffolding for the loom models: a runtime without OS threads, whose workers are driven by hand.

use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering::Acquire;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::Worker;
use crate::blocking::{BlockingPool, PoolPolicy};
use crate::driver::Events;
use crate::event::{self, Node};
use crate::loom::{UnsafeCell, thread};
use crate::runtime::{Config, Handle, Shared};
use crate::time::Clock;
use crate::world::{Network, World};
use parking_lot::Mutex;

thread_local! {
    /// Set if a panic occurred while a [`Report`] was present. Events and requests catch panics, so
    /// this flag has to notify the model. All threads of a model run on one OS thread.
    static FAILED: Cell<bool> = const { Cell::new(false) };
}

/// Explores the executions of `f` with at most `preemptions` preemptions, unless
/// `LOOM_MAX_PREEMPTIONS` sets another limit.
pub(crate) fn explore(preemptions: usize, f: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(preemptions));
    builder.max_branches = 20_000;
    let runs = Count::default();
    let count = runs.clone();
    builder.check(move || {
        FAILED.set(false);
        count.add();
        f();
    });
    println!("{} runs", runs.get());
}

/// A place that code may access only one at a time, each access after the one before: loom checks
/// both.
pub(crate) struct Probe(UnsafeCell<u64>);

// SAFETY: the models check that accesses exclude each other.
unsafe impl Sync for Probe {}
// SAFETY: as above.
unsafe impl Send for Probe {}

impl Probe {
    pub(crate) fn new() -> Self {
        Self(UnsafeCell::new(0))
    }

    /// Accesses the place exclusively.
    pub(crate) fn touch(&self) {
        let _report = Report;
        // SAFETY: loom panics before two of these overlap.
        self.0.with_mut(|place| unsafe { *place += 1 });
    }

    /// Accesses the place, possibly together with others.
    pub(crate) fn look(&self) -> u64 {
        let _report = Report;
        // SAFETY: loom panics before this overlaps with a `touch`.
        self.0.with(|place| unsafe { *place })
    }
}

/// Makes the model fail if code panics before this is dropped.
pub(crate) struct Report;

impl Drop for Report {
    fn drop(&mut self) {
        if std::thread::panicking() {
            FAILED.set(true);
        }
    }
}

/// Counts drops and manual touches. The count is not part of the model, and is read after all of
/// the model's threads have been joined.
#[derive(Clone, Default)]
pub(crate) struct Count(Arc<AtomicUsize>);

impl Count {
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    /// Returns a value whose drop is counted, and touches the probe.
    pub(crate) fn canary(&self, probe: &Arc<Probe>) -> Canary {
        Canary {
            drops: self.clone(),
            probe: probe.clone(),
        }
    }
}

impl std::task::Wake for Count {
    fn wake(self: Arc<Self>) {
        self.add();
    }
}

/// A counted value; see [`Count::canary`].
pub(crate) struct Canary {
    drops: Count,
    probe: Arc<Probe>,
}

impl Canary {
    /// Acts like a write to the value.
    pub(crate) fn touch(&self) {
        self.probe.touch();
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        self.touch();
        self.drops.add();
    }
}

/// A runtime in a model.
pub(crate) struct Model {
    pub(crate) shared: Arc<Shared>,
    /// The events that the next worker out of work finds completed between two events, as in its
    /// ring of file operations.
    completed: Mutex<Vec<Queued>>,
}

/// An event with no other owner.
struct Queued(NonNull<Node>);

// SAFETY: events may be run by any worker.
unsafe impl Send for Queued {}

impl Model {
    /// Creates a runtime with places for `workers` workers, all of them searching.
    pub(crate) fn new(workers: usize) -> Arc<Self> {
        let shared = Shared::new(Config {
            name: String::new(),
            world: World {
                network: Network::Os,
                files: crate::driver::file::Files,
                clock: Clock::manual().clock(),
                seed: 1,
            },
            stealing: true,
            // A worker that appears unchanged in two looks is stuck, because a model has no time.
            steal_delay: Duration::ZERO,
            pin: false,
            policy: None,
            workers_max: workers,
            one_color: false,
            blocking: BlockingPool::new("", PoolPolicy::default()),
        });
        for place in 0..workers {
            let prepared = shared.prepare_place(place);
            drop(prepared.expect("a model has descriptors"));
        }
        shared
            .workers
            .store(workers, crate::loom::atomic::Ordering::Relaxed);
        let completed = Mutex::default();
        Arc::new(Self { shared, completed })
    }

    pub(crate) fn handle(&self) -> Handle {
        Handle {
            shared: self.shared.clone(),
        }
    }

    /// Makes the calling loom thread the worker of a place while `f` runs.
    pub(crate) fn as_worker<R>(&self, place: usize, f: impl FnOnce(&Worker) -> R) -> R {
        let worker = Worker::new(
            self.shared.clone(),
            self.shared.place(place).clone(),
            place,
            1,
        );
        // A model has no time: no look at the clock is due.
        worker.remote.running.look(|_| u64::from(u32::MAX));
        let result = worker.enter(|| f(&worker));
        // SAFETY: the magazines are this worker's and are not used again.
        unsafe { worker.magazines.flush_all(&self.shared.slab) };
        result
    }

    /// Sets the event that the next worker out of work finds.
    pub(crate) fn complete(&self, node: NonNull<Node>) {
        self.completed.lock().push(Queued(node));
    }

    /// Runs completed events like a worker that is not yet a searcher. Returns whether there were
    /// any.
    fn serve_completed(&self, worker: &Worker) -> bool {
        let completed = std::mem::take(&mut *self.completed.lock());
        let any = !completed.is_empty();
        for Queued(node) in completed {
            worker.push(node);
        }
        any
    }

    /// Runs, as the worker of place 0, everything that it finds at each look.
    pub(crate) fn serve(&self, looks: usize) {
        self.serve_at(0, looks);
    }

    fn serve_at(&self, place: usize, looks: usize) {
        self.as_worker(place, |worker| {
            for _ in 0..looks {
                run_queued(worker);
            }
        });
    }

    /// Does so on a separate thread. Loom does not explore the first thread of a model well beside
    /// others, so that thread only starts and joins the other threads.
    pub(crate) fn start(self: &Arc<Self>, looks: usize) -> thread::JoinHandle<()> {
        self.start_at(0, looks)
    }

    /// Does the same as the worker of any place.
    pub(crate) fn start_at(self: &Arc<Self>, place: usize, looks: usize) -> thread::JoinHandle<()> {
        let this = self.clone();
        thread::spawn(move || this.serve_at(place, looks))
    }

    /// Runs the remaining events.
    pub(crate) fn serve_all(&self) {
        while !self.shared.queues_are_empty() {
            (0..self.shared.places()).for_each(|place| self.serve_at(place, 1));
        }
    }

    /// Runs a short form of the loop of `run.rs`, as the worker of a place that begins to search.
    pub(crate) fn work(&self, place: usize) {
        let shared = &self.shared;
        self.as_worker(place, |worker| {
            worker.remote.bind();
            let mut searching = true;
            while !worker.remote.stop.load(Acquire) {
                if let Some(node) = next(worker) {
                    if searching {
                        searching = false;
                        shared.stop_search(worker);
                    }
                    run(worker, node);
                    continue;
                }
                if !searching {
                    if self.serve_completed(worker) {
                        continue;
                    }
                    searching = true;
                    shared.idle.start_search();
                }
                if !steal(worker) {
                    sleep(worker);
                }
            }
            if !searching {
                shared.idle.start_search();
            }
            shared.worker_ended(worker);
        });
    }

    /// Starts that loop on a thread that the shutdown joins.
    pub(crate) fn start_worker(self: &Arc<Self>, place: usize) {
        let this = self.clone();
        let os_thread = thread::spawn(move || this.work(place));
        let mut os_threads = self.shared.os_threads.lock();
        os_threads.resize_with(self.shared.places(), || None);
        os_threads[place] = Some(os_thread);
    }

    /// Frees a runtime that was shut down. The other threads of the model have been joined.
    pub(crate) fn ended(self: Arc<Self>) {
        Arc::into_inner(self)
            .expect("the threads are joined")
            .free();
    }

    /// Runs the remaining events, and frees the runtime. The other threads of the model have been
    /// joined.
    pub(crate) fn finish(self: Arc<Self>) {
        let this = Arc::into_inner(self).expect("the threads are joined");
        this.serve_all();
        this.free();
    }

    fn free(self) {
        for place in 0..self.shared.places() {
            let panics = &self.shared.place(place).counters.panics;
            assert_eq!(
                panics.load(crate::loom::atomic::Ordering::Relaxed),
                0,
                "an event panicked"
            );
        }
        assert!(!FAILED.get(), "a check inside an event failed");
        // The shutdown does this itself.
        if self.shared.is_open() {
            self.shared.close_slab();
        }
        assert_eq!(
            Arc::strong_count(&self.shared),
            1,
            "a color was not destroyed, or the memory of an event not given back"
        );
    }
}

/// Takes a node from the worker's queues.
fn next(worker: &Worker) -> Option<NonNull<Node>> {
    for node in worker.remote.injector.take_all() {
        worker.requeue(node);
    }
    // SAFETY: this is the worker that owns the ring.
    unsafe { worker.remote.ring.pop() }
}

fn run(worker: &Worker, node: NonNull<Node>) {
    worker.start_turn();
    // SAFETY: the node came out of a queue of the worker.
    unsafe { event::run_turn(node, worker) };
    worker.remote.count_turn();
}

/// Runs the events in the worker's queues.
pub(crate) fn run_queued(worker: &Worker) {
    for node in worker.remote.injector.take_all() {
        worker.requeue(node);
    }
    // SAFETY: this is the worker that owns the ring.
    while let Some(node) = unsafe { worker.remote.ring.pop() } {
        run(worker, node);
    }
}

fn steal(worker: &Worker) -> bool {
    let shared = &worker.handle.shared;
    let victims = (0..shared.places()).filter(|&place| place != worker.index);
    for victim in victims.map(|place| shared.place(place)) {
        let mut got = victim.steal(1, |node| worker.requeue(node));
        // A thief takes a worker's unseen nodes only if that worker is stuck: here, in an event.
        if got == 0 && victim.is_in_event() {
            for node in victim.injector.take_all() {
                worker.requeue(node);
                got += 1;
            }
        }
        if got > 0 {
            return true;
        }
    }
    false
}

fn sleep(worker: &Worker) {
    let idle = &worker.handle.shared.idle;
    let watch = idle.park(worker.index);
    if worker.remote.injector.is_empty() && !worker.remote.stop.load(Acquire) {
        let limit = watch.then_some(Duration::ZERO);
        worker.remote.park(limit, &mut Events::new());
    }
    idle.unpark(worker.index);
}
