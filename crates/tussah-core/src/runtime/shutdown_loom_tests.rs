//! Models of the end of a worker and of a runtime: an event posted at about that time is run or
//! dropped, exactly once, and is never lost.
//!
//! They run the real `shutdown` and `set_workers`, whose time limits have run out from the start.

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use super::shared::Shared;
use super::shutdown::{set_workers, shutdown};
use crate::event::{After, DropReason, Node, VTable};
use crate::loom::atomic::Ordering;
use crate::loom::thread;
use crate::slab::Kind;
use crate::worker::Worker;
use crate::worker::model::{Count, Model, Probe, Report, explore};
use crate::{Colored, with_all};

/// An event with a color of its own. It belongs to the model, so that the model can count a second
/// end.
#[repr(C)]
struct Event {
    node: Node,
    /// Accessed by the poster, and at the event's end.
    content: Probe,
    ran: Count,
    dropped: Count,
}

static EVENT: VTable = VTable {
    run: Event::run,
    drop: Event::drop_unrun,
    name: || "event",
    location_at: None,
    cancel: None,
};

impl Event {
    fn new() -> Self {
        Self {
            node: Node::new(&EVENT),
            content: Probe::new(),
            ran: Count::default(),
            dropped: Count::default(),
        }
    }

    unsafe fn run(node: NonNull<Node>, _: &Worker) -> After {
        // SAFETY: the node heads an `Event`, which lives as long as the model.
        let this = unsafe { node.cast::<Event>().as_ref() };
        this.content.touch();
        this.ran.add();
        After::Continue
    }

    unsafe fn drop_unrun(node: NonNull<Node>, reason: DropReason) -> After {
        let _report = Report;
        assert_eq!(reason, DropReason::ShutDown);
        // SAFETY: as in `run`.
        let this = unsafe { node.cast::<Event>().as_ref() };
        this.content.touch();
        this.dropped.add();
        After::Continue
    }
}

struct Rig {
    model: Arc<Model>,
    events: [Event; 2],
}

impl Rig {
    /// Directs the first event from outside to the last place.
    fn new(workers: usize) -> Arc<Self> {
        let model = Model::new(workers);
        let last = workers - 1;
        model.shared.next_place.store(last, Ordering::Relaxed);
        let events = [Event::new(), Event::new()];
        Arc::new(Self { model, events })
    }

    fn inject(&self, event: usize) {
        self.events[event].content.touch();
        self.model.shared.inject(self.node(event));
    }

    fn node(&self, event: usize) -> NonNull<Node> {
        // The pointer may access the whole event.
        NonNull::from(&self.events[event]).cast()
    }

    fn spawn(self: &Arc<Self>, f: impl FnOnce(&Self) + 'static) -> thread::JoinHandle<()> {
        let this = self.clone();
        thread::spawn(move || f(&this))
    }

    /// Checks that each event has ended once. Returns how many of them ran.
    fn check(&self) -> usize {
        let ends = self.events.each_ref().map(|event| {
            let (ran, dropped) = (event.ran.get(), event.dropped.get());
            assert_eq!(ran + dropped, 1, "ran {ran} times, dropped {dropped} times");
            ran
        });
        ends.into_iter().sum()
    }

    /// Checks that the first event has run if the runtime is at rest.
    fn check_rest(&self) {
        if self.model.shared.is_at_rest() {
            // One of the accesses was the poster's.
            assert_eq!(self.events[0].content.look(), 2);
        }
    }

    fn into_model(self: Arc<Self>) -> Arc<Model> {
        Arc::into_inner(self).expect("the threads are joined").model
    }
}

/// The only worker ends while it has something to run and another event is posted.
#[test]
fn a_post_around_the_end_of_the_runtime() {
    explore(1, || {
        let rig = Rig::new(1);
        rig.inject(0);
        rig.model.start_worker(0);
        let poster = rig.spawn(|rig| rig.inject(1));
        let end = rig.spawn(|rig| {
            shutdown(&rig.model.shared, Duration::ZERO);
        });
        poster.join().expect("no panic");
        end.join().expect("no panic");
        rig.check();
        rig.into_model().ended();
    });
}

/// A worker is removed while an event is posted to it. It runs the event, or the worker of place 0
/// finds it. That worker checks only when everything else has ended, so it cannot repair a fault of
/// the others.
#[test]
fn a_post_to_a_removed_worker() {
    explore(1, || {
        let rig = Rig::new(2);
        rig.model.start_worker(1);
        let poster = rig.spawn(|rig| {
            rig.inject(0);
            rig.inject(1);
        });
        let taken = rig.spawn(|rig| set_workers(&rig.model.shared, 1).expect("one is left"));
        poster.join().expect("no panic");
        taken.join().expect("no panic");
        let worker = rig.model.shared.os_threads.lock()[1].take();
        worker.expect("it was started").join().expect("no panic");
        rig.model.serve(1);
        assert_eq!(
            rig.check(),
            2,
            "nothing is dropped while the runtime is open"
        );
        rig.into_model().finish();
    });
}

/// While a removed worker hands an event over, the runtime is not at rest.
#[test]
fn a_node_that_is_handed_over_is_not_at_rest() {
    explore(1, || {
        let rig = Rig::new(2);
        rig.events[0].content.touch();
        rig.model.as_worker(1, |worker| worker.requeue(rig.node(0)));
        set_workers(&rig.model.shared, 1).expect("one is left");
        rig.model.start_worker(0);
        rig.model.start_worker(1);
        let asker = rig.spawn(|rig| {
            rig.check_rest();
            shutdown(&rig.model.shared, Duration::ZERO);
        });
        asker.join().expect("no panic");
        rig.into_model().ended();
    });
}

