//! Models of a color: exclusion, order, inline entries, and its destruction.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use crate::Colored;
use crate::loom::thread;
use crate::worker::model::{Canary, Count, Model, Probe, explore};

/// A value that detects two events in it at the same time, and records the order of events.
struct Log {
    probe: Arc<Probe>,
    events: Vec<(usize, usize)>,
    /// Each event that ran.
    ran: Count,
    _dropped: Canary,
    _held: Canary,
}

struct Rig {
    model: Arc<Model>,
    value: Colored<Log>,
    /// Read by each owner of a handle, and touched when the value is dropped.
    held: Arc<Probe>,
    ran: Count,
    dropped: Count,
}

impl Rig {
    fn new() -> Self {
        let model = Model::new(1);
        let (ran, dropped) = (Count::default(), Count::default());
        let (probe, held) = (Arc::new(Probe::new()), Arc::new(Probe::new()));
        let log = Log {
            probe: probe.clone(),
            events: Vec::new(),
            ran: ran.clone(),
            _dropped: dropped.canary(&probe),
            _held: Count::default().canary(&held),
        };
        let value = Colored::new_in(&model.handle(), log);
        Self {
            model,
            value,
            held,
            ran,
            dropped,
        }
    }

    /// Runs the remaining work. Checks the number of events of the value, which is dropped with the
    /// runtime.
    fn finish(self, events: usize) {
        self.model.serve_all();
        assert_eq!(self.dropped.get(), 0, "destroyed while there was a handle");
        drop(self.value);
        self.model.finish();
        assert_eq!((self.ran.get(), self.dropped.get()), (events, 1));
    }
}

impl Log {
    /// The event `number` of one poster.
    fn event(&mut self, poster: usize, number: usize) {
        self.probe.touch();
        let before = self.events.iter().filter(|event| event.0 == poster).count();
        assert_eq!(before, number, "the events of a poster changed places");
        self.events.push((poster, number));
        self.ran.add();
    }
}

fn post(value: &Colored<Log>, poster: usize, number: usize) {
    value
        .post(move |log| log.event(poster, number))
        .expect("the runtime is open");
}

fn join<T>(threads: [thread::JoinHandle<T>; 2]) -> [T; 2] {
    threads.map(|thread| thread.join().expect("no panic"))
}

#[test]
fn two_posters_and_a_worker() {
    explore(2, || {
        let rig = Rig::new();
        let posters = [0, 1].map(|poster| {
            let value = rig.value.clone();
            thread::spawn(move || {
                post(&value, poster, 0);
                post(&value, poster, 1);
            })
        });
        rig.model.start(1).join().expect("no panic");
        join(posters);
        rig.finish(4);
    });
}

/// An event posts in its own color while others do so too: the events that it knows of come first.
#[test]
fn an_event_posts_behind_earlier_events() {
    explore(3, || {
        let rig = Rig::new();
        let (value, other) = (rig.value.clone(), rig.value.clone());
        let posted = crate::loom::Arc::new(crate::loom::atomic::AtomicBool::new(false));
        let seen = posted.clone();
        value
            .post(move |log| {
                log.event(0, 0);
                let first = seen.load(std::sync::atomic::Ordering::Acquire);
                other
                    .post(move |log| {
                        let remote = log.events.iter().any(|event| event.0 == 1);
                        assert!(
                            remote || !first,
                            "a local post overtook a remote one that it knew of"
                        );
                        log.event(0, 1);
                    })
                    .expect("the runtime is open");
            })
            .expect("the runtime is open");
        let poster = thread::spawn(move || {
            post(&value, 1, 0);
            posted.store(true, std::sync::atomic::Ordering::Release);
        });
        rig.model.start(1).join().expect("no panic");
        poster.join().expect("no panic");
        rig.finish(3);
    });
}

#[test]
fn an_inline_entry_a_poster_and_a_worker() {
    explore(3, || {
        let rig = Rig::new();
        let value = rig.value.clone();
        let inline = thread::spawn(move || value.try_with(|log| log.event(0, 0)).is_ok());
        let value = rig.value.clone();
        let poster = thread::spawn(move || post(&value, 1, 0));
        rig.model.start(2).join().expect("no panic");
        let entered = inline.join().expect("no panic");
        poster.join().expect("no panic");
        rig.finish(1 + usize::from(entered));
    });
}

