//! Timers, callbacks that are called many times, and options of posts.

use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use tussah::{
    Callback, Color, DropReason, HandleExt, PostOptions, Runtime, after, every, post_in, post_with,
    spawn_in, yield_now,
};

use crate::runtime;

const SOON: Duration = Duration::from_millis(1);
const NEVER: Duration = Duration::from_secs(3600);

/// Keeps a color busy until the sender is dropped.
fn occupy(runtime: &Runtime, color: Color) -> mpsc::Sender<()> {
    let (go, wait) = mpsc::channel::<()>();
    let (begun, running) = mpsc::channel();
    runtime
        .post_in(color, move || {
            begun.send(()).expect("the test listens");
            assert!(wait.recv().is_err());
        })
        .expect("open");
    running.recv().expect("it began");
    go
}

/// Notes when it is dropped.
struct Dropped(mpsc::Sender<()>);

impl Drop for Dropped {
    fn drop(&mut self) {
        // The test may have ended.
        let _ = self.0.send(());
    }
}

#[test]
fn after_fires_once_and_not_early() {
    let runtime = runtime(2);
    let (sender, receiver) = mpsc::channel();
    let start = Instant::now();
    let timer = runtime.after(Duration::from_millis(20), Color(3), move || {
        sender.send(start.elapsed()).expect("the test listens");
    });
    assert!(receiver.recv().expect("it fires") >= Duration::from_millis(20));
    assert!(receiver.recv().is_err());
    timer.cancel();
}

#[test]
fn a_timer_is_cancelled_only_by_cancel() {
    let runtime = runtime(1);
    let (sender, receiver) = mpsc::channel();
    let kept = sender.clone();
    drop(runtime.after(SOON, Color(3), move || {
        kept.send(1).expect("the test listens")
    }));
    assert_eq!(receiver.recv(), Ok(1));

    let timer = runtime.after(NEVER, Color(3), move || {
        sender.send(2).expect("the test listens")
    });
    assert!(!timer.is_finished());
    timer.cancel();
    timer.clone().cancel();
    assert!(receiver.recv().is_err(), "the closure is dropped");
}

#[test]
fn a_cancel_in_the_color_is_exact() {
    // The time is up while the color is busy, so that the timer's event is queued behind the one
    // that cancels it.
    let clock = tussah::Clock::manual();
    let runtime = Runtime::builder().workers(2).clock(clock.clock());
    let runtime = runtime.build().expect("the workers start");
    let color = Color(4);
    let (fired, has_fired) = mpsc::channel();
    runtime
        .post_in(color, move || {
            let timer = after(SOON, color, move || {
                fired.send(()).expect("the test listens")
            });
            // Runs behind the timer's first event, which sets it.
            let cancel = move || {
                clock.advance(SOON);
                // So that the other worker has its chance.
                for _ in 0..1000 {
                    std::thread::yield_now();
                }
                timer.cancel();
            };
            post_in(color, cancel).expect("open");
        })
        .expect("open");
    assert_eq!(has_fired.iter().count(), 0);
}

#[test]
fn every_fires_until_it_is_cancelled() {
    let runtime = runtime(2);
    let (sender, receiver) = mpsc::channel();
    let mut calls = 0;
    let timer = runtime.every(SOON, Color(3), move || {
        calls += 1;
        sender.send(calls).expect("the test listens");
    });
    for expected in 1..=5 {
        assert_eq!(receiver.recv(), Ok(expected));
    }
    timer.cancel();
    // What was on its way is let through; then the closure is dropped.
    assert!(receiver.iter().count() < 1000);
}

