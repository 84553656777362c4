//! Models of how workers sleep and are woken: the real list of sleepers, the real injectors, rings
//! and `Shared::inject`, under a reduced worker's loop (without clocks, timers and statistics).
//!
//! A worker that sleeps through work makes a model hang, which loom reports. So does an event that
//! waits behind a long one while the other worker sleeps.

use std::ptr::NonNull;
use std::sync::Arc;

use super::model::{Count, Model, explore};
use super::{Idle, Worker};
use crate::driver::Events;
use crate::event::{self, Node};
use crate::loom::atomic::{AtomicUsize, Ordering};
use crate::loom::thread;
use crate::runtime::Shared;

type Job = Box<dyn FnOnce(&Rig) + Send>;

/// The state that all threads of a model share.
struct Rig {
    model: Arc<Model>,
    /// The number of events that have not run.
    left: AtomicUsize,
    ran: Count,
}

/// An event with a color of its own.
fn node(rig: &Arc<Rig>, job: impl FnOnce(&Rig) + Send + 'static) -> NonNull<Node> {
    let job: Job = Box::new(job);
    let event = Box::new(Event {
        node: Node::new(&EVENT),
        rig: rig.clone(),
        job: Some(job),
    });
    NonNull::from(Box::leak(event)).cast()
}

#[repr(C)]
struct Event {
    node: Node,
    rig: Arc<Rig>,
    job: Option<Job>,
}

static EVENT: event::VTable = event::VTable {
    run: Event::run,
    drop: Event::drop_unrun,
    name: || "event",
    location_at: None,
    cancel: None,
};

impl Event {
    unsafe fn run(node: NonNull<Node>, _: &Worker) -> event::After {
        // SAFETY: the node is a boxed `Event`, which the caller owns.
        let mut this = unsafe { Box::from_raw(node.cast::<Event>().as_ptr()) };
        (this.job.take().expect("an event runs once"))(&this.rig);
        this.rig.ran.add();
        if this.rig.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            stop(&this.rig.model.shared);
        }
        event::After::Continue
    }

    unsafe fn drop_unrun(_: NonNull<Node>, _: event::DropReason) -> event::After {
        unreachable!("a model runs all of its events");
    }
}

/// Ends the workers.
fn stop(shared: &Shared) {
    for place in 0..shared.places() {
        shared.place(place).stop.store(true, Ordering::Release);
        shared.unpark(place);
    }
}

/// Runs `f` beside some workers, which run `events` events and end.
fn check(
    preemptions: usize,
    workers: usize,
    events: usize,
    f: impl Fn(&Arc<Rig>) + Copy + Send + Sync + 'static,
) {
    explore(preemptions, move || {
        let model = Model::new(workers);
        let rig = Arc::new(Rig {
            model,
            left: AtomicUsize::new(events),
            ran: Count::default(),
        });
        let start = |place: usize| {
            let rig = rig.clone();
            thread::spawn(move || rig.model.work(place))
        };
        let threads: Vec<_> = (0..workers).map(start).collect();
        let poster = rig.clone();
        thread::spawn(move || f(&poster)).join().expect("no panic");
        for thread in threads {
            thread.join().expect("no panic");
        }
        let rig = Arc::into_inner(rig).expect("the events are gone");
        let Rig { model, ran, .. } = rig;
        model.finish();
        assert_eq!(ran.get(), events);
    });
}

/// One worker, and an event from outside: either the poster sees that the worker is parked, or the
/// worker sees the event.
#[test]
fn a_post_from_outside_wakes_the_worker() {
    check(3, 1, 1, |rig| rig.model.shared.inject(node(rig, |_| ())));
}

/// The same with two workers: the post may choose either of them, and either may be asleep.
#[test]
fn a_post_from_outside_wakes_one_of_two_workers() {
    check(1, 2, 1, |rig| rig.model.shared.inject(node(rig, |_| ())));
}

/// Two posters at the same time. The second poster finds that the injector is not empty, or that no
/// worker sleeps.
#[test]
fn two_posters_from_outside() {
    check(1, 1, 2, |rig| {
        let other = rig.clone();
        let poster = thread::spawn(move || other.model.shared.inject(node(&other, |_| ())));
        rig.model.shared.inject(node(rig, |_| ()));
        poster.join().expect("no panic");
    });
}

/// A long event ends only when another event has run. Both come from outside, to the same worker
/// unless the other worker sleeps. So the other worker has to run one of them, even if it fell
/// asleep before there was anything to watch.
#[test]
fn a_post_does_not_wait_behind_a_long_event() {
    check(1, 2, 2, |rig| {
        let shared = &rig.model.shared;
        shared.workers.store(1, Ordering::Relaxed);
        let flag = Arc::new(loom::sync::Notify::new());
        let set = flag.clone();
        shared.inject(node(rig, move |_| flag.wait()));
        shared.inject(node(rig, move |_| set.notify()));
    });
}

