//! The timers of all workers, as a worker sees them that is about to run, to search or to sleep.

use std::time::Duration;

use super::shared::Shared;
use crate::loom::atomic::Ordering;
use crate::time::Shard;

impl Shared {
    /// Whether a timer of the shard has run out.
    pub(crate) fn timer_due(&self, shard: &Shard) -> bool {
        let next = shard.next_tick();
        next != u64::MAX && next <= self.world.clock.now_tick()
    }

    /// Wakes what waits for timers of another worker that have run out.
    pub(crate) fn fire_timers(&self, shard: &Shard) {
        if shard.next_tick() != u64::MAX {
            let now = self.world.clock.now_tick();
            if shard.next_tick() <= now {
                let _ = shard.try_fire(now);
            }
        }
    }

    /// The places whose workers were taken away; their timers are everybody's.
    pub(super) fn orphans(&self) -> std::ops::Range<usize> {
        self.workers.load(Ordering::Relaxed)..self.places()
    }

    /// Wakes what waits for timers that were set by workers that were taken away.
    pub(crate) fn fire_orphans(&self) {
        for place in self.orphans() {
            self.fire_timers(&self.place(place).shard);
        }
    }

    /// How long until a timer runs out that the worker of this shard has to see to.
    pub(crate) fn until_timers(&self, shard: &Shard) -> Option<Duration> {
        let own = self.until_timer(shard);
        let orphans = self
            .orphans()
            .filter_map(|place| self.until_timer(&self.place(place).shard));
        own.into_iter().chain(orphans).min()
    }

    /// How long until a timer of the shard runs out; `None` if there is none.
    fn until_timer(&self, shard: &Shard) -> Option<Duration> {
        match shard.next_tick() {
            u64::MAX => None,
            // A clock that is moved by hand gives no time to wait for, but may have been moved already.
            next if next <= self.world.clock.now_tick() => Some(Duration::ZERO),
            next => self.world.clock.park_timeout(next),
        }
    }
}
