//! The list of sleeping workers: which worker keeps watch, and which worker to wake. `README.md`
//! beside this file has the protocol and its proof.

use crate::loom::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use crate::loom::{Mutex, lock};

/// A worker is parked.
const PARKED: u32 = 1;
/// A worker searches, or is parked with a time limit.
const WATCHED: u32 = 2;

/// The number of time limits for which a watch that had to be woken continues after the last worker
/// went to sleep. With events every millisecond, no event then needs to wake a watch, and an idle
/// runtime soon costs nothing.
const GRACE: u32 = if cfg!(loom) { 0 } else { 2 };

/// The sleepers of a runtime.
pub(crate) struct Idle {
    /// `PARKED` and `WATCHED`, written under the lock, so that the busy path reads only one word.
    summary: AtomicU32,
    /// True if the watchdog sleeps until a worker runs; set under the lock.
    watchdog_sleeps: AtomicBool,
    lock: Mutex<State>,
}

struct State {
    /// The number of workers that exist.
    active: usize,
    /// The number of workers that are searching for work.
    searching: usize,
    /// True if a watch had to be woken since the last worker parked without a time limit.
    called: bool,
    /// The number of times that the watch may continue although no worker runs.
    grace: u32,
    /// The workers that sleep or are about to sleep. The last entry has slept for the shortest
    /// time.
    parked: Vec<Parked>,
    /// The number of times that a worker was added to `parked`.
    parks: u64,
}

#[derive(Clone, Copy)]
struct Parked {
    worker: usize,
    /// True if the worker keeps watch: it is parked with a time limit.
    timed: bool,
}

impl State {
    fn watched(&self) -> bool {
        self.searching > 0 || self.parked.iter().any(|parked| parked.timed)
    }

    /// Turns one sleeper, preferably the watch, into a searcher.
    fn wake_one(&mut self) -> Option<usize> {
        let watch = self.parked.iter().position(|parked| parked.timed);
        let at = watch.or(self.parked.len().checked_sub(1))?;
        self.searching += 1;
        Some(self.parked.remove(at).worker)
    }
}

impl Idle {
    pub(crate) fn new() -> Self {
        Self {
            summary: AtomicU32::new(0),
            watchdog_sleeps: AtomicBool::new(false),
            lock: Mutex::new(State {
                active: 0,
                searching: 0,
                called: false,
                grace: 0,
                parked: Vec::new(),
                parks: 0,
            }),
        }
    }

    fn with<R>(&self, f: impl FnOnce(&mut State) -> R) -> R {
        let mut state = lock(&self.lock);
        let result = f(&mut state);
        let parked = if state.parked.is_empty() { 0 } else { PARKED };
        let watched = if state.watched() { WATCHED } else { 0 };
        self.summary.store(parked | watched, Ordering::Relaxed);
        result
    }

    /// Returns whether any worker is parked. With a SeqCst fence before it, pairs with the fence in
    /// `park`.
    #[inline]
    pub(crate) fn any_parked(&self) -> bool {
        self.summary.load(Ordering::Relaxed) & PARKED != 0
    }

    /// Returns whether a worker is parked and none keeps watch.
    #[inline]
    pub(crate) fn unwatched(&self) -> bool {
        self.summary.load(Ordering::Relaxed) == PARKED
    }

    /// Adds a worker, as a searcher.
    pub(crate) fn add(&self) {
        self.with(|state| {
            state.active += 1;
            state.searching += 1;
        });
    }

    /// Removes a searching worker. Returns a successor to wake.
    pub(crate) fn remove(&self) -> Option<usize> {
        self.with(|state| {
            state.active -= 1;
            state.searching -= 1;
            if state.searching == 0 {
                state.wake_one()
            } else {
                None
            }
        })
    }

    /// Turns a busy worker into a searcher.
    pub(crate) fn start_search(&self) {
        self.with(|state| state.searching += 1);
    }

    /// Records that a searcher found work. Returns a successor to wake if other workers run and
    /// none keeps watch. If no other worker runs, the caller checks whether it has more work than
    /// it is about to run, and if so wakes a sleeper.
    #[must_use]
    pub(crate) fn found(&self) -> Option<usize> {
        let successor = self.with(|state| {
            state.searching -= 1;
            state.grace = if state.called { GRACE } else { 0 };
            let others = state.active - state.parked.len() - state.searching - 1;
            if others > 0 && !state.watched() {
                state.wake_one()
            } else {
                None
            }
        });
        if self.unwatched() {
            // Pairs with the fence of a poster from outside: either the poster sees that no worker
            // keeps watch, or this worker sees its event.
            fence(Ordering::SeqCst);
        }
        successor
    }

