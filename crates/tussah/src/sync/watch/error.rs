//! The errors of a watch.

use std::{error::Error, fmt};

/// Nobody watches; holds the value that was to be sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SendError<T>(pub T);

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendError").finish_non_exhaustive()
    }
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sending on a watch that nobody watches")
    }
}

impl<T> Error for SendError<T> {}

/// All senders are gone, and the latest value has been seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecvError(());

impl RecvError {
    pub(super) fn new() -> Self {
        Self(())
    }
}

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("waiting for a watch whose senders are gone")
    }
}

impl Error for RecvError {}
