//! The memory of a million parked threads.
//!
//! The threads first wait forever without an event; in a second round, they wait on one event that
//! they share. Afterwards the event is set, and all threads must wake up.

use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Waker};

use kameo::actor::Spawn;

use super::{Peer, Workload, peer};
use crate::cli::Options;
use crate::measure::resident_bytes;
use crate::metric::Metric;
use crate::runtimes;

pub static WORKLOAD: Workload = Workload {
    name: "idle",
    about: "1 M parked threads: resident bytes of each, pending forever and waiting on an event",
    peers: PEERS,
};

const PEERS: &[Peer] = &[
    peer("floor", floor),
    peer("tokio", tokio),
    peer("smol", smol),
    peer("actor", actor),
    #[cfg(feature = "tussah")]
    peer("tussah", tussah),
];

const PENDING: &str = "bytes pending";
const ON_EVENT: &str = "bytes on an event";

/// Bound, in threads: the maximum lead of the spawner, so that the memory of a run queue is not
/// part of the result.
const AHEAD_MAX: usize = 1000;

/// The number of threads that are about to park, in both rounds.
static PARKED: AtomicUsize = AtomicUsize::new(0);
/// The number of threads that the event has woken.
static WOKEN: AtomicUsize = AtomicUsize::new(0);

fn threads(options: &Options) -> usize {
    options.idle.unwrap_or_else(|| options.scaled(1_000_000))
}

fn count(counter: &AtomicUsize) {
    counter.fetch_add(1, Ordering::Relaxed);
}

fn wait_for(counter: &AtomicUsize, count: usize) {
    while counter.load(Ordering::Relaxed) < count {
        std::thread::yield_now();
    }
    assert_eq!(counter.load(Ordering::Relaxed), count, "a thread ran twice");
}

/// Parks threads, each started by one call of `spawn`, and reports the resident memory per thread
/// in bytes.
fn park(threads: usize, unit: &str, mut spawn: impl FnMut()) -> Metric {
    let parked_before = PARKED.load(Ordering::Relaxed);
    let before = resident_bytes();
    for index in 0..threads {
        spawn();
        if index % AHEAD_MAX == 0 {
            wait_for(&PARKED, parked_before + index + 1);
        }
    }
    wait_for(&PARKED, parked_before + threads);
    Metric::lower(unit, (resident_bytes() - before) / threads as f64)
}

/// Uses boxed futures that are polled by hand, with an event of the event-listener crate.
fn floor(options: &Options) -> Vec<Metric> {
    static EVENT: event_listener::Event = event_listener::Event::new();
    let threads = threads(options);
    let mut context = Context::from_waker(Waker::noop());
    let mut futures: Vec<Pin<Box<dyn Future<Output = ()> + Send>>> = Vec::new();
    let pending = park(threads, PENDING, || {
        futures.push(Box::pin(async {
            count(&PARKED);
            pending::<()>().await;
        }));
        let last = futures.last_mut().expect("it was just pushed");
        assert!(last.as_mut().poll(&mut context).is_pending());
    });
    let mut futures: Vec<Pin<Box<dyn Future<Output = ()> + Send>>> = Vec::new();
    let on_event = park(threads, ON_EVENT, || {
        futures.push(Box::pin(async {
            event_listener::listener!(EVENT => listener);
            count(&PARKED);
            listener.await;
            count(&WOKEN);
        }));
        let last = futures.last_mut().expect("it was just pushed");
        assert!(last.as_mut().poll(&mut context).is_pending());
    });
    EVENT.notify(usize::MAX);
    for mut future in futures {
        assert!(future.as_mut().poll(&mut context).is_ready());
    }
    wait_for(&WOKEN, threads);
    vec![pending, on_event]
}

fn tokio(options: &Options) -> Vec<Metric> {
    static EVENT: tokio::sync::Notify = tokio::sync::Notify::const_new();
    let threads = threads(options);
    let runtime = runtimes::tokio_with(options, options.workers());
    let pending = park(threads, PENDING, || {
        runtime.spawn(async {
            count(&PARKED);
            pending::<()>().await;
        });
    });
    let on_event = park(threads, ON_EVENT, || {
        runtime.spawn(async {
            // `notify_waiters` wakes all existing waiters, polled or not.
            let notified = EVENT.notified();
            count(&PARKED);
            notified.await;
            count(&WOKEN);
        });
    });
    EVENT.notify_waiters();
    wait_for(&WOKEN, threads);
    vec![pending, on_event]
}

fn smol(options: &Options) -> Vec<Metric> {
    static EVENT: event_listener::Event = event_listener::Event::new();
    let threads = threads(options);
    runtimes::smol_with(options, options.workers(), runtimes::Reactor::Off);
    let pending = park(threads, PENDING, || {
        let task = runtimes::SMOL.spawn(async {
            count(&PARKED);
            pending::<()>().await;
        });
        task.detach();
    });
    let on_event = park(threads, ON_EVENT, || {
        let task = runtimes::SMOL.spawn(async {
            event_listener::listener!(EVENT => listener);
            count(&PARKED);
            listener.await;
            count(&WOKEN);
        });
        task.detach();
    });
    EVENT.notify(usize::MAX);
    wait_for(&WOKEN, threads);
    vec![pending, on_event]
}

/// An actor that waits for its first message.
struct Parked;

impl kameo::Actor for Parked {
    type Args = ();
    type Error = std::convert::Infallible;

    async fn on_start(
        (): (),
        _: kameo::actor::ActorRef<Self>,
    ) -> Result<Self, std::convert::Infallible> {
        count(&PARKED);
        Ok(Parked)
    }
}

struct Wake;

impl kameo::message::Message<Wake> for Parked {
    type Reply = ();

    async fn handle(&mut self, Wake: Wake, _: &mut kameo::message::Context<Self, ()>) {
        count(&WOKEN);
    }
}

/// Uses a fifth of the threads, since an actor takes kilobytes. It waits on its mailbox, so there
/// is only one measurement.
fn actor(options: &Options) -> Vec<Metric> {
    let threads = threads(options).div_ceil(5);
    let runtime = runtimes::tokio_with(options, options.workers());
    let _context = runtime.enter();
    let mut actors = Vec::new();
    let on_event = park(threads, ON_EVENT, || {
        actors.push(Parked::spawn_with_mailbox((), kameo::mailbox::unbounded()));
    });
    for actor in &actors {
        actor
            .tell(Wake)
            .try_send()
            .expect("an unbounded mailbox takes everything");
    }
    wait_for(&WOKEN, threads);
    vec![on_event]
}

#[cfg(feature = "tussah")]
fn tussah(options: &Options) -> Vec<Metric> {
    let event: &'static _ = Box::leak(Box::new(tussah::sync::Notify::new()));
    let threads = threads(options);
    let runtime = runtimes::tussah_with(options, options.workers());
    let pending = park(threads, PENDING, || {
        drop(runtime.spawn(async {
            count(&PARKED);
            pending::<()>().await;
        }));
    });
    let on_event = park(threads, ON_EVENT, || {
        drop(runtime.spawn(async move {
            let notified = event.notified();
            count(&PARKED);
            notified.await;
            count(&WOKEN);
        }));
    });
    event.notify_waiters();
    wait_for(&WOKEN, threads);
    vec![pending, on_event]
}
