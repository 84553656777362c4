//! Time inside of a runtime, by the real clock and by one that is moved by hand.

use std::future::pending;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use tussah::time::{MissedTicks, interval, now, sleep, sleep_until, timeout, timeout_at};
use tussah::{Color, HandleExt, PostOptions, after, every, post_with, spawn};

use crate::by_hand;

const HOUR: Duration = Duration::from_secs(3600);
const SOON: Duration = Duration::from_millis(2);

#[tussah::test]
async fn sleeping_takes_time() {
    let start = Instant::now();
    sleep(SOON).await;
    sleep_until(now() + SOON).await;
    assert!(start.elapsed() >= 2 * SOON);
    assert!(timeout(SOON, pending::<()>()).await.is_err());
    assert!(timeout_at(now() + SOON, pending::<()>()).await.is_err());
    assert_eq!(
        timeout(HOUR, spawn(async { 7 }))
            .await
            .expect("in time")
            .expect("no panic"),
        7
    );
    let mut ticks = interval(SOON).with_missed_ticks(MissedTicks::Burst);
    let first = ticks.tick().await;
    assert_eq!(ticks.tick().await, first + SOON);
}

#[test]
fn a_clock_moved_by_hand() {
    let (clock, runtime) = by_hand();
    let (sender, receiver) = mpsc::channel();
    let (ready, is_ready) = mpsc::channel();
    let told = sender.clone();
    let thread = runtime.spawn(async move {
        let start = now();
        let mut sleep = Box::pin(sleep(HOUR));
        // Set the timer before the clock is moved.
        futures_lite::future::poll_once(&mut sleep).await;
        ready.send(()).expect("the test listens");
        sleep.await;
        told.send(now() - start).expect("the test listens");
    });
    is_ready.recv().expect("it waits");
    clock.advance(HOUR - SOON);
    assert!(receiver.try_recv().is_err());
    clock.advance(2 * SOON);
    assert_eq!(receiver.recv(), Ok(HOUR + SOON));
    runtime.block_on(thread).expect("no panic");
}

#[test]
fn a_handle_shows_the_time_of_its_runtime() {
    let (clock, runtime) = by_hand();
    let start = runtime.now();
    clock.advance(HOUR);
    assert_eq!(runtime.now() - start, HOUR);
    // Also to those who run elsewhere, by another clock.
    let (_, other) = by_hand();
    other.block_on(async {
        assert_eq!(runtime.now() - start, HOUR);
        assert_eq!(now(), other.now());
    });
}

#[test]
fn timers_follow_the_clock_of_their_runtime() {
    let (clock, runtime) = by_hand();
    let (sender, receiver) = mpsc::channel();
    let (first, second) = (sender.clone(), sender);
    runtime.block_on(async {
        after(HOUR, Color(1), move || {
            first.send("after").expect("the test listens")
        });
    });
    runtime.every(2 * HOUR, Color(1), move || {
        let _ = second.send("every"); // the test may have ended
    });
    clock.advance(HOUR + SOON);
    assert_eq!(receiver.recv(), Ok("after"));
    clock.advance(HOUR);
    assert_eq!(receiver.recv(), Ok("every"));
}

#[test]
fn time_counts_from_the_call_by_the_clock_of_the_timer() {
    let (clock, runtime) = by_hand();
    clock.advance(10 * HOUR);
    let (held, is_held) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    runtime
        .post_in(Color(2), move || {
            held.send(()).expect("the test listens");
            wait.recv().expect("the test tells");
        })
        .expect("open");
    is_held.recv().expect("the only worker is held");
    let (sender, receiver) = mpsc::channel();
    let set = |name: &'static str, delay: Duration| {
        let sender = sender.clone();
        runtime.after(delay, Color(1), move || {
            sender.send(name).expect("the test listens")
        });
    };
    set("outside", 2 * HOUR);
    // By another clock, which shows another time.
    by_hand().1.block_on(async { set("elsewhere", 3 * HOUR) });
    runtime.block_on(async { set("inside", 4 * HOUR) });
    let every = sender.clone();
    runtime.every(5 * HOUR, Color(1), move || {
        let _ = every.send("every"); // the test may have ended
    });
    set("last", 6 * HOUR);
    let ready = sender.clone();
    runtime
        .post_in(Color(1), move || {
            ready.send("set").expect("the test listens")
        })
        .expect("open");
    // The timers are set late, but in time for all of them.
    clock.advance(HOUR + SOON);
    go.send(()).expect("the event waits");
    assert_eq!(receiver.recv(), Ok("set"));
    clock.advance(7 * HOUR);
    let order: Vec<_> = receiver.iter().take(5).collect();
    assert_eq!(order, ["outside", "elsewhere", "inside", "every", "last"]);
}

#[test]
fn late_calls_of_a_timer_are_left_out() {
    let (clock, runtime) = by_hand();
    let (sender, receiver) = mpsc::channel();
    runtime.block_on(async {
        every(HOUR, Color(1), move || {
            let _ = sender.send(now()); // the test may have ended
        });
    });
    let (ready, is_ready) = mpsc::channel();
    runtime
        .post_in(Color(1), move || ready.send(()).expect("the test listens"))
        .expect("open");
    is_ready.recv().expect("the timer is set");
    clock.advance(10 * HOUR);
    let first = receiver.recv().expect("one call for the ten that were due");
    let (ready, is_ready) = mpsc::channel();
    runtime
        .post_in(Color(1), move || {
            // Behind the event in which the timer is set anew.
            tussah::post_in(Color(1), move || ready.send(()).expect("the test listens"))
                .expect("open");
        })
        .expect("open");
    is_ready.recv().expect("it runs");
    assert!(receiver.try_recv().is_err());
    clock.advance(HOUR + SOON);
    assert!(receiver.recv().expect("a period later") >= first + HOUR);
}

#[test]
fn deadlines_follow_the_clock_of_their_runtime() {
    let (clock, runtime) = by_hand();
    let (sender, receiver) = mpsc::channel();
    runtime.block_on(async {
        let deadline = now() + HOUR;
        let (early, late) = (sender.clone(), sender);
        let options = PostOptions::new().deadline(deadline);
        post_with(Color(1), options, move || {
            early.send("in time").expect("the test listens")
        })
        .expect("open");
        assert_eq!(receiver.recv(), Ok("in time"));
        clock.advance(2 * HOUR);
        let options = PostOptions::new().deadline(deadline);
        post_with(Color(1), options, move || {
            late.send("late").expect("the test listens")
        })
        .expect("open");
        assert!(receiver.recv().is_err(), "the closure is dropped");
    });
}
