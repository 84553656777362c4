//! Tests of the hand-over of wakers, on one OS thread and between several.

use std::{
    sync::{
        Arc, Mutex as StdMutex,
        atomic::{AtomicBool, AtomicUsize},
    },
    task::Wake,
    thread,
    time::Duration,
};

use super::*;

/// A waker that counts its calls.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Count {
    fn pair() -> (Arc<Self>, Waker) {
        let count = Arc::new(Self::default());
        (Arc::clone(&count), Waker::from(count))
    }

    fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

fn shard() -> Shard {
    Shard::new(Clock::manual().clock(), Box::new(|| ()))
}

/// Owns an entry like a `Sleep`.
struct Owned<'a> {
    shard: &'a Shard,
    entry: Box<TimerEntry>,
}

impl<'a> Owned<'a> {
    fn new(shard: &'a Shard) -> Self {
        Self {
            shard,
            entry: Box::new(TimerEntry::new(Timer::new())),
        }
    }

    fn set(shard: &'a Shard, tick: u64, waker: &Waker) -> Self {
        let owned = Self::new(shard);
        assert!(matches!(
            owned.register(tick, waker),
            Registered::Pending { .. }
        ));
        owned
    }

    fn register(&self, tick: u64, waker: &Waker) -> Registered {
        // SAFETY: the box keeps the entry in place, and `drop` cancels it.
        unsafe { self.shard.register(&self.entry, tick, waker.clone()) }
    }

    fn rearm(&self, tick: u64) -> Option<bool> {
        // SAFETY: the entry is registered with its own shard only.
        unsafe { self.shard.rearm(&self.entry, tick) }
    }

    fn update_waker(&self, waker: &Waker) -> bool {
        // SAFETY: as above.
        unsafe { self.shard.update_waker(&self.entry, waker) }
    }
}

impl Drop for Owned<'_> {
    fn drop(&mut self) {
        // This takes no lock if the entry is not pending, like `Sleep`.
        if self.entry.data.is_pending() {
            // SAFETY: as above.
            unsafe { self.shard.cancel(&self.entry) };
        }
    }
}

#[test]
fn due_timers_fire_and_the_next_tick_is_returned() {
    let shard = shard();
    let (count, waker) = Count::pair();
    assert_eq!(shard.next_tick(), u64::MAX);
    let first = Owned::new(&shard);
    assert_eq!(
        first.register(20, &waker),
        Registered::Pending { earliest: true }
    );
    let second = Owned::new(&shard);
    assert_eq!(
        second.register(30, &waker),
        Registered::Pending { earliest: false }
    );
    let third = Owned::new(&shard);
    assert_eq!(
        third.register(10, &waker),
        Registered::Pending { earliest: true }
    );
    assert_eq!(shard.next_tick(), 10);
    assert_eq!(shard.fire(9), 0);
    assert_eq!(shard.fire(10), 1);
    assert!(third.entry.data.is_fired());
    assert_eq!(shard.next_tick(), 20);
    assert_eq!(shard.try_fire(19), Some(0));
    assert_eq!(shard.try_fire(25), Some(1));
    drop(second);
    assert_eq!(shard.next_tick(), 30, "a cancel leaves it too early");
    assert_eq!(shard.fire(30), 0);
    assert_eq!(shard.next_tick(), u64::MAX);
    assert_eq!(count.get(), 2);
}

#[test]
fn a_tick_that_has_passed_needs_no_waker() {
    let shard = shard();
    let (count, waker) = Count::pair();
    assert_eq!(shard.fire(100), 0);
    let owned = Owned::new(&shard);
    assert_eq!(owned.register(100, &waker), Registered::Elapsed);
    assert!(owned.entry.data.is_fired());
    assert_eq!(
        Arc::strong_count(&count),
        2,
        "the clone of the waker was dropped"
    );
    owned.entry.data.set_idle();
    assert_eq!(
        owned.register(101, &waker),
        Registered::Pending { earliest: true }
    );
    assert_eq!(shard.fire(200), 1);
    assert_eq!(count.get(), 1);
}

