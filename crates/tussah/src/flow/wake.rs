//! The alarm of a flow, which lets an instance handle the flow again at a later time.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The alarm of a flow, for modules with a method `wake`. An argument of type `&Wake` is the alarm
/// of the flow whose item the module is handling.
///
/// A flow stays open while its alarm is set: the flow ends only after the call to `wake`, unless
/// [`Running::drain_within`](super::Running::drain_within) has run out of time.
pub struct Wake {
    /// The time to the next alarm, in nanoseconds.
    after_ns: AtomicU64,
    /// The number of the last alarm that was set.
    number: u64,
}

/// No alarm is set.
const NONE: u64 = u64::MAX;

impl Wake {
    pub(crate) fn new(number: u64) -> Self {
        Self {
            after_ns: AtomicU64::new(NONE),
            number,
        }
    }

    /// Returns whether the alarm with this number is the one that was set last.
    #[doc(hidden)]
    #[must_use]
    pub fn is(&self, number: u64) -> bool {
        self.number == number
    }

    /// Sets the alarm: `wake` is called for the flow after `time`. The new alarm replaces an
    /// earlier one.
    pub fn after(&self, time: Duration) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(NONE);
        self.after_ns.store(ns.min(NONE - 1), Ordering::Relaxed);
    }

    /// Takes the time that the last call set.
    pub(crate) fn take(&self) -> Option<Duration> {
        match self.after_ns.swap(NONE, Ordering::Relaxed) {
            NONE => None,
            ns => Some(Duration::from_nanos(ns)),
        }
    }
}

impl fmt::Debug for Wake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wake").finish_non_exhaustive()
    }
}
