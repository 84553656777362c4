//! A caller that has a color must not wait: calls that block an OS thread are refused there, on any
//! OS thread.

use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Barrier, mpsc};
use std::time::{Duration, Instant};

use tussah_core::{BlockingPool, Colored, Handle, PoolPolicy, Runtime, with_all};

use crate::runtime;

/// The text of the panic of a blocking call where it is refused.
fn refusal(call: impl FnOnce()) -> String {
    let thrown = catch_unwind(AssertUnwindSafe(call)).expect_err("the call is refused");
    *thrown.downcast().expect("it says why")
}

/// Calls `check` in each place outside of the workers where a color is held.
fn where_a_color_is_held(runtime: &Runtime, check: fn(&Handle)) {
    let (one, two) = (Colored::new_in(runtime, 1), Colored::new_in(runtime, 2));
    let call = || {
        let handle = runtime.handle().clone();
        move || check(&handle)
    };
    let (f, g, h, i, j) = (call(), call(), call(), call(), call());
    runtime.block_on(one.with(move |_| f()));
    runtime.block_on(one.read(move |_| g()));
    assert!(one.try_with(|_| h()).is_ok());
    // Another executor.
    futures_lite::future::block_on(with_all((&one, &two), move |_, _| i()));
    let (handle, value) = (runtime.handle().clone(), one.clone());
    let job = move || handle.block_on(value.with(move |_| j()));
    let job = runtime.blocking().submit(job).expect("it is open");
    runtime.block_on(job).expect("the job is not refused");
    // Afterwards everything is as before.
    assert_eq!(runtime.block_on(async { 7 }), 7);
    assert_eq!(
        runtime.block_on(with_all((&one, &two), |one, two| *one + *two)),
        3
    );
}

#[test]
fn block_on_is_refused_while_a_color_is_held() {
    where_a_color_is_held(&runtime(1), |handle| {
        let text = refusal(|| handle.block_on(async {}));
        assert!(text.starts_with("block_on was called inside a closure that has entered a color"));
    });
}

#[test]
fn block_on_is_refused_inside_an_event() {
    let runtime = runtime(1);
    let handle = runtime.handle().clone();
    let event = runtime.spawn(async move { refusal(|| handle.block_on(async {})) });
    let text = runtime.block_on(event).expect("the call is refused");
    assert!(
        text.starts_with("block_on was called inside an event"),
        "{text}"
    );
}

#[test]
fn nested_entries_in_opposite_order_do_not_wait_for_each_other() {
    let runtime = Arc::new(runtime(1));
    let (one, two) = (Colored::new_in(&runtime, ()), Colored::new_in(&runtime, ()));
    let both = Arc::new(Barrier::new(2));
    let (tell, told) = mpsc::channel();
    for (first, second) in [(one.clone(), two.clone()), (two, one.clone())] {
        let (runtime, both, tell) = (runtime.clone(), both.clone(), tell.clone());
        std::thread::spawn(move || {
            let handle = runtime.handle().clone();
            runtime.block_on(first.with(move |()| {
                both.wait();
                let text = refusal(|| handle.block_on(second.with(|()| ())));
                tell.send(text).expect("the test listens");
            }));
        });
    }
    for _ in 0..2 {
        let text = told.recv_timeout(Duration::from_secs(60));
        assert!(text.is_ok(), "they wait for each other");
    }
    // One OS thread can do this to itself.
    let again = one.clone();
    let text = refusal(|| {
        runtime.block_on(one.with(move |()| Handle::current().block_on(again.with(|()| ()))))
    });
    // An OS thread from above may still be leaving the color; then a worker runs the closure.
    let refused = ["has entered a color", "inside an event"];
    assert!(refused.iter().any(|why| text.contains(why)), "{text}");
}

#[test]
fn the_end_of_a_runtime_is_refused_while_a_color_is_held() {
    where_a_color_is_held(&runtime(1), |_| {
        let other = runtime(1);
        let text = refusal(|| {
            other.shutdown(Duration::ZERO);
        });
        assert!(text.starts_with("a runtime was shut down, or dropped, inside a closure"));
        let other = runtime(1);
        let text = refusal(|| drop(other));
        assert!(text.starts_with("a runtime was shut down, or dropped, inside a closure"));
    });
}

#[test]
fn blocking_jobs_are_not_waited_for_while_a_color_is_held() {
    where_a_color_is_held(&runtime(1), |handle| {
        let (go, may_go) = mpsc::channel::<()>();
        let job = handle.blocking().submit(move || may_go.recv().is_err());
        let job = job.expect("it is open");
        let text = refusal(|| drop(job.join()));
        assert!(text.starts_with("a blocking job was joined inside a closure"));
        drop(go);
        let job = handle.blocking().submit(|| 1).expect("it is open");
        while !job.is_finished() {
            std::thread::yield_now();
        }
        assert_eq!(job.join().expect("who need not wait may join"), 1);
        let pool = BlockingPool::new("other", PoolPolicy::default());
        let later = Instant::now() + Duration::from_secs(3600);
        let text = refusal(|| {
            let _ = pool.shutdown(later);
        });
        assert!(text.starts_with("a blocking pool was shut down inside a closure"));
    });
}

/// A job that is polled inside another job runs on the spot, and may wait there; but not where a
/// color is held.
#[test]
fn no_job_runs_on_the_spot_while_a_color_is_held() {
    let runtime = runtime(1);
    let value = Colored::new_in(&runtime, ());
    let (handle, inner) = (runtime.handle().clone(), value.clone());
    let pool = handle.clone();
    let outer = runtime.blocking().submit(move || {
        let mut waits = None;
        let polled = value.try_with(|()| {
            let (handle, inner) = (handle.clone(), inner.clone());
            let job = move || handle.block_on(inner.with(|()| 5));
            let job = pool.blocking().submit(job);
            waits = Some(job.expect("it is open"));
            futures_lite::future::block_on(futures_lite::future::poll_once(
                waits.as_mut().expect("just made"),
            ))
            .is_none()
        });
        (
            polled.is_ok_and(|pending| pending),
            waits.expect("just made").join().expect("it may wait"),
        )
    });
    let outer = outer.expect("it is open");
    assert_eq!(runtime.block_on(outer).expect("no panic"), (true, 5));
}

#[test]
fn the_number_of_workers_is_not_waited_for_while_a_color_is_held() {
    let runtime = runtime(2);
    let both = Arc::new(Barrier::new(3));
    let held: Vec<_> = [1, 2]
        .map(|color| {
            let both = both.clone();
            let (go, may_go) = mpsc::channel::<()>();
            let event = move || {
                both.wait();
                let _ = may_go.recv();
            };
            runtime
                .post_in(tussah_core::Color(color), event)
                .expect("it is open");
            go
        })
        .into();
    both.wait();
    let value = Colored::new_in(&runtime, ());
    let asked = value.try_with(|()| {
        runtime.set_workers(1).expect("a worker can be taken away");
        runtime.set_workers(2)
    });
    let error = asked
        .ok()
        .expect("the color is idle")
        .expect_err("its place is not free");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    drop(held);
}
