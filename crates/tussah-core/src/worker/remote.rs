//! The public part of a worker.

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

/// The part of a worker that is visible to thieves, posters and the shutdown.
pub(crate) struct Remote {
    pub(crate) ring: Ring<Node>,
    /// The candidates of a policy, ahead of the ring.
    pub(crate) window: Window,
    /// Events from OS threads that are not workers of this runtime.
    pub(crate) injector: Inbox<Node>,
    pub(crate) shard: Arc<Shard>,
    /// The number of turns begun plus the number of turns ended: odd during a turn. If it does not
    /// change, the worker is still in the same turn, or asleep. Written only by the worker.
    turns: AtomicU64,
    /// The number of times that the worker began to call wakers, plus the number of times that it
    /// ended doing so: odd while it calls wakers. The calls may take long, because a waker may be
    /// foreign code. Written only by the worker.
    wakes: AtomicU64,
    /// The median length of the sampled turns, in nanoseconds.
    pub(crate) turn_ns: AtomicU64,
    /// True if the worker must end.
    pub(crate) stop: AtomicBool,
    pub(crate) counters: Counters,
    pub(crate) running: Running,
    /// The time of the measured turns by color and site.
    pub(crate) profile: Mutex<Profile>,
    /// The ring of this worker's file operations.
    pub(crate) files: RingPlace,
    parker: Parker,
    /// The place where the worker waits for descriptors. Made with the worker's place, because
    /// later the process may have no free descriptors.
    driver: Driver,
    /// True if any descriptor is or was registered with the driver: the worker then sleeps there.
    in_use: AtomicBool,
}

/// The activity counts of a worker: only the worker writes them, and any OS thread reads them.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) steals: AtomicU64,
    pub(crate) stolen: AtomicU64,
    pub(crate) parks: AtomicU64,
    pub(crate) panics: AtomicU64,
}

impl Counters {
    /// Adds to a counter that only the caller writes, so no read-modify-write is needed.
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

    /// Records that a turn begins or ends. Called only by the worker.
    #[inline]
    pub(crate) fn count_turn(&self) {
        Counters::add(&self.turns, 1);
    }

    /// Returns a number that changes when a turn begins or ends: odd during a turn.
    #[inline]
    pub(crate) fn turns(&self) -> u64 {
        self.turns.load(Ordering::Relaxed)
    }

    /// Returns whether an event is running, rather than the worker's own loop.
    #[inline]
    pub(crate) fn is_in_event(&self) -> bool {
        self.turns() % 2 == 1
    }

    /// Records that the worker calls wakers until the guard is dropped. The worker may be stuck
    /// there, as in a turn. Called only by the worker.
    #[inline]
    pub(crate) fn begin_wakes(&self) -> Waking<'_> {
        Counters::add(&self.wakes, 1);
        Waking(self)
    }

    /// Returns a number that changes when a turn or a round of calls to wakers begins or ends: odd
    /// in between.
    #[inline]
    pub(crate) fn steps(&self) -> u64 {
        // The two never overlap, so at least one of the numbers is even.
        self.turns() + self.wakes.load(Ordering::Relaxed)
    }

    /// Returns a number that does not change while the worker runs one event or makes one round of
    /// calls to wakers.
    pub(crate) fn begun(&self) -> u64 {
        self.running.events() + self.wakes.load(Ordering::Relaxed)
    }

    /// Returns the number of runnable colors queued here, without the injector's.
    #[inline]
    pub(crate) fn queue_len(&self) -> usize {
        self.ring.len() + self.window.len()
    }

    /// Passes up to `max` of the oldest runnable colors to `out`.
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

    /// Sleeps until `unpark`, a time limit or a report of the driver. Called only by the worker.
    pub(crate) fn park(&self, limit: Option<Duration>, events: &mut Events) {
        self.parker.park(limit, self.driver(), events);
    }

    /// Prepares the place for a worker that is about to be started.
    pub(crate) fn begin(&self) {
        self.stop.store(false, Ordering::Release);
        self.parker.state.store(EMPTY, Ordering::Release);
    }

    /// Records the last act of the worker: from now on it need not be woken.
    pub(crate) fn end(&self) {
        self.parker.state.store(ENDED, Ordering::Release);
    }

    /// Passes the wake on after other code has taken the edge that was to wake the worker.
    pub(crate) fn pass_wake_on(&self) {
        if self.parker.is_notified() {
            self.driver.wake();
        }
    }

    /// Makes the calling OS thread the one that parks here.
    pub(crate) fn bind(&self) {
        self.parker.bind();
    }

    /// Returns the worker's driver, if it waits for any descriptor.
    #[inline]
    pub(crate) fn driver(&self) -> Option<&Driver> {
        // Pairs with the Release in `use_driver`.
        self.in_use.load(Ordering::Acquire).then_some(&self.driver)
    }

    /// Returns whether anything waits for the worker's driver or for its ring.
    pub(crate) fn waits_for_descriptors(&self) -> bool {
        self.files.is_busy() || self.driver().is_some_and(|driver| driver.is_used())
    }

    /// Returns the worker's driver, and makes the worker wait there from now on.
    pub(crate) fn use_driver(&self) -> &Driver {
        if !self.in_use.swap(true, Ordering::AcqRel) {
            // The worker may be asleep on the futex, where no driver can wake it.
            self.unpark();
        }
        &self.driver
    }
}

/// A guard; see [`Remote::begin_wakes`].
pub(crate) struct Waking<'a>(&'a Remote);

impl Drop for Waking<'_> {
    #[inline]
    fn drop(&mut self) {
        Counters::add(&self.0.wakes, 1);
    }
}

/// The worker is awake, and has not been woken since it last slept.
const EMPTY: u32 = 0;
/// The worker sleeps, or is about to sleep, on its OS thread's futex.
const PARKED: u32 = 1;
/// The worker sleeps, or is about to sleep, in its driver.
const IN_DRIVER: u32 = 2;
/// The worker has not seen its wake: its current or next sleep ends immediately. The value is
/// larger than the states above: see `unpark`.
const NOTIFIED: u32 = 3;
/// There is no worker to wake. The value is larger than `NOTIFIED`.
const ENDED: u32 = 4;

/// The place where a worker sleeps: its driver, if it has one, or a futex.
#[derive(Default)]
struct Parker {
    state: AtomicU32,
    /// True if the worker is about to sleep in its driver, sleeps there, or is about to wake up. It
    /// checks `state` for anything that it misses meanwhile.
    in_wait: AtomicBool,
    /// The OS thread of the place's current worker.
    thread: crate::loom::Mutex<Option<thread::Thread>>,
}

impl Parker {
    fn bind(&self) {
        *lock(&self.thread) = Some(thread::current());
    }

    fn unpark(&self, driver: &Driver) {
        // Release pairs with the Acquire in `park`: the worker then sees everything posted before
        // the wake. Acquire pairs with the Release there: this call sees the driver in which the
        // worker sleeps.
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

    /// Returns whether the worker was woken in its driver but has not seen the wake yet.
    fn is_notified(&self) -> bool {
        // The order matters: the worker sets `in_wait` before `state` shows where it sleeps, so
        // before it can be woken there.
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
            // The driver's reports are taken nevertheless.
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
