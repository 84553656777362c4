//! Stealing: choosing a victim, and deciding whether a steal pays off.
//!
//! A steal takes a runnable color, or a thread with a color of its own, but never a part of a
//! color's events: exclusion and order move with the cell (libasync-smp, "Scheduling callbacks").
//! The decision to steal compares costs, as in that system's direct successor (Gaud et al.,
//! "Efficient Workstealing for Multicore Event-Driven Systems", ICDCS 2010): a steal must save more
//! time than it costs to move the color and its data. The programmer need not estimate either cost.
//! The victim measures how long its turns are, and the length of its queue is known.

use std::time::Duration;

use super::context::Worker;
use super::remote::{Counters, Remote};
use crate::driver::Events;
use crate::loom::atomic::Ordering;

/// The length of a turn that is worth more than moving it and its data to another cache.
const MOVE_NS: u64 = 500;

/// The cost of waking a worker, for both workers together, in nanoseconds.
const WAKE_NS: u64 = 10_000;

/// A thief's knowledge about a victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    /// The number of runnable colors in the victim's queue.
    pub(crate) queue_len: usize,
    /// The median length of its turns, in nanoseconds; 0 if unknown.
    pub(crate) turn_ns: u64,
    /// The time that the victim has spent in its current turn, as far as the thief has observed it.
    pub(crate) stuck: Duration,
    /// The time that the oldest color in the victim's queue has waited, as far as the thief has
    /// observed it.
    pub(crate) waited: Duration,
}

/// Returns the number of runnable colors to steal; 0 if a steal does not pay off.
///
/// - If the oldest color has waited for `delay`, or the victim's turn has lasted that long,
///   stealing half of the queue pays off, whatever the cost.
/// - A single queued color is not stolen: its worker reaches it before it could be moved.
/// - Otherwise half of the queue is stolen, if a turn takes longer than a move.
pub(crate) fn worth(sample: Sample, delay: Duration) -> usize {
    let half = sample.queue_len.div_ceil(2);
    if sample.stuck >= delay || sample.waited >= delay {
        return half;
    }
    if sample.queue_len >= 2 && sample.turn_ns >= MOVE_NS {
        half
    } else {
        0
    }
}

/// Returns whether a worker that has queued a color should wake a sleeper immediately. It should
/// only if the sleeper would find work worth stealing, and if the queued work takes longer than
/// waking the sleeper.
pub(crate) fn worth_a_call(queue_len: usize, turn_ns: u64, delay: Duration) -> bool {
    let backlog = turn_ns.saturating_mul(queue_len as u64);
    let (stuck, waited) = (Duration::ZERO, Duration::ZERO);
    let sample = Sample {
        queue_len,
        turn_ns,
        stuck,
        waited,
    };
    backlog >= WAKE_NS && worth(sample, delay) > 0
}

/// A worker's memory of the other workers, which shows those that make no progress.
pub(crate) struct Watch {
    seen: Vec<Seen>,
    /// The worker that was relieved last.
    next: usize,
    events: Events,
}

#[derive(Clone, Copy, Default)]
struct Seen {
    /// The turn, or the round of calls to wakers, that the victim was in.
    steps: u64,
    since_ns: u64,
    /// The end of the victim's ring at the time of the observation. Until this number of items have
    /// been taken, some have waited since then.
    mark: u64,
    mark_ns: u64,
}

impl Watch {
    pub(crate) fn new() -> Self {
        Self {
            seen: Vec::new(),
            next: 0,
            events: Events::new(),
        }
    }

    /// Visits all other workers once, starting at a random one. Returns true if anything was
    /// stolen.
    pub(crate) fn steal(&mut self, worker: &Worker) -> bool {
        let shared = &worker.handle.shared;
        let places = shared.places();
        if places < 2 || !shared.stealing {
            return false;
        }
        self.seen.resize(places, Seen::default());
        let first = (worker.random() % places as u64) as usize;
        let mut now_ns = 0;
        for victim in (first..places).chain(0..first) {
            if victim != worker.index && self.steal_from(worker, victim, &mut now_ns) {
                return true;
            }
        }
        false
    }

