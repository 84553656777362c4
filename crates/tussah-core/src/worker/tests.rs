//! Tests of the effects of an interrupt: it ends a turn, and the time without a look at the timers.
//! No test depends on how long events take.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use super::Worker;
use crate::stats::Running;
use crate::time::{Clock, Sleep};
use crate::{Color, Handle, Runtime};

/// Bound, in events: the length of a turn.
const EVENTS: usize = 100;

/// Creates a runtime with one worker, and without a watchdog that interrupts it.
fn runtime(clock: Clock) -> Runtime {
    let builder = Runtime::builder().workers(1).no_watchdog().clock(clock);
    builder.build().expect("the worker starts")
}

fn running(f: impl FnOnce(&Running)) {
    Worker::with(|worker| f(&worker.expect("called in an event").remote.running));
}

/// Runs `f` as an event after which no look is due for a long time.
fn long_before_a_look(runtime: &Runtime, f: impl FnOnce(&Handle) + Send + 'static) {
    let handle = runtime.handle().clone();
    let event = move || {
        running(|running| running.look(|_| 1_000_000));
        f(&handle);
    };
    runtime.post_in(Color(0), event).expect("open");
}

/// Posts `EVENTS` events and counts them; the third one calls `third`. `color` returns each event's
/// color.
fn post(
    handle: &Handle,
    ran: &Arc<AtomicUsize>,
    color: impl Fn(u64) -> u64,
    third: impl FnOnce() + Send + 'static,
) {
    let mut third = Some(third);
    for n in 0..EVENTS {
        let third = if n == 2 { third.take() } else { None };
        let ran = ran.clone();
        let event = move || {
            ran.fetch_add(1, Ordering::Relaxed);
            if let Some(third) = third {
                third();
            }
        };
        handle.post_in(Color(color(n as u64)), event).expect("open");
    }
}

#[test]
fn an_interrupted_turn_ends_after_the_event() {
    let runtime = runtime(Clock::real());
    // Lets the color learn that its events are short.
    for _ in 0..10 * EVENTS {
        runtime.post_in(Color(1), || ()).expect("open");
    }
    runtime.block_on(runtime.idle());
    let (sender, receiver) = mpsc::channel();
    let ran = Arc::new(AtomicUsize::new(0));
    long_before_a_look(&runtime, move |handle| {
        post(handle, &ran, |_| 1, || running(Running::interrupt));
        let neighbour = move || {
            let ran = ran.load(Ordering::Relaxed);
            sender.send(ran).expect("the test listens");
        };
        handle.post_in(Color(2), neighbour).expect("open");
    });
    let ran = receiver.recv().expect("the neighbour runs");
    assert!(ran <= 3, "{ran} events ran first");
}

/// Counts an event of color 1, which posts the next one until `stop` is set.
fn go_on(handle: &Handle, ran: &Arc<AtomicUsize>, stop: &Arc<AtomicBool>) {
    ran.fetch_add(1, Ordering::Relaxed);
    if !stop.load(Ordering::Relaxed) {
        let (again, ran, stop) = (handle.clone(), ran.clone(), stop.clone());
        let event = move || go_on(&again, &ran, &stop);
        handle.post_in(Color(1), event).expect("open");
    }
}

#[test]
fn a_turn_ends_after_its_bound_of_events() {
    let runtime = runtime(Clock::real());
    let (sender, receiver) = mpsc::channel();
    let (ran, stop) = (
        Arc::new(AtomicUsize::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    long_before_a_look(&runtime, move |handle| {
        go_on(handle, &ran, &stop);
        let neighbour = move || {
            stop.store(true, Ordering::Relaxed);
            let ran = ran.load(Ordering::Relaxed);
            sender.send(ran).expect("the test listens");
        };
        handle.post_in(Color(2), neighbour).expect("open");
    });
    let ran = receiver.recv().expect("the neighbour runs");
    assert!(ran <= 1 + 128, "{ran} events ran first");
}

struct Fired {
    ran: Arc<AtomicUsize>,
    sender: mpsc::Sender<usize>,
}

impl Wake for Fired {
    fn wake(self: Arc<Self>) {
        let ran = self.ran.load(Ordering::Relaxed);
        let _ = self.sender.send(ran);
    }
}

#[test]
fn an_interrupted_worker_fires_its_timers_after_the_event() {
    let clock = Clock::manual();
    let runtime = runtime(clock.clock());
    let (sender, receiver) = mpsc::channel();
    long_before_a_look(&runtime, move |handle| {
        let ran = Arc::new(AtomicUsize::new(0));
        let fired = Fired {
            ran: ran.clone(),
            sender,
        };
        let mut sleep = Box::pin(Sleep::new_until(
            clock.clock().now() + Duration::from_secs(1),
        ));
        let waker = Waker::from(Arc::new(fired));
        let polled = Pin::new(&mut sleep).poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending(), "the timer is set");
        post(
            handle,
            &ran,
            |n| 10 + n,
            move || {
                clock.advance(Duration::from_secs(1));
                running(Running::interrupt);
            },
        );
        let last = move || drop(sleep);
        handle.post_in(Color(2), last).expect("open");
    });
    let ran = receiver.recv().expect("the timer fires");
    assert_eq!(ran, 3);
}
