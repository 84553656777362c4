//! The drivers of all workers.
#![cfg_attr(loom, allow(dead_code))]

use std::io;

use super::shared::Shared;
use crate::driver::{Driver, Events};
use crate::loom::atomic::Ordering;

impl Shared {
    /// What the worker of a place waits on, from now on at the latest.
    pub(crate) fn driver_of(&self, place: usize) -> io::Result<&Driver> {
        self.place(place).make_driver()
    }

    /// A place for what comes from outside.
    pub(crate) fn any_place(&self) -> usize {
        let workers = self.workers.load(Ordering::Relaxed).max(1);
        self.next_place.fetch_add(1, Ordering::Relaxed) % workers
    }

    /// Passes on what a driver has reported; says how much that was.
    pub(crate) fn dispatch(&self, events: &mut Events, random: u64) -> usize {
        let events = events.drain(random);
        events
            .map(|(token, flags)| self.sources.report(token, flags))
            .sum()
    }
}