    fn steal_from(&mut self, worker: &Worker, victim: usize, now_ns: &mut u64) -> bool {
        let shared = &worker.handle.shared;
        let Some(remote) = shared.remote(victim) else {
            return false;
        };
        let queue_len = remote.queue_len();
        let injected = !remote.injector.is_empty();
        let due = shared.timer_due(&remote.shard);
        let driver = shared.used_driver(victim);
        let files = remote.files.is_busy();
        if queue_len == 0 && !injected && !due && driver.is_none() && !files {
            return false;
        }
        if *now_ns == 0 {
            *now_ns = shared.now_ns();
        }
        let seen = &mut self.seen[victim];
        let is_same = seen.is_same_turn(remote, *now_ns);
        let head = remote.ring.head();
        if head >= seen.mark {
            seen.mark = head + remote.ring.len() as u64;
            seen.mark_ns = *now_ns;
        }
        let waited = Duration::from_nanos(now_ns.saturating_sub(seen.mark_ns));
        let stuck = Duration::from_nanos(now_ns.saturating_sub(seen.since_ns));
        let turn_ns = remote.turn_ns.load(Ordering::Relaxed);
        let want = worth(
            Sample {
                queue_len,
                turn_ns,
                stuck,
                waited,
            },
            shared.steal_delay,
        );
        let mut got = 0;
        if want > 0 {
            got = remote.steal(want, |node| worker.requeue(node));
        }
        if got == 0 && injected && is_same {
            got = take_injected(worker, remote);
        }
        if stuck >= shared.steal_delay {
            let _waking = worker.remote.begin_wakes();
            if due {
                shared.fire_timers(&remote.shard);
            }
            if files {
                remote.files.serve();
            }
            if driver.is_some() {
                shared.look_for(victim, &mut self.events);
            }
        }
        count(worker, got);
        got > 0
    }

    /// Visits one other worker, in turns. If it is still in the same turn as at the last visit,
    /// takes the colors in its injector. If the turn has lasted for the steal delay, it also takes
    /// half of the ring. For a busy worker, which does not search.
    pub(crate) fn relieve(&mut self, worker: &Worker, now_ns: u64) {
        let shared = &worker.handle.shared;
        let places = shared.places();
        if places < 2 || !shared.stealing {
            return;
        }
        self.seen.resize(places, Seen::default());
        self.next = (self.next + 1) % places;
        if self.next == worker.index {
            self.next = (self.next + 1) % places;
        }
        let Some(remote) = shared.remote(self.next) else {
            return;
        };
        let (queue_len, injected) = (remote.queue_len(), !remote.injector.is_empty());
        let seen = &mut self.seen[self.next];
        if queue_len == 0 && !injected || !seen.is_same_turn(remote, now_ns) {
            return;
        }
        let mut got = 0;
        let stuck = Duration::from_nanos(now_ns.saturating_sub(seen.since_ns));
        if stuck >= shared.steal_delay {
            got = remote.steal(queue_len.div_ceil(2), |node| worker.requeue(node));
        }
        if injected {
            got += take_injected(worker, remote);
        }
        count(worker, got);
    }
}

impl Seen {
    /// Returns whether a worker is still in the same turn as at the last look. A worker that is
    /// between turns, or asleep, is about to check its queue without help.
    fn is_same_turn(&mut self, remote: &Remote, now_ns: u64) -> bool {
        let steps = remote.steps();
        let is_same = self.steps == steps && self.since_ns != 0 && steps % 2 == 1;
        if !is_same {
            self.steps = steps;
            self.since_ns = now_ns;
        }
        is_same
    }
}

/// Takes the colors in a worker's injector. Any worker might have got them, so that there is no
/// reason to wait for the steal delay.
fn take_injected(worker: &Worker, remote: &Remote) -> usize {
    let mut got = 0;
    for node in remote.injector.take_all() {
        worker.requeue(node);
        got += 1;
    }
    got
}

/// Counts a steal.
fn count(worker: &Worker, got: usize) {
    if got > 0 {
        Counters::add(&worker.remote.counters.steals, 1);
        Counters::add(&worker.remote.counters.stolen, got as u64);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn worth_table() {
        let delay = Duration::from_millis(1);
        let check = |queue_len, turn_ns, stuck_us, waited_us, expected| {
            let (stuck, waited) = (
                Duration::from_micros(stuck_us),
                Duration::from_micros(waited_us),
            );
            let sample = Sample {
                queue_len,
                turn_ns,
                stuck,
                waited,
            };
            assert_eq!(worth(sample, delay), expected, "{sample:?}");
        };
        check(0, 0, 0, 0, 0);
        check(1, 1_000_000, 999, 999, 0); // its worker is about to reach it
        check(1, 50, 1_000, 0, 1); // its worker does not reach it
        check(64, 50, 0, 0, 0); // waiters of one color: moving them costs more than running them
        check(64, 5_000, 0, 0, 32);
        check(2, 5_000, 0, 0, 1);
        check(100_000, 50, 0, 0, 0); // many, but they get their turn
        check(100_000, 50, 0, 1_000, 50_000); // they do not
        check(3, 0, 0, 0, 0); // nothing is known yet
        check(3, 0, 2_000, 0, 2);
    }
}
