//! Models of an entry's hand-over between its owner, the worker and a peer, and of parking.
//!
//! The models that own an entry through `Sleep` are in `sleep/loom_tests.rs`.

use loom::{
    sync::atomic::{AtomicBool, AtomicUsize},
    thread,
};

use super::*;
use crate::loom::Arc;

const DEADLINE: u64 = 3;

fn shard() -> Arc<Shard> {
    Arc::new(Shard::new(Clock::manual().clock(), Box::new(|| ())))
}

/// An entry that the model shares only to check it; one OS thread acts as its owner.
fn entry() -> TimerEntry {
    TimerEntry::new(Timer::new())
}

/// Two callers that fire at the same time together fire each entry once.
#[test]
fn a_worker_and_a_peer_fire() {
    loom::model(|| {
        let shard = shard();
        let (first, second) = (entry(), entry());
        // SAFETY: both entries stay in place, and have fired when they are freed.
        unsafe {
            shard.register(&first, DEADLINE, Waker::noop().clone());
            shard.register(&second, DEADLINE + 1, Waker::noop().clone());
        }
        let peer = {
            let shard = Arc::clone(&shard);
            thread::spawn(move || shard.try_fire(DEADLINE + 1).unwrap_or(0))
        };
        let fired = shard.fire(DEADLINE + 1);
        let fired = fired + peer.join().expect("the peer does not panic");
        assert_eq!(fired, 2);
        assert!(first.data.is_fired() && second.data.is_fired());
        assert_eq!(shard.next_tick(), u64::MAX);
    });
}

/// An owner that finds its entry fired may free it without the lock, while the worker still holds
/// the lock (rule 3).
#[test]
fn an_owner_frees_what_has_fired() {
    loom::model(|| {
        let shard = shard();
        let entry = entry();
        // SAFETY: the entry stays in place, and has fired when it is freed.
        unsafe { shard.register(&entry, DEADLINE, Waker::noop().clone()) };
        let worker = {
            let shard = Arc::clone(&shard);
            thread::spawn(move || shard.fire(DEADLINE))
        };
        if entry.data.is_fired() {
            // This access stands for the free of the waker's memory: the model checks that nothing
            // else uses it at the same time. SAFETY: the entry belongs to its owner again.
            let waker = entry
                .data
                .waker
                .with_mut(|place| unsafe { (*place).take() });
            assert!(waker.is_none());
        }
        assert_eq!(worker.join().expect("firing does not panic"), 1);
    });
}

/// No worker parks past a deadline that another OS thread sets, as the contract of `notify`
/// requires.
#[test]
fn a_worker_that_parks_sees_the_entry_or_is_woken() {
    loom::model(|| {
        let parked = Arc::new(AtomicBool::new(false));
        let unparked = Arc::new(AtomicUsize::new(0));
        let hook = {
            let (parked, unparked) = (Arc::clone(&parked), Arc::clone(&unparked));
            move || {
                if parked.load(Ordering::Relaxed) {
                    unparked.fetch_add(1, Ordering::Relaxed);
                }
            }
        };
        let shard = Arc::new(Shard::new(Clock::manual().clock(), Box::new(hook)));
        let worker = {
            let shard = Arc::clone(&shard);
            thread::spawn(move || {
                parked.store(true, Ordering::Relaxed);
                fence(Ordering::SeqCst);
                shard.next_tick()
            })
        };
        let entry = entry();
        // SAFETY: the entry stays in place and is cancelled below.
        let outcome = unsafe { shard.register(&entry, DEADLINE, Waker::noop().clone()) };
        assert_eq!(outcome, Registered::Pending { earliest: true });
        shard.notify();
        let seen = worker.join().expect("the worker does not panic");
        assert!(seen == DEADLINE || unparked.load(Ordering::Relaxed) == 1);
        // SAFETY: registered above.
        unsafe { shard.cancel(&entry) };
    });
}

/// An owner cancels from another OS thread during the shutdown.
#[test]
fn closing_meets_a_cancel_and_a_registration() {
    loom::model(|| {
        let shard = shard();
        let closer = {
            let shard = Arc::clone(&shard);
            thread::spawn(move || shard.close())
        };
        let entry = Box::new(entry());
        // SAFETY: the box keeps the entry in place until it is found not pending.
        let outcome = unsafe { shard.register(&entry, DEADLINE, Waker::noop().clone()) };
        assert_ne!(outcome, Registered::Elapsed);
        if entry.data.is_pending() {
            // SAFETY: as above.
            unsafe { shard.cancel(&entry) };
        }
        assert!(!entry.data.is_pending());
        drop(entry);
        closer.join().expect("closing does not panic");
        assert_eq!(shard.fire(DEADLINE), 0);
    });
}
