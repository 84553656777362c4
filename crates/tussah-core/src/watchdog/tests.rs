//! Tests of the watchdog: its reports, its sleep, and the workers that it serves.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::task::{Context, Wake, Waker};

use super::*;
use crate::driver::Direction;
use crate::time::{Sleep, now};

/// A wait that takes longer than this is considered endless.
const HANG: Duration = Duration::from_secs(30);

/// Waits until `done` returns true. Returns false if the wait hangs.
fn comes(done: impl Fn() -> bool) -> bool {
    let begun = Instant::now();
    while !done() {
        if begun.elapsed() > HANG {
            return false;
        }
        std::thread::yield_now();
    }
    true
}

struct Fired(AtomicBool);

impl Wake for Fired {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

/// Creates a runtime with an event that waits for its own timer, returns whether the timer
/// fired, and reports when the event has begun. Nothing else is queued, and before the event
/// began all workers slept without a time limit.
fn held_by_a_timer() -> (crate::Runtime, crate::JoinHandle<bool>, mpsc::Receiver<()>) {
    let runtime = crate::Runtime::builder()
        .workers(2)
        .watchdog(Duration::from_millis(5), |_| ())
        .build()
        .expect("workers start");
    let idle = &runtime.handle().shared.idle;
    while !(idle.all_parked().is_some() && idle.unwatched()) {
        std::thread::yield_now();
    }
    let (begin, begun) = mpsc::channel();
    let held = runtime.spawn(async move {
        let fired = Arc::new(Fired(AtomicBool::new(false)));
        let waker = Waker::from(fired.clone());
        let mut sleep = pin!(Sleep::new_until(now() + Duration::from_millis(1)));
        let polled = sleep.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending(), "the timer is set");
        let _ = begin.send(());
        comes(|| fired.0.load(Ordering::Acquire))
    });
    (runtime, held, begun)
}

#[test]
fn a_timer_of_an_unwatched_worker_fires() {
    let (runtime, held, _begun) = held_by_a_timer();
    let fired = runtime.block_on(held).expect("no panic");
    assert!(fired, "the timer never fires");
}

#[test]
fn a_timer_of_an_unwatched_worker_fires_while_the_runtime_drains() {
    let (runtime, held, begun) = held_by_a_timer();
    begun.recv().expect("it runs");
    assert!(runtime.shutdown(2 * HANG).drained);
    let fired = futures_lite::future::block_on(held).expect("no panic");
    assert!(fired, "the timer never fires");
}

/// The only worker is held until a timer of an outside waiter has fired.
#[test]
fn a_timer_of_an_only_worker_that_is_held_fires() {
    let runtime = crate::Runtime::builder()
        .workers(1)
        .watchdog(Duration::from_millis(5), |_| ())
        .build()
        .expect("workers start");
    let (begin, begun) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let held = runtime.spawn(async move {
        begin.send(()).expect("the test listens");
        let _ = released.recv();
    });
    begun.recv().expect("it runs");
    let (handle, (fire, fires)) = (runtime.handle().clone(), mpsc::channel());
    let waits = std::thread::spawn(move || {
        handle.block_on(Sleep::new_until(now() + Duration::from_millis(1)));
        fire.send(()).expect("the test listens");
    });
    let fired = fires.recv_timeout(HANG);
    drop(release);
    assert!(fired.is_ok(), "the timer never fires");
    waits.join().expect("no panic");
    runtime.block_on(held).expect("no panic");
}

/// Creates a runtime without its own watchdog, and an event that holds its only worker until
/// the sender is dropped.
fn held() -> (crate::Runtime, crate::JoinHandle<()>, mpsc::Sender<()>) {
    let runtime = crate::Runtime::builder()
        .workers(1)
        .no_watchdog()
        .build()
        .expect("workers start");
    let (begin, begun) = mpsc::channel();
    let (release, released) = mpsc::channel();
    let held = runtime.spawn(async move {
        begin.send(()).expect("the test listens");
        let _ = released.recv();
    });
    begun.recv().expect("it runs");
    (runtime, held, release)
}

/// The watchdog looks at the worst moment: the first look that sees the event comes a full
/// interval after the event's beginning. Time is just a number here.
#[test]
fn an_event_is_reported_a_look_after_its_limit_and_then_at_its_end() {
    for limit_ms in [1, 40, 1000] {
        let limit = Duration::from_millis(limit_ms);
        let every = look_every(limit);
        assert!(every <= limit / 4 && every <= LOOK, "the precision");
        let (runtime, held, release) = held();
        let shared = &runtime.handle().shared;
        let (began, mut seen) = (Instant::now(), Vec::new());
        let mut look_at = |since| look(shared, &mut seen, began + since, limit);
        let mut since = every;
        while since < limit + every {
            assert!(look_at(since).is_empty(), "after {since:?} of {limit:?}");
            since += every;
        }
        let first = look_at(limit + every);
        assert_eq!(first.len(), 1);
        assert_eq!((first[0].held, first[0].ended), (limit, false));
        assert!(first[0].to_string().contains(" so far: "), "{}", first[0]);
        assert!(look_at(3 * limit).is_empty(), "one report");
        drop(release);
        runtime.block_on(held).expect("no panic");
        while shared.idle.all_parked().is_none() {
            std::thread::yield_now();
        }
        let last = look_at(4 * limit + every);
        assert_eq!(last.len(), 1);
        assert_eq!((last[0].held, last[0].ended), (4 * limit, true));
        assert_eq!(last[0].event, first[0].event);
        assert!(look_at(5 * limit).is_empty(), "two reports");
    }
}

