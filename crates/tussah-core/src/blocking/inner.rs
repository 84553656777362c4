//! The state of a blocking pool, which its lock protects.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::slot::Job;

#[derive(Default)]
pub(super) struct Inner {
    /// By ticket, so in the order of submission. The caller that takes a job out owns it.
    pub(super) queue: BTreeMap<u64, Arc<dyn Job>>,
    pub(super) next_ticket: u64,
    /// The number of OS threads that have not left. This is never 0 while a job is queued.
    pub(super) threads: usize,
    /// The number of idle OS threads, including new ones, which first fetch a job.
    pub(super) idle: usize,
    /// The lowest number of idle OS threads in the current period, which is as long as the idle
    /// timeout, and the time at which it began.
    spare: usize,
    pub(super) period: Option<Instant>,
    /// The number of OS threads that still have to leave, because they were spare in a period.
    leaving: usize,
    pub(super) extra_stacks: usize,
    pub(super) running: usize,
    pub(super) closed: bool,
    pub(super) threads_started: u64,
    pub(super) starts_failed: u64,
}

impl Inner {
    /// Notes that an idle OS thread has found a job.
    pub(super) fn takes_job(&mut self) {
        self.idle -= 1;
        self.running += 1;
        self.spare = self.spare.min(self.idle);
        self.leaving = self.leaving.min(self.idle);
    }

    /// Returns whether an idle OS thread leaves. At the end of a period, as many leave as were idle
    /// throughout. Which ones were idle does not matter: jobs wake idle OS threads in turns.
    pub(super) fn has_spare(&mut self, period: Duration) -> bool {
        let now = Instant::now();
        let begun = *self.period.get_or_insert(now);
        if now.duration_since(begun) >= period {
            (self.leaving, self.spare) = (self.spare, self.idle.saturating_sub(self.spare));
            self.period = Some(now);
        }
        let leaves = self.leaving > 0;
        self.leaving -= usize::from(leaves);
        leaves
    }

    pub(super) fn is_drained(&self) -> bool {
        self.queue.is_empty() && self.running == 0 && self.threads == 0
    }
}
