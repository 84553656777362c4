//! The schedule of checks for queued events that end before their turn.

/// The schedule of checks of a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    /// The earliest deadline among the events that were queued since the last check or left by that
    /// check.
    pub(crate) due_ns: u64,
    /// The time of the watcher's next check; never, if there is no watcher.
    pub(crate) looks_ns: u64,
    /// True if there is a watcher.
    pub(crate) there: bool,
    /// The earliest time of the next check for deadlines.
    pub(crate) not_before_ns: u64,
    /// The time of the next check for overdue events; never if the stage is not overloaded.
    pub(crate) sweep_ns: u64,
    /// The time of the next check for a stall; never if a servlet may take the queued events.
    pub(crate) stall_ns: u64,
    /// True if the last sample found that a queued event can be overdue.
    pub(crate) overdue: bool,
}

pub(crate) const NEVER: u64 = u64::MAX;

impl Default for Watch {
    fn default() -> Self {
        Self {
            due_ns: NEVER,
            looks_ns: NEVER,
            there: false,
            not_before_ns: 0,
            sweep_ns: NEVER,
            stall_ns: NEVER,
            overdue: false,
        }
    }
}

/// The action that makes the watcher check in time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Watcher {
    Sleeps,
    IsCalled,
    Begins,
}

impl Watch {
    /// Notes that an event with this deadline is queued; 0 means none.
    pub(crate) fn queued(&mut self, deadline_ns: u64) {
        if deadline_ns != 0 {
            self.due_ns = self.due_ns.min(deadline_ns);
        }
    }

    /// Returns whether something is due before the next check.
    #[inline]
    pub(crate) fn is_short(&self) -> bool {
        self.due_ns.min(self.sweep_ns).min(self.stall_ns) < self.looks_ns
    }

    /// Returns the time at which a check for deadlines is necessary and allowed.
    pub(crate) fn check_ns(&self) -> u64 {
        self.due_ns.max(self.not_before_ns)
    }

    /// Returns the time of the next check of any kind.
    pub(crate) fn next_ns(&self) -> u64 {
        self.check_ns().min(self.sweep_ns).min(self.stall_ns)
    }

    /// Schedules the next check, and returns the action that it requires.
    pub(crate) fn set(&mut self) -> Watcher {
        let looks_ns = self.next_ns();
        if looks_ns >= self.looks_ns {
            return Watcher::Sleeps;
        }
        self.looks_ns = looks_ns;
        if std::mem::replace(&mut self.there, true) {
            Watcher::IsCalled
        } else {
            Watcher::Begins
        }
    }
}
