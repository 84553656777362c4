//! Why something that was joined has no result.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::panic::resume_unwind;

use parking_lot::Mutex;

/// Why a thread or a blocking job that was joined has no result.
///
/// Exactly one of [`is_cancelled`](Self::is_cancelled) and [`is_panic`](Self::is_panic) is true.
pub struct JoinError {
    /// In a box, so that a thread, which has room for its output from the beginning, pays one word for what is rare.
    kind: Box<Kind>,
}

const _: () = assert!(size_of::<Result<(), JoinError>>() == size_of::<usize>());

enum Kind {
    Cancelled,
    TooDeep,
    // A payload is `Send` only. The lock makes the error `Sync`, which `Box<dyn Error + Send + Sync>` asks for.
    Panic(Mutex<Box<dyn Any + Send>>),
}

impl JoinError {
    /// It was aborted, or whatever was to run it has shut down.
    pub(crate) fn cancelled() -> Self {
        Self::of(Kind::Cancelled)
    }

    /// It was never started because too many joins are nested.
    pub(crate) fn too_deep() -> Self {
        Self::of(Kind::TooDeep)
    }

    /// It panicked; `payload` is what `catch_unwind` returned.
    pub(crate) fn panic(payload: Box<dyn Any + Send>) -> Self {
        Self::of(Kind::Panic(Mutex::new(payload)))
    }

    fn of(kind: Kind) -> Self {
        Self {
            kind: Box::new(kind),
        }
    }

    /// True if it did not run to its end: it was aborted, its runtime or pool has shut down, or it
    /// [was nested too deep](Self::is_too_deep).
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        !self.is_panic()
    }

    /// True if it never ran because more joins were nested than the blocking pool has stacks for.
    #[must_use]
    pub fn is_too_deep(&self) -> bool {
        matches!(*self.kind, Kind::TooDeep)
    }

    /// True if it panicked.
    #[must_use]
    pub fn is_panic(&self) -> bool {
        matches!(*self.kind, Kind::Panic(_))
    }

    /// What it panicked with.
    ///
    /// # Panics
    /// If it did not panic; see [`try_into_panic`](Self::try_into_panic).
    #[must_use]
    pub fn into_panic(self) -> Box<dyn Any + Send> {
        match self.try_into_panic() {
            Ok(payload) => payload,
            Err(error) => panic!("there is no panic to take: {error}"),
        }
    }

    /// What it panicked with.
    ///
    /// # Errors
    /// The error itself, if it did not panic.
    pub fn try_into_panic(self) -> Result<Box<dyn Any + Send>, JoinError> {
        match *self.kind {
            Kind::Panic(payload) => Ok(payload.into_inner()),
            kind => Err(Self::of(kind)),
        }
    }

    /// Lets the panic go on here, as if what was joined had been called.
    ///
    /// # Panics
    /// Always: with the original payload and without calling the panic hook again, or, if it was cancelled, with
    /// the text of this error.
    pub fn resume(self) -> ! {
        match self.try_into_panic() {
            Ok(payload) => resume_unwind(payload),
            Err(error) => panic!("{error}"),
        }
    }

    /// The text of the panic, if `panic!` was given one. It is copied so that no foreign formatter runs under the lock.
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