/// Two inline entries, one of which finds that the other holds the token, and a third party that
/// posts.
#[test]
fn two_inline_entries_and_a_poster() {
    explore(3, || {
        let rig = Rig::new();
        let entries = [0, 1].map(|entry| {
            let value = rig.value.clone();
            thread::spawn(move || value.try_with(|log| log.event(entry, 0)).is_ok())
        });
        let value = rig.value.clone();
        thread::spawn(move || post(&value, 2, 0))
            .join()
            .expect("no panic");
        let entered = entries.map(|entry| usize::from(entry.join().expect("no panic")));
        rig.finish(1 + entered[0] + entered[1]);
    });
}

/// The handles are dropped while an event is queued and a turn runs: the value is dropped once,
/// after the event.
#[test]
fn the_last_handle_goes() {
    explore(3, || {
        let Rig {
            model,
            value,
            held,
            ran,
            dropped,
        } = Rig::new();
        let (other, looks) = (value.clone(), held.clone());
        post(&value, 0, 0);
        let poster = thread::spawn(move || {
            post(&other, 1, 0);
            held.look();
            drop(other);
        });
        let dropper = thread::spawn(move || {
            looks.look();
            drop(value);
        });
        model.start(2).join().expect("no panic");
        poster.join().expect("no panic");
        dropper.join().expect("no panic");
        model.finish();
        assert_eq!((ran.get(), dropped.get()), (2, 1));
    });
}

/// As above, with an inline entry as the last operation through a handle.
#[test]
fn the_last_handle_goes_after_an_inline_entry() {
    explore(3, || {
        let Rig {
            model,
            value,
            held,
            ran,
            dropped,
        } = Rig::new();
        let other = value.clone();
        let inline = thread::spawn(move || {
            let entered = other.try_with(|log| log.event(0, 0)).is_ok();
            held.look();
            entered
        });
        let poster = thread::spawn(move || post(&value, 1, 0));
        model.start(1).join().expect("no panic");
        let entered = inline.join().expect("no panic");
        poster.join().expect("no panic");
        model.finish();
        assert_eq!((ran.get(), dropped.get()), (1 + usize::from(entered), 1));
    });
}

/// A request is polled and dropped while its color is busy and its turn comes: whether it ran or
/// not, its closure and its result are dropped once.
fn cancel(polls: usize, preemptions: usize) {
    explore(preemptions, move || {
        let rig = Rig::new();
        let (closures, results, made) = (Count::default(), Count::default(), Count::default());
        let probe = Arc::new(Probe::new());
        let (closure, result, count) = (closures.canary(&probe), results.clone(), made.clone());
        post(&rig.value, 0, 0);
        let value = rig.value.clone();
        let future = thread::spawn(move || {
            let mut with = pin!(value.with(move |log| {
                log.probe.touch();
                drop(closure);
                count.add();
                result.canary(&Arc::new(Probe::new()))
            }));
            let woken = Waker::from(Arc::new(Count::default()));
            (0..polls).any(|_| {
                with.as_mut()
                    .poll(&mut Context::from_waker(&woken))
                    .is_ready()
            })
        });
        rig.model.start(1).join().expect("no panic");
        let ready = future.join().expect("no panic");
        rig.finish(1);
        assert_eq!(closures.get(), 1, "the closure goes once");
        assert_eq!(
            results.get(),
            made.get(),
            "the result goes once, if there is one"
        );
        assert!(made.get() == 1 || !ready, "a result without a run");
    });
}

#[test]
fn a_request_is_cancelled() {
    cancel(1, 3);
}

#[test]
fn a_request_is_cancelled_after_a_second_poll() {
    cancel(2, 3);
}

