//! The error of a rejected job.

use std::error::Error;
use std::{fmt, io};

/// The error for a rejected job; it contains the closure, which has not run.
pub struct SubmitError<F> {
    f: F,
    kind: Kind,
}

enum Kind {
    Full { queue_max: usize },
    ShutDown,
    NoThread(io::Error),
}

impl<F> SubmitError<F> {
    pub(super) fn full(f: F, queue_max: usize) -> Self {
        Self {
            f,
            kind: Kind::Full { queue_max },
        }
    }

    pub(super) fn shut_down(f: F) -> Self {
        Self {
            f,
            kind: Kind::ShutDown,
        }
    }

    pub(super) fn no_thread(f: F, error: io::Error) -> Self {
        Self {
            f,
            kind: Kind::NoThread(error),
        }
    }

    /// Returns the closure that the pool rejected.
    #[must_use]
    pub fn into_inner(self) -> F {
        self.f
    }

    /// Returns whether the queue was full; if so, a later attempt may succeed.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(self.kind, Kind::Full { .. })
    }

    /// Returns whether the pool has shut down; if so, no later attempt can succeed.
    #[must_use]
    pub fn is_shut_down(&self) -> bool {
        matches!(self.kind, Kind::ShutDown)
    }

    /// Returns whether the pool had no OS thread and the system refused to start one.
    /// [`Error::source`] returns the system's error.
    #[must_use]
    pub fn is_no_thread(&self) -> bool {
        matches!(self.kind, Kind::NoThread(_))
    }
}

impl<F> fmt::Display for SubmitError<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Full { queue_max } => write!(
                f,
                "the blocking pool's queue is full: {queue_max} jobs wait"
            ),
            Kind::ShutDown => f.write_str("the blocking pool has been shut down"),
            Kind::NoThread(_) => {
                f.write_str("the blocking pool has no OS thread and could not start one")
            }
        }
    }
}

impl<F> fmt::Debug for SubmitError<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Full { queue_max } => f
                .debug_struct("Full")
                .field("queue_max", queue_max)
                .finish_non_exhaustive(),
            Kind::ShutDown => f.debug_struct("ShutDown").finish_non_exhaustive(),
            Kind::NoThread(error) => f
                .debug_struct("NoThread")
                .field("error", error)
                .finish_non_exhaustive(),
        }
    }
}

impl<F> Error for SubmitError<F> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.kind {
            Kind::NoThread(error) => Some(error),
            _ => None,
        }
    }
}
