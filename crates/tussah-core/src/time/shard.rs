//! One worker's timers: its wheel behind a short lock, and the hand-over of wakers when entries
//! fire.
//!
//! `timer.rs` lists the states of an entry and the rules of access; in this file, "rule" means one
//! of those.

use std::{ptr::NonNull, task::Waker};

use super::{
    clock::Clock,
    timer::{CLOSED, FIRED, IDLE, PENDING, Timer, TimerEntry, detach},
    wheel::Wheel,
};
use crate::loom::atomic::{AtomicU64, Ordering, fence};
use crate::quietly::quietly;

/// The maximum number of entries that one hold of the lock fires or moves, so that a peer or a
/// cancellation waits for only a few microseconds.
const BATCH: usize = 32;

/// The maximum number of entries that one call of `fire` fires or moves, so that a turn stays short
/// when very many entries are due at once.
const CALL: usize = 1024;

/// The result of [`Shard::register`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Registered {
    /// The entry will fire. If it became the earliest, a parked worker must be
    /// [notified](Shard::notify).
    Pending {
        /// True if no other entry of the shard is known to be earlier.
        earliest: bool,
    },
    /// The tick has passed. The entry counts as fired, and the waker is not called.
    Elapsed,
    /// The runtime has shut down. The entry will never fire.
    Closed,
}

/// The timers of one worker. Entries may be cancelled from any OS thread.
pub(crate) struct Shard {
    /// No entry is due before this tick; `u64::MAX` if there is none. Written under the lock. It
    /// may be too early, because a cancellation does not change it: one turn then fires nothing and
    /// corrects it.
    next: AtomicU64,
    /// The wheel's time; written under the lock.
    elapsed: AtomicU64,
    locked: Mutex<Locked>,
    clock: Clock,
    unpark: Box<dyn Fn() + Send + Sync>,
}

struct Locked {
    wheel: Wheel<Timer>,
    /// Set once, at shutdown.
    closed: bool,
}

impl Shard {
    /// Creates a shard without entries that counts in `clock`'s ticks.
    ///
    /// `unpark` wakes the worker that fires this shard if that worker is parked. It is called
    /// without the lock. It should not own the shard, since the shard would then never be freed.
    pub(crate) fn new(clock: Clock, unpark: Box<dyn Fn() + Send + Sync>) -> Self {
        Self {
            next: AtomicU64::new(u64::MAX),
            elapsed: AtomicU64::new(0),
            locked: Mutex::new(Locked {
                wheel: Wheel::new(),
                closed: false,
            }),
            clock,
            unpark,
        }
    }

