//! The end of a runtime, and workers that come and go.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tussah_core::time::{Clock, Sleep};
use tussah_core::{AbortHandle, Color, Runtime, yield_now};

use crate::runtime;

#[test]
fn threads_that_never_rest_end_with_the_runtime() {
    let runtime = runtime(2);
    for _ in 0..4 {
        drop(runtime.spawn(async {
            loop {
                yield_now().await;
            }
        }));
    }
    let report = runtime.shutdown(Duration::from_millis(5));
    assert!(!report.drained);
    assert_eq!(report.workers_stuck, 0);
    assert_eq!(
        report.threads_dropped, 4,
        "they were dropped out of the queues"
    );
}

#[test]
fn the_report_counts_each_dropped_thread_once() {
    /// Ends another thread when it is dropped.
    struct Parent(AbortHandle);
    impl Drop for Parent {
        fn drop(&mut self) {
            self.0.abort();
        }
    }
    let runtime = runtime(2);
    let ended = runtime.spawn(async {});
    runtime.block_on(ended).expect("no panic");
    // A chain: each one's end ends the one before, also if that is done already.
    let mut waiting = vec![runtime.spawn(pending::<()>())];
    for color in 0..5 {
        let parent = Parent(waiting[color].abort_handle());
        let wait = async move {
            let _parent = parent;
            pending::<()>().await;
        };
        waiting.push(runtime.spawn_in(Color(color as u64 % 2), wait));
    }
    // Queued for ever: one in a color, one in none.
    let restless = || async {
        loop {
            yield_now().await;
        }
    };
    drop(runtime.spawn_in(Color(1), restless()));
    drop(runtime.spawn(restless()));
    let report = runtime.shutdown(Duration::ZERO);
    assert_eq!(report.threads_dropped, 8);
    assert!(waiting.iter().all(|thread| thread.is_finished()));
}

#[test]
fn timers_of_a_worker_that_was_taken_away_fire() {
    let runtime = runtime(4);
    let deadline = std::time::Instant::now() + Duration::from_millis(20);
    // Held, so that all four workers set some of the timers.
    let threads: Vec<_> = (0..64)
        .map(|_| {
            runtime.spawn(async move {
                std::thread::yield_now();
                Sleep::new_until(deadline).await;
            })
        })
        .collect();
    runtime.set_workers(1).expect("workers can be taken away");
    runtime.block_on(async {
        for thread in threads {
            thread.await.expect("no panic");
        }
    });
}

#[test]
fn stealing_does_not_depend_on_a_clock_that_is_moved_by_hand() {
    let clock = Clock::manual();
    let runtime = Runtime::builder()
        .workers(2)
        .clock(clock.clock())
        .build()
        .expect("workers start");
    let (handle, done) = (runtime.handle().clone(), Arc::new(AtomicBool::new(false)));
    let held = runtime.spawn(async move {
        let set = done.clone();
        handle
            .post_in(Color(2), move || set.store(true, Ordering::Release))
            .expect("open");
        while !done.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
    });
    runtime.block_on(held).expect("no panic");
}

#[test]
fn a_destructor_that_panics_harms_only_its_event() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                std::panic::panic_any(Bomb2);
            }
        }
    }
    struct Bomb2;
    impl Drop for Bomb2 {
        fn drop(&mut self) {
            panic!("in the destructor of what was thrown");
        }
    }
    let runtime = runtime(1);
    for _ in 0..3 {
        // Detached, so that the worker drops the output.
        drop(runtime.spawn(async {
            yield_now().await;
            Bomb
        }));
    }
    assert_eq!(
        runtime
            .block_on(runtime.spawn(async { 7 }))
            .expect("the worker goes on"),
        7
    );
}

#[test]
fn an_event_can_not_wait_for_itself() {
    let runtime = runtime(2);
    let handle = runtime.handle().clone();
    let result = runtime.block_on(runtime.spawn(async move {
        // Takes away, and asks back, perhaps the worker that this runs on.
        for workers in [1, 2, 1, 2, 1, 2] {
            if let Err(error) = handle.set_workers(workers) {
                return Some(error.kind());
            }
        }
        None
    }));
    let error = result.expect("no panic");
    assert!(
        matches!(error, None | Some(std::io::ErrorKind::WouldBlock)),
        "{error:?}"
    );
}
