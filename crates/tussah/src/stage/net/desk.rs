//! The controllers of what sockets read and write.

use std::sync::Weak;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tussah_core::Notify;

use super::hub::{Hub, Queue};
use crate::stage::BuildError;
use crate::stage::account::{Council, Counts, Now};
use crate::stage::control::{Controller, Log, Owns, Servlets, Settings};
use crate::stage::random::Random;
use crate::stage::shared::Time;
use crate::time::sleep;

/// To count what is written, all connections are asked: at most this often, in nanoseconds, and for each of them so much less often.
const COUNT_NS: u64 = 10_000_000;
const COUNT_EACH_NS: u64 = 3_000;

/// Who waits for its turn to read looks this often whether the controllers have changed their minds, in nanoseconds.
const LOOK_NS: u64 = 100_000_000;

/// The controllers of the reads, or of the writes, of all sockets of a hub. Without controllers it costs a look at a flag.
pub(super) struct Desk {
    hub: Weak<Hub>,
    queue: Queue,
    time: Time,
    staffed: AtomicBool,
    /// What is decided: the pace of reads in nanoseconds, or the bound on what is queued to a peer in bytes.
    setting: AtomicU64,
    office: Mutex<Office>,
    /// Connections that wait for their turn to read.
    waiting: AtomicU64,
    /// Its permit is the next turn; who has none waits in a row.
    turn: Notify,
    /// When the last one had its turn, in nanoseconds.
    last_ns: AtomicU64,
}

/// One that waits, until it is dropped.
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

/// A turn, which the next one has when it is dropped.
struct Turn<'a>(&'a Notify);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

struct Office {
    council: Council,
    counts: Counts,
    log: Log,
    random: Random,
    /// When the writes are counted again.
    count_ns: u64,
}

impl Desk {
    pub(super) fn new(hub: Weak<Hub>, queue: Queue, time: Time, seed: u64) -> Self {
        let none = if queue == Queue::Write { u64::MAX } else { 0 };
        let turn = Notify::new();
        turn.notify_one();
        Self {
            hub,
            queue,
            time,
            staffed: AtomicBool::new(false),
            setting: AtomicU64::new(none),
            office: Mutex::new(Office {
                council: Council::new(Vec::new(), 1, 0),
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

    /// Adds a controller; `name` is that of the queue.
    ///
    /// # Errors
    /// If it decides what is not decided here, or what another decides.
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
        let mut office = self.office.lock();
        office.council.check(name, has, &*controller)?;
        if let Some(hub) = self.hub.upgrade() {
            self.count(&mut office.counts, &hub);
        }
        let counts = office.counts;
        office.council.add(controller, &counts, self.time.now_ns());
        self.staffed.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// What is decided; without controllers, what changes nothing.
    #[inline]
    pub(super) fn setting(&self) -> u64 {
        self.setting.load(Ordering::Relaxed)
    }

    pub(super) fn log(&self) -> Log {
        self.office.lock().log.clone()
    }

    pub(super) fn controllers(&self) -> Vec<(&'static str, Owns)> {
        self.office.lock().council.names().collect()
    }

    /// Waits until a connection may read, one after the other; says whether that was delayed.
    ///
    /// # Cancellation
    /// Dropping the future gives the place in the row away.
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

    /// Counts a packet of so many bytes that was read.
    #[inline]
    pub(super) fn count_read(&self, len: usize) {
        if self.is_staffed() {
            let mut office = self.office.lock();
            office.counts.arrived += 1;
            office.counts.finished += 1;
            office.counts.bytes += len as u64;
            self.decide(&mut office);
        }
    }

    /// Shows the controllers how things are, if it is time to.
    #[inline]
    pub(super) fn look(&self) {
        if self.is_staffed() {
            self.decide(&mut self.office.lock());
        }
    }

    #[inline]
    pub(super) fn is_staffed(&self) -> bool {
        self.staffed.load(Ordering::Relaxed)
    }

    /// Brings the counts up to date. Reads have been counted one by one.
    fn count(&self, counts: &mut Counts, hub: &Hub) {
        if self.queue == Queue::Write {
            let write = hub.stats().write;
            let ended = write.finished + write.failed;
            counts.arrived = ended + write.refused + write.queued;
            counts.refused = write.refused;
            counts.finished = ended;
            counts.failed = write.failed;
            counts.bytes = write.bytes;
        }
    }

    fn decide(&self, office: &mut Office) {
        let now_ns = self.time.now_ns();
        let Some(hub) = self.hub.upgrade() else {
            return;
        };
        let sockets = hub.len();
        if self.queue == Queue::Write {
            if now_ns < office.count_ns {
                return;
            }
            let each_ns = COUNT_EACH_NS.saturating_mul(sockets as u64);
            office.count_ns = now_ns.saturating_add(COUNT_NS + each_ns);
            self.count(&mut office.counts, &hub);
        }
        let Office {
            council,
            counts,
            log,
            random,
            ..
        } = office;
        if !council.is_due(counts, now_ns) {
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
        council.decide(counts, &now, |decided| {
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
