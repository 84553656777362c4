//! Models of a thread's state word: wakes, the end, `abort`, the join handle, and the last
//! reference.

use std::panic::Location;
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::raw::Home;
use super::{Header, JoinHandle, spawn};
use crate::loom::atomic::{AtomicUsize, Ordering};
use crate::loom::{Mutex, lock, thread};
use crate::runtime::Shared;
use crate::worker::model::{Canary, Count, Model, Probe, explore, run_queued};

/// A color of its own for each thread. The place records when the thread's memory is freed. It
/// touches a probe to check that the memory is freed after everything that was done under a
/// reference.
struct Place {
    shared: Arc<Shared>,
    _freed: Canary,
}

impl Home for Place {
    unsafe fn schedule(&self, thread: NonNull<Header>) {
        self.shared.schedule(thread.cast());
    }
}

/// Completes at the first poll that sees `expected` signals. The polls exclude each other.
struct Wait {
    rig: Arc<Signals>,
    expected: usize,
    output: Option<Canary>,
    _dropped: Canary,
}

struct Signals {
    come: AtomicUsize,
    wakers: Mutex<Vec<Waker>>,
    polls: Probe,
    /// Touched by each party that still has a reference.
    held: Arc<Probe>,
}

impl Signals {
    /// Signals, and wakes the thread with a waker that the thread has left here.
    fn signal(&self) {
        self.come.fetch_add(1, Ordering::Relaxed);
        let waker = lock(&self.wakers)
            .pop()
            .expect("the thread has left enough");
        self.held.look();
        waker.wake();
    }

    /// Drops a waker without using it.
    fn forget(&self) {
        let waker = lock(&self.wakers)
            .pop()
            .expect("the thread has left enough");
        self.held.look();
        drop(waker);
    }
}

impl Future for Wait {
    type Output = Canary;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Canary> {
        self.rig.polls.touch();
        if self.rig.come.load(Ordering::Relaxed) >= self.expected {
            let output = self.output.take().expect("polled once more");
            // The code that drops the output must see what was written to it here.
            output.touch();
            return Poll::Ready(output);
        }
        let mut wakers = lock(&self.rig.wakers);
        while wakers.len() < 2 {
            wakers.push(context.waker().clone());
        }
        drop(wakers);
        // Touched again: the lock also orders the code before it with polls elsewhere.
        self.rig.polls.touch();
        Poll::Pending
    }
}

struct Rig {
    model: Arc<Model>,
    signals: Arc<Signals>,
    dropped: Count,
    output: Count,
    freed: Count,
}

impl Rig {
    /// Creates a thread that has been polled once and has left two wakers. If `expected` is 0, the
    /// thread is queued for the first time instead.
    fn new(expected: usize) -> (Self, JoinHandle<Canary>) {
        Self::with_workers(1, expected)
    }

    fn with_workers(workers: usize, expected: usize) -> (Self, JoinHandle<Canary>) {
        let model = Model::new(workers);
        let held = Arc::new(Probe::new());
        let signals = Arc::new(Signals {
            come: AtomicUsize::new(0),
            wakers: Mutex::new(Vec::new()),
            polls: Probe::new(),
            held: held.clone(),
        });
        let (dropped, output, freed) = (Count::default(), Count::default(), Count::default());
        let future = Wait {
            rig: signals.clone(),
            expected,
            output: Some(output.canary(&Arc::new(Probe::new()))),
            _dropped: dropped.canary(&Arc::new(Probe::new())),
        };
        let home = Place {
            shared: model.shared.clone(),
            _freed: freed.canary(&held),
        };
        let handle = spawn(&model.shared, home, Location::caller(), future);
        if expected > 0 {
            model.serve_all();
        }
        (
            Self {
                model,
                signals,
                dropped,
                output,
                freed,
            },
            handle,
        )
    }

    fn start(&self, f: impl FnOnce(&Signals) + 'static) -> thread::JoinHandle<()> {
        let signals = self.signals.clone();
        thread::spawn(move || f(&signals))
    }

    /// Runs the rest, and checks that the future, its output and its memory were each released once
    /// and that the thread has ended.
    fn finish(self) {
        self.model.serve_all();
        lock(&self.signals.wakers).clear();
        self.model.finish();
        assert_eq!(self.dropped.get(), 1, "the future goes once");
        assert_eq!(self.output.get(), 1, "the output goes once");
        assert_eq!(self.freed.get(), 1, "the memory goes once");
    }
}

/// Two wakes arrive while the thread runs, is about to run, or ends. No wake is lost.
#[test]
fn two_wakers_and_a_worker() {
    explore(2, || {
        let (rig, handle) = Rig::new(2);
        drop(handle);
        let wakers = [rig.start(Signals::signal), rig.start(Signals::signal)];
        rig.model.start(2).join().expect("no panic");
        for waker in wakers {
            waker.join().expect("no panic");
        }
        rig.finish();
    });
}