#[test]
fn the_last_waker_is_called() {
    let shard = shard();
    let (old_count, old) = Count::pair();
    let (new_count, new) = Count::pair();
    let owned = Owned::set(&shard, 5, &old);
    assert!(owned.update_waker(&old));
    assert!(owned.update_waker(&new));
    assert_eq!(
        Arc::strong_count(&old_count),
        2,
        "the shard has dropped its clone"
    );
    assert_eq!(shard.fire(5), 1);
    assert_eq!((old_count.get(), new_count.get()), (0, 1));
    assert!(!owned.update_waker(&old));
}

#[test]
fn a_pending_entry_moves_with_its_waker() {
    let shard = shard();
    let (count, waker) = Count::pair();
    let owned = Owned::set(&shard, 1_000_000, &waker);
    assert_eq!(owned.rearm(2_000_000), Some(false));
    assert_eq!(owned.rearm(7), Some(true));
    assert_eq!(shard.fire(7), 1);
    assert_eq!(owned.rearm(9), None);
    assert_eq!(count.get(), 1);
}

#[test]
fn one_call_is_bounded_and_the_next_goes_on() {
    let shard = shard();
    let (count, waker) = Count::pair();
    let n = if cfg!(miri) { CALL + 100 } else { 10 * CALL };
    let owned: Vec<_> = (0..n).map(|_| Owned::set(&shard, 1, &waker)).collect();
    let mut calls = 0;
    while shard.next_tick() <= 1 {
        assert!(shard.fire(1) <= CALL);
        calls += 1;
    }
    assert!(calls > 1);
    assert_eq!(count.get(), n);
    drop(owned);
}

#[test]
fn a_closed_shard_fires_nothing_and_frees_the_wakers() {
    let shard = shard();
    let (count, waker) = Count::pair();
    let owned: Vec<_> = (0..100)
        .map(|tick| Owned::set(&shard, 1 + tick * tick, &waker))
        .collect();
    shard.close();
    assert_eq!(shard.next_tick(), u64::MAX);
    assert_eq!(Arc::strong_count(&count), 2);
    assert_eq!(shard.fire(1_000_000), 0);
    assert!(
        owned
            .iter()
            .all(|owned| !owned.entry.data.is_pending() && !owned.entry.data.is_fired())
    );
    assert_eq!(
        Owned::new(&shard).register(2_000_000, &waker),
        Registered::Closed
    );
    assert_eq!(owned[0].rearm(2_000_000), None);
    shard.close();
    assert_eq!(count.get(), 0);
}

/// A waker whose clones panic both when they are called and when they are dropped.
struct Bomb;

impl Wake for Bomb {
    fn wake(self: Arc<Self>) {
        // The payload's drop panics as well. Its own payload is leaked, which Miri would report.
        if cfg!(miri) {
            panic!("the waker panics");
        }
        std::panic::panic_any(PayloadBomb);
    }
}

struct PayloadBomb;

impl Drop for PayloadBomb {
    fn drop(&mut self) {
        panic!("the payload panics");
    }
}

struct DropBomb;

impl Wake for DropBomb {
    fn wake(self: Arc<Self>) {}
}

impl Drop for DropBomb {
    fn drop(&mut self) {
        panic!("the waker panics when it is dropped");
    }
}

#[test]
fn a_panicking_waker_stops_no_other() {
    let shard = shard();
    let (count, waker) = Count::pair();
    let before = Owned::set(&shard, 1, &waker);
    let bombs = [
        Owned::set(&shard, 1, &Waker::from(Arc::new(Bomb))),
        Owned::new(&shard),
        Owned::new(&shard),
    ];
    for bomb in &bombs[1..] {
        // SAFETY: the box keeps the entry in place, and `drop` cancels it.
        unsafe { shard.register(&bomb.entry, 2, Waker::from(Arc::new(DropBomb))) };
    }
    let after = Owned::set(&shard, 3, &waker);
    let [_bomb, cancelled, _dropped] = bombs;
    drop(cancelled);
    assert_eq!(shard.fire(3), 4);
    assert_eq!(count.get(), 2);
    drop((before, after));
    let replaced = Owned::new(&shard);
    // SAFETY: as above.
    unsafe { shard.register(&replaced.entry, 9, Waker::from(Arc::new(DropBomb))) };
    assert!(replaced.update_waker(&waker));
    assert_eq!(shard.fire(9), 1);
    assert_eq!(count.get(), 3);
}

