//! Models of how workers sleep and are woken, with the workers' real loop; a time limit of theirs runs out at once.

use std::sync::Arc;

use super::Remote;
use super::model::{Count, Model, explore};
use crate::color::Color;
use crate::loom::atomic::Ordering;
use crate::loom::thread;
use crate::runtime::Shared;

/// Posts an event in a color of its own. With the lock of the table held by an OS thread as long as the call lasts, so
/// that no two threads of a model post by color number: each has its reference.
fn post(model: &Model, color: u64, f: impl FnOnce() + Send + 'static) {
    model.handle().post_in(Color(color), f).expect("the runtime is open");
}

/// Ends the workers.
fn stop(shared: &Shared) {
    for place in 0..shared.places() {
        shared.place(place).stop.store(true, Ordering::Release);
        shared.unpark(place);
    }
}

fn start(model: &Model) -> Vec<thread::JoinHandle<()>> {
    let start = |place: usize| {
        let (shared, remote): (_, Arc<Remote>) = (model.shared.clone(), model.shared.place(place).clone());
        thread::spawn(move || super::main(shared, remote, place))
    };
    (0..model.shared.places()).map(start).collect()
}

fn join(threads: Vec<thread::JoinHandle<()>>) {
    for thread in threads {
        thread.join().expect("no panic");
    }
}

/// Counts events, and stops the workers after the last one.
#[derive(Clone)]
struct Last {
    left: Arc<crate::loom::atomic::AtomicUsize>,
    ran: Count,
    shared: Arc<Shared>,
}

impl Last {
    fn new(model: &Model, events: usize) -> Self {
        let left = Arc::new(crate::loom::atomic::AtomicUsize::new(events));
        Self { left, ran: Count::default(), shared: model.shared.clone() }
    }

    fn event(&self) {
        self.ran.add();
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            stop(&self.shared);
        }
    }
}

fn finish(model: Model, last: Last, events: usize) {
    let Last { ran, shared, .. } = last;
    drop(shared);
    model.finish();
    assert_eq!(ran.get(), events);
}

/// One worker and events from outside: it does not sleep through any of them. Else the model hangs, which loom reports.
#[test]
fn posts_from_outside_wake_a_worker() {
    explore(3, || {
        let model = Model::new(1);
        let last = Last::new(&model, 2);
        let workers = start(&model);
        for color in 1..=2 {
            let last = last.clone();
            post(&model, color, move || last.event());
        }
        join(workers);
        finish(model, last, 2);
    });
}

/// The same with two workers, of which either may sleep or be chosen.
#[test]
fn posts_from_outside_wake_one_of_two_workers() {
    explore(2, || {
        let model = Model::new(2);
        let last = Last::new(&model, 2);
        let workers = start(&model);
        for color in 1..=2 {
            let last = last.clone();
            post(&model, color, move || last.event());
        }
        join(workers);
        finish(model, last, 2);
    });
}

/// A long event: it ends only when another one has run, which was posted from outside, before or after it, to
/// whichever worker. So the other worker has to run that one, asleep or not.
#[test]
fn a_post_does_not_wait_behind_a_long_event() {
    explore(2, || {
        let model = Model::new(2);
        let last = Last::new(&model, 2);
        let workers = start(&model);
        let flag = Arc::new(loom::sync::Notify::new());
        let (other, count) = (flag.clone(), last.clone());
        post(&model, 1, move || {
            other.wait();
            count.event();
        });
        let count = last.clone();
        post(&model, 2, move || {
            flag.notify();
            count.event();
        });
        join(workers);
        finish(model, last, 2);
    });
}

/// The same for an event that the long one posts itself, to its own worker.
#[test]
fn a_local_post_does_not_wait_behind_a_long_event() {
    explore(2, || {
        let model = Model::new(2);
        let last = Last::new(&model, 2);
        let workers = start(&model);
        let flag = Arc::new(loom::sync::Notify::new());
        let (handle, count) = (model.handle(), last.clone());
        let color = Color(2);
        let second = model.shared.table.get(&model.shared, color);
        post(&model, 1, move || {
            let (other, ended) = (flag.clone(), count.clone());
            let event = move || {
                other.notify();
                ended.event();
            };
            handle.post_in(&second, event).expect("the runtime is open");
            flag.wait();
            count.event();
        });
        join(workers);
        finish(model, last, 2);
    });
}

/// A worker ends while an event is posted, perhaps to it: the other one runs the event.
#[test]
fn a_post_to_a_worker_that_ends() {
    explore(3, || {
        let model = Model::new(2);
        let last = Last::new(&model, 1);
        let workers = start(&model);
        let shared = model.shared.clone();
        let shrink = thread::spawn(move || {
            shared.workers.store(1, Ordering::Release);
            shared.place(1).stop.store(true, Ordering::Release);
            shared.unpark(1);
        });
        let count = last.clone();
        post(&model, 1, move || count.event());
        join(workers);
        shrink.join().expect("no panic");
        finish(model, last, 1);
    });
}
