//! Errors that callers get, with the call that failed.

use std::io;

/// Adds the name of the call, or of what it was for, to an error that a caller gets.
pub(crate) fn named(call: &str, error: impl Into<io::Error>) -> io::Error {
    let error = error.into();
    io::Error::new(error.kind(), format!("{call}: {error}"))
}
