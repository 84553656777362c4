//! The servlets of a stage, counted: who is called to work, who parks and who ends.

use super::{Gate, Kind, State};

/// A queue that lasts longer than this is worth another servlet: what it takes to wake a worker, in nanoseconds.
pub(super) const WORTH_NS: f64 = 10_000.0;

/// Bound, in servlets for each worker: while so many have only let others have their turn so far, no further event is begun. If all that are there took turns, they would be done,
/// and then wait, all at about the same time, in which the workers have nothing to do; with one, a long event would hold up all others.
const YIELDING_MAX: usize = 2;

/// Who is to be called to work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Summon {
    Nobody,
    Unpark,
    Spawn,
}

impl<E> State<E> {
    /// Whether another servlet should be called.
    #[inline]
    pub(crate) fn wants(&self) -> bool {
        let servlets = &self.servlets;
        if !self.works()
            || self.held_back
            || servlets.busy >= self.allowed()
            || !self.begins()
            || !self.queue.is_ready()
        {
            return false;
        }
        let computing = self.computing();
        // As long as no event has been finished, they may be long.
        let lasts_ns = if self.mean_ns == 0.0 {
            f64::INFINITY
        } else {
            self.mean_ns * self.len as f64
        };
        let worth =
            computing == 0 || (computing < self.workers && lasts_ns > WORTH_NS * computing as f64);
        worth && !(self.orphaned && servlets.parked == 0)
    }

    /// Whether a servlet may begin with an event, as far as it is up to those that take turns.
    #[inline]
    pub(crate) fn begins(&self) -> bool {
        self.yielding < YIELDING_MAX * self.workers.max(1)
    }

    /// How many servlets are sure to be computing.
    #[inline]
    pub(crate) fn computing(&self) -> usize {
        match self.kind {
            Kind::Async => self.servlets.busy - self.waiting,
            Kind::Blocking => 0,
        }
    }

    /// How many servlets may be at work.
    #[inline]
    pub(crate) fn allowed(&self) -> usize {
        self.servlets.target.min(self.cap)
    }

    /// Who is to be called, so that what is queued is worked on; the servlet counts as busy from here on.
    #[inline]
    pub(crate) fn summon(&mut self) -> Summon {
        if !self.wants() {
            return Summon::Nobody;
        }
        self.servlets.busy += 1;
        if self.servlets.parked > 0 {
            self.servlets.parked -= 1;
            Summon::Unpark
        } else {
            self.process.changed(1);
            Summon::Spawn
        }
    }

    /// Whether no servlet computes and one could be called: then an event that comes should be handed over at once.
    pub(crate) fn rests(&self) -> bool {
        let servlets = &self.servlets;
        servlets.busy == self.waiting && servlets.busy < self.allowed()
    }

    /// A servlet that finds nothing to do parks; false if it is one too many, and ends.
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

    /// Whether a servlet that is busy is one too many.
    pub(crate) fn has_too_many(&self) -> bool {
        self.servlets.busy > self.allowed()
    }

    /// Whether nobody is left to do what is queued.
    pub(crate) fn is_left_alone(&self) -> bool {
        self.orphaned && self.servlets.busy + self.servlets.parked == 0
    }

    /// A servlet ends that was busy.
    pub(crate) fn ended(&mut self) {
        self.servlets.busy -= 1;
        self.process.changed(-1);
    }

    /// A parked servlet ends.
    pub(crate) fn ended_parked(&mut self) {
        self.servlets.parked -= 1;
        self.process.changed(-1);
    }
}
