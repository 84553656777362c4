//! The drivers of all workers.
#![cfg_attr(loom, allow(dead_code))]

use std::io;

use super::shared::Shared;
use crate::driver::{Driver, Events, Late, Report};
use crate::loom::atomic::Ordering;
use crate::worker::Worker;

impl Shared {
    /// Returns the driver of a place. The worker of that place waits on it, from now on at the
    /// latest.
    pub(crate) fn driver_of(&self, place: usize) -> &Driver {
        self.place(place).use_driver()
    }

    /// Returns a place for work from outside, in rotation.
    pub(crate) fn any_place(&self) -> usize {
        let workers = self.workers.load(Ordering::Relaxed).max(1);
        self.next_place.fetch_add(1, Ordering::Relaxed) % workers
    }

    /// Returns the driver of a place if it may have something to report. The first place's driver
    /// also reports for the drivers of removed workers.
    #[inline]
    pub(crate) fn used_driver(&self, place: usize) -> Option<&Driver> {
        let waits = |orphan| self.place(orphan).waits_for_descriptors();
        let adopted = || self.orphans().any(waits);
        let driver = self.place(place).driver()?;
        (driver.is_used() || place == 0 && adopted()).then_some(driver)
    }

    /// Returns whether the worker of a place has to check its driver or its ring.
    pub(crate) fn waits(&self, place: usize) -> bool {
        self.place(place).files.is_busy() || self.used_driver(place).is_some()
    }

    /// Dispatches the reports of a driver. Returns the number of wakers called.
    pub(crate) fn dispatch(&self, events: &mut Events, random: u64) -> usize {
        events.prefetch(&self.sources);
        let (mut woken, mut late) = (0, Late::new());
        for report in events.drain(random) {
            woken += match report {
                Report::Source(token, flags) => self.sources.report(token, flags, &mut late),
                Report::Adopted(place) => self.look_for(place, &mut Events::new()),
                Report::Files(place) => self.place(place).files.serve(),
            };
        }
        woken + late.wake()
    }

    /// Takes and dispatches the reports of the driver of another place, whose worker is stuck or
    /// was removed. Returns the number of wakers called.
    pub(crate) fn look_for(&self, place: usize, events: &mut Events) -> usize {
        let remote = self.place(place);
        let Some(driver) = remote.driver() else {
            return 0;
        };
        driver.look(events);
        if events.has_wake() {
            remote.pass_wake_on();
        }
        self.dispatch(events, 0)
    }

    /// Serves the timers, the ring and the driver of a worker that is stuck in an event. The
    /// watchdog calls it.
    pub(crate) fn serve_held(&self, place: usize) {
        // This counts as a search: while work is being moved, the workers must not all seem to be
        // parked (`is_at_rest`).
        self.idle.add();
        let remote = self.place(place);
        self.fire_timers(&remote.shard);
        remote.files.serve();
        self.look_for(place, &mut Events::new());
        if let Some(successor) = self.idle.remove() {
            self.unpark(successor);
        }
    }

    /// Makes the first worker serve the driver of a place whose worker is about to be removed.
    ///
    /// # Errors
    /// Returns the system's error.
    pub(super) fn adopt(&self, place: usize) -> io::Result<()> {
        // Do this even if nothing is registered there, because the worker may register a descriptor
        // in its last event.
        self.driver_of(0).adopt(self.driver_of(place), place)
    }

    /// Flushes the ring of a worker that is about to sleep. The first worker also flushes the rings
    /// of removed workers. Returns false if the kernel did not take everything.
    pub(crate) fn flush_files(&self, place: usize) -> bool {
        let own = self.place(place).files.flush();
        self.flush_orphans(place) && own
    }

    /// Flushes the rings of removed workers if the caller is the first worker. Called once per
    /// tick, too, because no other worker flushes them while the first one never sleeps.
    pub(crate) fn flush_orphans(&self, place: usize) -> bool {
        let orphans = if place == 0 { self.orphans() } else { 0..0 };
        let mut all = true;
        for orphan in orphans {
            all &= self.place(orphan).files.flush();
        }
        all
    }

    /// Wakes the worker that flushes the ring of a place. If that is the caller, it flushes before
    /// it sleeps.
    pub(crate) fn unpark_for_files(&self, place: usize) {
        let has_worker = !self.orphans().contains(&place);
        let place = if has_worker { place } else { 0 };
        let is_here =
            |worker: Option<&Worker>| worker.is_some_and(|it| it.is_of(self) && it.index == place);
        if !Worker::with(is_here) {
            self.unpark(place);
        }
    }

    /// Records that the place has a worker again.
    pub(super) fn give_up(&self, place: usize) {
        if let (Some(first), Some(driver)) = (self.place(0).driver(), self.place(place).driver()) {
            first.give_up(driver);
        }
    }
}
