//! The capacity and the state that another controller has measured.

use super::{Predict, capacity};
use crate::stage::control::Sample;
use crate::stage::control::knee::Scarce;

/// The known limit of a resource that handlers wait for.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Limit {
    pub(in super::super) scarce: Scarce,
    /// The number of events in service at the same time.
    pub(in super::super) servlets: usize,
}

/// The capacity of a stage, and whether it is overloaded.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Learned {
    capacity: capacity::Learned,
    overloaded: bool,
}

impl Predict {
    pub(in super::super) fn learned(&self) -> Learned {
        Learned {
            capacity: self.capacity.learned(),
            overloaded: self.overloaded,
        }
    }

    /// Begins with what has been learned about an earlier stage, of a weight from 0 to 1. An
    /// overload that counts at least half goes on until the load is known to have fallen.
    pub(in super::super) fn recall(&mut self, learned: Learned, weight: f64, now_ns: u64) {
        self.capacity.recall(learned.capacity, weight);
        if learned.overloaded && weight >= 0.5 && self.capacity.per_ns().is_some() {
            (self.overloaded, self.since_ns) = (true, now_ns);
        }
    }

    /// Sets the target, which may exceed the configured target, and the limit of a scarce resource.
    /// A limit replaces the capacity of the servlets, and starts an overload immediately.
    pub(in super::super) fn limit(&mut self, target_ns: u64, limit: Option<Limit>) {
        self.target_ns = target_ns;
        self.limit = limit;
    }

    /// Returns whether a resource is newly known to be scarce, or whether more events wait for it
    /// than half of the target allows.
    pub(super) fn is_past_limit(&self, sample: &Sample<'_>) -> bool {
        let Some(Limit { scarce, .. }) = self.limit else {
            return false;
        };
        let inside = sample.queue_len as f64 + sample.in_service as f64;
        let wait_ns = inside / scarce.per_ns - scarce.service_ns;
        !self.was_limited || wait_ns > self.target_ns as f64 / 2.0
    }
}