    /// Announces that a searcher will park. Returns true if the worker keeps watch and must park
    /// with the time limit.
    ///
    /// The caller looks for work once more after this call and before it parks.
    pub(crate) fn park(&self, worker: usize) -> bool {
        let timed = self.with(|state| {
            state.searching -= 1;
            let others = state.active - state.parked.len() - state.searching - 1;
            let mut timed = !state.watched();
            if timed && others == 0 {
                timed = state.grace > 0;
                state.called = timed;
                state.grace = state.grace.saturating_sub(1);
            }
            state.parked.push(Parked { worker, timed });
            state.parks += 1;
            timed
        });
        // Pairs with the fence of a poster from outside: either the poster sees this worker parked,
        // or this worker sees its event.
        fence(Ordering::SeqCst);
        timed
    }

    /// Records that a parked worker is awake, for any reason, and is now searching.
    pub(crate) fn unpark(&self, worker: usize) {
        self.with(|state| {
            // If another OS thread woke this worker, it has already counted the worker as a
            // searcher.
            if let Some(at) = state
                .parked
                .iter()
                .position(|parked| parked.worker == worker)
            {
                state.parked.remove(at);
                state.searching += 1;
            }
        });
    }

    /// If all workers are parked, returns the number of times that workers have parked so far.
    /// Between two equal results no worker has done anything.
    pub(crate) fn all_parked(&self) -> Option<u64> {
        self.with(|state| (state.parked.len() == state.active).then_some(state.parks))
    }

    /// Returns whether the watchdog may sleep until a worker runs, because every worker is parked.
    pub(crate) fn sleep_watchdog(&self) -> bool {
        self.with(|state| {
            let all = state.parked.len() == state.active;
            self.watchdog_sleeps.store(all, Ordering::Relaxed);
            all
        })
    }

    /// Returns whether the watchdog has to be woken. The caller has just called `found`, whose lock
    /// orders the two: either the watchdog saw that the caller was not parked, or this call sees
    /// that the watchdog sleeps.
    #[inline]
    pub(crate) fn wake_watchdog(&self) -> bool {
        self.watchdog_sleeps.load(Ordering::Relaxed)
            && self.watchdog_sleeps.swap(false, Ordering::Relaxed)
    }

    #[cfg(all(test, not(loom)))]
    pub(crate) fn watchdog_sleeps(&self) -> bool {
        self.watchdog_sleeps.load(Ordering::Relaxed)
    }

    /// Removes one sleeper, which becomes a searcher. The caller unparks it.
    #[must_use]
    pub(crate) fn wake_one(&self) -> Option<usize> {
        self.with(State::wake_one)
    }

    /// Does the same as [`wake_one`](Self::wake_one) for a worker that must not continue without a
    /// watch. Also used by the watchdog.
    #[must_use]
    pub(crate) fn call_watch(&self) -> Option<usize> {
        self.with(|state| {
            state.called = true;
            state.grace = GRACE;
            state.wake_one()
        })
    }

    /// Removes this sleeper, if it is one. The caller unparks it.
    #[must_use]
    pub(crate) fn wake(&self, worker: usize) -> bool {
        self.with(|state| {
            let at = state
                .parked
                .iter()
                .position(|parked| parked.worker == worker);
            if let Some(at) = at {
                state.parked.remove(at);
                state.searching += 1;
            }
            at.is_some()
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{GRACE, Idle};

    /// Parks the only worker for one time limit after another. Returns the number of times that it
    /// kept watch.
    fn watches(idle: &Idle) -> u32 {
        let mut watches = 0;
        while idle.park(0) {
            watches += 1;
            idle.unpark(0);
        }
        watches
    }

    #[test]
    fn a_watch_that_was_called_goes_on_for_a_while() {
        let idle = Idle::new();
        (0..2).for_each(|_| idle.add());
        let _ = idle.park(1);
        for _ in 0..2 {
            assert_eq!(idle.found(), None);
            idle.start_search();
            assert_eq!(watches(&idle), 0, "nobody called it");
            idle.unpark(0);
            assert_eq!(idle.found(), None);
            let watch = idle.call_watch();
            assert_eq!(watch, Some(1), "worker 0 runs, and needs a watch");
            assert!(idle.park(1));
            idle.start_search();
            assert_eq!(watches(&idle), 0, "worker 1 is the watch");
            for grace in (0..=GRACE).rev() {
                idle.unpark(1);
                assert_eq!(idle.park(1), grace > 0);
            }
            idle.unpark(0);
        }
    }
}