    /// Returns the clock that defines the shard's ticks.
    #[inline]
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Returns the tick before which no entry is due, or `u64::MAX` if there is no entry. Takes no
    /// lock.
    ///
    /// A worker that parks stores that it is parked, issues a `SeqCst` fence and then calls this:
    /// see `notify`.
    #[inline]
    pub(crate) fn next_tick(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    /// Wakes the worker if it is parked. Called on an OS thread other than the worker's, after an
    /// entry has become the earliest.
    pub(crate) fn notify(&self) {
        // Pairs with the fence between the worker's store of "parked" and its `next_tick`: either
        // the worker sees the new tick, or `unpark` sees that it is parked.
        fence(Ordering::SeqCst);
        (self.unpark)();
    }

    /// Links an idle entry at `tick`. When it fires, `waker` is called.
    ///
    /// # Safety
    ///
    /// The caller must own `entry`, and the entry must be idle. The entry must neither be moved nor
    /// freed before the caller has found it not pending ([`Timer::is_pending`]), for instance after
    /// [`cancel`](Self::cancel). The shard must outlive that moment.
    #[inline]
    pub(crate) unsafe fn register(
        &self,
        entry: &TimerEntry,
        tick: u64,
        waker: Waker,
    ) -> Registered {
        debug_assert!(entry.data.is_idle());
        let mut locked = self.lock();
        if locked.closed || tick <= locked.wheel.elapsed() {
            let (state, outcome) = match locked.closed {
                true => (CLOSED, Registered::Closed),
                false => (FIRED, Registered::Elapsed),
            };
            entry.data.state.store(state, Ordering::Relaxed);
            drop(locked);
            quietly(|| drop(waker));
            return outcome;
        }
        // SAFETY: the lock is held and the caller owns the entry (rule 1). The overwritten value is
        // `None`.
        entry
            .data
            .waker
            .with_mut(|place| unsafe { *place = Some(waker) });
        // Relaxed: except for its owner, every later reader of the entry holds the lock.
        entry.data.state.store(PENDING, Ordering::Relaxed);
        // SAFETY: idle entries are not linked. The caller keeps the entry in place while it is
        // pending, and links are accessed only under the lock.
        unsafe { locked.wheel.insert(NonNull::from(entry), tick) };
        Registered::Pending {
            earliest: self.lower_next(tick),
        }
    }

    /// Moves a pending entry to another tick and keeps its waker.
    ///
    /// Returns whether the entry became the earliest, like [`Registered::Pending`], or `None` if it
    /// was no longer pending.
    ///
    /// # Safety
    ///
    /// The caller must own `entry`. The entry must have been registered with this shard, and with
    /// no other shard since then.
    pub(crate) unsafe fn rearm(&self, entry: &TimerEntry, tick: u64) -> Option<bool> {
        let mut locked = self.lock();
        if !entry.data.is_pending() {
            return None;
        }
        // SAFETY: a pending entry is linked in this shard's wheel, and is unlinked when it is
        // inserted again.
        unsafe {
            locked.wheel.remove(NonNull::from(entry));
            locked.wheel.insert(NonNull::from(entry), tick);
        }
        Some(self.lower_next(tick))
    }

    /// Replaces the waker of a pending entry, unless both wake the same task. Returns whether the
    /// entry is still pending.
    ///
    /// # Safety
    ///
    /// The caller must own `entry`. The entry must have been registered with this shard, and with
    /// no other shard since then.
    pub(crate) unsafe fn update_waker(&self, entry: &TimerEntry, waker: &Waker) -> bool {
        {
            let _locked = self.lock();
            if !entry.data.is_pending() {
                return false;
            }
            // SAFETY: the lock is held (rule 1).
            let current = entry.data.waker.with(|place| unsafe { (*place).as_ref() });
            if current.is_some_and(|current| current.will_wake(waker)) {
                return true;
            }
        }
        // Cloning runs foreign code, so it is not done under the lock; the entry may fire in the
        // meantime.
        let mut fresh = Some(waker.clone());
        let pending = {
            let _locked = self.lock();
            let pending = entry.data.is_pending();
            if pending {
                // SAFETY: the lock is held (rule 1).
                entry
                    .data
                    .waker
                    .with_mut(|place| unsafe { place.swap(&raw mut fresh) });
            }
            pending
        };
        quietly(|| drop(fresh));
        pending
    }

    /// Unlinks the entry if it is pending, and drops its waker. Afterwards it is not pending.
    ///
    /// # Safety
    ///
    /// The caller must own `entry`. The entry must have been registered with this shard, and with
    /// no other shard since then.
    #[inline]
    pub(crate) unsafe fn cancel(&self, entry: &TimerEntry) {
        let waker = {
            let mut locked = self.lock();
            if !entry.data.is_pending() {
                return;
            }
            // SAFETY: a pending entry is linked in this shard's wheel.
            unsafe { locked.wheel.remove(NonNull::from(entry)) };
            entry.data.state.store(IDLE, Ordering::Relaxed);
            // SAFETY: the lock is held (rule 1).
            entry
                .data
                .waker
                .with_mut(|place| unsafe { (*place).take() })
        };
        quietly(|| drop(waker));
    }

    /// Fires the entries that are due at `now`, and returns how many fired.
    ///
    /// The work of one call is bounded. If more entries are due, [`next_tick`](Self::next_tick) is
    /// not after `now`, and the next turn continues.
    #[inline]
    pub(crate) fn fire(&self, now: u64) -> usize {
        // The second condition lets the wheel follow the time, once per tick: new entries are
        // placed relative to that time.
        if self.next_tick() > now && self.elapsed.load(Ordering::Relaxed) >= now {
            return 0;
        }
        self.fire_batches(now, || Some(self.lock())).unwrap_or(0)
    }

    /// Does the same as [`fire`](Self::fire), for a peer. Returns `None` if the lock was held at
    /// the start.
    pub(crate) fn try_fire(&self, now: u64) -> Option<usize> {
        if self.next_tick() > now {
            return Some(0);
        }
        self.fire_batches(now, || self.try_lock())
    }

    /// Detaches all entries, which then never fire, and drops their wakers. Entries registered
    /// later never fire either.
    ///
    /// The work is not bounded: this is called once, when the runtime has shut down.
    pub(crate) fn close(&self) {
        loop {
            let mut batch = Batch::new();
            {
                let mut locked = self.lock();
                locked.closed = true;
                self.next.store(u64::MAX, Ordering::Relaxed);
                while batch.len < BATCH
                    && let Some(entry) = locked.wheel.pop_any()
                {
                    // SAFETY: the entry was pending, the lock is held, and the entry is no longer
                    // linked.
                    batch.push(unsafe { detach(entry, CLOSED) });
                }
            }
            let last = batch.len < BATCH;
            batch.for_each(drop);
            if last {
                return;
            }
        }
    }

    fn fire_batches<'a>(
        &'a self,
        now: u64,
        lock: impl Fn() -> Option<MutexGuard<'a, Locked>>,
    ) -> Option<usize> {
        let mut fired = 0;
        for round in 0..CALL / BATCH {
            let Some(locked) = lock() else {
                return (round > 0).then_some(fired);
            };
            let mut batch = Batch::new();
            let done = self.fire_batch(locked, now, &mut batch);
            fired += batch.len;
            batch.for_each(Waker::wake);
            if done {
                break;
            }
        }
        Some(fired)
    }

