//! Models of requests for several colors: their tickets, their order, and their memory.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::{Colored, with_all};
use crate::loom::thread;
use crate::worker::model::{Canary, Count, Model, Probe, Report, explore};

/// The posters and requesters of one model.
const CALLERS: usize = 3;

/// A value that detects two events in it at the same time, and events of one caller that change
/// places.
struct Log {
    probe: Arc<Probe>,
    /// The number of events of each caller that have run here.
    seen: [usize; CALLERS],
    ran: Count,
    _dropped: Canary,
}

impl Log {
    /// The event `number` of one caller.
    fn event(&mut self, caller: usize, number: usize) {
        let _report = Report;
        self.probe.touch();
        assert_eq!(
            self.seen[caller], number,
            "the events of a caller changed places, or one ran twice"
        );
        self.seen[caller] += 1;
        self.ran.add();
    }
}

struct Rig {
    model: Arc<Model>,
    values: [Colored<Log>; 2],
    ran: Count,
    dropped: Count,
    /// Calls of the wakers of requests.
    woken: Arc<Count>,
}

type Request<R> = Pin<Box<dyn Future<Output = R>>>;

impl Rig {
    fn new(workers: usize) -> Self {
        let model = Model::new(workers);
        let (ran, dropped) = (Count::default(), Count::default());
        let values = [(); 2].map(|()| {
            let probe = Arc::new(Probe::new());
            let log = Log {
                probe: probe.clone(),
                seen: [0; CALLERS],
                ran: ran.clone(),
                _dropped: dropped.canary(&probe),
            };
            Colored::new_in(&model.handle(), log)
        });
        super::ticket::prepare();
        Self {
            model,
            values,
            ran,
            dropped,
            woken: Arc::default(),
        }
    }

    /// Posts an event to both values, so that requests have to queue until a worker has run them.
    fn make_busy(&self, caller: usize) {
        for value in &self.values {
            post(value, caller, 0);
        }
    }

    /// A request for both values, the one with this index first.
    fn both<R: Send + 'static>(
        &self,
        first: usize,
        f: impl FnOnce(&mut Log, &mut Log) -> R + Send + 'static,
    ) -> Request<R> {
        let (one, other) = (self.values[first].clone(), self.values[1 - first].clone());
        Box::pin(async move { with_all((&one, &other), f).await })
    }

    fn waker(&self) -> Waker {
        self.woken.clone().into()
    }

    /// Runs the remaining work. Checks the number of events of the values, which are dropped with
    /// the runtime.
    fn finish(self, events: usize) {
        self.model.serve_all();
        assert_eq!(self.dropped.get(), 0, "destroyed while there was a handle");
        drop(self.values);
        self.model.finish();
        assert_eq!((self.ran.get(), self.dropped.get()), (events, 2));
        let woken = Arc::into_inner(self.woken);
        assert!(woken.is_some(), "a waker was not dropped");
    }
}

fn post(value: &Colored<Log>, caller: usize, number: usize) {
    value
        .post(move |log| log.event(caller, number))
        .expect("the runtime is open");
}

fn poll<R>(request: &mut Request<R>, waker: &Waker) -> Poll<R> {
    request.as_mut().poll(&mut Context::from_waker(waker))
}

/// A request that was polled once, and the result of that poll.
struct Polled<R> {
    request: Request<R>,
    ready: bool,
}

fn start<R: 'static>(mut request: Request<R>, waker: Waker) -> thread::JoinHandle<Polled<R>> {
    thread::spawn(move || {
        let ready = poll(&mut request, &waker).is_ready();
        Polled { request, ready }
    })
}

/// Two requests name the same values in opposite orders: both run, however they interleave.
#[test]
fn two_requests_in_opposite_order() {
    explore(2, || {
        let rig = Rig::new(1);
        rig.make_busy(2);
        let requests = [0, 1].map(|caller| {
            let request = rig.both(caller, move |one, other| {
                one.event(caller, 0);
                other.event(caller, 0);
            });
            start(request, rig.waker())
        });
        let worker = rig.model.start(1);
        let requests = requests.map(|request| request.join().expect("no panic"));
        worker.join().expect("no panic");
        rig.model.serve_all();
        let waiting = requests.iter().filter(|request| !request.ready).count();
        assert_eq!(rig.woken.get(), waiting, "who waits is woken once");
        for mut request in requests {
            let ready = request.ready || poll(&mut request.request, Waker::noop()).is_ready();
            assert!(ready, "a request does not come to an end");
        }
        rig.finish(6);
    });
}

