//! Samples for controllers, computed as differences of counters.

use super::{ClassCounts, Counts, Now};
use crate::stage::control::{ClassSample, Sample};
use crate::stage::state::digest::Digest;

pub(super) fn class_sample(
    is: &ClassCounts,
    was: &ClassCounts,
    responses: Option<&Digest>,
) -> ClassSample {
    let counted = ClassSample {
        arrived: is.arrived - was.arrived,
        refused: is.refused - was.refused,
        finished: is.finished - was.finished,
        ..ClassSample::default()
    };
    match responses {
        None => counted,
        Some(digest) => ClassSample {
            response_mean_ns: digest.mean_ns(),
            response_min_ns: digest.min_ns(),
            response_p50_ns: digest.permille(500),
            response_p90_ns: digest.permille(900),
            response_p99_ns: digest.permille(990),
            ..counted
        },
    }
}

pub(super) fn sample<'a>(
    is: &Counts,
    was: &Counts,
    now: &Now,
    interval_ns: u64,
    classes: &'a [ClassSample],
) -> Sample<'a> {
    Sample {
        interval_ns,
        busy_ns: is.busy_ns - was.busy_ns,
        queue_len: now.queue_len,
        ready: now.ready,
        queue_max: now.queue_max,
        threshold: now.threshold,
        arrived: is.arrived - was.arrived,
        admitted: (is.arrived - was.arrived) - (is.refused - was.refused),
        refused: is.refused - was.refused,
        shed: (is.shed - was.shed) + (is.expired - was.expired),
        finished: is.finished - was.finished,
        failed: is.failed - was.failed,
        in_service: now.in_service,
        batches: is.batches - was.batches,
        service_ns: is.service_ns - was.service_ns,
        compute_ns: is.compute_ns - was.compute_ns,
        held_up_ns: is.held_up_ns - was.held_up_ns,
        limited_ns: is.limited_ns - was.limited_ns,
        permits: is.permits - was.permits,
        ready_ns: is.ready_ns - was.ready_ns,
        fresh_batches: is.fresh_batches - was.fresh_batches,
        service_squares: is.service_squares - was.service_squares,
        bytes: is.bytes - was.bytes,
        batch_max: now.batch_max,
        servlets: now.servlets,
        workers: now.workers,
        waiting: now.waiting,
        limited: now.limited,
        blocking: now.blocking,
        process_servlets: now.process_servlets,
        process_servlets_mean: now.process_servlets_mean,
        pace_ns: now.pace_ns,
        outgoing_max: now.outgoing_max,
        random: now.random,
        classes,
    }
}