/// The same for an event that the long event itself posts, to its own worker.
#[test]
fn a_local_post_does_not_wait_behind_a_long_event() {
    check(1, 2, 2, |rig| {
        let other = rig.clone();
        rig.model.shared.inject(node(rig, move |rig| {
            let flag = Arc::new(loom::sync::Notify::new());
            let set = flag.clone();
            rig.model
                .shared
                .schedule(node(&other, move |_| set.notify()));
            drop(other);
            flag.wait();
        }));
    });
}

/// The same for two events that a worker finds completed between two turns, as in its ring of file
/// operations.
#[test]
fn a_completion_is_not_stuck_behind_a_long_event() {
    check(1, 2, 3, |rig| {
        let other = rig.clone();
        rig.model.shared.inject(node(rig, move |rig| {
            let flag = Arc::new(loom::sync::Notify::new());
            let set = flag.clone();
            rig.model.complete(node(&other, move |_| flag.wait()));
            rig.model.complete(node(&other, move |_| set.notify()));
        }));
    });
}

/// A worker ends while an event is posted, perhaps to it: the other worker runs the event.
#[test]
fn a_post_to_a_worker_that_ends() {
    check(1, 2, 1, |rig| {
        let shared = rig.model.shared.clone();
        let shrink = thread::spawn(move || {
            shared.workers.store(1, Ordering::Release);
            shared.place(1).stop.store(true, Ordering::Release);
            shared.unpark(1);
        });
        rig.model.shared.inject(node(rig, |_| ()));
        shrink.join().expect("no panic");
    });
}

/// Sleeps, as the worker of the only place, until the flag is set.
fn sleep_until(model: &Model, flag: &AtomicUsize) {
    let remote = model.shared.place(0);
    remote.bind();
    while flag.load(Ordering::Acquire) == 0 {
        remote.park(None, &mut Events::new());
    }
}

/// Sets the flag, and wakes the sleeper.
fn set_and_wake(model: &Model, flag: &AtomicUsize) {
    flag.store(1, Ordering::Release);
    model.shared.unpark(0);
}

/// A worker's driver is used for the first time while the worker falls asleep and is woken by
/// others; then the driver reports something.
#[test]
fn a_worker_moves_to_its_driver() {
    explore(3, || {
        let model = Model::new(1);
        let flag = Arc::new(AtomicUsize::new(0));
        let [sleeper, waker, maker] = [(); 3].map(|()| (model.clone(), flag.clone()));
        let threads = [
            thread::spawn(move || sleep_until(&sleeper.0, &sleeper.1)),
            thread::spawn(move || waker.0.shared.unpark(0)),
            thread::spawn(move || {
                let driver = maker.0.shared.driver_of(0);
                maker.1.store(1, Ordering::Release);
                // This stands for a descriptor's report.
                driver.wake();
            }),
        ];
        let _ = threads.map(|thread| thread.join().expect("no panic"));
        model.finish();
    });
}

/// A worker sleeps in its driver and is woken, while a peer that believes the worker to be stuck
/// looks at the driver.
#[test]
fn a_peer_does_not_take_a_wake() {
    explore(3, || {
        let model = Model::new(1);
        let _ = model.shared.driver_of(0);
        let flag = Arc::new(AtomicUsize::new(0));
        let [sleeper, waker, peer] = [(); 3].map(|()| (model.clone(), flag.clone()));
        let threads = [
            thread::spawn(move || sleep_until(&sleeper.0, &sleeper.1)),
            thread::spawn(move || set_and_wake(&waker.0, &waker.1)),
            thread::spawn(move || {
                for _ in 0..2 {
                    peer.0.shared.look_for(0, &mut Events::new());
                }
            }),
        ];
        let _ = threads.map(|thread| thread.join().expect("no panic"));
        model.finish();
    });
}

/// Two workers cannot show this: a thief that takes work while another worker runs leaves a watch
/// behind.
#[test]
fn a_searcher_that_finds_work_calls_a_successor() {
    loom::model(|| {
        let idle = Idle::new();
        (0..3).for_each(|_| idle.add());
        assert!(!idle.park(1), "worker 0 still searches");
        assert!(!idle.park(2), "worker 0 still searches");
        assert_eq!(idle.found(), None, "worker 0 runs alone");
        assert!(idle.unwatched());
        assert_eq!(idle.wake_one(), Some(2));
        assert!(!idle.unwatched(), "worker 2 searches");
        assert_eq!(idle.found(), Some(1), "workers 0 and 2 run");
        assert!(idle.park(1), "it found nothing: it keeps watch");
        assert!(!idle.unwatched());
    });
}

/// The part that loom does not explore: see `README.md`.
#[test]
fn a_worker_awake_between_two_looks_is_seen() {
    loom::model(|| {
        let idle = Idle::new();
        (0..2).for_each(|_| idle.add());
        let _ = idle.park(0);
        assert_eq!(idle.all_parked(), None, "worker 1 searches");
        let _ = idle.park(1);
        let first = idle.all_parked();
        assert!(first.is_some());
        assert_eq!(idle.all_parked(), first, "nobody was awake");
        idle.unpark(1);
        let _ = idle.park(1);
        assert_ne!(idle.all_parked(), first, "worker 1 was");
    });
}
