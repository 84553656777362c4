//! The part of a worker that others reach.

use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use super::window::Window;
use crate::driver::file::RingPlace;
use crate::event::Node;
use crate::loom::atomic::{AtomicBool, AtomicU64, Ordering};
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
    /// The median length of a turn, in nanoseconds, over the sampled ones.
    pub(crate) turn_ns: AtomicU64,
    /// The worker has to end.
    pub(crate) stop: AtomicBool,
    pub(crate) counters: Counters,
    pub(crate) running: Running,
    /// Where the time of the measured turns went.
    pub(crate) profile: Mutex<Profile>,
    /// Where this worker's file operations go.
    pub(crate) files: RingPlace,
    parker: Parker,
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
    pub(crate) fn new(shard: Arc<Shard>) -> Self {
        Self {
            ring: Ring::new(),
            window: Window::new(),
            injector: Inbox::new(),
            shard,
            turns: AtomicU64::new(0),
            turn_ns: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            counters: Counters::default(),
            running: Running::default(),
            profile: Mutex::new(Profile::new()),
            files: RingPlace::default(),
            parker: Parker::default(),
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
        self.parker.unpark();
    }

    /// Sleeps until `unpark`, or for so long. Called by the worker alone.
    pub(crate) fn park(&self, limit: Option<Duration>) {
        self.parker.park(limit);
    }

    /// The worker that calls this is the one that parks.
    pub(crate) fn bind(&self) {
        self.parker.bind();
    }
}

/// Where a worker sleeps: today the OS thread's own parking place, a futex.
#[derive(Default)]
struct Parker {
    notified: AtomicBool,
    /// Of the worker that has this place now.
    thread: crate::loom::Mutex<Option<thread::Thread>>,
}

impl Parker {
    fn bind(&self) {
        *lock(&self.thread) = Some(thread::current());
    }

    fn unpark(&self) {
        // Release pairs with the Acquire in `park`: what was posted before is seen after.
        if !self.notified.swap(true, Ordering::AcqRel)
            && let Some(thread) = &*lock(&self.thread)
        {
            thread.unpark();
        }
    }

    fn park(&self, limit: Option<Duration>) {
        if !self.notified.swap(false, Ordering::AcqRel) {
            match limit {
                Some(limit) => thread::park_timeout(limit),
                None => thread::park(),
            }
            self.notified.swap(false, Ordering::AcqRel);
        }
    }
}
