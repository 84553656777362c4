//! The state that the workers of a runtime, its handles and its colors share.

use std::io;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::extensions::Extensions;
use super::idlers::Idlers;
use crate::blocking::BlockingPool;
use crate::color::Color;
use crate::color::cell::ColorCell;
use crate::color::table::Table;
use crate::driver::{Driver, Sources};
use crate::loom::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering, fence};
use crate::loom::thread;
use crate::named::named;
use crate::policy::{Policy, Priorities};
use crate::quietly::{Guarded, abort_on_panic};
use crate::slab::Slab;
use crate::time::{AdvanceHook, Shard};
use crate::watchdog::Watchdog;
use crate::worker::{Idle, Remote, Worker};
use crate::world::World;

/// Posts and spawns are accepted.
pub(crate) const OPEN: u8 = 0;
/// Posts and spawns are refused. Queued events still run.
pub(crate) const DRAINING: u8 = 1;
/// The workers run nothing any more.
pub(crate) const STOPPED: u8 = 2;

/// Makes the policy of each worker.
pub(crate) type PolicyMaker = Box<dyn Fn() -> Box<dyn Policy> + Send + Sync>;

/// The shared state of one runtime.
pub(crate) struct Shared {
    pub(crate) slab: Slab,
    pub(crate) name: String,
    /// The interfaces to the outside.
    pub(crate) world: World,
    started: Instant,
    pub(crate) idle: Idle,
    pub(crate) stealing: bool,
    pub(crate) steal_delay: Duration,
    pub(crate) pin: bool,
    pub(crate) policy: Guarded<PolicyMaker>,
    /// True if a policy has a choice to make: some color has a priority, or the policy is the
    /// user's.
    pub(crate) chooses: AtomicBool,
    /// `OPEN`, `DRAINING` or `STOPPED`.
    pub(crate) phase: AtomicU8,
    /// A place for each worker that can ever exist. The first worker of a place fills the place,
    /// and the contents stay.
    places: Box<[OnceLock<Arc<Remote>>]>,
    /// The number of places filled so far.
    places_used: AtomicUsize,
    /// The number of workers that take events from outside: those of the places below this number.
    pub(crate) workers: AtomicUsize,
    /// The place for the next event from outside.
    pub(super) next_place: AtomicUsize,
    /// The OS threads to join. The lock also serializes changes of the number of workers.
    pub(crate) os_threads: Mutex<Vec<Option<thread::JoinHandle<()>>>>,
    pub(crate) table: Table,
    /// The descriptors that threads wait for.
    pub(crate) sources: Sources,
    /// The number of colored values made so far, which numbers them in reports.
    pub(crate) values_made: AtomicU64,
    /// The cell of the default color, with a handle of its own.
    default_color: OnceLock<DefaultColor>,
    pub(crate) blocking: BlockingPool,
    /// Makes the workers check their timers when a manual clock is moved.
    pub(crate) advance_hook: OnceLock<AdvanceHook>,
    /// The shutdown ends it.
    pub(crate) watchdog: Mutex<Option<Watchdog>>,
    /// True if `spawn` puts threads in the default color.
    pub(crate) one_color: bool,
    /// The number of threads that were dropped before their end because the runtime ended.
    pub(crate) threads_dropped: AtomicUsize,
    pub(super) extensions: Extensions,
    /// The waiters that are woken before a worker sleeps.
    pub(super) idlers: Idlers,
}

/// A handle to the default color, released when the runtime is dropped.
struct DefaultColor(NonNull<ColorCell>);

// SAFETY: cells are shared between OS threads by their own rules.
unsafe impl Send for DefaultColor {}
// SAFETY: as above.
unsafe impl Sync for DefaultColor {}

impl Drop for DefaultColor {
    fn drop(&mut self) {
        // SAFETY: this was the last use of the handle.
        unsafe { ColorCell::release(self.0) };
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        debug_assert!(
            self.slab.is_done(),
            "a runtime is freed when nothing of it is in use"
        );
        self.table.clear();
    }
}

/// The decisions of the builder.
pub(crate) struct Config {
    pub(crate) name: String,
    pub(crate) world: World,
    pub(crate) stealing: bool,
    pub(crate) steal_delay: Duration,
    pub(crate) pin: bool,
    /// The user's policy; `None` for the default one.
    pub(crate) policy: Option<PolicyMaker>,
    pub(crate) workers_max: usize,
    pub(crate) one_color: bool,
    pub(crate) blocking: BlockingPool,
}

