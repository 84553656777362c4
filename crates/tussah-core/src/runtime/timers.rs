//! The timers of all workers, for a worker that is about to run, to search or to sleep.

use std::time::Duration;

use super::shared::Shared;
use crate::loom::atomic::Ordering;
use crate::time::Shard;

impl Shared {
    /// Returns whether a timer of the shard is due.
    pub(crate) fn timer_due(&self, shard: &Shard) -> bool {
        let next = shard.next_tick();
        next != u64::MAX && next <= self.world.clock.now_tick()
    }

    /// Wakes the waiters of due timers in another worker's shard.
    pub(crate) fn fire_timers(&self, shard: &Shard) {
        if shard.next_tick() != u64::MAX {
            let now = self.world.clock.now_tick();
            if shard.next_tick() <= now {
                let _ = shard.try_fire(now);
            }
        }
    }

    /// Returns the places whose workers were removed. All workers share their timers.
    pub(super) fn orphans(&self) -> std::ops::Range<usize> {
        self.workers.load(Ordering::Relaxed)..self.places()
    }

    /// Wakes the waiters of due timers that removed workers had set.
    pub(crate) fn fire_orphans(&self) {
        for place in self.orphans() {
            self.fire_timers(&self.place(place).shard);
        }
    }

    /// Returns the time until the next timer that the worker of this shard serves.
    pub(crate) fn until_timers(&self, shard: &Shard) -> Option<Duration> {
        let own = self.until_timer(shard);
        let orphans = self
            .orphans()
            .filter_map(|place| self.until_timer(&self.place(place).shard));
        own.into_iter().chain(orphans).min()
    }

    /// Returns the time until the next timer of the shard; `None` if there is none.
    fn until_timer(&self, shard: &Shard) -> Option<Duration> {
        match shard.next_tick() {
            u64::MAX => None,
            // A manual clock gives no duration to wait for, but may already have been moved.
            next if next <= self.world.clock.now_tick() => Some(Duration::ZERO),
            next => self.world.clock.park_timeout(next),
        }
    }
}
