//! Timers: the CPU time to set and cancel one while a million others are pending, and the delay of
//! timers that fire.
//!
//! Nearly all timers of a network service are timeouts that never fire, so setting and cancelling
//! matter most. In the first round, timers are cancelled by the worker that set them, and in the
//! second round by another worker.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Barrier, mpsc};
use std::task::Poll;
use std::time::{Duration, Instant};

use fastrand::Rng;

use super::{Peer, Workload, peer};
use crate::cli::Options;
use crate::measure::{Latch, Samples, cpu_time};
use crate::metric::Metric;
use crate::runtimes;

pub static WORKLOAD: Workload = Workload {
    name: "timers",
    about: "CPU ns for a set and a cancel, here and from another worker, 1 M pending; p99 lateness of 10,000",
    peers: PEERS,
};

const PEERS: &[Peer] = &[
    peer("floor", floor),
    peer("tokio", tokio),
    peer("smol", smol),
    #[cfg(feature = "tussah")]
    peer("tussah", tussah),
];

const HERE: &str = "CPU ns here";
const ELSEWHERE: &str = "CPU ns other worker";

/// The number of timers in a batch that is handed to the other worker; it is so large that handing
/// it over costs almost nothing.
const BATCH: usize = 10_000;

/// Returns the number of pending timers and the number of timers to set and cancel.
fn size(options: &Options) -> (usize, usize) {
    let pending = options.idle.unwrap_or_else(|| options.scaled(1_000_000));
    (pending, options.scaled(1_000_000))
}

/// Returns the duration of the next timer that will be cancelled.
fn timeout(random: &mut Rng) -> Duration {
    Duration::from_nanos(random.u64(120_000_000_000..3_600_000_000_000))
}

fn cpu_each(unit: &str, count: usize, before: Duration) -> Metric {
    Metric::nanos_each(unit, count, cpu_time() - before)
}

/// Sets timers on one worker and cancels them on another; `run` is called with one job for each of
/// the two.
///
/// The jobs block their workers while they wait for each other: such a wait costs no CPU time, and
/// keeps the jobs from running on the same worker.
fn elsewhere<T: Send + 'static>(
    options: &Options,
    set: impl Fn(Duration) -> T + Send + 'static,
    cancel: impl Fn(T) + Send + 'static,
    run: impl Fn(Box<dyn FnOnce() + Send>),
) -> Option<Metric> {
    if options.workers() < 2 {
        return None;
    }
    let batches = size(options).1.div_ceil(BATCH);
    let latch = Latch::leak(2);
    let met = Arc::new(Barrier::new(2));
    let (hand_over, taken) = mpsc::sync_channel::<Vec<T>>(0);
    let also_met = Arc::clone(&met);
    let before = cpu_time();
    run(Box::new(move || {
        also_met.wait();
        let cancelled: usize = taken
            .into_iter()
            .map(|batch| batch.into_iter().map(&cancel).count())
            .sum();
        assert_eq!(cancelled, batches * BATCH);
        latch.count_down();
    }));
    run(Box::new(move || {
        met.wait();
        let mut random = Rng::with_seed(3);
        for _ in 0..batches {
            let batch = (0..BATCH).map(|_| set(timeout(&mut random))).collect();
            hand_over.send(batch).expect("the other worker takes all");
        }
        latch.count_down();
    }));
    latch.wait();
    Some(cpu_each(ELSEWHERE, batches * BATCH, before))
}

/// The threads with which the delay of timers is measured. Their deadlines are random times within
/// a second.
struct Late {
    deadlines: Vec<Instant>,
    samples: &'static Samples,
    latch: &'static Latch,
}

impl Late {
    fn new(options: &Options) -> Late {
        let count = options.scaled(10_000);
        let start = Instant::now() + Duration::from_millis(200);
        let mut random = Rng::with_seed(4);
        let deadline = |_| start + Duration::from_nanos(random.u64(..1_000_000_000));
        let deadlines = (0..count).map(deadline).collect();
        Late {
            deadlines,
            samples: Samples::leak(count),
            latch: Latch::leak(count),
        }
    }

    /// Calls `spawn` for each deadline to start a thread, which calls its function argument at that
    /// time.
    fn report(self, mut spawn: impl FnMut(Instant, Box<dyn FnOnce() + Send>)) -> Metric {
        let Late {
            deadlines,
            samples,
            latch,
        } = self;
        for deadline in deadlines {
            let fired = move || {
                samples.record(deadline.elapsed());
                latch.count_down();
            };
            spawn(deadline, Box::new(fired));
        }
        latch.wait();
        Metric::lower("µs p99 lateness", samples.quantile_ns(990) / 1e3)
    }
}

/// Uses an ordered map in one OS thread, which sleeps until the earliest deadline.
fn floor(options: &Options) -> Vec<Metric> {
    use std::collections::BTreeMap;
    let (pending, count) = size(options);
    let mut random = Rng::with_seed(1);
    let mut timers: BTreeMap<(Instant, usize), Box<dyn FnOnce() + Send>> = BTreeMap::new();
    for id in 0..pending {
        timers.insert((Instant::now() + timeout(&mut random), id), Box::new(|| ()));
    }
    let before = cpu_time();
    for id in pending..pending + count {
        let key = (Instant::now() + timeout(&mut random), id);
        assert!(timers.insert(key, Box::new(|| ())).is_none());
        assert!(timers.remove(std::hint::black_box(&key)).is_some());
    }
    let here = cpu_each(HERE, count, before);
    let mut late = BTreeMap::new();
    let deadlines = Late::new(options);
    let run = |late: &mut BTreeMap<(Instant, usize), Box<dyn FnOnce() + Send>>| {
        while let Some(((deadline, _), fired)) = late.pop_first() {
            std::thread::sleep(deadline.saturating_duration_since(Instant::now()));
            fired();
        }
    };
    let expected = deadlines.deadlines.len();
    let lateness = deadlines.report(|deadline, fired| {
        late.insert((deadline, late.len()), fired);
        if late.len() == expected {
            run(&mut late);
        }
    });
    vec![here, lateness]
}

