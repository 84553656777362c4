//! Subscribers of `tracing` that panic.

use std::task::Waker;

use tracing::info_span;
use tracing::subscriber::with_default;
use tussah_core::with_all;

use super::throwing::{poll, throw, throws};
use super::{Bench, Row};
use crate::spans::{Spans, Use};

pub(super) const ROWS: &[Row] = &[Row {
    place: "a queued request: its span is taken, entered, left, let go",
    run: |bench| {
        for bad in [Use::Clone, Use::Enter, Use::Exit, Use::Close] {
            for waits in [true, false] {
                let spans = Spans::default();
                with_default(spans.clone(), || request(bench, &spans, bad, waits));
            }
        }
    },
}];

/// Requests, one of which panics too; awaited or given up.
fn request(bench: &Bench, spans: &Spans, bad: Use, waits: bool) {
    let panics = |bad| *spans.bad.lock().expect("no panic") = bad;
    let held = bench.hold();
    let mut with = Box::pin(bench.value.with(|_| 5));
    let mut read = Box::pin(bench.value.read(|_| throw()));
    let mut all = Box::pin(with_all((&bench.other, &bench.value), |_, _| 6));
    info_span!("asks").in_scope(|| {
        if bad == Use::Clone {
            panics(Some(bad));
            throws(|| poll(with.as_mut(), Waker::noop()));
            throws(|| poll(read.as_mut(), Waker::noop()));
            throws(|| poll(all.as_mut(), Waker::noop()));
            panics(None);
        }
        assert!(poll(with.as_mut(), Waker::noop()).is_pending());
        assert!(poll(read.as_mut(), Waker::noop()).is_pending());
        assert!(poll(all.as_mut(), Waker::noop()).is_pending());
    });
    panics(Some(bad));
    if waits {
        drop(held);
        assert_eq!(bench.runtime.block_on(with), 5);
        throws(|| bench.runtime.block_on(read));
        assert_eq!(bench.runtime.block_on(all), 6);
    } else {
        drop((with, read, all));
        drop(held);
    }
    panics(None);
    assert_eq!(spans.references(), 0, "each span is let go");
}