/// A request in the middle of the inbox is cancelled and leaves it, while others post above it and
/// the worker takes the inbox. All posted events run once and in order, and the request is freed
/// once.
#[test]
fn a_cancelled_request_leaves_the_inbox() {
    explore(2, || {
        let rig = Rig::new();
        let closures = Count::default();
        let closure = closures.canary(&Arc::new(Probe::new()));
        post(&rig.value, 0, 0);
        post(&rig.value, 0, 1);
        let value = rig.value.clone();
        let mut with = Box::pin(async move {
            value.with(move |_| drop(closure)).await;
        });
        let polled = with.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending(), "events are queued before");
        post(&rig.value, 0, 2);
        let value = rig.value.clone();
        let canceller = thread::spawn(move || drop(with));
        let poster = thread::spawn(move || {
            post(&value, 1, 0);
            post(&value, 1, 1);
        });
        rig.model.start(1).join().expect("no panic");
        join([canceller, poster]);
        rig.finish(5);
        assert_eq!(closures.get(), 1, "the closure goes once");
    });
}

/// A waiting request wakes the waker of its last poll, and its result is then present.
#[test]
fn a_request_is_awaited() {
    explore(3, || {
        let rig = Rig::new();
        post(&rig.value, 0, 0);
        let value: &'static Colored<Log> = Box::leak(Box::new(rig.value.clone()));
        let mut with = Box::pin(value.with(|log| log.event(1, 0)));
        let counts = [Arc::new(Count::default()), Arc::new(Count::default())];
        let wakers = counts.each_ref().map(|count| Waker::from(count.clone()));
        let future = thread::spawn(move || {
            let waits = wakers.iter().all(|waker| {
                let mut context = Context::from_waker(waker);
                with.as_mut().poll(&mut context).is_pending()
            });
            (with, waits)
        });
        rig.model.start(1).join().expect("no panic");
        let (mut with, waits) = future.join().expect("no panic");
        rig.model.serve_all();
        if waits {
            assert_eq!(counts[1].get(), 1, "the waiter is called");
            let mut context = Context::from_waker(Waker::noop());
            assert!(
                with.as_mut().poll(&mut context).is_ready(),
                "the result is there"
            );
        }
        drop(with);
        // SAFETY: it came from the box above, and the request that borrowed it is gone.
        drop(unsafe { Box::from_raw(std::ptr::from_ref(value).cast_mut()) });
        rig.finish(2);
    });
}

/// A reader and a writer never meet, and a reader that finds a writer waits behind it.
#[test]
fn a_reader_and_a_writer() {
    explore(2, || {
        let rig = Rig::new();
        let value = rig.value.clone();
        let reader = thread::spawn(move || {
            for _ in 0..2 {
                let mut read = pin!(value.read(|log: &Log| log.probe.look()));
                let _ = read.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            }
        });
        let value = rig.value.clone();
        let writer = thread::spawn(move || post(&value, 0, 0));
        rig.model.start(1).join().expect("no panic");
        reader.join().expect("no panic");
        writer.join().expect("no panic");
        rig.finish(1);
    });
}

/// A queued read shares its turn with an inline read, and a post waits for both.
#[test]
fn a_queued_read_shares_its_turn() {
    explore(2, || {
        let rig = Rig::new();
        post(&rig.value, 0, 0);
        let woken = Waker::from(Arc::new(Count::default()));
        let value = rig.value.clone();
        let mut queued = Box::pin(value.read(|log: &Log| log.probe.look()));
        let pending = queued
            .as_mut()
            .poll(&mut Context::from_waker(&woken))
            .is_pending();
        assert!(pending, "an event was queued before");
        let other = rig.value.clone();
        let inline = thread::spawn(move || {
            let mut read = pin!(other.read(|log: &Log| log.probe.look()));
            let _ = read.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        });
        let other = rig.value.clone();
        let poster = thread::spawn(move || post(&other, 1, 0));
        rig.model.start(2).join().expect("no panic");
        inline.join().expect("no panic");
        poster.join().expect("no panic");
        rig.model.serve_all();
        assert!(
            queued
                .as_mut()
                .poll(&mut Context::from_waker(&woken))
                .is_ready()
        );
        drop(queued);
        drop(value);
        rig.finish(2);
    });
}
