//! Tests of the future, driven by hand and on OS threads.

use std::{
    pin::pin,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Wake, Waker},
    thread,
    time::Duration,
};

use super::{
    super::{Clock, ManualClock, enter},
    *,
};

const MS: Duration = Duration::from_millis(1);

struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn counter() -> (Arc<Count>, Waker) {
    let count = Arc::new(Count(AtomicUsize::new(0)));
    (Arc::clone(&count), Waker::from(count))
}

/// A worker that the test drives, with the number of times that it was asked to unpark.
struct Rig {
    manual: ManualClock,
    clock: Clock,
    shard: Arc<Shard>,
    unparked: Arc<Count>,
}

impl Rig {
    fn new() -> Self {
        let manual = Clock::manual();
        let (unparked, waker) = counter();
        let shard = Arc::new(Shard::new(
            manual.clock(),
            Box::new(move || waker.wake_by_ref()),
        ));
        Self {
            clock: manual.clock(),
            manual,
            shard,
            unparked,
        }
    }

    fn context(&self, local: bool) -> TimerContext {
        TimerContext {
            shard: Arc::clone(&self.shard),
            local,
        }
    }

    fn advance(&self, duration: Duration) -> usize {
        self.manual.advance(duration);
        self.shard.fire(self.clock.now_tick())
    }

    fn unparked(&self) -> usize {
        self.unparked.0.load(Ordering::SeqCst)
    }
}

fn poll(sleep: Pin<&mut Sleep>, waker: &Waker) -> bool {
    sleep.poll(&mut Context::from_waker(waker)).is_ready()
}

#[test]
fn completes_at_its_deadline_and_not_before() {
    let rig = Rig::new();
    let _entered = enter(rig.context(true));
    let (count, waker) = counter();
    let deadline = rig.clock.after(10 * MS);
    let mut sleep = pin!(Sleep::new_until(deadline));
    assert_eq!(sleep.deadline(), deadline);
    assert_eq!(rig.shard.next_tick(), u64::MAX, "set by the first poll");
    assert!(!poll(sleep.as_mut(), &waker));
    assert_eq!(rig.advance(9 * MS), 0);
    assert!(!poll(sleep.as_mut(), &waker) && !sleep.is_elapsed());
    assert_eq!(rig.advance(MS - Duration::from_nanos(1)), 0);
    // At most one tick after the deadline.
    assert_eq!(rig.advance(Duration::from_micros(132)), 1);
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
    assert!(sleep.is_elapsed());
    assert!(poll(sleep.as_mut(), &waker) && poll(sleep.as_mut(), &waker));
    assert_eq!(rig.unparked(), 0, "its own worker needs no wake-up");
}

#[test]
fn a_deadline_in_the_past_completes_at_once_or_in_the_next_turn() {
    let rig = Rig::new();
    let _entered = enter(rig.context(true));
    let start = rig.clock.now();
    let mut sleep = pin!(Sleep::new_until(start));
    assert!(poll(sleep.as_mut(), Waker::noop()));
    rig.manual.advance(MS);
    let mut sleep = pin!(Sleep::new_until(rig.clock.now() - MS / 4));
    assert!(
        !poll(sleep.as_mut(), Waker::noop()),
        "the turn began before the deadline"
    );
    assert_eq!(rig.advance(Duration::ZERO), 1);
    assert!(poll(sleep.as_mut(), Waker::noop()));
    let mut sleep = pin!(Sleep::new_until(rig.clock.now() - MS));
    assert!(poll(sleep.as_mut(), Waker::noop()));
}

#[test]
fn dropping_cancels() {
    let rig = Rig::new();
    let _entered = enter(rig.context(true));
    let (count, waker) = counter();
    let mut sleep = Box::pin(Sleep::new_until(rig.clock.after(MS)));
    assert!(!poll(sleep.as_mut(), &waker));
    assert_eq!(Arc::strong_count(&count), 3);
    drop(sleep);
    assert_eq!(Arc::strong_count(&count), 2);
    assert_eq!(rig.advance(10 * MS), 0);
    drop(Sleep::new_until(rig.clock.now()));
}

#[test]
fn reset_moves_a_pending_timer_and_revives_a_fired_one() {
    let rig = Rig::new();
    let _entered = enter(rig.context(true));
    let (count, waker) = counter();
    let mut sleep = pin!(Sleep::new_until(rig.clock.after(10 * MS)));
    sleep.as_mut().reset(rig.clock.after(20 * MS));
    assert!(!poll(sleep.as_mut(), &waker));
    sleep.as_mut().reset(rig.clock.after(5 * MS));
    assert_eq!(rig.advance(6 * MS), 1, "the waker was kept");
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
    sleep.as_mut().reset(rig.clock.after(5 * MS));
    assert!(!sleep.is_elapsed());
    assert_eq!(rig.advance(6 * MS), 0, "not set before it is polled");
    assert!(poll(sleep.as_mut(), &waker));
    sleep.as_mut().reset(rig.clock.after(5 * MS));
    assert!(!poll(sleep.as_mut(), &waker));
    assert_eq!(rig.advance(6 * MS), 1);
    assert_eq!(rig.unparked(), 0);
}

