//! OS threads that must not enter io_uring once their runtime has been built.

use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::task::{Poll, Waker};

use tussah_core::Runtime;

use super::choice::refuse;
use super::help::{Counted, eventually, feed, pipe, poll_in};

/// Creates a runtime of one worker, if its files use io_uring.
fn ring() -> Option<Runtime> {
    let runtime = Runtime::builder().workers(1).build();
    let runtime = runtime.expect("the worker starts");
    runtime.driver().files_by_io_uring().then_some(runtime)
}

/// Runs a closure on an OS thread that must not enter io_uring.
fn refused(run: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            refuse(libc::SYS_io_uring_enter);
            run();
        });
    });
}

#[test]
fn the_worker_submits_entries_that_others_may_not() {
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

/// Threads run on all of three workers. That of the last one begins a read when its worker has been
/// removed.
#[test]
fn the_first_worker_flushes_for_a_removed_one() {
    const WORKERS: usize = 3;
    let runtime = Runtime::builder().workers(WORKERS).build();
    let runtime = runtime.expect("the workers start");
    if !runtime.driver().files_by_io_uring() {
        return;
    }
    for _ in 0..20 {
        let all_run = Arc::new(Barrier::new(WORKERS + 1));
        let taken_away = Arc::new(Barrier::new(2));
        let threads = [(); WORKERS].map(|()| {
            let (all_run, taken_away) = (all_run.clone(), taken_away.clone());
            runtime.spawn(async move {
                all_run.wait();
                let this = std::thread::current();
                if this.name().is_none_or(|name| !name.ends_with("worker-2")) {
                    return None;
                }
                refuse(libc::SYS_io_uring_enter);
                taken_away.wait();
                let (reader, writer) = pipe();
                let mut read = Box::pin(async move { reader.read(vec![0; 16], 0, false).await.0 });
                let first = poll_fn(|context| Poll::Ready(read.as_mut().poll(context)));
                assert!(first.await.is_pending(), "nothing is there");
                Some((read, writer))
            })
        });
        all_run.wait();
        runtime.set_workers(WORKERS - 1).expect("others are left");
        taken_away.wait();
        for thread in threads {
            if let Some((read, writer)) = runtime.block_on(thread).expect("no panic") {
                feed(&writer, b"there");
                assert_eq!(runtime.block_on(read).expect("it is read"), 5);
            }
        }
        runtime.set_workers(WORKERS).expect("it starts again");
    }
}
