//! The shutdown of a ring.

use std::time::{Duration, Instant};

use io_uring::opcode;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::super::operation::Operate;
use super::{CANCEL, Ring};

/// Which operations a ring accepts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// All of them.
    Open,
    /// Only the operations that are carried out even if their future was dropped.
    Closing,
    /// None.
    Closed,
}

impl Phase {
    pub(super) fn takes(self, operation: &dyn Operate) -> bool {
        match self {
            Self::Open => true,
            Self::Closing => operation.is_carried_out(),
            Self::Closed => false,
        }
    }
}

impl Ring {
    /// Closes the ring within a time limit. Returns false if the kernel still has operations, which
    /// are then never freed.
    ///
    /// At first the ring accepts, and waits for, only the operations that are carried out even if
    /// their future was dropped; it cancels all others. After half of the time limit, it cancels
    /// these operations as well.
    pub(crate) fn close(&self, limit: Duration) -> bool {
        let begin = Instant::now();
        self.give_up(Phase::Closing);
        self.wait_for_all(begin + limit / 2);
        self.give_up(Phase::Closed);
        self.wait_for_all(begin + limit)
    }

    /// Begins a phase of the shutdown, and cancels the operations that it excludes.
    fn give_up(&self, phase: Phase) {
        let all = phase == Phase::Closed;
        let mut inner = self.inner.lock();
        inner.phase = phase;
        let waiting = inner.slots.take_waiting(all);
        inner.waiting -= waiting.len();
        for key in inner.slots.submitted(all) {
            let entry = opcode::AsyncCancel::new(key.0).build().user_data(CANCEL);
            let _ = self.queue(&mut inner, &entry);
        }
        drop(inner);
        waiting
            .into_iter()
            .for_each(|operation| operation.fail(super::super::ended()));
    }

    /// Serves the ring until it has no operations or the time is up. Returns whether the ring has
    /// no operations left.
    fn wait_for_all(&self, end: Instant) -> bool {
        loop {
            self.flush_queued();
            while self.reap() > 0 {}
            let is_done = self.in_flight() == 0 && self.inner.lock().waiting == 0;
            let left = end.saturating_duration_since(Instant::now());
            if is_done || left.is_zero() {
                return is_done;
            }
            let timeout = Timespec::try_from(left.min(Duration::from_millis(100)));
            // A wait that is interrupted or fails only makes the loop run sooner.
            let _ = poll(
                &mut [PollFd::new(self, PollFlags::IN)],
                timeout.ok().as_ref(),
            );
        }
    }
}
