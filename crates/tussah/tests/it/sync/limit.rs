//! `Limit`: who gets a permit, who keeps it, and what is counted.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use futures_lite::future::{block_on, yield_now};
use tussah::stage::Class;
use tussah::sync::{Limit, LimitPermit};
use tussah::{Clock, Runtime, spawn, spawn_blocking};

use super::{is_send, poll};

type Acquire = std::pin::Pin<Box<dyn Future<Output = LimitPermit> + Send>>;

/// A future that owns its limit, and is in the queue.
fn waiter(limit: &Limit) -> Acquire {
    let mut acquire = caller(limit, 0);
    assert!(poll(acquire.as_mut()).is_pending());
    acquire
}

/// A future of this class that owns its limit, and was not polled yet.
fn caller(limit: &Limit, class: u8) -> Acquire {
    let limit = limit.clone();
    Box::pin(async move { limit.acquire_for(Class(class)).await })
}

#[track_caller]
fn expect_counts(limit: &Limit, in_use: usize, waiting: usize, acquired: u64) {
    let stats = limit.stats();
    let found = (stats.in_use, stats.waiting, stats.acquired);
    assert_eq!(found, (in_use, waiting, acquired));
}

#[test]
fn permits_go_in_the_order_of_arrival() {
    let limit = Limit::new("db", 1);
    let permit = limit.try_acquire().expect("it is free");
    assert_eq!((permit.limit().name(), limit.stats().permits), ("db", 1));
    let [mut first, mut second] = [waiter(&limit), waiter(&limit)];
    expect_counts(&limit, 1, 2, 1);
    drop(permit);
    expect_counts(&limit, 1, 1, 1);
    assert!(limit.try_acquire().is_none(), "it is the first one's");
    assert!(poll(second.as_mut()).is_pending());
    let late = waiter(&limit);
    let permit = poll(first.as_mut());
    assert!(permit.is_ready());
    expect_counts(&limit, 1, 2, 2);
    drop(permit);
    assert!(poll(second.as_mut()).is_ready());
    drop(late);
    expect_counts(&limit, 0, 0, 3);
    assert_eq!(limit.stats().wait.count(), 3);
    assert_eq!(limit.stats().hold.count(), 3);
}

#[test]
fn a_dropped_future_gives_up_its_place_or_its_permit() {
    let limit = Limit::new("db", 1);
    let permit = limit.try_acquire().expect("it is free");
    let [first, second, mut third] = [waiter(&limit), waiter(&limit), waiter(&limit)];
    drop(first);
    expect_counts(&limit, 1, 2, 1);
    drop(permit);
    drop(second); // which has been handed the permit
    expect_counts(&limit, 1, 0, 1);
    let permit = poll(third.as_mut());
    assert!(permit.is_ready());
    drop(waiter(&limit));
    drop(permit);
    expect_counts(&limit, 0, 0, 2);
    assert!(limit.try_acquire().is_some());
}

