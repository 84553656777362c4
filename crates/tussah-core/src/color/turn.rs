//! A color's turn: it runs a bounded number of events, and then gives the token back or queues the
//! color again.

use std::ptr::NonNull;

use super::cell::{ColorCell, Leave, inbox};
use super::held::Outside;
use crate::event::{self, After, DropReason, Node, VTable};
use crate::loom::atomic::{AtomicU32, Ordering};
use crate::worker::Worker;

/// Bound, in events per turn: a color with more events goes to the end of its worker's run queue,
/// so other colors there wait for at most this many events.
const EVENTS_MAX: u32 = 128;

/// Target length of a turn: a color with long events runs fewer events per turn.
/// [`Running::is_due`](crate::stats::Running::is_due) ends the turn of a color whose events have
/// become longer.
const TURN_NS: u64 = 100_000;

/// The length of a color's turn, in events, before any of its events has been measured.
const EVENTS_UNKNOWN: u32 = 8;

/// The function table of every cell. It is a static because this address lets a worker distinguish
/// a color from an uncolored thread.
pub(crate) static TURN: VTable = VTable {
    run: ColorCell::turn,
    drop: ColorCell::drop_events,
    name: || "color",
    location_at: None,
    cancel: None,
};

/// An estimate of how many events one turn of the color should run; written by the holder of the
/// token.
pub(super) struct Pace {
    /// Events per turn, plus the flag `MEASURE`.
    events: AtomicU32,
}

/// Set if the next turn is to be measured.
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
    /// Returns the average length of the color's measured turns in nanoseconds, or 0 if none was
    /// measured.
    pub(crate) fn turn_ns(&self) -> u64 {
        self.turn_ns.load(Ordering::Relaxed)
    }

    /// Updates the estimate and the average from a measured turn.
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

    /// Runs one turn. If an event unwinds, so does the turn; the worker's loop catches the panic
    /// and queues the color again.
    unsafe fn turn(node: NonNull<Node>, worker: &Worker) -> After {
        // SAFETY: the node's table is `TURN`, and the pointer came from `node`.
        let cell = unsafe { Self::of(node) };
        // SAFETY: the cell was taken from a run queue with its token, which keeps it alive until
        // the turn ends.
        let this = unsafe { cell.as_ref() };
        worker.begin_turn(cell);
        let pace = this.pace.events.load(Ordering::Relaxed);
        let mut since = worker.measured_since.get();
        if pace & MEASURE != 0 && since == 0 {
            since = worker.handle.shared.now_ns();
        }
        let limit = pace & EVENTS;
        let first = worker.remote.running.events();
        // SAFETY: this turn holds the token.
        let ended = unsafe { this.run_events(worker, first, limit, since) };
        worker.end_turn();
        match ended {
            None => {
                let events = worker.remote.running.since(first);
                if since != 0 {
                    this.measured(worker, events, since);
                } else if events < EVENTS_MAX {
                    // The clock cut the turn short, or the limit is low: measure the next turn to
                    // check the limit.
                    let next = if events < limit { 1 } else { limit };
                    this.pace.events.store(next | MEASURE, Ordering::Relaxed);
                }
                worker.requeue(node);
            }
            // SAFETY: this turn holds the token, nothing is queued, and no handle is left.
            Some(Leave::Dead) => unsafe { (this.destroy)(cell) },
            Some(_) => {}
        }
        After::Continue
    }

    /// Runs events until the color is left. Returns `None` after `limit` events, or when a look at
    /// the clock is due. `first` is the number of events that the worker has begun before the turn.
    ///
    /// # Safety
    /// The caller must hold the token. It keeps the token only if the result is `None` or `Dead`,
    /// or an event unwinds.
    #[inline]
    unsafe fn run_events(
        &self,
        worker: &Worker,
        first: u64,
        limit: u32,
        since: u64,
    ) -> Option<Leave> {
        let running = &worker.remote.running;
        let end = first + u64::from(limit);
        let mut over = false;
        loop {
            while !over && let Some(event) = self.pop() {
                // SAFETY: the event came out of the FIFO, and the caller holds the token.
                if unsafe { event::run(event, running, worker) } == After::Parked {
                    // Another holder has the token now, and the cell may be freed.
                    return Some(Leave::Left);
                }
                over = running.ends_turn(end);
            }
            if !self.fifo_is_empty() {
                return None;
            }
            if since != 0 {
                // A turn is measured only once, so this takes the inbox first.
                if !inbox(self.state.load(Ordering::Relaxed)).is_null() {
                    self.take_inbox();
                    continue;
                }
                self.measured(worker, running.since(first), since);
            }
            match self.leave() {
                Leave::More => continue,
                end => return Some(end),
            }
        }
    }

    /// Records a measured turn. The caller holds the token.
    #[cold]
    fn measured(&self, worker: &Worker, events: u32, since: u64) {
        let took_ns = worker.handle.shared.now_ns().saturating_sub(since);
        self.learn(events, took_ns);
        if worker.measured_since.get() != 0 {
            worker.account(self.name, took_ns);
        }
    }

    /// Drops all queued events and gives the token back. Takes the place of a turn after the
    /// runtime has ended.
    unsafe fn drop_events(node: NonNull<Node>, reason: DropReason) -> After {
        // SAFETY: the node's table is `TURN`, and the pointer came from `node`.
        let cell = unsafe { Self::of(node) };
        // SAFETY: as in `turn`.
        let this = unsafe { cell.as_ref() };
        let outside = Worker::with(Outside::enter);
        loop {
            while let Some(event) = this.pop() {
                // SAFETY: the event came out of the FIFO, and this call holds the token.
                if unsafe { event::drop_unrun(event, reason) } == After::Parked {
                    return After::Continue;
                }
            }
            match this.leave() {
                Leave::More => continue,
                Leave::Left => {}
                Leave::Dead => {
                    // The color is dead, so nothing can wait for it.
                    drop(outside);
                    // SAFETY: this call holds the token, nothing is queued, and no handle is left.
                    unsafe { (this.destroy)(cell) }
                }
            }
            return After::Continue;
        }
    }
}
