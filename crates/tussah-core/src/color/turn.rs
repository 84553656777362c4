//! A turn: a color runs its events, up to a bound, then gives the token back or goes to the end of the queue.

use std::ptr::NonNull;

use super::cell::{ColorCell, Leave, inbox};
use super::held::Outside;
use crate::event::{self, After, DropReason, Node, VTable};
use crate::loom::atomic::{AtomicU32, Ordering};
use crate::worker::Worker;

/// Bound, in events a turn: after so many, a color goes to the end of its worker's run queue, so that its neighbours wait
/// for at most this many of its events.
const EVENTS_MAX: u32 = 128;

/// How long a turn is to last: colors whose events were long get fewer of them a turn. What ends a turn of events that have become longer
/// is [`Running::is_due`](crate::stats::Running::is_due).
const TURN_NS: u64 = 100_000;

/// Bound, in events: the length of a turn as long as nothing is known of a color's events.
const EVENTS_UNKNOWN: u32 = 8;

/// The table of every cell, by whose address a worker tells a color from a thread that is its own: hence a static.
pub(crate) static TURN: VTable = VTable {
    run: ColorCell::turn,
    drop: ColorCell::drop_events,
    name: || "color",
    location_at: None,
    cancel: None,
};

/// How many events a color's turns may have, an estimate; written by the holder of the token.
pub(super) struct Pace {
    /// Events a turn, and `MEASURE`.
    events: AtomicU32,
}

/// The next turn is measured.
const MEASURE: u32 = 1 << 8;
const EVENTS: u32 = MEASURE - 1;

impl Default for Pace {
    fn default() -> Self {
        Self {
            events: AtomicU32::new(EVENTS_UNKNOWN),
        }
    }
}

impl ColorCell {
    /// The average length of the color's turns over the measured ones, in nanoseconds; 0 if none was.
    pub(crate) fn turn_ns(&self) -> u64 {
        self.turn_ns.load(Ordering::Relaxed)
    }

    /// Learns from a turn of so many events.
    fn learn(&self, events: u32, took_ns: u64) {
        let event_ns = (took_ns / u64::from(events.max(1))).max(1);
        let most = (TURN_NS / event_ns).clamp(1, u64::from(EVENTS_MAX));
        self.pace.events.store(most as u32, Ordering::Relaxed);
        let average = self.turn_ns();
        let average = if average == 0 {
            took_ns
        } else {
            average - average / 8 + took_ns / 8
        };
        self.turn_ns.store(average.max(1), Ordering::Relaxed);
    }

    /// Unwinds if an event does; the worker's loop catches that, and queues the color again.
    unsafe fn turn(node: NonNull<Node>, worker: &Worker) -> After {
        // SAFETY: the table of the node is `TURN`, and the pointer came from `node`.
        let cell = unsafe { Self::of(node) };
        // SAFETY: the cell came out of a run queue with its token, which keeps it alive until the turn ends.
        let this = unsafe { cell.as_ref() };
        worker.begin_turn(cell);
        let pace = this.pace.events.load(Ordering::Relaxed);
        let mut since = worker.measured_since.get();
        if pace & MEASURE != 0 && since == 0 {
            since = worker.handle.shared.now_ns();
        }
        let limit = pace & EVENTS;
        let mut events = 0;
        // SAFETY: the token is ours.
        let ended = unsafe { this.run_events(worker, limit, since, &mut events) };
        worker.end_turn();
        match ended {
            None => {
                if since != 0 {
                    this.measured(worker, events, since);
                } else if events < EVENTS_MAX {
                    // A look at the clock was due before the limit, or the limit is low: is it right?
                    let next = if events < limit { 1 } else { limit };
                    this.pace.events.store(next | MEASURE, Ordering::Relaxed);
                }
                worker.requeue(node);
            }
            // SAFETY: the token is ours, nothing is queued, and no handle is left.
            Some(Leave::Dead) => unsafe { (this.destroy)(cell) },
            Some(_) => {}
        }
        After::Continue
    }

    /// Runs events until there were `limit`, or a look at the clock is due, which gives `None`, or the color is left.
    ///
    /// # Safety
    /// The caller has the token; it is gone unless the result is `None` or `Dead`, or an event unwinds.
    #[inline]
    unsafe fn run_events(
        &self,
        worker: &Worker,
        limit: u32,
        since: u64,
        events: &mut u32,
    ) -> Option<Leave> {
        let mut over = false;
        while !over || self.fifo_is_empty() {
            let Some(event) = self.pop() else {
                if since != 0 {
                    // A turn is measured once.
                    if !inbox(self.state.load(Ordering::Relaxed)).is_null() {
                        self.take_inbox();
                        continue;
                    }
                    self.measured(worker, *events, since);
                }
                match self.leave() {
                    Leave::More => continue,
                    end => return Some(end),
                }
            };
            *events += 1;
            // SAFETY: the event came out of the FIFO, and the token is ours.
            if unsafe { event::run(event, worker) } == After::Parked {
                // Somebody else has the token now, and the cell may be gone.
                return Some(Leave::Left);
            }
            over = *events >= limit || worker.remote.running.is_due();
        }
        None
    }

    /// A measured turn is about to end. The caller has the token.
    #[cold]
    fn measured(&self, worker: &Worker, events: u32, since: u64) {
        let took_ns = worker.handle.shared.now_ns().saturating_sub(since);
        self.learn(events, took_ns);
        if worker.measured_since.get() != 0 {
            worker.account(self.name, took_ns);
        }
    }

    /// Drops what is queued and gives the token back: a turn after the end of the runtime.
    unsafe fn drop_events(node: NonNull<Node>, reason: DropReason) -> After {
        // SAFETY: the table of the node is `TURN`, and the pointer came from `node`.
        let cell = unsafe { Self::of(node) };
        // SAFETY: as in `turn`.
        let this = unsafe { cell.as_ref() };
        let outside = Worker::with(Outside::enter);
        loop {
            while let Some(event) = this.pop() {
                // SAFETY: the event came out of the FIFO, and the token is ours.
                if unsafe { event::drop_unrun(event, reason) } == After::Parked {
                    return After::Continue;
                }
            }
            match this.leave() {
                Leave::More => continue,
                Leave::Left => {}
                Leave::Dead => {
                    // Nobody can wait for the color any more.
                    drop(outside);
                    // SAFETY: the token is ours, nothing is queued, and no handle is left.
                    unsafe { (this.destroy)(cell) }
                }
            }
            return After::Continue;
        }
    }
}
