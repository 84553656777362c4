//! Test support for controllers: handmade samples and arrivals.

use super::{Arrival, Sample, Servlets};
use crate::stage::event::Class;
pub(super) use crate::stage::sim::Random;

pub(super) const MS: u64 = 1_000_000;

pub(super) const SECOND: u64 = 1_000_000_000;

/// Returns a sample of an idle stage with one servlet and one class, for a test to change.
pub(super) fn quiet() -> Sample<'static> {
    Sample {
        interval_ns: MS,
        busy_ns: 0,
        queue_len: 0,
        ready: 0,
        queue_max: 1000,
        threshold: 1000,
        arrived: 0,
        admitted: 0,
        refused: 0,
        shed: 0,
        finished: 0,
        failed: 0,
        in_service: 0,
        batches: 0,
        service_ns: 0,
        compute_ns: 0,
        held_up_ns: 0,
        limited_ns: 0,
        permits: 0,
        ready_ns: 0,
        fresh_batches: 0,
        service_squares: 0.0,
        bytes: 0,
        batch_max: 1,
        servlets: Servlets {
            busy: 0,
            parked: 1,
            target: 1,
            max: 100,
        },
        workers: 2,
        waiting: 0,
        limited: 0,
        blocking: false,
        process_servlets: 1,
        process_servlets_mean: 1.0,
        pace_ns: 0,
        outgoing_max: u64::MAX,
        random: 0,
        classes: &[],
    }
}

/// Returns an arrival of one credit at a queue of this length.
pub(super) fn arrival(class: u8, queue_len: u64, in_service: u64) -> Arrival {
    Arrival {
        class: Class(class),
        credits: 1,
        cohort: 0,
        queue_len,
        ahead: queue_len,
        key: None,
        in_service,
        now_ns: 0,
        random: 0,
    }
}