#[test]
fn permits_come_back_by_panics_and_from_values_whose_destructors_panic() {
    struct Owner(#[allow(dead_code)] LimitPermit);
    impl Drop for Owner {
        fn drop(&mut self) {
            panic_any("in the destructor of what owns a permit");
        }
    }
    let limit = Limit::new("db", 1);
    let panics = || -> () {
        block_on(async {
            let _permit = limit.acquire().await;
            panic!("with a permit");
        });
    };
    assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
    let owner = Owner(limit.try_acquire().expect("it came back"));
    let mut waiting = waiter(&limit);
    assert!(catch_unwind(AssertUnwindSafe(|| drop(owner))).is_err());
    assert!(poll(waiting.as_mut()).is_ready());
    expect_counts(&limit, 0, 0, 3);
}

#[test]
fn wakers_that_panic_lose_no_permit() {
    /// Panics when it is called, or else when it is dropped.
    struct Throws;
    impl Wake for Throws {
        fn wake(self: Arc<Self>) {
            panic!("when it is called");
        }
    }
    impl Drop for Throws {
        fn drop(&mut self) {
            if !thread::panicking() {
                panic_any("when it is dropped");
            }
        }
    }
    let limit = Limit::new("db", 1);
    let permit = limit.try_acquire().expect("it is free");
    let wait = || {
        let throws = Arc::new(Throws);
        let weak = Arc::downgrade(&throws);
        let limit = limit.clone();
        let mut acquire: Acquire = Box::pin(async move { limit.acquire().await });
        let waker = Waker::from(throws);
        let polled = acquire.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        drop(waker);
        (acquire, weak)
    };
    let (mut first, called) = wait();
    let (mut second, replaced) = wait();
    assert!(poll(second.as_mut()).is_pending());
    assert_eq!(replaced.strong_count(), 0);
    let (third, dropped) = wait();
    drop(third);
    assert_eq!(dropped.strong_count(), 0);
    drop(permit);
    assert_eq!(called.strong_count(), 0);
    assert!(poll(first.as_mut()).is_ready());
    assert!(poll(second.as_mut()).is_ready());
    expect_counts(&limit, 0, 0, 3);
}

#[test]
fn the_number_of_permits_changes() {
    let limit = Limit::new("db", 0);
    assert!(limit.try_acquire().is_none());
    let mut waiting: Vec<_> = (0..4).map(|_| waiter(&limit)).collect();
    limit.set_permits(3);
    expect_counts(&limit, 3, 1, 0);
    let mut permits: Vec<_> = waiting
        .iter_mut()
        .map(|acquire| poll(acquire.as_mut()))
        .collect();
    let ready = permits.iter().filter(|polled| polled.is_ready()).count();
    assert_eq!(ready, 3);
    limit.set_permits(1);
    expect_counts(&limit, 3, 1, 3);
    permits.truncate(1);
    expect_counts(&limit, 1, 1, 3);
    assert!(poll(waiting[3].as_mut()).is_pending());
    permits.clear();
    assert!(poll(waiting[3].as_mut()).is_ready());
    expect_counts(&limit, 0, 0, 4);
}

/// The callers of a class.
#[derive(Clone, Copy)]
struct Load {
    /// Callers in 100 ms.
    arrive: u32,
    /// The time for which each holds its permit.
    hold_ms: u32,
}

/// The permits and waits of a class in the second half of a run.
#[derive(Default, Debug)]
struct Got {
    /// The mean number of permits in use.
    in_use: f64,
    /// The time for which each caller waited, sorted.
    waits_ms: Vec<u32>,
}

/// Runs callers of several classes for this time on a clock that the test moves.
fn compete(limit: &Limit, loads: &[Load], for_ms: u32) -> Vec<Got> {
    let hand = Clock::manual();
    let runtime = Runtime::builder().workers(1).clock(hand.clock()).build();
    let mut got: Vec<Got> = loads.iter().map(|_| Got::default()).collect();
    runtime.expect("a runtime").block_on(async {
        let mut waiting: Vec<VecDeque<(u32, Acquire)>> = loads.iter().map(|_| [].into()).collect();
        let mut held: Vec<(u32, usize, LimitPermit)> = Vec::new();
        for ms in 0..for_ms {
            hand.advance(Duration::from_millis(1));
            held.retain(|&(until_ms, ..)| until_ms > ms);
            for (class, load) in loads.iter().enumerate() {
                let arrived = (ms + 1) * load.arrive / 100 - ms * load.arrive / 100;
                let mut grant = |since_ms, permit| {
                    held.push((ms + load.hold_ms, class, permit));
                    if ms >= for_ms / 2 {
                        got[class].waits_ms.push(ms - since_ms);
                    }
                };
                while let Some((since_ms, acquire)) = waiting[class].front_mut()
                    && let Poll::Ready(permit) = poll(acquire.as_mut())
                {
                    grant(*since_ms, permit);
                    waiting[class].pop_front();
                }
                for _ in 0..arrived {
                    let mut acquire = caller(limit, class as u8);
                    match poll(acquire.as_mut()) {
                        Poll::Ready(permit) => grant(ms, permit),
                        Poll::Pending => waiting[class].push_back((ms, acquire)),
                    }
                }
            }
            if ms >= for_ms / 2 {
                for (_, class, _) in &held {
                    got[*class].in_use += 1.0 / f64::from(for_ms - for_ms / 2);
                }
            }
        }
    });
    for got in &mut got {
        got.waits_ms.sort_unstable();
    }
    got
}

#[track_caller]
fn expect_in_use(got: &[Got], shares: &[f64]) {
    for (got, share) in got.iter().zip(shares) {
        assert!(
            (got.in_use - share).abs() < 0.5,
            "{} of {share}",
            got.in_use
        );
    }
}

#[test]
fn waiting_classes_use_their_shares_however_long_they_hold_permits() {
    let load = |arrive, hold_ms| Load { arrive, hold_ms };
    for permits in [1, 2, 14, 70] {
        let limit = Limit::with_shares("db", permits, &[4, 2, 1]);
        let loads = [
            load(7 * permits as u32, 20),
            load(7 * permits as u32, 60),
            load(100, 90),
        ];
        let part = permits as f64 / 7.0;
        expect_in_use(
            &compete(&limit, &loads, 6000),
            &[4.0 * part, 2.0 * part, part],
        );
    }
}

#[test]
fn a_class_lends_what_it_does_not_need() {
    let load = |arrive| Load {
        arrive,
        hold_ms: 20,
    };
    let limit = Limit::with_shares("db", 12, &[4, 2, 1]);
    // Class 0 needs two permits.
    let got = compete(&limit, &[load(10), load(100), load(100)], 4000);
    expect_in_use(&got, &[2.0, 20.0 / 3.0, 10.0 / 3.0]);
    let got = compete(&limit, &[load(0), load(0), load(100)], 4000);
    expect_in_use(&got, &[0.0, 0.0, 12.0]);
}

#[test]
fn class_0_gets_its_due_at_twice_the_capacity() {
    let load = Load {
        arrive: 67,
        hold_ms: 16,
    };
    let limit = Limit::with_shares("db", 16, &[16, 4, 1]);
    let got = compete(&limit, &[load; 3], 4000);
    let waits_ms = &got[0].waits_ms;
    assert!(waits_ms.len() > 1320, "{}", waits_ms.len());
    let p90_ms = waits_ms[waits_ms.len() * 9 / 10];
    assert!(p90_ms < 100 - load.hold_ms, "{p90_ms} ms");
    assert!(got[2].waits_ms.len() > 50, "{}", got[2].waits_ms.len());
}

#[test]
fn the_last_sixteenth_is_for_class_0() {
    let limit = Limit::with_shares("db", 32, &[1, 1, 1]);
    let mut others: Vec<_> = (0..32).map(|at| caller(&limit, 1 + at % 2)).collect();
    let mut permits: Vec<_> = others
        .iter_mut()
        .map(|acquire| poll(acquire.as_mut()))
        .filter(Poll::is_ready)
        .collect();
    expect_counts(&limit, 30, 2, 30);
    let first = [limit.try_acquire(), limit.try_acquire()];
    assert!(first.iter().all(Option::is_some) && limit.try_acquire().is_none());
    drop(first);
    expect_counts(&limit, 30, 2, 32);
    permits.pop();
    expect_counts(&limit, 30, 1, 32);
    // A class that the limit does not have is the last one.
    assert!(poll(caller(&limit, 7).as_mut()).is_pending());
}

#[test]
fn times_are_those_of_the_clock() {
    let hand = Clock::manual();
    let runtime = Runtime::builder().workers(1).clock(hand.clock()).build();
    let limit = Limit::new("db", 1);
    runtime.expect("a runtime").block_on(async {
        let first = limit.acquire().await;
        let second = waiter(&limit);
        hand.advance(Duration::from_secs(3));
        drop(first);
        let second = second.await;
        hand.advance(Duration::from_secs(5));
        drop(second);
    });
    let stats = limit.stats();
    let sums = [&stats.wait, &stats.hold].map(|digest| digest.sum().as_secs());
    assert_eq!(sums, [3, 8], "{stats:?}");
}

#[test]
fn os_threads_without_a_runtime_share_it() {
    let (limit, inside, most) = (
        Limit::new("db", 2),
        AtomicUsize::new(0),
        AtomicUsize::new(0),
    );
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                block_on(is_send(async {
                    for _ in 0..50 {
                        let _permit = limit.acquire().await;
                        most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        yield_now().await;
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                }));
            });
        }
    });
    assert!(most.into_inner() <= 2);
    expect_counts(&limit, 0, 0, 200);
}

#[test]
fn work_that_outlives_its_cancelled_caller_holds_its_permit_until_it_ends() {
    let runtime = Runtime::builder().workers(1).build().expect("a runtime");
    runtime.block_on(async {
        let limit = Limit::new("converter", 2);
        let (end, ends) = mpsc::channel::<()>();
        let (done, is_done) = tussah::sync::oneshot::async_channel::<()>();
        let work = limit.clone();
        let caller = spawn(async move {
            let permit = work.acquire().await;
            let blocking = spawn_blocking(move || {
                let _permit = permit;
                let _ = ends.recv();
            });
            let permit = work.acquire().await;
            let spawned = spawn(async move {
                let _permit = permit;
                let _ = is_done.await;
            });
            let _ = (blocking.await, spawned.await);
        });
        while limit.stats().in_use < 2 {
            yield_now().await;
        }
        caller.abort();
        assert!(caller.await.is_err(), "it was cancelled");
        assert!(limit.try_acquire().is_none(), "the work goes on");
        drop(end);
        let first = limit.acquire().await;
        assert!(limit.try_acquire().is_none(), "the other one goes on");
        drop(done);
        let second = limit.acquire().await;
        drop((first, second));
        expect_counts(&limit, 0, 0, 4);
    });
}
