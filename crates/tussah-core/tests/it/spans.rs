//! The span of `tracing` that a queued closure runs in, and a subscriber that checks it.

use std::cell::RefCell;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};

use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::with_default;
use tracing::{Event, Metadata, Subscriber, info_span};
use tracing_core::span::Current;
use tussah_core::{Colored, with_all};

use crate::cancelled::{give_up, hold};
use crate::runtime;

/// A subscriber's operations on a span.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    Clone,
    Enter,
    Exit,
    Close,
}

/// A subscriber that tracks the spans that each OS thread is in, and the references to each span.
#[derive(Clone, Default)]
pub struct Spans {
    known: Arc<Mutex<Vec<&'static Metadata<'static>>>>,
    references: Arc<AtomicUsize>,
    /// A use that panics.
    pub bad: Arc<Mutex<Option<Use>>>,
}

thread_local! {
    static INSIDE: RefCell<Vec<(Id, &'static Metadata<'static>)>> = const { RefCell::new(Vec::new()) };
}

/// The names of the spans that the OS thread is in.
pub fn inside() -> Vec<&'static str> {
    INSIDE.with_borrow(|inside| inside.iter().map(|(_, span)| span.name()).collect())
}

impl Spans {
    /// The number of references to spans.
    pub fn references(&self) -> usize {
        self.references.load(Ordering::SeqCst)
    }

    fn used(&self, used: Use) {
        let bad = *self.bad.lock().expect("no panic");
        if bad == Some(used) {
            std::panic::panic_any(crate::foreign::Thrown);
        }
    }
}

impl Subscriber for Spans {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut known = self.known.lock().expect("no panic");
        known.push(span.metadata());
        self.references.fetch_add(1, Ordering::SeqCst);
        Id::from_u64(known.len() as u64)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, span: &Id) {
        self.used(Use::Enter);
        let place = usize::try_from(span.into_u64()).expect("a small number") - 1;
        let known = self.known.lock().expect("no panic")[place];
        INSIDE.with_borrow_mut(|inside| inside.push((span.clone(), known)));
    }

    fn exit(&self, span: &Id) {
        let left = INSIDE.with_borrow_mut(Vec::pop).map(|(left, _)| left);
        assert_eq!(left.as_ref(), Some(span), "spans are left in turn");
        self.used(Use::Exit);
    }

    fn clone_span(&self, span: &Id) -> Id {
        self.used(Use::Clone);
        self.references.fetch_add(1, Ordering::SeqCst);
        span.clone()
    }

    fn try_close(&self, _: Id) -> bool {
        self.references.fetch_sub(1, Ordering::SeqCst);
        self.used(Use::Close);
        false
    }

    fn current_span(&self) -> Current {
        INSIDE.with_borrow(|inside| match inside.last() {
            Some((id, known)) => Current::new(id.clone(), known),
            None => Current::none(),
        })
    }
}

fn is_pending<R>(request: Pin<&mut impl Future<Output = R>>) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    request.poll(&mut context).is_pending()
}

#[test]
fn a_queued_closure_runs_in_the_span_of_the_first_poll() {
    let spans = Spans::default();
    with_default(spans.clone(), || {
        let runtime = runtime(2);
        let (value, other) = (Colored::new_in(&runtime, ()), Colored::new_in(&runtime, ()));
        let held = hold(&value);
        let mut with = pin!(value.with(|()| inside()));
        let mut read = pin!(value.read(|()| inside()));
        let mut all = pin!(with_all((&other, &value), |(), ()| inside()));
        let mut outside = pin!(value.with(|()| inside()));
        info_span!("first").in_scope(|| {
            assert!(is_pending(with.as_mut()), "the color is not free");
            assert!(is_pending(read.as_mut()), "the color is not free");
            assert!(is_pending(all.as_mut()), "the color is not free");
        });
        assert!(is_pending(outside.as_mut()), "the color is not free");
        info_span!("second").in_scope(|| {
            assert!(is_pending(with.as_mut()), "the color is not free");
            assert!(is_pending(all.as_mut()), "the color is not free");
        });
        drop(held);
        assert_eq!(runtime.block_on(with), ["first"]);
        assert_eq!(runtime.block_on(read), ["first"]);
        assert_eq!(runtime.block_on(all), ["first"]);
        assert!(runtime.block_on(outside).is_empty());
        assert_eq!(spans.references(), 0, "who has an answer finds no span");
    });
}

#[test]
fn a_request_that_is_given_up_lets_its_span_go() {
    let spans = Spans::default();
    with_default(spans.clone(), || {
        let runtime = runtime(1);
        let (value, other) = (Colored::new_in(&runtime, ()), Colored::new_in(&runtime, ()));
        let held = hold(&value);
        info_span!("given up").in_scope(|| {
            give_up(value.with(|()| ()));
            give_up(value.read(|()| ()));
            give_up(with_all((&other, &value), |(), ()| ()));
        });
        assert_eq!(spans.references(), 0, "the color is held, the span is not");
        drop(held);
    });
}
