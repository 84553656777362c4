//! The accounting of a stage's servlets: which of them become busy, park or end.

use super::{Gate, Kind, State};

/// A queue that takes longer than this justifies another servlet: the time to wake a worker, in
/// nanoseconds.
pub(super) const WORTH_NS: f64 = 10_000.0;

/// Bound, in servlets for each worker: while this many servlets have only yielded so far, no
/// further event begins. Without this bound, all events in service would take turns, finish
/// computing at about the same time, and then wait while the workers are idle. With only one
/// servlet, a long event would delay all others.
const YIELDING_MAX: usize = 2;

/// The servlet to start or wake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wake {
    Nobody,
    Unpark,
    Spawn,
}

impl<E> State<E> {
    /// Returns whether another servlet should be started or woken.
    #[inline]
    pub(crate) fn wants(&self) -> bool {
        let servlets = &self.servlets;
        if !self.works()
            || self.held_back
            || servlets.busy >= self.allowed() && !self.has_returned()
            || !self.begins()
            || !self.queue.is_ready()
        {
            return false;
        }
        let computing = self.computing();
        // Until the first event has finished, events may be long.
        let lasts_ns = if self.mean_ns == 0.0 {
            f64::INFINITY
        } else {
            self.mean_ns * self.len as f64
        };
        let worth =
            computing == 0 || (computing < self.workers && lasts_ns > WORTH_NS * computing as f64);
        worth && !(self.orphaned && servlets.parked == 0)
    }

    /// Returns whether the number of yielding servlets allows a servlet to begin an event.
    #[inline]
    pub(crate) fn begins(&self) -> bool {
        self.yielding < YIELDING_MAX * self.workers.max(1)
    }

    /// Returns the number of servlets that are certainly computing.
    #[inline]
    pub(crate) fn computing(&self) -> usize {
        match self.kind {
            Kind::Async => self.servlets.busy - self.waiting,
            Kind::Blocking => 0,
        }
    }

    /// Returns the number of servlets that may be at work.
    #[inline]
    pub(crate) fn allowed(&self) -> usize {
        let most = self.servlets.target + self.relief;
        most.min(self.servlets.max).min(self.cap)
    }

    /// Returns the servlet to start or wake for the queued events. The servlet counts as busy from
    /// here on.
    #[inline]
    pub(crate) fn wake_servlet(&mut self) -> Wake {
        if !self.wants() {
            return Wake::Nobody;
        }
        self.servlets.busy += 1;
        if self.servlets.parked > 0 {
            self.servlets.parked -= 1;
            Wake::Unpark
        } else {
            self.process.changed(1);
            Wake::Spawn
        }
    }

    /// Returns whether no servlet computes and one could be started or woken. In that case, an
    /// event should be handed over immediately.
    pub(crate) fn is_idle(&self) -> bool {
        let servlets = &self.servlets;
        servlets.busy == self.waiting && servlets.busy < self.allowed()
    }

    /// Parks a servlet that finds nothing to do. Returns false if the servlet is surplus and ends
    /// instead.
    pub(crate) fn park(&mut self) -> bool {
        self.servlets.busy -= 1;
        let stays =
            self.servlets.busy + self.servlets.parked < self.allowed() && self.gate != Gate::Closed;
        if stays {
            self.servlets.parked += 1;
        } else {
            self.process.changed(-1);
        }
        stays
    }

    /// Returns whether there are more busy servlets than allowed.
    pub(crate) fn has_too_many(&self) -> bool {
        self.servlets.busy > self.allowed() && !self.has_returned()
    }

    /// Returns whether there is no servlet to serve the queue, and none can be started.
    pub(crate) fn is_left_alone(&self) -> bool {
        self.orphaned && self.servlets.busy + self.servlets.parked == 0
    }

    /// Counts the end of a busy servlet.
    pub(crate) fn ended(&mut self) {
        self.servlets.busy -= 1;
        self.process.changed(-1);
    }

    /// Counts the end of a parked servlet.
    pub(crate) fn ended_parked(&mut self) {
        self.servlets.parked -= 1;
        self.process.changed(-1);
    }
}
