//! Events whose times do not count.

use super::Batch;

/// Events that the handler has marked.
#[derive(Default)]
pub(super) struct Marked {
    pub(super) failed: u64,
    pub(super) left_out: u64,
}

impl<E> Batch<E> {
    /// Excludes the times of the most recently taken events from every mean and percentile, and
    /// hides these times from controllers; `events` is the number of events to exclude. The
    /// excluded events still count as finished. Use this method for events whose times depend on
    /// something outside the service, such as a client that sends slowly.
    pub fn leave_out(&mut self, events: u64) {
        let left_out = self.untime(events);
        self.left_out += left_out;
        self.marked.left_out += left_out;
        self.forget_served(left_out);
    }

    /// Marks the most recently taken events as failed, for example because of an error or a
    /// timeout; `events` is the number of events to mark. The marked events count as
    /// [`failed`](crate::stage::observe::StageStats::failed). The times of failed events are
    /// excluded from every mean and percentile and hidden from controllers, because failures do not
    /// show how fast the stage can be.
    pub fn fail(&mut self, events: u64) {
        let timed = self.untime(events);
        let failed = timed + self.keep_left_out(events - timed);
        self.failed += failed;
        self.marked.failed += failed;
        self.fail_paths(events);
        self.forget_served(failed);
    }

    /// Counts the last taken events as the handler has marked them, even if they are cancelled.
    fn forget_served(&mut self, events: u64) {
        let served = self.served.len().saturating_sub(events as usize);
        self.served.truncate(served);
    }

    pub(crate) fn take_left_out(&mut self) -> u64 {
        std::mem::take(&mut self.left_out)
    }

    pub(crate) fn take_failed(&mut self) -> u64 {
        std::mem::take(&mut self.failed)
    }

    /// Marks the events that were taken and not settled as failed, except cancelled ones.
    pub(crate) fn fail_unsettled(&mut self) {
        let before = self.cancelled;
        self.settle_served();
        let lost = self.unsettled().saturating_sub(self.cancelled - before);
        self.fail_paths(lost);
        let lost = lost.saturating_sub(self.marked.failed);
        let kept = self.keep_left_out(lost.min(self.marked.left_out));
        self.failed += kept;
        self.fail(lost - kept);
    }

    /// Counts up to this many events no longer as left out, and returns their number.
    pub(super) fn keep_left_out(&mut self, events: u64) -> u64 {
        let kept = events.min(self.left_out);
        self.left_out -= kept;
        kept
    }

    /// Returns the number of taken events whose times count.
    pub(super) fn timed(&self) -> u64 {
        self.waves.iter().map(|wave| wave.count).sum()
    }

    /// Takes the last taken events out of the waves, and returns their number.
    pub(super) fn untime(&mut self, events: u64) -> u64 {
        let mut left = events;
        for wave in self.waves.iter_mut().rev() {
            let part = wave.count.min(left);
            wave.count -= part;
            left -= part;
        }
        events - left
    }
}
