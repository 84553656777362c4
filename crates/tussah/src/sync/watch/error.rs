//! The errors of a watch channel.

use std::{error::Error, fmt};

/// The error returned when a value is sent but there are no receivers. The error contains the
/// value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SendError<T>(pub T);

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendError").finish_non_exhaustive()
    }
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cannot send on a watch channel without receivers")
    }
}

impl<T> Error for SendError<T> {}

/// The error returned when a receiver waits for a new value after all senders were dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecvError(());

impl RecvError {
    pub(super) fn new() -> Self {
        Self(())
    }
}

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("all senders of the watch channel were dropped")
    }
}

impl Error for RecvError {}
