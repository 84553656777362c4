//! The part of a worker that others reach.

use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use super::window::Window;
use crate::driver::file::RingPlace;
use crate::driver::{Driver, Events};
use crate::event::Node;
use crate::loom::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use crate::loom::{lock, thread};
use crate::queue::{Inbox, Ring};
use crate::stats::{Profile, Running};
use crate::time::Shard;
use parking_lot::Mutex;

/// What thieves, posters and the shutdown see of a worker.
pub(crate) struct Remote {
    pub(crate) ring: Ring<Node>,
    /// What a policy chooses from, ahead of the ring.
    pub(crate) window: Window,
    /// Events from OS threads that are not workers of this runtime.
    pub(crate) injector: Inbox<Node>,
    pub(crate) shard: Arc<Shard>,
    /// Turns begun and turns ended, together: odd in a turn. A number that stands still says that the worker is in one turn,
    /// or asleep. Written by the worker alone.
    turns: AtomicU64,
    /// Times that the worker began, and ended, to wake those for whom something has come: odd while it does, which may take
    /// long where a waker is somebody else's code. Written by the worker alone.
    wakes: AtomicU64,
    /// The median length of a turn, in nanoseconds, over the sampled ones.
    pub(crate) turn_ns: AtomicU64,
    /// The worker has to end.
    pub(crate) stop: AtomicBool,
    pub(crate) counters: Counters,
    pub(crate) running: Running,
    /// Where the time of the measured turns went.
    pub(crate) profile: Mutex<Profile>,
    /// Where the file operations of this worker go.
    pub(crate) files: RingPlace,
    parker: Parker,
    /// What the worker waits on for descriptors. Made with the place, since later the process may have no descriptors left.
    driver: Driver,
    /// Descriptors are, or were, registered with the driver: the worker sleeps there.
    in_use: AtomicBool,
}

/// What a worker did; written by it alone, read by anyone.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) steals: AtomicU64,
    pub(crate) stolen: AtomicU64,
    pub(crate) parks: AtomicU64,
    pub(crate) panics: AtomicU64,
}

impl Counters {
    /// Adds to a counter that only the caller writes: no read-modify-write is needed.
    #[inline]
    pub(crate) fn add(counter: &AtomicU64, value: u64) {
        counter.store(counter.load(Ordering::Relaxed) + value, Ordering::Relaxed);
    }
}

impl Remote {
    pub(crate) fn new(shard: Arc<Shard>, driver: Driver) -> Self {
        Self {
            ring: Ring::new(),
            window: Window::new(),
            injector: Inbox::new(),
            shard,
            turns: AtomicU64::new(0),
            wakes: AtomicU64::new(0),
            turn_ns: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            counters: Counters::default(),
            running: Running::default(),
            profile: Mutex::new(Profile::new()),
            files: RingPlace::default(),
            parker: Parker::default(),
            driver,
            in_use: AtomicBool::new(false),
        }
    }

    /// A turn begins, or ends. Called by the worker alone.
    #[inline]
    pub(crate) fn count_turn(&self) {
        Counters::add(&self.turns, 1);
    }

    /// A number that changes when a turn begins or ends: odd in a turn.
    #[inline]
    pub(crate) fn turns(&self) -> u64 {
        self.turns.load(Ordering::Relaxed)
    }

    /// Whether an event is running, as opposed to the worker's own loop.
    #[inline]
    pub(crate) fn is_in_event(&self) -> bool {
        self.turns() % 2 == 1
    }

