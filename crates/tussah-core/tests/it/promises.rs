//! The promises of `docs/promises.md` that no other file here tests.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use tussah_core::time::{Clock, Sleep};
use tussah_core::{Candidate, Color, Colored, Policy, Runtime, with_all, yield_now};

use crate::{HANG, comes, runtime};

/// Promise 3: requests for the same colors in every order end.
#[test]
fn opposite_orders_do_not_deadlock() {
    let runtime = runtime(2);
    let values: Vec<_> = (0..3).map(|_| Colored::new_in(&runtime, 0u32)).collect();
    let threads: Vec<_> = [(0, 1), (1, 0), (1, 2), (2, 1), (2, 0), (0, 2)]
        .map(|(one, two)| {
            let (one, two) = (values[one].clone(), values[two].clone());
            runtime.spawn(async move {
                for _ in 0..500 {
                    with_all((&one, &two), |one, two| {
                        *one += 1;
                        *two += 1;
                    })
                    .await;
                    one.with(|one| *one += 1).await;
                }
            })
        })
        .into();
    runtime.block_on(async {
        for thread in threads {
            thread.await.expect("no panic");
        }
        let mut sum = 0;
        for value in &values {
            sum += value.with(|value| *value).await;
        }
        assert_eq!(sum, 6 * 500 * 3);
    });
}

/// Promise 4: a color queued behind an event that does not end is stolen, whether the other worker
/// has other events to run or not. The event waits for it.
#[test]
fn an_event_that_waits_for_what_it_posted_comes_to_an_end() {
    for chains in [0, 2] {
        let runtime = runtime(2);
        let stop = Arc::new(AtomicBool::new(false));
        for color in 0..chains {
            again(runtime.handle().clone(), Color(1000 + color), stop.clone());
        }
        for round in 0..20 {
            let (handle, done) = (runtime.handle().clone(), Arc::new(AtomicBool::new(false)));
            let (sender, receiver) = mpsc::channel();
            let event = move || {
                let set = done.clone();
                handle
                    .post_in(Color(2 + round), move || set.store(true, Ordering::Release))
                    .expect("open");
                let ran = comes(|| done.load(Ordering::Acquire));
                sender.send(ran).expect("the test listens");
            };
            runtime.handle().post_in(Color(1), event).expect("open");
            let ran = receiver.recv_timeout(2 * HANG).expect("the event ended");
            assert!(ran, "the event waits forever for what it posted, {chains}");
        }
        stop.store(true, Ordering::Relaxed);
    }
}

/// Promise 4: events from outside that are queued with a held worker do not wait for the steal
/// delay, whether the other worker has other events to run or not.
#[test]
fn events_from_outside_do_not_wait_for_a_held_worker() {
    const EVENTS: u64 = 10;
    for is_busy in [false, true] {
        let hour = Duration::from_secs(3600);
        let runtime = Runtime::builder().workers(2).steal_delay(hour).build();
        let runtime = runtime.expect("workers start");
        let handle = runtime.handle();
        let (runs, events) = mpsc::channel();
        let ends = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        for (end, color) in ends.iter().zip(1..) {
            let (handle, runs, end) = (handle.clone(), runs.clone(), Arc::clone(end));
            let hold = move || {
                runs.send(()).expect("the test listens");
                while !end.load(Ordering::Acquire) {
                    thread::yield_now();
                }
                if is_busy {
                    again(handle, Color(9), Arc::default());
                }
            };
            runtime.handle().post_in(Color(color), hold).expect("open");
            events.recv_timeout(HANG).expect("a worker is free");
        }
        for color in 0..EVENTS {
            let runs = runs.clone();
            let event = move || runs.send(()).expect("the test listens");
            handle.post_in(Color(10 + color), event).expect("open");
        }
        ends[1].store(true, Ordering::Release);
        let ran = (0..EVENTS).take_while(|_| events.recv_timeout(HANG).is_ok());
        let ran = ran.count();
        ends[0].store(true, Ordering::Release);
        assert_eq!(ran, EVENTS as usize, "{is_busy}");
    }
}

/// Posts to a color again and again, until `stop` is true or the runtime shuts down.
fn again(handle: tussah_core::Handle, color: Color, stop: Arc<AtomicBool>) {
    let next = (handle.clone(), stop.clone());
    if !stop.load(Ordering::Relaxed) {
        let _ = handle.post_in(color, move || again(next.0, color, next.1));
    }
}

