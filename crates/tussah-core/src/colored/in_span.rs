//! A queued closure together with the `tracing` span in which it runs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::Result;

use tracing::Span;
use tracing::level_filters::LevelFilter;

use crate::quietly::{Guarded, caught, quietly};

/// The span of a request: one word, without an allocation if there is no span.
///
/// A subscriber is foreign code and may panic. Releasing the span catches that panic.
pub(super) struct RequestSpan(Option<Box<Guarded<Span>>>);

impl RequestSpan {
    /// Returns the OS thread's current span. A panic of the subscriber unwinds into the caller.
    pub(super) fn current() -> Self {
        // Without a subscriber, this costs one load.
        if LevelFilter::current() == LevelFilter::OFF {
            return Self(None);
        }
        let span = Span::current();
        Self((!span.is_none()).then(|| Box::new(Guarded::new(span))))
    }
}

/// A closure and its span, which move together to the color that runs the closure.
pub(super) struct InSpan<F> {
    pub(super) closure: F,
    pub(super) span: RequestSpan,
}

impl<F> InSpan<F> {
    /// Passes the closure to `run` inside the span, then releases the span. The closure runs even
    /// if the subscriber panics.
    pub(super) fn run<R>(self, run: impl FnOnce(F) -> R) -> Result<R> {
        let Self { closure, span } = self;
        let entered = span.0.as_ref().and_then(|span| caught(|| span.enter()));
        let result = catch_unwind(AssertUnwindSafe(|| run(closure)));
        // The span is dropped here rather than while the closure's panic unwinds: a second panic
        // would abort the process.
        quietly(|| drop(entered));
        result
    }
}
