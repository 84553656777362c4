//! The error of a join without a result.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::panic::resume_unwind;

use parking_lot::Mutex;

/// The reason why a joined thread or blocking job has no result.
///
/// Exactly one of [`is_cancelled`](Self::is_cancelled) and [`is_panic`](Self::is_panic) is true.
pub struct JoinError {
    /// Boxed, so that a thread, which reserves room for its output from the beginning, uses only
    /// one word for this rare case.
    kind: Box<Kind>,
}

const _: () = assert!(size_of::<Result<(), JoinError>>() == size_of::<usize>());

enum Kind {
    Cancelled,
    TooDeep,
    // A payload is only `Send`. The lock makes the error `Sync`, as `Box<dyn Error + Send + Sync>`
    // requires.
    Panic(Mutex<Box<dyn Any + Send>>),
}

impl JoinError {
    /// Made for a thread or job that was aborted, or whose runtime or pool has shut down.
    pub(crate) fn cancelled() -> Self {
        Self::of(Kind::Cancelled)
    }

    /// Made for a job that never started because too many joins are nested.
    pub(crate) fn too_deep() -> Self {
        Self::of(Kind::TooDeep)
    }

    /// Made for a panic; `payload` is the value that `catch_unwind` returned.
    pub(crate) fn panic(payload: Box<dyn Any + Send>) -> Self {
        Self::of(Kind::Panic(Mutex::new(payload)))
    }

    fn of(kind: Kind) -> Self {
        Self {
            kind: Box::new(kind),
        }
    }

    /// Returns whether the thread or job did not run to completion: it was aborted, its runtime or
    /// pool shut down, or it [was nested too deeply](Self::is_too_deep).
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        !self.is_panic()
    }

    /// Returns true if the job could not run because joins were nested too deeply for the stacks of
    /// the blocking pool.
    #[must_use]
    pub fn is_too_deep(&self) -> bool {
        matches!(*self.kind, Kind::TooDeep)
    }

    /// Returns whether the thread or job panicked.
    #[must_use]
    pub fn is_panic(&self) -> bool {
        matches!(*self.kind, Kind::Panic(_))
    }

    /// Returns the panic's payload.
    ///
    /// # Panics
    /// Panics if the error is not a panic; see [`try_into_panic`](Self::try_into_panic).
    #[must_use]
    pub fn into_panic(self) -> Box<dyn Any + Send> {
        match self.try_into_panic() {
            Ok(payload) => payload,
            Err(error) => panic!("there is no panic to take: {error}"),
        }
    }

    /// Returns the panic's payload, if the error is a panic.
    ///
    /// # Errors
    /// Returns this error unchanged if it is not a panic.
    pub fn try_into_panic(self) -> Result<Box<dyn Any + Send>, JoinError> {
        match *self.kind {
            Kind::Panic(payload) => Ok(payload.into_inner()),
            kind => Err(Self::of(kind)),
        }
    }

    /// Resumes the panic in the caller, as if the caller had called the joined code directly.
    ///
    /// # Panics
    /// Always panics. If the thread or job panicked, that panic resumes with its original payload,
    /// without calling the panic hook again. Otherwise, panics with the message of this error.
    pub fn resume(self) -> ! {
        match self.try_into_panic() {
            Ok(payload) => resume_unwind(payload),
            Err(error) => panic!("{error}"),
        }
    }

    /// Returns the text of the panic, if `panic!` was given one. It is copied, so that no foreign
    /// formatter runs under the lock.
    fn message(&self) -> Option<String> {
        let Kind::Panic(payload) = &*self.kind else {
            return None;
        };
        let payload = payload.lock();
        match payload.downcast_ref::<&'static str>() {
            Some(text) => Some((*text).to_owned()),
            None => payload.downcast_ref::<String>().cloned(),
        }
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.kind {
            Kind::Cancelled => f.write_str("cancelled before it had a result"),
            Kind::TooDeep => f.write_str("cancelled before it ran: too many nested joins"),
            Kind::Panic(_) => match self.message() {
                Some(text) => write!(f, "panicked: {text}"),
                None => f.write_str("panicked with a value that is no text"),
            },
        }
    }
}

impl fmt::Debug for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.kind {
            Kind::Cancelled => f.write_str("JoinError::Cancelled"),
            Kind::TooDeep => f.write_str("JoinError::TooDeep"),
            Kind::Panic(_) => match self.message() {
                Some(text) => write!(f, "JoinError::Panic({text:?})"),
                None => f.write_str("JoinError::Panic(..)"),
            },
        }
    }
}

impl Error for JoinError {}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    fn check(error: JoinError, display: &str, debug: &str, panic: bool) {
        assert_eq!(error.to_string(), display);
        assert_eq!(format!("{error:?}"), debug);
        assert_eq!(error.is_panic(), panic);
        assert_eq!(error.is_cancelled(), !panic);
        assert_eq!(error.try_into_panic().is_ok(), panic);
    }

    #[test]
    fn each_kind_says_what_it_is() {
        check(
            JoinError::cancelled(),
            "cancelled before it had a result",
            "JoinError::Cancelled",
            false,
        );
        check(
            JoinError::too_deep(),
            "cancelled before it ran: too many nested joins",
            "JoinError::TooDeep",
            false,
        );
        check(
            JoinError::panic(Box::new("a")),
            "panicked: a",
            "JoinError::Panic(\"a\")",
            true,
        );
        check(
            JoinError::panic(Box::new("b".to_owned())),
            "panicked: b",
            "JoinError::Panic(\"b\")",
            true,
        );
        check(
            JoinError::panic(Box::new(7_u32)),
            "panicked with a value that is no text",
            "JoinError::Panic(..)",
            true,
        );
    }

    #[test]
    fn resume_panics_with_the_payload() {
        let error = JoinError::panic(Box::new(7_u32));
        let payload =
            catch_unwind(AssertUnwindSafe(|| error.resume())).expect_err("resume always panics");
        assert_eq!(payload.downcast_ref::<u32>(), Some(&7));
    }

    #[test]
    fn the_error_fits_into_a_boxed_error() {
        let boxed: Box<dyn Error + Send + Sync> = JoinError::cancelled().into();
        assert_eq!(boxed.to_string(), "cancelled before it had a result");
    }
}