/// Two workers each bring one ticket, while the future checks for the result. The last ticket runs
/// the closure, which sees everything done earlier under both colors, and the future sees
/// everything that the closure did.
#[test]
fn the_tickets_arrive_on_two_workers() {
    explore(3, || {
        let rig = Rig::new(2);
        rig.make_busy(0);
        let result = Arc::new(Probe::new());
        let (touched, seen) = (result.clone(), result.clone());
        let mut request = rig.both(0, move |one, other| {
            one.event(1, 0);
            other.event(1, 0);
            touched.touch();
        });
        let pending = poll(&mut request, &rig.waker()).is_pending();
        assert!(pending, "events were queued before");
        let waker = rig.waker();
        let future = thread::spawn(move || {
            let ready = poll(&mut request, &waker).is_ready();
            if ready {
                seen.touch();
            }
            Polled { request, ready }
        });
        let workers = [0, 1].map(|place| rig.model.start_at(place, 1));
        for worker in workers {
            worker.join().expect("no panic");
        }
        let mut polled = future.join().expect("no panic");
        rig.model.serve_all();
        let ready = polled.ready || poll(&mut polled.request, Waker::noop()).is_ready();
        assert!(ready, "the request does not come to an end");
        drop(polled);
        rig.finish(4);
    });
}

/// A request keeps its place in each queue: after its caller's earlier posts, and before that
/// caller's later posts.
#[test]
fn a_request_between_two_posts() {
    explore(2, || {
        let rig = Rig::new(1);
        let mut request = rig.both(0, |one, other| {
            one.event(0, 1);
            other.event(0, 0);
        });
        let (value, waker) = (rig.values[0].clone(), rig.waker());
        let caller = thread::spawn(move || {
            post(&value, 0, 0);
            let ready = poll(&mut request, &waker).is_ready();
            post(&value, 0, 2);
            Polled { request, ready }
        });
        let value = rig.values[0].clone();
        let poster = thread::spawn(move || {
            post(&value, 1, 0);
        });
        let worker = rig.model.start(1);
        let mut polled = caller.join().expect("no panic");
        poster.join().expect("no panic");
        worker.join().expect("no panic");
        rig.model.serve_all();
        let ready = polled.ready || poll(&mut polled.request, Waker::noop()).is_ready();
        assert!(ready, "the request does not come to an end");
        drop(polled);
        rig.finish(5);
    });
}

/// A request is cancelled while its tickets arrive on two workers: closure and result are dropped
/// once, the request is freed once, and the colors continue.
#[test]
fn a_request_for_two_colors_is_cancelled() {
    explore(2, || {
        let rig = Rig::new(2);
        let (closures, results, made) = (Count::default(), Count::default(), Count::default());
        let probe = Arc::new(Probe::new());
        let (closure, result, count) = (closures.canary(&probe), results.clone(), made.clone());
        rig.make_busy(0);
        let mut request = rig.both(0, move |one, other| {
            one.probe.touch();
            other.probe.touch();
            drop(closure);
            count.add();
            result.canary(&Arc::new(Probe::new()))
        });
        let pending = poll(&mut request, &rig.waker()).is_pending();
        assert!(pending, "events were queued before");
        for value in &rig.values {
            post(value, 0, 1);
        }
        let future = thread::spawn(move || drop(request));
        let workers = [0, 1].map(|place| rig.model.start_at(place, 1));
        for worker in workers {
            worker.join().expect("no panic");
        }
        future.join().expect("no panic");
        rig.finish(4);
        assert_eq!(closures.get(), 1, "the closure goes once");
        assert_eq!(
            results.get(),
            made.get(),
            "the result goes once, if there is one"
        );
    });
}

/// One of the colors has a reader, which may come before the request, or find its ticket and wait
/// behind it.
#[test]
fn a_reader_in_one_of_the_colors() {
    explore(3, || {
        let rig = Rig::new(1);
        let request = rig.both(0, |one, other| {
            one.event(0, 0);
            other.event(0, 0);
        });
        let request = start(request, rig.waker());
        let value = rig.values[1].clone();
        let reader = thread::spawn(move || {
            for _ in 0..2 {
                let mut read = std::pin::pin!(value.read(|log: &Log| log.probe.look()));
                let _ = read.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            }
        });
        let worker = rig.model.start(1);
        let mut polled = request.join().expect("no panic");
        reader.join().expect("no panic");
        worker.join().expect("no panic");
        rig.model.serve_all();
        let ready = polled.ready || poll(&mut polled.request, Waker::noop()).is_ready();
        assert!(ready, "the request does not come to an end");
        drop(polled);
        rig.finish(2);
    });
}
