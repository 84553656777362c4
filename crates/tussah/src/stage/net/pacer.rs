//! The controllers that pace the reads and bound the writes of sockets.

use std::sync::Weak;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tussah_core::Notify;

use super::set::{Queue, SocketSet};
use crate::stage::BuildError;
use crate::stage::control::{Controller, Owns, Servlets, Settings, log::Log};
use crate::stage::event::{Classes, Time};
use crate::stage::state::{ControllerSet, Counts, Now, Random};
use crate::time::sleep;

/// The shortest time between two counts of the writes, in nanoseconds. A count asks all
/// connections, so each connection adds `COUNT_EACH_NS`.
const COUNT_NS: u64 = 10_000_000;
const COUNT_EACH_NS: u64 = 3_000;

/// The interval, in nanoseconds, at which a connection that waits for its turn to read checks for
/// new decisions.
const LOOK_NS: u64 = 100_000_000;

/// The controllers of the reads, or of the writes, of all sockets that belong together. Without
/// controllers it costs one check of a flag.
pub(super) struct Pacer {
    set: Weak<SocketSet>,
    queue: Queue,
    time: Time,
    staffed: AtomicBool,
    /// The decision: the pace of reads in nanoseconds, or the bound on the bytes queued to a peer.
    setting: AtomicU64,
    state: Mutex<PacerState>,
    /// The number of connections that wait for their turn to read.
    waiting: AtomicU64,
    /// Holds a permit for the next turn; connections queue for it.
    turn: Notify,
    /// The time of the last turn, in nanoseconds.
    last_ns: AtomicU64,
}

/// A connection that waits until this value is dropped.
struct Waiting<'a>(&'a AtomicU64);