/// Promise 4: the same for a timer that the held worker has set. The other worker has no help from
/// a watchdog.
#[test]
fn a_timer_of_a_held_worker_fires() {
    struct Fired(AtomicBool);
    impl Wake for Fired {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Release);
        }
    }
    let clock = Clock::manual();
    let runtime = Runtime::builder()
        .workers(2)
        .clock(clock.clock())
        .no_watchdog()
        .build()
        .expect("workers start");
    let held = runtime.spawn(async move {
        let fired = Arc::new(Fired(AtomicBool::new(false)));
        let waker = Waker::from(fired.clone());
        let deadline = tussah_core::time::now() + Duration::from_millis(1);
        let mut sleep = pin!(Sleep::new_until(deadline));
        let polled = sleep.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending(), "the timer is set");
        clock.advance(Duration::from_millis(1));
        // An event in the queue makes the other worker keep watch.
        drop(tussah_core::Handle::current().spawn(async {}));
        comes(|| fired.0.load(Ordering::Acquire))
    });
    let fired = runtime.block_on(held).expect("no panic");
    assert!(fired, "the timer never fires");
}

/// Promise 5: a color that never runs dry starves neither its neighbors nor the timers.
#[test]
fn a_hot_color_starves_no_other() {
    let runtime = runtime(1);
    let stop = Arc::new(AtomicBool::new(false));
    again(runtime.handle().clone(), Color(9), stop.clone());
    again(runtime.handle().clone(), Color(9), stop.clone());
    let (sender, receiver) = mpsc::channel();
    runtime
        .post_in(Color(10), move || {
            sender.send(()).expect("the test listens")
        })
        .expect("open");
    receiver.recv().expect("the cold event ran");
    let slept = runtime.spawn(Sleep::new_until(
        std::time::Instant::now() + Duration::from_millis(2),
    ));
    runtime.block_on(slept).expect("the timer fired");
    stop.store(true, Ordering::Relaxed);
}

/// Computes for about a millisecond.
fn long_event() {
    let begun = std::time::Instant::now();
    while begun.elapsed() < Duration::from_millis(1) {}
}

/// Runs `f` as an event of color 0xC0 after thousands of short ones, of color 1 and of other
/// colors, so that the scheduler expects short ones.
fn after_short_events(runtime: &Runtime, f: impl FnOnce(&tussah_core::Handle) + Send + 'static) {
    let handle = runtime.handle().clone();
    let feeder = move || {
        for _ in 0..20 {
            for n in 0..500 {
                handle.post_in(Color(1), || ()).expect("open");
                handle.post_in(Color(1000 + n), || ()).expect("open");
            }
        }
    };
    runtime.post_in(Color(0xFEED), feeder).expect("open");
    runtime.block_on(runtime.idle());
    let handle = runtime.handle().clone();
    runtime
        .post_in(Color(0xC0), move || f(&handle))
        .expect("open");
}

/// Promise 5: a color had short events, and now each takes long. Its neighbor does not wait for as
/// many of these as fitted into a turn.
#[test]
fn a_color_whose_events_become_long_lets_its_neighbour_run() {
    const EVENTS: usize = 126;
    let runtime = runtime(1);
    let (ran, before) = (Arc::new(AtomicUsize::new(0)), mpsc::channel());
    let counter = ran.clone();
    after_short_events(&runtime, move |handle| {
        for _ in 0..EVENTS {
            let ran = counter.clone();
            let event = move || {
                long_event();
                ran.fetch_add(1, Ordering::Relaxed);
            };
            handle.post_in(Color(1), event).expect("open");
        }
        let neighbour = move || {
            let ran = counter.load(Ordering::Relaxed);
            before.0.send(ran).expect("the test listens");
        };
        handle.post_in(Color(2), neighbour).expect("open");
    });
    let before = before.1.recv().expect("the neighbour ran");
    assert!(before < EVENTS, "{before} events ran first");
}