#[test]
fn another_os_thread_wakes_the_worker_for_an_earlier_deadline() {
    let rig = Rig::new();
    let _entered = enter(rig.context(false));
    let mut first = pin!(Sleep::new_until(rig.clock.after(10 * MS)));
    let mut second = pin!(Sleep::new_until(rig.clock.after(20 * MS)));
    let check = |sleep: Pin<&mut Sleep>, unparked: usize| {
        assert!(!poll(sleep, Waker::noop()));
        assert_eq!(rig.unparked(), unparked);
    };
    check(first.as_mut(), 1);
    check(second.as_mut(), 1);
    second.as_mut().reset(rig.clock.after(15 * MS));
    assert_eq!(rig.unparked(), 1);
    second.as_mut().reset(rig.clock.after(5 * MS));
    assert_eq!(rig.unparked(), 2);
    {
        let _worker = enter(rig.context(true));
        second.as_mut().reset(rig.clock.after(4 * MS));
        assert_eq!(rig.unparked(), 2);
    }
    second.as_mut().reset(rig.clock.after(3 * MS));
    assert_eq!(rig.unparked(), 3);
}

#[test]
fn outlives_its_runtime_and_may_join_another() {
    let rig = Rig::new();
    let shard = Arc::downgrade(&rig.shard);
    let (count, waker) = counter();
    let mut sleep = Box::pin(Sleep::new_until(rig.clock.after(MS)));
    {
        let _entered = enter(rig.context(true));
        assert!(!poll(sleep.as_mut(), &waker));
    }
    rig.shard.close();
    drop(rig);
    assert!(shard.upgrade().is_some(), "kept by the future");
    assert!(!poll(sleep.as_mut(), &waker) && !sleep.is_elapsed());
    let other = Rig::new();
    let _entered = enter(other.context(true));
    sleep.as_mut().reset(other.clock.after(MS));
    assert!(!poll(sleep.as_mut(), &waker));
    assert_eq!(Weak::strong_count(&shard), 0);
    assert_eq!(other.advance(2 * MS), 1);
    assert!(poll(sleep.as_mut(), &waker));
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
    other.shard.close();
    sleep.as_mut().reset(other.clock.after(MS));
    assert!(
        !poll(sleep.as_mut(), &waker),
        "a closed shard takes no timers"
    );
}

#[test]
#[should_panic(expected = "no runtime here")]
fn a_first_poll_outside_of_a_runtime_panics() {
    poll(pin!(Sleep::new_until(Instant::now())), Waker::noop());
}

#[test]
fn a_sleep_is_send_and_small() {
    fn is_send_and_sync<T: Send + Sync>(_: &T) {}
    is_send_and_sync(&Sleep::new_until(Instant::now()));
    assert!(size_of::<Sleep>() <= 96);
}

/// A worker with a real clock that parks by the contract in `time/mod.rs`.
#[test]
fn wakes_os_threads_that_block_on_it() {
    let clock = Clock::real();
    let parked = Arc::new(AtomicBool::new(false));
    let running = AtomicBool::new(true);
    let (tx, rx) = std::sync::mpsc::channel();
    thread::scope(|scope| {
        let (worker_parked, worker_running) = (&parked, &running);
        let worker = scope.spawn(move || {
            let shard: Arc<Shard> = rx.recv().expect("the shard comes first");
            while worker_running.load(Ordering::Acquire) {
                shard.fire(shard.clock().now_tick());
                worker_parked.store(true, Ordering::Relaxed);
                std::sync::atomic::fence(Ordering::SeqCst);
                match shard.clock().park_timeout(shard.next_tick()) {
                    Some(timeout) => thread::park_timeout(timeout),
                    None => thread::park(),
                }
                worker_parked.store(false, Ordering::Relaxed);
            }
        });
        let (thread, flag) = (worker.thread().clone(), Arc::clone(&parked));
        let unpark = move || {
            if flag.load(Ordering::Relaxed) {
                thread.unpark();
            }
        };
        let shard = Arc::new(Shard::new(clock.clone(), Box::new(unpark)));
        tx.send(Arc::clone(&shard)).expect("the worker waits");
        let rounds = if cfg!(miri) { 3 } else { 200 };
        let sleepers: Vec<_> = (0..3)
            .map(|id| {
                let (shard, clock) = (Arc::clone(&shard), clock.clone());
                scope.spawn(move || {
                    let _entered = enter(TimerContext {
                        shard,
                        local: false,
                    });
                    for round in 0..rounds {
                        let deadline = clock.after(MS * ((id + round) % 4) / 3);
                        futures_lite::future::block_on(Sleep::new_until(deadline));
                        assert!(clock.now() >= deadline, "never early");
                    }
                })
            })
            .collect();
        for sleeper in sleepers {
            sleeper.join().expect("a sleeper panicked");
        }
        running.store(false, Ordering::Release);
        worker.thread().unpark();
    });
}
