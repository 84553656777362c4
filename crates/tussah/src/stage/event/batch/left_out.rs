//! Events whose times do not count.

use super::Batch;

impl<E> Batch<E> {
    /// Leaves the times of the last `events` taken events out of every mean and percentile, and out
    /// of the view of controllers. The events still count as finished. This is for events whose
    /// time depends on something outside of the service, such as a client that sends slowly.
    pub fn leave_out(&mut self, events: u64) {
        self.left_out += self.untime(events);
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
        self.fail(self.unsettled().saturating_sub(self.cancelled - before));
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
