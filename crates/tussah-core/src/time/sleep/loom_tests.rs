//! Models of a `Sleep` that is polled, reset and dropped while its entry fires.

use std::{future::poll_fn, sync::atomic::AtomicUsize, task::Wake, time::Duration};

use loom::{future::block_on, sync::atomic::Ordering, thread};

use super::{super::Clock, *};

/// A tick of a manual clock.
const TICK: Duration = Duration::from_micros(1);

/// A waker that counts its calls. The count is not part of the model, and is read after all OS
/// threads have been joined.
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn counter() -> (std::sync::Arc<Count>, std::task::Waker) {
    let count = std::sync::Arc::new(Count(AtomicUsize::new(0)));
    (std::sync::Arc::clone(&count), count.into())
}

/// A shard, and a future that completes at tick 1 of it.
fn pair() -> (TimerContext, Pin<Box<Sleep>>) {
    let clock = Clock::manual().clock();
    let sleep = Box::pin(Sleep::new_until(clock.now() + TICK));
    let shard = Arc::new(Shard::new(clock, Box::new(|| ())));
    (TimerContext { shard, local: true }, sleep)
}

fn poll(sleep: &mut Pin<Box<Sleep>>, context: &TimerContext, waker: &std::task::Waker) -> bool {
    sleep
        .as_mut()
        .poll_in(&mut Context::from_waker(waker), || Some(context.clone()))
        .is_ready()
}

fn firing(context: &TimerContext, now: u64) -> thread::JoinHandle<usize> {
    let shard = Arc::clone(&context.shard);
    thread::spawn(move || shard.fire(now))
}

/// The wake-up is not lost, whenever the timer fires; otherwise the model would block forever.
#[test]
fn a_thread_that_waits_is_woken() {
    loom::model(|| {
        let (context, mut sleep) = pair();
        let worker = firing(&context, 1);
        block_on(poll_fn(|cx| {
            sleep.as_mut().poll_in(cx, || Some(context.clone()))
        }));
        assert!(sleep.is_elapsed());
        // Freed while the worker may still be in `fire`.
        drop(sleep);
        worker.join().expect("firing does not panic");
    });
}

#[test]
fn firing_meets_a_drop() {
    loom::model(|| {
        let (context, mut sleep) = pair();
        let (count, waker) = counter();
        assert!(!poll(&mut sleep, &context, &waker));
        let worker = firing(&context, 1);
        drop(sleep);
        let fired = worker.join().expect("firing does not panic");
        assert_eq!(count.0.load(Ordering::SeqCst), fired);
        drop(waker);
        assert_eq!(
            std::sync::Arc::strong_count(&count),
            1,
            "the shard keeps no waker"
        );
    });
}

/// Either the last poller is woken, or it has seen that the deadline has passed.
#[test]
fn firing_meets_a_poll_with_another_waker() {
    loom::model(|| {
        let (context, mut sleep) = pair();
        let (old_count, old) = counter();
        let (new_count, new) = counter();
        assert!(!poll(&mut sleep, &context, &old));
        let worker = firing(&context, 1);
        let ready = poll(&mut sleep, &context, &new);
        assert_eq!(worker.join().expect("firing does not panic"), 1);
        let (old, new) = (
            old_count.0.load(Ordering::SeqCst),
            new_count.0.load(Ordering::SeqCst),
        );
        assert_eq!(old + new, 1);
        assert!(ready || new == 1);
    });
}

/// A reset that is too late leaves a spurious wake-up, never a completion at the old deadline.
#[test]
fn firing_meets_a_reset() {
    loom::model(|| {
        let (context, mut sleep) = pair();
        let (count, waker) = counter();
        assert!(!poll(&mut sleep, &context, &waker));
        let worker = firing(&context, 1);
        let later = sleep.deadline() + TICK;
        sleep.as_mut().reset(later);
        assert!(!poll(&mut sleep, &context, &waker));
        let early = worker.join().expect("firing does not panic");
        assert_eq!(context.shard.fire(2), 1);
        assert_eq!(count.0.load(Ordering::SeqCst), early + 1);
        assert!(poll(&mut sleep, &context, &waker));
    });
}

#[test]
fn closing_meets_a_poll_with_another_waker_and_a_drop() {
    loom::model(|| {
        let (context, mut sleep) = pair();
        let (old_count, old) = counter();
        let (new_count, new) = counter();
        assert!(!poll(&mut sleep, &context, &old));
        let closer = {
            let shard = Arc::clone(&context.shard);
            thread::spawn(move || shard.close())
        };
        assert!(!poll(&mut sleep, &context, &new));
        drop(sleep);
        closer.join().expect("closing does not panic");
        drop((old, new));
        for count in [old_count, new_count] {
            assert_eq!(std::sync::Arc::strong_count(&count), 1);
            assert_eq!(count.0.load(Ordering::SeqCst), 0);
        }
    });
}

/// A peer takes the lock between the worker's and the owner's use of it.
#[test]
fn a_worker_and_a_peer_fire_while_the_owner_waits() {
    loom::model(|| {
        let (context, mut sleep) = pair();
        let (count, waker) = counter();
        assert!(!poll(&mut sleep, &context, &waker));
        let worker = firing(&context, 1);
        let peer = {
            let shard = Arc::clone(&context.shard);
            thread::spawn(move || shard.try_fire(1).unwrap_or(0))
        };
        drop(sleep);
        let fired = worker.join().expect("firing does not panic");
        let fired = fired + peer.join().expect("firing does not panic");
        assert_eq!(count.0.load(Ordering::SeqCst), fired);
        assert!(fired <= 1);
    });
}