/// Promise 5: turns were short, and now each takes long. A timer does not wait for as many of these
/// as ran between two looks.
#[test]
fn a_timer_does_not_wait_for_many_turns_that_have_become_long() {
    const EVENTS: usize = 120;
    struct Fired(Arc<AtomicUsize>, AtomicUsize);
    impl Wake for Fired {
        fn wake(self: Arc<Self>) {
            self.1
                .store(self.0.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
    let runtime = runtime(1);
    // At a point where no look at the timers is due by chance, as it is in half of the rounds.
    let most = (0..8).map(|_| {
        let ran = Arc::new(AtomicUsize::new(0));
        let fired = Arc::new(Fired(ran.clone(), AtomicUsize::new(EVENTS)));
        let (waker, (end, ended)) = (fired.clone(), mpsc::channel());
        after_short_events(&runtime, move |handle| {
            let mut sleep = Box::pin(Sleep::new_until(
                tussah_core::time::now() + Duration::from_millis(1),
            ));
            let waker = Waker::from(waker);
            let polled = sleep.as_mut().poll(&mut Context::from_waker(&waker));
            assert!(polled.is_pending(), "the timer is set");
            for n in 0..EVENTS {
                let (ran, end) = (ran.clone(), end.clone());
                let event = move || {
                    long_event();
                    ran.fetch_add(1, Ordering::Relaxed);
                    let _ = end.send(());
                };
                handle.post_in(Color(1000 + n as u64), event).expect("open");
            }
            let last = move || drop((sleep, end));
            handle.post_in(Color(2), last).expect("open");
        });
        assert_eq!(ended.iter().count(), EVENTS);
        fired.1.load(Ordering::Relaxed)
    });
    let most = most.max().expect("there are rounds");
    assert!(most < EVENTS * 3 / 4, "{most} events ran first");
}

/// Promise 5, for any policy.
#[test]
fn no_policy_starves_a_color() {
    struct Newest;
    impl Policy for Newest {
        fn choose(&mut self, candidates: &[Candidate]) -> usize {
            candidates.len() - 1
        }
    }
    let runtime = Runtime::builder()
        .workers(1)
        .policy(|| Newest)
        .build()
        .expect("workers start");
    let stop = Arc::new(AtomicBool::new(false));
    // Each thread yields forever, so there is always one that is newer than the cold event.
    let hot: Vec<_> = (0..3)
        .map(|_| {
            let stop = stop.clone();
            runtime.spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    yield_now().await;
                }
            })
        })
        .collect();
    let (sender, receiver) = mpsc::channel();
    runtime
        .post_in(Color(10), move || {
            sender.send(()).expect("the test listens")
        })
        .expect("open");
    receiver.recv().expect("the cold event ran");
    stop.store(true, Ordering::Relaxed);
    runtime.block_on(async {
        for thread in hot {
            thread.await.expect("no panic");
        }
    });
}

struct CountDrop(Arc<AtomicUsize>);

impl Drop for CountDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Promise 6: the shutdown drops the events that it does not run, and later ones are returned.
#[test]
fn the_shutdown_loses_nothing() {
    let runtime = runtime(1);
    let handle = runtime.handle().clone();
    let dropped = Arc::new(AtomicUsize::new(0));
    let (go, wait) = mpsc::channel::<()>();
    let (entered, enter) = mpsc::channel();
    runtime
        .post_in(Color(1), move || {
            entered.send(()).expect("the test listens");
            wait.recv().expect("the test tells");
        })
        .expect("open");
    enter.recv().expect("the event began");
    let value = Colored::new_in(&runtime, CountDrop(dropped.clone()));
    for _ in 0..100 {
        let guard = CountDrop(dropped.clone());
        runtime
            .post_in(Color(1), move || {
                let _guard = guard;
            })
            .expect("open");
        let guard = CountDrop(dropped.clone());
        value.post(move |_| drop(guard)).expect("open");
    }
    drop(value);
    let report = thread::scope(|scope| {
        let report = scope.spawn(|| runtime.shutdown(Duration::ZERO));
        // The queue refuses events only once the shutdown has begun, which then waits for the
        // event.
        while handle.post(|| {}).is_ok() {
            thread::yield_now();
        }
        go.send(()).expect("the event waits");
        report.join().expect("no panic")
    });
    assert_eq!(report.workers_stuck, 0);
    assert_eq!(
        dropped.load(Ordering::Relaxed),
        201,
        "each closure was dropped, run or not, and so was the value"
    );
    let error = handle
        .post_in(Color(1), || {})
        .expect_err("it is shut down");
    assert!(error.is_shut_down());
}