#[test]
fn every_can_cancel_itself_and_outlives_a_panic() {
    let runtime = runtime(1);
    let (sender, receiver) = mpsc::channel();
    let (give, take) = mpsc::channel::<tussah::TimerHandle>();
    let mut calls = 0;
    let timer = runtime.every(Duration::from_nanos(1), Color(3), move || {
        calls += 1;
        sender.send(calls).expect("the test listens");
        match calls {
            1 => panic!("this call only"),
            2 => take.recv().expect("the test sends").cancel(),
            _ => {}
        }
    });
    give.send(timer).expect("it waits");
    assert_eq!(receiver.iter().collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn a_timer_that_is_set_too_late_is_dropped() {
    let runtime = runtime(1);
    let handle = runtime.handle().clone();
    drop(runtime);
    let (sender, receiver) = mpsc::channel();
    let other = sender.clone();
    let once = handle.after(SOON, Color(3), move || drop(sender));
    let again = handle.every(SOON, Color(3), move || other.send(()).expect("never"));
    assert!(receiver.recv().is_err(), "the closures are dropped");
    assert!(once.is_finished() && again.is_finished());
    again.cancel();
}

#[test]
#[should_panic = "must not be zero"]
fn every_needs_a_period() {
    runtime(1).every(Duration::ZERO, Color(3), || ());
}

#[test]
fn the_free_functions_use_the_current_runtime() {
    let runtime = runtime(2);
    let (sender, receiver) = mpsc::channel();
    runtime.block_on(async {
        let (first, second) = (sender.clone(), sender.clone());
        after(SOON, Color(3), move || {
            first.send("after").expect("the test listens")
        });
        let timer = every(SOON, Color(4), move || {
            let _ = second.send("every"); // the test may have ended
        });
        let third = sender.clone();
        post_with(Color(5), PostOptions::new(), move || {
            third.send("post").expect("the test listens")
        })
        .expect("open");
        let mut seen: Vec<_> = Vec::new();
        while seen.len() < 3 {
            let name = receiver.recv().expect("all of them run");
            if !seen.contains(&name) {
                seen.push(name);
            }
        }
        timer.cancel();
    });
}

#[test]
fn a_callback_is_called_many_times_in_its_color() {
    let runtime = runtime(2);
    let (sender, receiver) = mpsc::channel();
    let (dropped, is_dropped) = mpsc::channel::<()>();
    let mark = Dropped(dropped);
    let mut sum = 0u64;
    let callback = Callback::new_in(&runtime, Color(6), move |n: u64| {
        let _mark = &mark;
        sum += n;
        if n == 0 {
            sender.send(sum).expect("the test listens");
        }
    });
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let callback = callback.clone();
            scope.spawn(move || (0..1000).for_each(|_| callback.fire(1).expect("open")));
        }
    });
    callback.fire(0).expect("open");
    assert_eq!(receiver.recv(), Ok(4000));
    assert!(
        is_dropped.try_recv().is_err(),
        "it is alive while there is a handle"
    );
    drop(callback);
    is_dropped.recv().expect("it is freed by itself");
}

#[test]
fn a_callback_shares_its_color() {
    // The color travels in the callback: events of the same number alternate with its calls.
    let runtime = runtime(2);
    let alone = Arc::new(Mutex::new(0));
    let in_callback = alone.clone();
    let callback = Callback::new_in(&runtime, Color(6), move |()| {
        *in_callback.try_lock().expect("one color") += 1;
    });
    runtime.block_on(async {
        let in_thread = alone.clone();
        let thread = spawn_in(Color(6), async move {
            for _ in 0..1000 {
                *in_thread.try_lock().expect("one color") += 1;
                yield_now().await;
            }
        });
        (0..1000).for_each(|_| callback.fire(()).expect("open"));
        thread.await.expect("no panic");
        let color = callback.color().clone();
        let (done, wait) = tussah::sync::oneshot::async_channel();
        post_in(&color, move || done.send(()).expect("the test listens")).expect("open");
        wait.await.expect("it runs behind the calls");
    });
    assert_eq!(*alone.lock().expect("not poisoned"), 2000);
}

#[test]
fn a_panic_stays_in_its_call() {
    let runtime = runtime(1);
    let (sender, receiver) = mpsc::channel();
    let mut calls = 0;
    let callback = Callback::new_in(&runtime, Color(6), move |fail: bool| {
        calls += 1;
        assert!(!fail, "this call only");
        sender.send(calls).expect("the test listens");
    });
    callback.fire(true).expect("open");
    callback.fire(false).expect("open");
    assert_eq!(receiver.recv(), Ok(2));
}

#[test]
fn a_callback_gives_its_argument_back() {
    let runtime = runtime(1);
    let color = runtime.color(Color(6));
    let callback = Callback::new_in(&runtime, &color, |_: String| ());
    let go = occupy(&runtime, Color(6));
    color.set_depth_max(1);
    callback
        .fire("first".into())
        .expect("there is room for one");
    let refused = callback.fire("second".into()).expect_err("it is full");
    assert!(refused.is_full() && !refused.is_shut_down());
    assert_eq!(refused.to_string(), "the color's queue is full");
    assert_eq!(refused.into_inner(), "second");
    drop(go);
    drop(runtime);
    let refused = callback.fire("third".into()).expect_err("it is shut down");
    assert!(refused.is_shut_down() && !refused.is_full());
    assert_eq!(format!("{refused:?}"), "Refused(the runtime is shut down)");
    assert_eq!(refused.into_inner(), "third");
}

