//! Threads that wait until a worker has nothing else to run.

use std::sync::mpsc;
use std::time::Duration;

use tussah_core::{Color, Runtime};

fn runtime(workers: usize) -> Runtime {
    let builder = Runtime::builder().workers(workers);
    builder.build().expect("the workers start")
}

#[test]
fn idle_comes_behind_everything_that_is_queued() {
    let runtime = runtime(1);
    let handle = runtime.handle().clone();
    let (sender, receiver) = mpsc::channel();
    let idle = sender.clone();
    runtime
        .post(move || {
            let waits = handle.idle();
            drop(handle.spawn(async move {
                waits.await;
                idle.send(u64::MAX).expect("the test listens");
            }));
            // A chain of events, of which only one is queued at a time.
            chain(handle, sender, 0);
        })
        .expect("open");
    let order: Vec<_> = receiver.iter().collect();
    assert_eq!(order, (0..=1000).chain([u64::MAX]).collect::<Vec<_>>());
}

fn chain(handle: tussah_core::Handle, sender: mpsc::Sender<u64>, n: u64) {
    sender.send(n).expect("the test listens");
    if n < 1000 {
        let next = handle.clone();
        handle
            .post_in(Color(n), move || chain(next, sender, n + 1))
            .expect("open");
    }
}

#[test]
fn idle_comes_repeatedly_and_keeps_no_event_from_running() {
    let runtime = runtime(2);
    let handle = runtime.handle().clone();
    let (sender, receiver) = mpsc::sync_channel(0);
    let thread = runtime.spawn(async move {
        for n in 0..1000 {
            handle.idle().await;
            if n == 500 {
                // Goes on only when another event has run.
                let (done, wait) = mpsc::channel();
                let event = move || done.send(()).expect("it waits");
                handle.post_in(Color(1), event).expect("open");
                wait.recv().expect("it runs");
            }
        }
        sender.send(()).expect("the test listens");
    });
    receiver.recv().expect("it ends");
    runtime.block_on(thread).expect("no panic");
}

#[test]
fn idle_is_waited_for_from_outside() {
    let runtime = runtime(2);
    for _ in 0..100 {
        runtime.block_on(runtime.idle());
        futures_lite::future::block_on(runtime.idle());
    }
}

#[test]
fn dropped_idlers_leave_nothing_and_the_others_stay() {
    let runtime = runtime(1);
    let handle = runtime.handle().clone();
    let thread = runtime.spawn(async move {
        let mut several: Vec<_> = (0..3).map(|_| Box::pin(handle.idle())).collect();
        for waits in &mut several {
            assert!(futures_lite::future::poll_once(waits).await.is_none());
        }
        drop(several.remove(1));
        for waits in several {
            waits.await;
        }
    });
    runtime.block_on(thread).expect("no panic");
}

#[test]
fn a_removed_worker_forgets_no_idler() {
    let runtime = runtime(2);
    for _ in 0..50 {
        let handle = runtime.handle().clone();
        let thread = runtime.spawn(async move { handle.idle().await });
        runtime.set_workers(1).expect("it can be");
        runtime.set_workers(2).expect("it can be");
        runtime.block_on(thread).expect("no panic");
    }
}

#[test]
fn idlers_do_not_hold_up_the_end() {
    let runtime = runtime(2);
    let handle = runtime.handle().clone();
    let (begun, running) = mpsc::channel();
    drop(runtime.spawn(async move {
        loop {
            handle.idle().await;
            // The test may have received enough.
            let _ = begun.send(());
        }
    }));
    running.recv().expect("it begins");
    let report = runtime.shutdown(Duration::from_secs(3600));
    assert_eq!((report.workers_stuck, report.threads_dropped), (0, 1));
}