/// Promise 7: a panic stays in its event.
#[test]
fn panics_stay_in_their_events() {
    let runtime = runtime(1);
    let value = Colored::new_in(&runtime, 1);
    for _ in 0..3 {
        runtime
            .post_in(Color(4), || panic!("in a posted event"))
            .expect("open");
        value
            .post(|_| panic!("in a post to a value"))
            .expect("open");
    }
    let (sender, receiver) = mpsc::channel();
    runtime
        .post_in(Color(4), move || sender.send(()).expect("the test listens"))
        .expect("open");
    receiver.recv_timeout(HANG).expect("the color goes on");
    let caller = runtime.spawn({
        let value = value.clone();
        async move {
            value
                .with(|value| {
                    *value = 2;
                    panic!("in a request");
                })
                .await
        }
    });
    let error = runtime
        .block_on(caller)
        .expect_err("the caller gets the panic");
    assert_eq!(
        error.into_panic().downcast_ref::<&str>(),
        Some(&"in a request")
    );
    assert_eq!(
        runtime.block_on(value.with(|value| *value)),
        2,
        "the value is as the closure left it"
    );
}

/// Promise 9: a request that is leaked, instead of dropped, does no harm.
#[test]
fn a_leaked_request_does_no_harm() {
    let runtime = runtime(2);
    let value = Colored::new_in(&runtime, 0);
    let (go, wait) = mpsc::channel::<()>();
    let (entered, enter) = mpsc::channel();
    value
        .post(move |_| {
            entered.send(()).expect("the test listens");
            wait.recv().expect("the test tells");
        })
        .expect("open");
    enter.recv().expect("the event began");
    let mut request = Box::pin(value.with(|value| *value += 1));
    assert!(
        futures_lite::future::block_on(futures_lite::future::poll_once(&mut request)).is_none()
    );
    std::mem::forget(request);
    go.send(()).expect("the event waits");
    assert_eq!(runtime.block_on(value.with(|value| *value)), 1);
}

#[test]
fn timers_follow_a_clock_that_is_moved_by_hand() {
    let clock = Clock::manual();
    let runtime = Runtime::builder()
        .workers(2)
        .clock(clock.clock())
        .build()
        .expect("workers start");
    let order = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let start = clock.clock().now();
    let threads: Vec<_> = [30u64, 10, 20]
        .map(|seconds| {
            let order = order.clone();
            runtime.spawn(async move {
                Sleep::new_until(start + Duration::from_secs(seconds)).await;
                order.lock().push(seconds);
            })
        })
        .into();
    for (seconds, thread) in [(10, 1), (20, 2), (30, 0)] {
        clock.advance(Duration::from_secs(10));
        while !threads[thread].is_finished() {
            thread::yield_now();
        }
        assert_eq!(order.lock().last(), Some(&seconds));
    }
    assert_eq!(*order.lock(), [10, 20, 30]);
}

#[test]
fn the_report_names_the_color_that_limits() {
    let runtime = runtime(1);
    let spin = || {
        let start = std::time::Instant::now();
        while start.elapsed() < Duration::from_micros(200) {
            std::hint::spin_loop();
        }
    };
    for n in 0..600 {
        runtime.post_in(Color(77), spin).expect("open");
        runtime.post_in(Color(n), || {}).expect("open");
    }
    let handle = runtime.handle().clone();
    assert!(runtime.shutdown(Duration::from_secs(60)).drained);
    let stats = handle.stats();
    assert_eq!(stats.colors[0].color.to_string(), "color 77");
    assert!(
        stats.colors[0]
            .location
            .expect("posts have one")
            .file()
            .ends_with("promises.rs")
    );
    assert!(stats.to_string().contains("color 77"));
}

