//! The end of a runtime, and workers that come and go.

mod frozen;

use std::future::{Future, pending, poll_fn};
use std::io::ErrorKind;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::task::Poll;
use std::time::Duration;

use parking_lot::Mutex;
use tussah_core::time::{Clock, Sleep};
use tussah_core::{AbortHandle, Color, Handle, Runtime, yield_now};

use crate::{HANG, runtime};

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

/// The end of an idle runtime does not depend on its time limit.
#[test]
fn a_shutdown_may_be_given_all_the_time_there_is() {
    let report = runtime(1).shutdown(Duration::MAX);
    assert!(report.drained);
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
    // A chain: the end of each one ends the one before, even if that is done already.
    let mut waiting = vec![runtime.spawn(pending::<()>())];
    for color in 0..5 {
        let parent = Parent(waiting[color].abort_handle());
        let wait = async move {
            let _parent = parent;
            pending::<()>().await;
        };
        waiting.push(runtime.spawn_in(Color(color as u64 % 2), wait));
    }
    // Queued forever: one in a color, one in none.
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
fn timers_of_a_removed_worker_fire() {
    let clock = Clock::manual();
    let runtime = Runtime::builder()
        .workers(4)
        .clock(clock.clock())
        .no_watchdog()
        .build()
        .expect("workers start");
    let deadline = clock.clock().now() + Duration::from_secs(1);
    let all_set = Arc::new(Barrier::new(5));
    let (fire, fired) = mpsc::channel();
    for _ in 0..4 {
        let (all_set, fire) = (all_set.clone(), fire.clone());
        drop(runtime.spawn(async move {
            let mut sleep = pin!(Sleep::new_until(deadline));
            let first = poll_fn(|context| Poll::Ready(sleep.as_mut().poll(context)));
            assert!(first.await.is_pending(), "the timer is set");
            // The four wait for each other, so each has set its timer on another worker.
            all_set.wait();
            sleep.await;
            fire.send(()).expect("the test listens");
        }));
    }
    all_set.wait();
    runtime.set_workers(1).expect("a worker is left");
    clock.advance(Duration::from_secs(1));
    for timer in 1..=4 {
        let result = fired.recv_timeout(HANG);
        assert!(result.is_ok(), "timer {timer} of 4 never fires");
    }
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

/// Runs `f` inside an event of the worker at place 1 of 2, while an event of place 0 goes on until
/// `f` has returned.
fn on_the_second_worker<R: Send + 'static>(
    runtime: &Runtime,
    f: impl FnOnce(&Handle) -> R + Send + Sync + 'static,
) -> R {
    let (both, done) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let (sender, receiver) = mpsc::channel();
    let job = Arc::new(Mutex::new(Some((f, sender))));
    for color in 1..=2 {
        let (both, done, job) = (both.clone(), done.clone(), job.clone());
        let event = move || {
            both.wait(); // so they are on two workers
            let here = std::thread::current();
            let name = here.name().expect("workers have names");
            if name.ends_with("-worker-1") {
                let (f, sender) = job.lock().take().expect("one event is on place 1");
                let result = Handle::with_current(f);
                sender.send(result).expect("the test listens");
            }
            done.wait();
        };
        runtime.post_in(Color(color), event).expect("open");
    }
    receiver.recv().expect("no panic")
}

#[test]
fn an_event_can_not_wait_for_itself() {
    let runtime = runtime(2);
    let (taken, asked, left) = on_the_second_worker(&runtime, |handle| {
        // The worker that runs this ends with this event, so a caller that waited for its end here
        // would wait forever.
        let taken = handle.set_workers(1);
        let asked = handle.set_workers(2);
        (taken, asked, handle.workers())
    });
    taken.expect("a worker can be taken away from inside");
    let error = asked.expect_err("its place is not free");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    assert!(error.to_string().ends_with("still in its last event"));
    assert_eq!(left, 1, "nothing has changed");
    // Outside of an event the same call waits for the end of that one.
    runtime.set_workers(2).expect("the place becomes free");
    assert_eq!(runtime.workers(), 2);
    let again = on_the_second_worker(&runtime, Handle::workers);
    assert_eq!(again, 2, "the place has a worker again");
}

#[test]
fn an_event_does_not_wait_for_a_change_that_waits_for_its_worker() {
    let runtime = runtime(2);
    let error = on_the_second_worker(&runtime, |handle| {
        handle.set_workers(1).expect("it can be taken away");
        // Asks for this place again, and so waits for the end of this event.
        let outside = handle.clone();
        let change = std::thread::spawn(move || outside.set_workers(2));
        let error = loop {
            // Changes nothing until the other one has begun.
            if let Err(error) = handle.set_workers(1) {
                break error;
            }
            std::thread::yield_now();
        };
        (error, change)
    });
    let (error, change) = error;
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    assert!(error.to_string().ends_with("another change is in progress"));
    let changed = change.join().expect("no panic");
    changed.expect("the place became free");
    assert_eq!(runtime.workers(), 2);
}

#[test]
fn a_report_of_the_watchdog_may_end_its_runtime() {
    let (sender, receiver) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    let ended = Arc::new(Mutex::new(None::<Runtime>));
    let (slot, tell) = (ended.clone(), Mutex::new((go, sender)));
    let runtime = Runtime::builder()
        .workers(1)
        .watchdog(Duration::from_millis(5), move |stuck| {
            let Some(runtime) = slot.lock().take() else {
                return;
            };
            let (go, sender) = &*tell.lock();
            go.send(()).expect("the event waits");
            let report = runtime.shutdown(Duration::from_secs(60));
            sender
                .send((stuck.worker, report))
                .expect("the test listens");
        })
        .build()
        .expect("workers start");
    let handle = runtime.handle().clone();
    *ended.lock() = Some(runtime);
    let held = move || wait.recv().expect("the report tells");
    handle.post_in(Color(1), held).expect("open");
    let (worker, report) = receiver.recv().expect("the shutdown comes to its end");
    assert_eq!(worker, 0);
    assert!(report.drained, "{report:?}");
    assert_eq!(report.workers_stuck, 0);
    assert!(handle.post(|| {}).expect_err("it has ended").is_shut_down());
}

/// Promise 6, for the queue of a removed worker: it hands the queue over to the others before it
/// ends.
#[test]
fn events_that_an_ending_worker_gives_away_are_drained() {
    const COLORS: usize = 40;
    for _ in 0..300 {
        // Without stealing, the colors stay with the worker that has posted to them: often enough
        // the one that ends.
        let runtime = Runtime::builder()
            .workers(2)
            .stealing(false)
            .build()
            .expect("workers start");
        let (handle, ran) = (runtime.handle().clone(), Arc::new(AtomicUsize::new(0)));
        let counter = ran.clone();
        let posted = runtime.spawn(async move {
            for color in 1..=COLORS as u64 {
                let ran = counter.clone();
                let count = move || {
                    ran.fetch_add(1, Ordering::Relaxed);
                };
                handle.post_in(Color(color), count).expect("open");
            }
        });
        runtime.block_on(posted).expect("no panic");
        runtime.set_workers(1).expect("workers can be taken away");
        assert!(runtime.shutdown(Duration::from_secs(60)).drained);
        assert_eq!(ran.load(Ordering::Relaxed), COLORS);
    }
}