impl Shared {
    pub(crate) fn new(config: Config) -> Arc<Self> {
        let shared = Arc::new(Self {
            slab: Slab::new(Self::retain),
            name: config.name,
            world: config.world,
            started: Instant::now(),
            idle: Idle::new(),
            stealing: config.stealing,
            steal_delay: config.steal_delay,
            pin: config.pin,
            chooses: AtomicBool::new(config.policy.is_some()),
            policy: Guarded::new(
                config
                    .policy
                    .unwrap_or_else(|| Box::new(|| Box::new(Priorities))),
            ),
            phase: AtomicU8::new(OPEN),
            places: (0..config.workers_max).map(|_| OnceLock::new()).collect(),
            places_used: AtomicUsize::new(0),
            workers: AtomicUsize::new(0),
            next_place: AtomicUsize::new(0),
            os_threads: Mutex::new(Vec::new()),
            table: Table::new(),
            sources: Sources::new(),
            values_made: AtomicU64::new(0),
            default_color: OnceLock::new(),
            blocking: config.blocking,
            advance_hook: OnceLock::new(),
            watchdog: Mutex::new(None),
            one_color: config.one_color,
            threads_dropped: AtomicUsize::new(0),
            extensions: Extensions::default(),
            idlers: Idlers::new(),
        });
        // SAFETY: the pointer is that of a counted runtime.
        unsafe { shared.slab.set_owner(Arc::as_ptr(&shared).cast()) };
        shared.table.with(&shared, Color::DEFAULT, |cell| {
            // SAFETY: the table keeps the cell alive during the call.
            unsafe { cell.as_ref() }.retain();
            shared.default_color.get_or_init(|| DefaultColor(cell));
        });
        let weak = Arc::downgrade(&shared);
        let advanced = move || {
            if let Some(shared) = weak.upgrade() {
                (0..shared.places()).for_each(|place| shared.unpark(place));
            }
        };
        shared
            .advance_hook
            .get_or_init(|| shared.world.clock.on_advance(Box::new(advanced)));
        shared
    }

    #[inline]
    pub(crate) fn default_color(&self) -> NonNull<ColorCell> {
        let color = self.default_color.get();
        color.expect("the default color is made with the runtime").0
    }

    /// Returns real time in nanoseconds, for measuring and for stealing, even if the timers follow
    /// a manual clock.
    pub(crate) fn now_ns(&self) -> u64 {
        if self.world.clock.is_manual() {
            return self.started.elapsed().as_nanos() as u64;
        }
        self.world.clock.now_ns()
    }