#[test]
fn the_watchdog_says_where_the_event_came_from() {
    let (sender, receiver) = mpsc::channel();
    let sender = parking_lot::Mutex::new(sender);
    let runtime = Runtime::builder()
        .workers(1)
        .watchdog(Duration::from_millis(5), move |stuck| {
            sender.lock().send(*stuck).expect("the test listens")
        })
        .build()
        .expect("workers start");
    let (go, wait) = mpsc::channel::<()>();
    runtime
        .post_in(Color(1), move || wait.recv().expect("the test tells"))
        .expect("open");
    let stuck = receiver.recv().expect("the watchdog barks");
    assert_eq!(stuck.worker, 0);
    assert!(
        stuck
            .location
            .expect("posts have one")
            .file()
            .ends_with("promises.rs"),
        "{stuck}"
    );
    go.send(()).expect("the event waits");
}

/// Promise 2, where two ways into the color meet: from outside, and from an event of the color
/// itself.
#[test]
fn a_remote_post_stays_before_a_local_one_that_happened_after() {
    let runtime = runtime(2);
    let handle = runtime.handle().clone();
    let (sender, receiver) = mpsc::channel();
    runtime
        .post_in(Color(6), move || {
            let (remote, outside) = (sender.clone(), handle.clone());
            // The event runs in the color; this OS thread does not, and is done before the event
            // goes on.
            thread::spawn(move || {
                let send = move || remote.send("remote").expect("the test listens");
                outside.post_in(Color(6), send).expect("open");
            })
            .join()
            .expect("no panic");
            let send = move || sender.send("local").expect("the test listens");
            handle.post_in(Color(6), send).expect("open");
        })
        .expect("open");
    assert_eq!(receiver.iter().collect::<Vec<_>>(), ["remote", "local"]);
}

/// Promise 2, for requests that are polled when their thread has used up its budget: one, and then
/// several colors.
#[test]
fn a_request_without_budget_keeps_its_place() {
    let runtime = runtime(1);
    let (log, other) = (
        Colored::new_in(&runtime, Vec::new()),
        Colored::new_in(&runtime, ()),
    );
    let log = runtime.block_on(runtime.spawn(async move {
        // After one of these numbers of operations the poll's budget is used up.
        for used in 0..200 {
            yield_now().await;
            for _ in 0..used {
                // Polled and dropped, so that the poll goes on when its budget is used up.
                futures_lite::future::poll_once(other.with(|()| ())).await;
            }
            let mut request = log.with(|log: &mut Vec<u32>| log.push(1));
            let ended = futures_lite::future::poll_once(&mut request).await;
            log.post(|log| log.push(2)).expect("open");
            if ended.is_none() {
                request.await;
            }
            yield_now().await;
            for _ in 0..used {
                // Polled and dropped, so that the poll goes on when its budget is used up.
                futures_lite::future::poll_once(other.with(|()| ())).await;
            }
            let push = |log: &mut Vec<u32>, _: &mut ()| log.push(3);
            let mut request = with_all((&log, &other), push);
            let ended = futures_lite::future::poll_once(&mut request).await;
            log.post(|log| log.push(4)).expect("open");
            if ended.is_none() {
                request.await;
            }
        }
        log.with(|log| log.clone()).await
    }));
    for four in log.expect("no panic").chunks(4) {
        assert_eq!(four, [1, 2, 3, 4]);
    }
}

/// Promise 5: a poll does a bounded amount of work at once, however many requests it makes. The
/// rest is queued and runs later.
#[test]
fn requests_beyond_the_budget_wait_for_their_turn() {
    let runtime = runtime(1);
    let values: Vec<_> = (0..1_000).map(|_| Colored::new_in(&runtime, ())).collect();
    let ran = Arc::new(AtomicUsize::new(0));
    let counter = ran.clone();
    let all = runtime.spawn(async move {
        let count = || {
            let counter = counter.clone();
            move |(): &mut ()| counter.fetch_add(1, Ordering::Relaxed)
        };
        let mut requests: Vec<_> = values.iter().map(|value| value.with(count())).collect();
        let mut first = None;
        poll_fn(|context| {
            requests.retain_mut(|request| Pin::new(request).poll(context).is_pending());
            first.get_or_insert(counter.load(Ordering::Relaxed));
            if requests.is_empty() {
                return Poll::Ready(());
            }
            Poll::Pending
        })
        .await;
        first
    });
    let first = runtime.block_on(all).expect("no panic");
    assert!(first.is_some_and(|first| first <= 128), "{first:?}");
    assert_eq!(ran.load(Ordering::Relaxed), 1_000);
}