/// Does the same while a poster takes back the nodes of a removed worker: its own event and another
/// one.
#[test]
fn a_node_that_is_taken_back_is_not_at_rest() {
    explore(3, || {
        let rig = Rig::new(2);
        rig.inject(0);
        rig.model.shared.next_place.store(1, Ordering::Relaxed);
        let poster = rig.spawn(|rig| rig.inject(1));
        let asker = rig.spawn(|rig| {
            let shared = &rig.model.shared;
            set_workers(shared, 1).expect("one is left");
            rig.model.as_worker(1, |worker| shared.worker_ended(worker));
            rig.model.serve(1);
            let _ = shared.idle.park(0);
            rig.check_rest();
        });
        poster.join().expect("no panic");
        asker.join().expect("no panic");
        rig.into_model().finish();
    });
}

/// A removed worker hands its queue over while the runtime ends.
#[test]
fn a_hand_over_around_the_end_of_the_runtime() {
    explore(3, || {
        let rig = Rig::new(2);
        rig.inject(0);
        rig.events[1].content.touch();
        rig.model.as_worker(1, |worker| worker.requeue(rig.node(1)));
        set_workers(&rig.model.shared, 1).expect("one is left");
        rig.model.start_worker(1);
        let end = rig.spawn(|rig| {
            shutdown(&rig.model.shared, Duration::ZERO);
        });
        end.join().expect("no panic");
        assert_eq!(rig.check(), 0, "no worker is there to run anything");
        rig.into_model().ended();
    });
}

/// A worker is removed, and the runtime ends immediately. Place 0 has no worker, so the nodes that
/// are handed over to it are dropped.
#[test]
fn a_hand_over_and_a_post_around_the_end_of_the_runtime() {
    explore(1, || {
        let rig = Rig::new(2);
        rig.events[0].content.touch();
        rig.model.as_worker(1, |worker| worker.requeue(rig.node(0)));
        rig.model.start_worker(1);
        let poster = rig.spawn(|rig| rig.inject(1));
        let end = rig.spawn(|rig| {
            set_workers(&rig.model.shared, 1).expect("one is left");
            shutdown(&rig.model.shared, Duration::ZERO);
        });
        poster.join().expect("no panic");
        end.join().expect("no panic");
        rig.check();
        rig.into_model().ended();
    });
}

/// Two colors have one event each, and a request for both waits behind these events. At the end of
/// the runtime everything runs or is dropped, and the request completes. Events posted in the
/// meantime run, are dropped, or are returned.
#[test]
fn a_post_and_a_request_for_two_colors_around_the_end_of_the_runtime() {
    explore(1, || {
        let model = Model::new(1);
        let canary = |count: &Count| count.canary(&Arc::new(Probe::new()));
        let (values, closures) = (Count::default(), Count::default());
        let woken = Arc::new(Count::default());
        let [one, other] = [(); 2].map(|()| {
            let value = canary(&values);
            Colored::new_in(&model.handle(), value)
        });
        for value in [&one, &other] {
            let closure = canary(&closures);
            let posted = value.post(move |_| drop(closure));
            posted.expect("the runtime is open");
        }
        let closure = canary(&closures);
        let (first, second) = (one.clone(), other.clone());
        let mut request = Box::pin(async move {
            with_all((&first, &second), move |_, _| drop(closure)).await;
        });
        let waker = woken.clone().into();
        let pending = request.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(pending.is_pending(), "events were queued before");
        model.start_worker(0);
        let (value, closure) = (other.clone(), canary(&closures));
        let poster = thread::spawn(move || drop(value.post(move |_| drop(closure))));
        let shared = model.shared.clone();
        let end = thread::spawn(move || {
            shutdown(&shared, Duration::ZERO);
        });
        poster.join().expect("no panic");
        end.join().expect("no panic");
        assert_eq!(woken.get(), 1, "the request is answered");
        assert_eq!(
            closures.get(),
            4,
            "each closure runs, is dropped, or comes back"
        );
        assert_eq!(values.get(), 0, "the values have handles");
        drop((request, waker, one, other));
        assert_eq!(values.get(), 2);
        model.ended();
    });
}

/// A caller that found the runtime open allocates while the runtime ends, or later. Only the
/// caller's own reference then keeps the memory.
#[test]
fn an_allocation_around_the_end_of_the_runtime() {
    explore(3, || {
        const LAYOUT: Layout = Layout::new::<u64>();
        let model = Model::new(1);
        let weak = Arc::downgrade(&model.shared);
        let handle = model.handle();
        let allocator = thread::spawn(move || {
            let is_open = handle.shared.is_open();
            thread::yield_now();
            is_open.then(|| handle.shared.alloc(Kind::Event, LAYOUT))
        });
        let shared = model.shared.clone();
        let end = thread::spawn(move || {
            shutdown(&shared, Duration::ZERO);
        });
        let slot = allocator.join().expect("no panic");
        end.join().expect("no panic");
        drop(model);
        assert_eq!(weak.strong_count(), usize::from(slot.is_some()));
        if let Some(slot) = slot {
            // SAFETY: it was allocated for this layout, and is freed once.
            unsafe { Shared::free(Kind::Event, slot, LAYOUT) };
        }
        assert_eq!(weak.strong_count(), 0);
    });
}
