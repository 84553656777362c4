//! OS threads that may not enter io_uring once their runtime has been built.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;

use tussah_core::Runtime;

use super::choice::refuse;
use super::help::{Counted, eventually, feed, pipe, poll_in};

/// A runtime of one worker, if its files go through io_uring.
fn ring() -> Option<Runtime> {
    let runtime = Runtime::builder().workers(1).build();
    let runtime = runtime.expect("the worker starts");
    runtime.driver().files_by_io_uring().then_some(runtime)
}

/// Runs a closure on an OS thread that may not enter io_uring.
fn refused(run: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            refuse(libc::SYS_io_uring_enter);
            run();
        });
    });
}

#[test]
fn the_worker_hands_over_what_others_may_not() {
    let Some(runtime) = ring() else { return };
    let (reader, writer) = pipe();
    feed(&writer, b"there");
    let read = reader.read(vec![0; 16], 0, false);
    refused(|| assert_eq!(runtime.block_on(read).0.expect("it is read"), 5));
}

#[test]
fn the_worker_hands_over_a_cancellation() {
    let Some(runtime) = ring() else { return };
    let (reader, _writer) = pipe();
    let drops = Arc::new(AtomicUsize::new(0));
    let mut read = Box::pin(reader.read(Counted::new(vec![0; 16], &drops), 0, false));
    assert!(!poll_in(&runtime, read.as_mut(), Waker::noop()));
    refused(|| drop(read));
    eventually("the drop", || drops.load(Ordering::SeqCst) == 1);
}