/// A waker that registers, cancels and fires when it is called, which is possible because no lock
/// is held.
struct Reenter(StdMutex<Option<Owned<'static>>>, Arc<Count>);

impl Wake for Reenter {
    fn wake(self: Arc<Self>) {
        let mut place = self.0.lock().expect("not poisoned");
        let shard = place.take().expect("called once").shard;
        *place = Some(Owned::set(shard, 1_000, &Waker::from(Arc::clone(&self.1))));
        shard.fire(1_000);
    }
}

#[test]
fn a_waker_may_use_the_shard() {
    let shard: *mut Shard = Box::into_raw(Box::new(shard()));
    {
        // SAFETY: the box is freed below, after its last use.
        let shard: &'static Shard = unsafe { &*shard };
        let (count, waker) = Count::pair();
        let other = Owned::set(shard, 500, &waker);
        let reenter = Arc::new(Reenter(StdMutex::new(Some(other)), Arc::clone(&count)));
        let owned = Owned::set(shard, 5, &Waker::from(Arc::clone(&reenter)));
        assert_eq!(shard.fire(5), 1);
        assert_eq!(count.get(), 1, "the nested call fired the new entry");
        drop(owned);
    }
    // SAFETY: made by `into_raw` above, and nothing refers to it any longer.
    drop(unsafe { Box::from_raw(shard) });
}

/// Owners set, re-poll, move and drop entries while a worker and a peer fire. At the end the shard
/// is closed.
#[test]
fn stress_between_os_threads() {
    let manual = Clock::manual();
    let shard = Shard::new(manual.clock(), Box::new(|| ()));
    let rounds = if cfg!(miri) { 30 } else { 20_000 };
    let running = AtomicBool::new(true);
    let fired = AtomicUsize::new(0);
    let (count, waker) = Count::pair();
    thread::scope(|scope| {
        for peer in [false, true] {
            let (shard, clock, running, fired) = (&shard, manual.clock(), &running, &fired);
            scope.spawn(move || {
                while running.load(Ordering::Acquire) {
                    let now = clock.now_tick();
                    let n = if peer {
                        shard.try_fire(now).unwrap_or(0)
                    } else {
                        shard.fire(now)
                    };
                    fired.fetch_add(n, Ordering::Relaxed);
                    thread::yield_now();
                }
            });
        }
        let owners: Vec<_> = (0..2_u64)
            .map(|seed| {
                let (shard, manual, waker) = (&shard, &manual, &waker);
                scope.spawn(move || {
                    for round in 0..rounds {
                        let kind = (round + seed) % 4;
                        let owned = Owned::new(shard);
                        let outcome = owned.register(shard.clock().now_tick() + 1 + kind, waker);
                        manual.advance(Duration::from_micros(40 * kind));
                        if kind == 1 {
                            owned.update_waker(Waker::noop());
                            owned.update_waker(waker);
                        }
                        if kind == 2 {
                            owned.rearm(shard.clock().now_tick() + 100);
                        }
                        if kind == 3 && matches!(outcome, Registered::Pending { .. }) {
                            while owned.entry.data.is_pending() {
                                manual.advance(Duration::from_micros(131));
                                thread::yield_now();
                            }
                            assert!(owned.entry.data.is_fired());
                        }
                    }
                })
            })
            .collect();
        for owner in owners {
            owner.join().expect("an owner panicked");
        }
        running.store(false, Ordering::Release);
    });
    shard.close();
    assert_eq!(
        Arc::strong_count(&count),
        2,
        "every clone of the waker is gone"
    );
    assert!(count.get() <= fired.load(Ordering::Relaxed));
}