impl<'a> Waiting<'a> {
    fn one(waiting: &'a AtomicU64) -> Self {
        waiting.fetch_add(1, Ordering::Relaxed);
        Self(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A turn. Dropping it passes the turn on.
struct Turn<'a>(&'a Notify);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

struct PacerState {
    controllers: ControllerSet,
    counts: Counts,
    log: Log,
    random: Random,
    /// The time at which the writes are counted again.
    count_ns: u64,
}

impl Pacer {
    pub(super) fn new(set: Weak<SocketSet>, queue: Queue, time: Time, seed: u64) -> Self {
        let none = if queue == Queue::Write { u64::MAX } else { 0 };
        let turn = Notify::new();
        turn.notify_one();
        Self {
            set,
            queue,
            time,
            staffed: AtomicBool::new(false),
            setting: AtomicU64::new(none),
            state: Mutex::new(PacerState {
                controllers: ControllerSet::new(Vec::new(), Classes::by_priority(1), 0),
                counts: Counts::default(),
                log: Log::default(),
                random: Random::new(seed),
                count_ns: 0,
            }),
            waiting: AtomicU64::new(0),
            turn,
            last_ns: AtomicU64::new(0),
        }
    }

    /// Adds a controller; `name` is the name of the queue.
    ///
    /// # Errors
    /// Returns an error if the controller owns a setting that this queue does not have, or that
    /// another controller owns.
    pub(super) fn add(
        &self,
        name: &str,
        controller: Box<dyn Controller>,
    ) -> Result<(), BuildError> {
        let has = match self.queue {
            Queue::Read => Owns::PACE,
            Queue::Write => Owns::OUTGOING,
            Queue::Listen | Queue::Connect => Owns::NOTHING,
        };
        let mut state = self.state.lock();
        state.controllers.check(name, has, &*controller)?;
        if let Some(set) = self.set.upgrade() {
            self.count(&mut state.counts, &set);
        }
        let counts = state.counts;
        state
            .controllers
            .add(controller, &counts, self.time.now_ns());
        self.staffed.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the current decision; without controllers, the value that has no effect.
    #[inline]
    pub(super) fn setting(&self) -> u64 {
        self.setting.load(Ordering::Relaxed)
    }

    pub(super) fn log(&self) -> Log {
        self.state.lock().log.clone()
    }

    pub(super) fn controllers(&self) -> Vec<(&'static str, Owns)> {
        self.state.lock().controllers.names().collect()
    }

    /// Waits for a connection's turn to read. Returns whether the turn was delayed.
    ///
    /// # Cancellation
    /// Dropping the future gives up the place in the queue.
    pub(super) async fn turn(&self) -> bool {
        if !self.is_staffed() {
            return false;
        }
        let _waiting = Waiting::one(&self.waiting);
        self.turn.notified().await;
        let _turn = Turn(&self.turn);
        let mut delayed = false;
        loop {
            let now_ns = self.time.now_ns();
            let last_ns = self.last_ns.load(Ordering::Relaxed);
            let next_ns = last_ns.saturating_add(self.setting());
            if now_ns >= next_ns {
                self.last_ns.store(now_ns, Ordering::Relaxed);
                return delayed;
            }
            delayed = true;
            sleep(Duration::from_nanos((next_ns - now_ns).min(LOOK_NS))).await;
            self.look();
        }
    }

    /// Counts a packet that was read.
    #[inline]
    pub(super) fn count_read(&self, len: usize) {
        if self.is_staffed() {
            let mut state = self.state.lock();
            state.counts.arrived += 1;
            state.counts.finished += 1;
            state.counts.bytes += len as u64;
            self.decide(&mut state);
        }
    }

    /// Passes a sample to the controllers that are due.
    #[inline]
    pub(super) fn look(&self) {
        if self.is_staffed() {
            self.decide(&mut self.state.lock());
        }
    }

    #[inline]
    pub(super) fn is_staffed(&self) -> bool {
        self.staffed.load(Ordering::Relaxed)
    }

    /// Updates the counts of the writes. Reads have already been counted one by one.
    fn count(&self, counts: &mut Counts, set: &SocketSet) {
        if self.queue == Queue::Write {
            let write = set.stats().write;
            counts.arrived = write.finished + write.failed + write.refused + write.queued;
            counts.refused = write.refused;
            counts.finished = write.finished;
            counts.failed = write.failed;
            counts.bytes = write.bytes;
        }
    }

    fn decide(&self, state: &mut PacerState) {
        let now_ns = self.time.now_ns();
        let Some(set) = self.set.upgrade() else {
            return;
        };
        let sockets = set.len();
        if self.queue == Queue::Write {
            if now_ns < state.count_ns {
                return;
            }
            let each_ns = COUNT_EACH_NS.saturating_mul(sockets as u64);
            state.count_ns = now_ns.saturating_add(COUNT_NS + each_ns);
            self.count(&mut state.counts, &set);
        }
        let PacerState {
            controllers,
            counts,
            log,
            random,
            ..
        } = state;
        if !controllers.is_due(counts, now_ns) {
            return;
        }
        let mut setting = self.setting();
        let now = Now {
            now_ns,
            queue_len: match self.queue {
                Queue::Read => self.waiting.load(Ordering::Relaxed),
                _ => counts.arrived - counts.refused - counts.finished,
            },
            servlets: Servlets {
                target: sockets,
                ..Servlets::default()
            },
            random: random.next(),
            pace_ns: self.settings(setting).pace_ns.unwrap_or(0),
            outgoing_max: self.settings(setting).outgoing_max.unwrap_or(u64::MAX),
            ..Now::default()
        };
        controllers.decide(counts, &now, |decided| {
            let wanted = match self.queue {
                Queue::Read => decided.settings.pace_ns,
                _ => decided.settings.outgoing_max,
            };
            if let (true, Some(wanted)) = (decided.owns != Owns::NOTHING, wanted) {
                let (before, after) = (self.settings(setting), self.settings(wanted));
                log.note(now_ns, decided.controller, &before, &after, decided.sample);
                setting = wanted;
            }
        });
        self.setting.store(setting, Ordering::Relaxed);
    }

    fn settings(&self, value: u64) -> Settings {
        let (pace_ns, outgoing_max) = match self.queue {
            Queue::Read => (Some(value), None),
            _ => (None, Some(value)),
        };
        Settings {
            pace_ns,
            outgoing_max,
            ..Settings::default()
        }
    }
}