    /// Takes the wakers of at most `BATCH` due entries, and releases the lock. Takes the wakers of
    /// at most `BATCH` due entries, and releases the lock.
    fn fire_batch(&self, mut locked: MutexGuard<'_, Locked>, now: u64, batch: &mut Batch) -> bool {
        let done = locked.wheel.advance(now, BATCH, &mut |entry| {
            // SAFETY: the entry was pending, the lock is held, and the entry is no longer linked.
            batch.push(unsafe { detach(entry, FIRED) });
        });
        // Relaxed for both: see `next_tick`. A value that rises needs no fence: the worst effect is
        // that a parked worker wakes too early.
        self.next.store(
            locked.wheel.next_expiry().unwrap_or(u64::MAX),
            Ordering::Relaxed,
        );
        self.elapsed
            .store(locked.wheel.elapsed(), Ordering::Relaxed);
        done
    }

    /// Makes `tick` the shard's earliest tick if it is earlier than the present one. The caller
    /// holds the lock.
    #[inline]
    fn lower_next(&self, tick: u64) -> bool {
        // Relaxed: all writers hold the lock, and readers without it use fences (see `notify`).
        let earliest = tick < self.next.load(Ordering::Relaxed);
        if earliest {
            self.next.store(tick, Ordering::Relaxed);
        }
        earliest
    }
}

/// Wakers taken under the lock, to be called or dropped without it.
struct Batch {
    wakers: [Option<Waker>; BATCH],
    len: usize,
}

impl Batch {
    #[inline]
    fn new() -> Self {
        Self {
            wakers: [const { None }; BATCH],
            len: 0,
        }
    }

    #[inline]
    fn push(&mut self, waker: Option<Waker>) {
        debug_assert!(waker.is_some(), "a pending entry has a waker");
        self.wakers[self.len] = waker;
        self.len += 1;
    }

    #[inline]
    fn for_each(mut self, f: impl Fn(Waker)) {
        for waker in self.wakers[..self.len].iter_mut().filter_map(Option::take) {
            quietly(|| f(waker));
        }
    }
}

#[cfg(loom)]
use crate::loom::{Mutex, MutexGuard};
#[cfg(not(loom))]
use parking_lot::{Mutex, MutexGuard};

#[cfg(not(loom))]
impl Shard {
    #[inline]
    fn lock(&self) -> MutexGuard<'_, Locked> {
        self.locked.lock()
    }

    #[inline]
    fn try_lock(&self) -> Option<MutexGuard<'_, Locked>> {
        self.locked.try_lock()
    }
}

#[cfg(loom)]
impl Shard {
    fn lock(&self) -> MutexGuard<'_, Locked> {
        self.locked.lock().expect("nothing panics under the lock")
    }

    fn try_lock(&self) -> Option<MutexGuard<'_, Locked>> {
        self.locked.try_lock().ok()
    }
}

#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(all(test, not(loom)))]
mod tests;