/// Polls `timer` once, like a thread that also waits for something else.
async fn start(timer: Pin<&mut impl Future>) {
    let mut timer = timer;
    poll_fn(|context| {
        assert!(
            timer.as_mut().poll(context).is_pending(),
            "timeouts lie far ahead"
        );
        Poll::Ready(())
    })
    .await;
}

/// Starts `timer` without a thread that waits for it.
fn set_here<T: Future>(timer: T) -> Pin<Box<T>> {
    let mut timer = Box::pin(timer);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(
        timer.as_mut().poll(&mut context).is_pending(),
        "timeouts lie far ahead"
    );
    timer
}

fn tokio(options: &Options) -> Vec<Metric> {
    use tokio::time::{Sleep, sleep, sleep_until};
    let (pending, count) = size(options);
    let runtime = runtimes::tokio_with(options, options.workers());
    // The task has no budget, because a task that is out of budget does not start its timer when it
    // is polled.
    let task = tokio::task::unconstrained(async move {
        let mut random = Rng::with_seed(1);
        let mut timers = Vec::with_capacity(pending);
        for _ in 0..pending {
            let mut timer = Box::pin(sleep(timeout(&mut random)));
            start(timer.as_mut()).await;
            timers.push(timer);
        }
        let before = cpu_time();
        for _ in 0..count {
            start(pin!(sleep(timeout(&mut random)))).await;
        }
        (cpu_each(HERE, count, before), timers)
    });
    let (here, _timers) = runtime
        .block_on(runtime.spawn(task))
        .expect("the task does not panic");
    let set = |timeout| -> Pin<Box<Sleep>> { set_here(sleep(timeout)) };
    let elsewhere = elsewhere(options, set, drop, |job| {
        runtime.spawn(tokio::task::unconstrained(async { job() }));
    });
    let lateness = Late::new(options).report(|deadline, fired| {
        runtime.spawn(async move {
            sleep_until(deadline.into()).await;
            fired();
        });
    });
    [Some(here), elsewhere, Some(lateness)]
        .into_iter()
        .flatten()
        .collect()
}

fn smol(options: &Options) -> Vec<Metric> {
    use async_io::Timer;
    let (pending, count) = size(options);
    runtimes::smol_with(options, options.workers(), runtimes::Reactor::On);
    let task = runtimes::SMOL.spawn(async move {
        let mut random = Rng::with_seed(1);
        let mut timers = Vec::with_capacity(pending);
        for _ in 0..pending {
            let mut timer = Timer::after(timeout(&mut random));
            start(Pin::new(&mut timer)).await;
            timers.push(timer);
        }
        let before = cpu_time();
        for _ in 0..count {
            start(pin!(Timer::after(timeout(&mut random)))).await;
        }
        (cpu_each(HERE, count, before), timers)
    });
    let (here, _timers) = futures_lite::future::block_on(task);
    let set = |timeout| {
        let mut timer = Timer::after(timeout);
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(Pin::new(&mut timer).poll(&mut context).is_pending());
        timer
    };
    let elsewhere = elsewhere(options, set, drop, |job| {
        runtimes::SMOL.spawn(async { job() }).detach();
    });
    let lateness = Late::new(options).report(|deadline, fired| {
        let task = runtimes::SMOL.spawn(async move {
            Timer::at(deadline).await;
            fired();
        });
        task.detach();
    });
    [Some(here), elsewhere, Some(lateness)]
        .into_iter()
        .flatten()
        .collect()
}

#[cfg(feature = "tussah")]
fn tussah(options: &Options) -> Vec<Metric> {
    use tussah::time::{Sleep, sleep, sleep_until};
    let (pending, count) = size(options);
    let runtime = runtimes::tussah_with(options, options.workers());
    let thread = runtime.spawn(async move {
        let mut random = Rng::with_seed(1);
        let mut timers = Vec::with_capacity(pending);
        for _ in 0..pending {
            let mut timer = Box::pin(sleep(timeout(&mut random)));
            start(timer.as_mut()).await;
            timers.push(timer);
        }
        let before = cpu_time();
        for _ in 0..count {
            start(pin!(sleep(timeout(&mut random)))).await;
        }
        (cpu_each(HERE, count, before), timers)
    });
    let (here, _timers) = runtime.block_on(thread).expect("the thread does not panic");
    let set = |timeout| -> Pin<Box<Sleep>> { set_here(sleep(timeout)) };
    let elsewhere = elsewhere(options, set, drop, |job| {
        drop(runtime.spawn(async { job() }));
    });
    let lateness = Late::new(options).report(|deadline, fired| {
        drop(runtime.spawn(async move {
            sleep_until(deadline).await;
            fired();
        }));
    });
    [Some(here), elsewhere, Some(lateness)]
        .into_iter()
        .flatten()
        .collect()
}