/// An event that was reported ends just before the runtime does.
#[test]
fn the_end_of_an_event_is_reported_though_the_runtime_ends() {
    let (tell, told) = mpsc::channel();
    let tell = Mutex::new(tell);
    let runtime = crate::Runtime::builder()
        .workers(1)
        .watchdog(Duration::from_millis(1), move |stuck| {
            tell.lock().send(*stuck).expect("the test listens");
        })
        .build()
        .expect("workers start");
    let (release, released) = mpsc::channel::<()>();
    let held = runtime.spawn(async move {
        let _ = released.recv();
    });
    assert!(!told.recv().expect("it is reported").ended);
    drop(release);
    runtime.block_on(held).expect("no panic");
    // The event wakes the joiner of its thread before the event itself ends.
    while runtime.handle().shared.idle.all_parked().is_none() {
        std::thread::yield_now();
    }
    drop(runtime);
    assert!(told.recv().expect("its end is reported").ended);
}

/// An idle runtime costs nothing after each event, even if it waits for descriptors and its
/// limit is long.
#[test]
fn the_watchdog_sleeps_after_each_event_of_a_runtime_that_waits_for_descriptors() {
    let runtime = crate::Runtime::builder()
        .workers(1)
        .watchdog(Duration::from_secs(1), |_| ())
        .build()
        .expect("workers start");
    let (ours, _theirs) = std::os::unix::net::UnixStream::pair().expect("a pair");
    ours.set_nonblocking(true).expect("it can be set");
    let source = crate::driver::Source::new_in(runtime.handle(), ours.into());
    let first = source.poll_io(
        &mut Context::from_waker(Waker::noop()),
        Direction::Read,
        |fd| Ok(rustix::io::read(fd, &mut [0; 1])?),
    );
    assert!(first.is_pending(), "nothing was written");
    for _ in 0..3 {
        runtime.block_on(runtime.spawn(async {})).expect("no panic");
        while !runtime.handle().shared.idle.watchdog_sleeps() {
            std::thread::yield_now();
        }
    }
}

#[test]
fn the_watchdog_may_sleep_if_workers_hardly_ran_since_the_last_look() {
    let mut quiet = Quiet::default();
    let looks = [
        (Some(1), false),
        (Some(1 + FEW_PARKS), true),
        (Some(2 + 2 * FEW_PARKS), false),
        (None, false),
        (Some(2 + 2 * FEW_PARKS), false),
        (Some(2 + 2 * FEW_PARKS), true),
    ];
    for (look, (parks, sleeps)) in looks.into_iter().enumerate() {
        assert_eq!(quiet.look(parks), sleeps, "look {look}");
    }
}

/// Promise 5: without the interrupt, the next look at the clock would be due after more events
/// than there are.
#[test]
fn the_watchdog_interrupts_workers() {
    let runtime = crate::Runtime::builder().workers(1).build();
    let runtime = runtime.expect("workers start");
    let held = runtime.spawn(async {
        crate::worker::Worker::with(|worker| {
            let running = &worker.expect("called in an event").remote.running;
            running.look(|_| u64::MAX / 2);
            comes(|| running.is_due())
        })
    });
    let interrupted = runtime.block_on(held).expect("no panic");
    assert!(interrupted, "no interrupt comes");
}

/// Once the watchdog sleeps because nothing runs, the next event wakes it. That event holds its
/// worker until it is reported.
#[test]
fn an_event_after_a_time_without_any_is_reported() {
    let reported = Arc::new(AtomicBool::new(false));
    let told = reported.clone();
    let runtime = crate::Runtime::builder()
        .workers(1)
        .watchdog(Duration::from_millis(2), move |_| {
            told.store(true, Ordering::Release);
        })
        .build()
        .expect("workers start");
    for _ in 0..3 {
        while !runtime.handle().shared.idle.watchdog_sleeps() {
            std::thread::yield_now();
        }
        let reported = reported.clone();
        let held = runtime.spawn(async move {
            while !reported.swap(false, Ordering::AcqRel) {
                std::thread::yield_now();
            }
        });
        runtime.block_on(held).expect("no panic");
    }
}