/// One worker polls the thread. Another worker then polls it and sees what the first poll wrote.
#[test]
fn two_workers_poll_one_after_the_other() {
    explore(2, || {
        let (rig, handle) = Rig::with_workers(2, 2);
        drop(handle);
        rig.model.as_worker(0, |_| rig.signals.signal());
        let first = rig.model.start_at(0, 1);
        let (model, signals) = (rig.model.clone(), rig.signals.clone());
        let second = thread::spawn(move || {
            model.as_worker(1, |worker| {
                signals.signal();
                run_queued(worker);
            });
        });
        first.join().expect("no panic");
        second.join().expect("no panic");
        rig.finish();
    });
}

/// `abort`, a wake and a poll happen at the same time. The thread ends in either case.
#[test]
fn an_abort_a_waker_and_a_worker() {
    explore(3, || {
        let (rig, handle) = Rig::new(1);
        let abort = handle.abort_handle();
        let held = rig.signals.held.clone();
        let aborter = thread::spawn(move || {
            abort.abort();
            held.look();
        });
        let waker = rig.start(Signals::signal);
        rig.model.start(1).join().expect("no panic");
        aborter.join().expect("no panic");
        waker.join().expect("no panic");
        rig.model.serve_all();
        let mut handle = handle;
        let Poll::Ready(result) =
            Pin::new(&mut handle).poll(&mut Context::from_waker(Waker::noop()))
        else {
            panic!("an aborted thread has ended");
        };
        assert!(
            result
                .as_ref()
                .err()
                .is_none_or(crate::JoinError::is_cancelled)
        );
        drop((result, handle));
        // An aborted thread has no separate output: dropping the future drops it.
        rig.finish();
    });
}

/// The handle is polled and dropped while the thread ends. The output is dropped once, and a joiner
/// that had to wait is woken.
fn join(polls: usize) {
    explore(3, move || {
        let (rig, handle) = Rig::new(0);
        let woken = Arc::new(Count::default());
        let (waker, held) = (Waker::from(woken.clone()), rig.signals.held.clone());
        let joiner = thread::spawn(move || {
            let mut handle = handle;
            let ready = (0..polls).any(|_| {
                Pin::new(&mut handle)
                    .poll(&mut Context::from_waker(&waker))
                    .is_ready()
            });
            held.look();
            ready
        });
        rig.model.start(1).join().expect("no panic");
        let ready = joiner.join().expect("no panic");
        rig.finish();
        assert!(
            woken.get() <= usize::from(polls > 0),
            "the joiner is called once"
        );
        assert!(polls > 0 || !ready);
    });
}

#[test]
fn a_handle_is_dropped_at_the_end() {
    join(0);
}

#[test]
fn a_handle_is_polled_and_dropped_at_the_end() {
    join(1);
}

#[test]
fn a_handle_is_polled_twice_and_dropped_at_the_end() {
    join(2);
}

/// The joiner changes its waker while the thread ends, and waits: its last waker is called, and the
/// output is present.
#[test]
fn a_joiner_waits() {
    explore(3, || {
        let (rig, handle) = Rig::new(0);
        let counts = [Arc::new(Count::default()), Arc::new(Count::default())];
        let wakers = counts
            .each_ref()
            .map(|count| Waker::from(Arc::clone(count)));
        let joiner = thread::spawn(move || {
            let mut handle = handle;
            let mut poll = |waker| {
                Pin::new(&mut handle)
                    .poll(&mut Context::from_waker(waker))
                    .is_pending()
            };
            let waits = poll(&wakers[0]) && poll(&wakers[1]);
            (handle, waits)
        });
        rig.model.start(1).join().expect("no panic");
        let (mut handle, waits) = joiner.join().expect("no panic");
        if waits {
            assert_eq!(counts[1].get(), 1, "the joiner is called");
            assert!(
                Pin::new(&mut handle)
                    .poll(&mut Context::from_waker(Waker::noop()))
                    .is_ready()
            );
        }
        drop(handle);
        rig.finish();
    });
}

/// The last wakers are dropped or used while the thread ends and its handle is dropped. The memory
/// is freed once, after every access to it.
#[test]
fn the_last_references_go() {
    explore(3, || {
        let (rig, handle) = Rig::new(1);
        let wakers = [rig.start(Signals::signal), rig.start(Signals::forget)];
        drop(handle);
        rig.model.start(2).join().expect("no panic");
        for waker in wakers {
            waker.join().expect("no panic");
        }
        rig.finish();
    });
}
