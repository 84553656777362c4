//! A closure that waits in a queue, and the span of `tracing` that it is to run in.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::Result;

use tracing::Span;
use tracing::level_filters::LevelFilter;

use crate::quietly::{Guarded, caught, quietly};

/// The span of a request: one word, and no allocation where there is none.
///
/// A subscriber is foreign code. It may panic, and where the span is let go that stays here.
pub(super) struct RequestSpan(Option<Box<Guarded<Span>>>);

impl RequestSpan {
    /// The span that the OS thread is in. A subscriber's panic goes to the caller.
    pub(super) fn current() -> Self {
        // Without a subscriber, one load.
        if LevelFilter::current() == LevelFilter::OFF {
            return Self(None);
        }
        let span = Span::current();
        Self((!span.is_none()).then(|| Box::new(Guarded::new(span))))
    }
}

/// A closure and its span, which go together: to the color that runs it, or away.
pub(super) struct InSpan<F> {
    pub(super) closure: F,
    pub(super) span: RequestSpan,
}

impl<F> InSpan<F> {
    /// Has `run` run the closure in the span, which is let go after. It runs too if the subscriber panics.
    pub(super) fn run<R>(self, run: impl FnOnce(F) -> R) -> Result<R> {
        let Self { closure, span } = self;
        let entered = span.0.as_ref().and_then(|span| caught(|| span.enter()));
        let result = catch_unwind(AssertUnwindSafe(|| run(closure)));
        // Here and not while the closure's panic unwinds: a second panic would end the process.
        quietly(|| drop(entered));
        result
    }
}