    /// Returns the tick of the timers at `now_ns`, a time that `now_ns()` has just returned.
    pub(crate) fn tick_at(&self, now_ns: u64) -> u64 {
        if self.world.clock.is_manual() {
            self.world.clock.now_tick()
        } else {
            self.world.clock.tick_of(now_ns)
        }
    }

    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.phase.load(Ordering::Relaxed) == OPEN
    }

    /// Returns the number of places filled so far.
    #[inline]
    pub(crate) fn places(&self) -> usize {
        self.places_used.load(Ordering::Acquire) // pairs with the Release in `prepare_place`
    }

    /// Returns the worker of a place, or `None` if the place has never been filled.
    pub(crate) fn remote(&self, place: usize) -> Option<&Arc<Remote>> {
        self.places[place].get()
    }

    pub(crate) fn place(&self, place: usize) -> &Arc<Remote> {
        self.places[place]
            .get()
            .expect("a place below `places` is filled")
    }

    pub(crate) fn workers_max(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn unpark(&self, place: usize) {
        self.place(place).unpark();
    }

    /// Records that a searcher found work, and wakes a successor if one is needed.
    pub(crate) fn stop_search(&self, worker: &Worker) {
        if let Some(successor) = self.idle.found() {
            self.unpark(successor);
        }
        if self.idle.wake_watchdog()
            // If the lock is taken, its holder is ending the watchdog.
            && let Some(watchdog) = self.watchdog.try_lock()
            && let Some(watchdog) = &*watchdog
        {
            watchdog.wake();
        }
        self.check_watch(worker);
    }

    /// Makes sure that some worker keeps watch, for a worker that is about to run something and has
    /// received more work without pushing it itself.
    #[inline]
    pub(crate) fn check_watch(&self, worker: &Worker) {
        let remote = &worker.remote;
        if self.idle.unwatched() && (remote.queue_len() > 0 || !remote.injector.is_empty()) {
            self.call_watch();
        }
    }

    /// Wakes a sleeper to keep watch, for a worker that must not continue without a watch.
    #[cold]
    pub(crate) fn call_watch(&self) {
        if self.stealing
            && let Some(sleeper) = self.idle.call_watch()
        {
            self.unpark(sleeper);
        }
    }

    /// Prepares a place for its next worker. The caller holds the lock of `os_threads`, and then
    /// calls `worker::main` or `Idle::remove`.
    ///
    /// # Errors
    /// Returns the system's error if it has no descriptors for the place's driver.
    pub(crate) fn prepare_place(self: &Arc<Self>, place: usize) -> io::Result<Arc<Remote>> {
        let remote = match self.places[place].get() {
            Some(remote) => remote.clone(),
            None => {
                let driver = Driver::new()?;
                self.places[place]
                    .get_or_init(|| Arc::new(Remote::new(self.new_shard(place), driver)))
                    .clone()
            }
        };
        remote.begin();
        self.places_used.fetch_max(place + 1, Ordering::Release);
        self.idle.add();
        Ok(remote)
    }

    /// Creates the timers of a place.
    fn new_shard(self: &Arc<Self>, place: usize) -> Arc<Shard> {
        let weak = Arc::downgrade(self);
        let unpark = move || {
            if let Some(shared) = weak.upgrade() {
                // The first worker serves the timers of removed workers.
                let orphan = place >= shared.workers.load(Ordering::Relaxed);
                let place = if orphan { 0 } else { place };
                let _ = shared.idle.wake(place);
                shared.unpark(place);
            }
        };
        Arc::new(Shard::new(self.world.clock.clone(), Box::new(unpark)))
    }

    /// Starts the worker of a place. The caller holds the lock of `os_threads`.
    pub(crate) fn start_worker(
        self: &Arc<Self>,
        place: usize,
    ) -> io::Result<thread::JoinHandle<()>> {
        let remote = self.prepare_place(place)?;
        let shared = self.clone();
        let started = thread::Builder::new()
            .name(format!("{}-worker-{place}", self.name))
            .spawn(move || abort_on_panic(|| crate::worker::main(shared, remote, place)));
        if started.is_err() {
            // Either a poster that chose this place in the meantime sees the flag, or we see the
            // node that it queued.
            self.place(place).stop.store(true, Ordering::Release);
            fence(Ordering::SeqCst);
            self.rescue(place);
            if let Some(successor) = self.idle.remove() {
                self.unpark(successor);
            }
            self.place(place).end();
        }
        started.map_err(|error| named("cannot start the OS thread of a worker", error))
    }

    /// Hands the queue of an ending worker over to the other workers, or leaves it to the shutdown.
    pub(crate) fn hand_over(&self, worker: &Worker) {
        if self.phase.load(Ordering::Relaxed) == STOPPED {
            return;
        }
        // SAFETY: the worker owns its ring.
        while let Some(node) = unsafe { worker.remote.ring.pop() } {
            self.inject(node);
        }
        worker
            .remote
            .window
            .take(usize::MAX, |node| self.inject(node));
        for node in worker.remote.injector.take_all() {
            self.inject(node);
        }
    }

    /// Performs the last steps of a worker.
    pub(crate) fn worker_ended(&self, worker: &Worker) {
        // Pairs with the fence in `inject`: either the poster sees that this worker is ending, or
        // we see the poster's event.
        fence(Ordering::SeqCst);
        self.hand_over(worker);
        // Not earlier: while work is being moved, the workers must not all seem to be parked
        // (`is_at_rest`).
        if let Some(successor) = self.idle.remove() {
            self.unpark(successor);
        }
        worker.remote.end();
        // SAFETY: the magazines are this worker's and are not used again.
        unsafe { worker.magazines.flush_all(&self.slab) };
    }
}