    /// The worker calls wakers until the guard is dropped: it may be held there as in a turn. Called by the worker alone.
    #[inline]
    pub(crate) fn begin_wakes(&self) -> Waking<'_> {
        Counters::add(&self.wakes, 1);
        Waking(self)
    }

    /// A number that changes when a turn, or the calling of wakers, begins or ends: odd meanwhile.
    #[inline]
    pub(crate) fn steps(&self) -> u64 {
        // They never overlap, so one of the two is even.
        self.turns() + self.wakes.load(Ordering::Relaxed)
    }

    /// A number that stands still as long as the worker is in one event, or in one calling of wakers.
    pub(crate) fn begun(&self) -> u64 {
        self.running.events() + self.wakes.load(Ordering::Relaxed)
    }

    /// Runnable colors that are queued here, but for those from outside that the worker has not seen.
    #[inline]
    pub(crate) fn queue_len(&self) -> usize {
        self.ring.len() + self.window.len()
    }

    /// Gives up to `max` of the oldest runnable colors to `out`.
    pub(crate) fn steal(&self, max: usize, mut out: impl FnMut(NonNull<Node>)) -> usize {
        let got = if self.window.len() > 0 {
            self.window.take(max, &mut out)
        } else {
            0
        };
        if got > 0 {
            got
        } else {
            self.ring.steal(max, out)
        }
    }

    /// Makes the worker's current or next `park` return.
    pub(crate) fn unpark(&self) {
        self.parker.unpark(&self.driver);
    }

    /// Sleeps until `unpark`, or for so long, or until its driver reports something. Called by the worker alone.
    pub(crate) fn park(&self, limit: Option<Duration>, events: &mut Events) {
        self.parker.park(limit, self.driver(), events);
    }

    /// A worker is about to be started.
    pub(crate) fn begin(&self) {
        self.stop.store(false, Ordering::Release);
        self.parker.state.store(EMPTY, Ordering::Release);
    }

    /// The last act of the worker: nobody need wake it any more.
    pub(crate) fn end(&self) {
        self.parker.state.store(ENDED, Ordering::Release);
    }

    /// Somebody else than the worker took the edge that was to wake it.
    pub(crate) fn pass_wake_on(&self) {
        if self.parker.is_notified() {
            self.driver.wake();
        }
    }

    /// The worker that calls this is the one that parks.
    pub(crate) fn bind(&self) {
        self.parker.bind();
    }

    /// What the worker waits on, if it has to wait for any descriptor.
    #[inline]
    pub(crate) fn driver(&self) -> Option<&Driver> {
        // Pairs with the Release in `use_driver`.
        self.in_use.load(Ordering::Acquire).then_some(&self.driver)
    }

    /// Whether anybody waits for the worker's driver, or for its ring.
    pub(crate) fn waits_for_descriptors(&self) -> bool {
        self.files.is_busy() || self.driver().is_some_and(|driver| driver.is_used())
    }

    /// What the worker waits on from now on.
    pub(crate) fn use_driver(&self) -> &Driver {
        if !self.in_use.swap(true, Ordering::AcqRel) {
            // The worker may sleep where no driver wakes it.
            self.unpark();
        }
        &self.driver
    }
}

/// See [`Remote::begin_wakes`].
pub(crate) struct Waking<'a>(&'a Remote);

impl Drop for Waking<'_> {
    #[inline]
    fn drop(&mut self) {
        Counters::add(&self.0.wakes, 1);
    }
}

/// The worker is awake, and was not woken since it slept.
const EMPTY: u32 = 0;
/// It sleeps, or is about to, in the OS thread's own parking place, a futex.
const PARKED: u32 = 1;
/// It sleeps, or is about to, in its driver.
const IN_DRIVER: u32 = 2;
/// It was woken, and has not seen that: its present or next sleep ends at once. More than the others: see `unpark`.
const NOTIFIED: u32 = 3;
/// There is no worker. More than `NOTIFIED`: there is nobody to wake.
const ENDED: u32 = 4;

/// Where a worker sleeps: in its driver, if it has one.
#[derive(Default)]
struct Parker {
    state: AtomicU32,
    /// It is about to sleep in its driver, or does, or is about to wake up. What it misses otherwise it sees in `state`.
    in_wait: AtomicBool,
    /// Of the worker that has this place now.
    thread: crate::loom::Mutex<Option<thread::Thread>>,
}

impl Parker {
    fn bind(&self) {
        *lock(&self.thread) = Some(thread::current());
    }

    fn unpark(&self, driver: &Driver) {
        // Release pairs with the Acquire in `park`: what was posted before is seen after. Acquire, with the Release there: the
        // driver in which it sleeps is seen here.
        match self.state.fetch_max(NOTIFIED, Ordering::AcqRel) {
            PARKED => {
                if let Some(thread) = &*lock(&self.thread) {
                    thread.unpark();
                }
            }
            IN_DRIVER => driver.wake(),
            _ => {}
        }
    }

    /// Whether it was woken in its driver, and has not seen that.
    fn is_notified(&self) -> bool {
        // In this order: the worker sets the one before it says where it sleeps, and so before anybody wakes it there.
        self.state.load(Ordering::Acquire) == NOTIFIED && self.in_wait.load(Ordering::Acquire)
    }

    fn park(&self, limit: Option<Duration>, driver: Option<&Driver>, events: &mut Events) {
        if driver.is_some() {
            self.in_wait.store(true, Ordering::Release);
        }
        let asleep = if driver.is_some() { IN_DRIVER } else { PARKED };
        let notified =
            self.state
                .compare_exchange(EMPTY, asleep, Ordering::AcqRel, Ordering::Acquire);
        match (driver, limit) {
            // What the driver has is taken all the same.
            (Some(driver), _) if notified.is_err() => driver.look(events),
            (Some(driver), limit) => driver.wait(limit, events),
            _ if notified.is_err() => {}
            (None, Some(limit)) => thread::park_timeout(limit),
            (None, None) => thread::park(),
        }
        self.in_wait.store(false, Ordering::Release);
        self.state.swap(EMPTY, Ordering::AcqRel);
    }
}