#[test]
fn a_refused_closure_may_own_callbacks_that_are_refused() {
    /// Fires when it is dropped.
    struct Fires(Callback<u8>, mpsc::Sender<u8>);
    impl Drop for Fires {
        fn drop(&mut self) {
            let refused = self.0.fire(7).expect_err("it is shut down");
            self.1.send(refused.into_inner()).expect("the test listens");
        }
    }
    let runtime = runtime(1);
    let handle = runtime.handle().clone();
    let callback = Callback::new_in(&runtime, Color(6), |_: u8| ());
    let (sender, receiver) = mpsc::channel();
    let fires = Fires(callback, sender);
    drop(runtime);
    let options = PostOptions::new().on_drop(move |_| drop(fires));
    let refused = handle.post_with(Color(1), options, || {
        9u8.pow(1).checked_sub(0).map_or((), drop)
    });
    refused.expect_err("it is shut down").into_inner()();
    assert_eq!(receiver.recv(), Ok(7));
}

#[test]
fn an_event_that_runs_has_no_drop_callback() {
    let runtime = runtime(1);
    let (sender, receiver) = mpsc::channel();
    let ran = sender.clone();
    let options = PostOptions::new()
        .deadline(Instant::now() + NEVER)
        .priority(3)
        .on_drop(move |_| sender.send("dropped").expect("the test listens"));
    runtime
        .post_with(Color(1), options, move || {
            ran.send("ran").expect("the test listens")
        })
        .expect("open");
    assert_eq!(receiver.iter().collect::<Vec<_>>(), ["ran"]);
}

#[test]
fn an_event_that_is_too_late_is_dropped_with_a_reason() {
    let runtime = runtime(1);
    let (sender, receiver) = mpsc::channel();
    let go = occupy(&runtime, Color(1));
    let options = PostOptions::new()
        .deadline(Instant::now())
        .on_drop(move |reason| sender.send(reason).expect("the test listens"));
    runtime
        .post_with(Color(1), options, || panic!("too late"))
        .expect("open");
    drop(go);
    assert_eq!(receiver.iter().collect::<Vec<_>>(), [DropReason::Expired]);
}

#[test]
fn an_event_posted_during_a_shutdown_runs_or_reports_a_reason() {
    let runtime = runtime(1);
    let go = occupy(&runtime, Color(1));
    let (sender, receiver) = mpsc::channel();
    let ran = sender.clone();
    let options = PostOptions::new()
        .on_drop(move |reason| sender.send(Err(reason)).expect("the test listens"));
    runtime
        .post_with(Color(1), options, move || {
            ran.send(Ok(())).expect("the test listens")
        })
        .expect("open");
    let handle = runtime.handle().clone();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // The worker goes on when the shutdown has begun.
            while handle.post(|| ()).is_ok() {
                std::thread::yield_now();
            }
            drop(go);
        });
        let report = runtime.shutdown(Duration::ZERO);
        assert_eq!(report.workers_stuck, 0);
    });
    let seen: Vec<_> = receiver.iter().collect();
    assert!(
        matches!(seen[..], [Ok(()) | Err(DropReason::ShutDown)]),
        "{seen:?}"
    );
}

#[test]
fn the_depth_limit_gives_the_closure_back() {
    let runtime = runtime(1);
    let go = occupy(&runtime, Color(1));
    let (sender, receiver) = mpsc::channel();
    let dropped = sender.clone();
    let limit = || PostOptions::new().depth_max(2);
    runtime
        .post_with(Color(1), limit(), || ())
        .expect("the first");
    runtime
        .post_with(Color(1), limit(), || ())
        .expect("the second");
    let options = limit().on_drop(move |_| dropped.send("dropped").expect("the test listens"));
    let refused = runtime
        .post_with(Color(1), options, move || {
            sender.send("ran").expect("the test listens")
        })
        .expect_err("two are queued");
    assert!(refused.is_full());
    drop(go);
    refused.into_inner()();
    assert_eq!(receiver.iter().collect::<Vec<_>>(), ["ran"]);
}
