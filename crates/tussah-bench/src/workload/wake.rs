//! The time that an idle runtime takes to wake up for one event.
//!
//! In the first round, the event comes from an OS thread outside the runtime; in the second, from a
//! thread on a worker that goes back to sleep.

use std::time::{Duration, Instant};

use kameo::actor::Spawn;

use super::{Peer, Workload, peer};
use crate::cli::Options;
use crate::measure::Samples;
use crate::metric::Metric;
use crate::runtimes;

pub static WORKLOAD: Workload = Workload {
    name: "wake",
    about: "an idle runtime gets one event, from an OS thread and from a worker: p50 and p99.9",
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

/// The pause between two events from outside, long enough for every worker to fall asleep.
const PAUSE_OUTSIDE: Duration = Duration::from_micros(200);
/// The pause between two events from a worker, whose timers have this resolution.
const PAUSE_WORKER: Duration = Duration::from_millis(1);

/// Returns the numbers of events from outside and from a worker.
fn events(options: &Options) -> (usize, usize) {
    (options.scaled(3000), options.scaled(1500))
}

/// Posts events from this OS thread, with pauses; `post` posts an event that records its age.
fn from_outside(events: usize, mut post: impl FnMut(Instant, &'static Samples)) -> Vec<Metric> {
    let samples = Samples::leak(events);
    for event in 1..=events {
        std::thread::sleep(PAUSE_OUTSIDE);
        post(Instant::now(), samples);
        while samples.len() < event {
            std::thread::sleep(PAUSE_OUTSIDE / 4);
        }
    }
    report(
        events,
        samples,
        ["ns p50 from outside", "ns p99.9 from outside"],
    )
}

fn report(events: usize, samples: &Samples, units: [&str; 2]) -> Vec<Metric> {
    assert_eq!(samples.len(), events, "an event was lost or ran twice");
    let [p50, p999] = units;
    vec![
        Metric::lower(p50, samples.quantile_ns(500)),
        Metric::lower(p999, samples.quantile_ns(999)),
    ]
}

const FROM_WORKER: [&str; 2] = ["ns p50 from a worker", "ns p99.9 from a worker"];

/// Uses an OS thread that waits on a channel.
fn floor(options: &Options) -> Vec<Metric> {
    let (outside, _) = events(options);
    let (sender, receiver) = std::sync::mpsc::channel::<(Instant, &Samples)>();
    std::thread::spawn(move || {
        for (posted, samples) in receiver {
            samples.record(posted.elapsed());
        }
    });
    from_outside(outside, |posted, samples| {
        sender
            .send((posted, samples))
            .expect("the OS thread waits for us");
    })
}

fn tokio(options: &Options) -> Vec<Metric> {
    let (outside, worker) = events(options);
    let runtime = runtimes::tokio_with(options, options.workers());
    let mut metrics = from_outside(outside, |posted, samples| {
        runtime.spawn(async move { samples.record(posted.elapsed()) });
    });
    let samples = Samples::leak(worker);
    let task = runtime.spawn(async move {
        for _ in 0..worker {
            tokio::time::sleep(PAUSE_WORKER).await;
            let posted = Instant::now();
            tokio::spawn(async move { samples.record(posted.elapsed()) });
        }
        tokio::time::sleep(100 * PAUSE_WORKER).await;
    });
    runtime.block_on(task).expect("the task does not panic");
    metrics.extend(report(worker, samples, FROM_WORKER));
    metrics
}

fn smol(options: &Options) -> Vec<Metric> {
    let (outside, worker) = events(options);
    runtimes::smol_with(options, options.workers(), runtimes::Reactor::On);
    let mut metrics = from_outside(outside, |posted, samples| {
        runtimes::SMOL
            .spawn(async move { samples.record(posted.elapsed()) })
            .detach();
    });
    let samples = Samples::leak(worker);
    let task = runtimes::SMOL.spawn(async move {
        for _ in 0..worker {
            async_io::Timer::after(PAUSE_WORKER).await;
            let posted = Instant::now();
            runtimes::SMOL
                .spawn(async move { samples.record(posted.elapsed()) })
                .detach();
        }
        async_io::Timer::after(100 * PAUSE_WORKER).await;
    });
    futures_lite::future::block_on(task);
    metrics.extend(report(worker, samples, FROM_WORKER));
    metrics
}

/// An actor that receives a message from an OS thread, or from a task on a worker.
#[derive(kameo::Actor)]
struct Recorder;

struct Posted(Instant, &'static Samples);

impl kameo::message::Message<Posted> for Recorder {
    type Reply = ();

    async fn handle(
        &mut self,
        Posted(posted, samples): Posted,
        _: &mut kameo::message::Context<Self, ()>,
    ) {
        samples.record(posted.elapsed());
    }
}

fn actor(options: &Options) -> Vec<Metric> {
    let (outside, worker) = events(options);
    let runtime = runtimes::tokio_with(options, options.workers());
    let _context = runtime.enter();
    let actor = Recorder::spawn_with_mailbox(Recorder, kameo::mailbox::unbounded());
    let mut metrics = from_outside(outside, |posted, samples| {
        actor
            .tell(Posted(posted, samples))
            .try_send()
            .expect("unbounded");
    });
    let samples = Samples::leak(worker);
    let task = runtime.spawn(async move {
        for _ in 0..worker {
            tokio::time::sleep(PAUSE_WORKER).await;
            actor
                .tell(Posted(Instant::now(), samples))
                .try_send()
                .expect("unbounded");
        }
        tokio::time::sleep(100 * PAUSE_WORKER).await;
    });
    runtime.block_on(task).expect("the task does not panic");
    metrics.extend(report(worker, samples, FROM_WORKER));
    metrics
}

#[cfg(feature = "tussah")]
fn tussah(options: &Options) -> Vec<Metric> {
    let (outside, worker) = events(options);
    let runtime = runtimes::tussah_with(options, options.workers());
    let mut metrics = from_outside(outside, |posted, samples| {
        let posted = runtime.post(move || samples.record(posted.elapsed()));
        assert!(
            posted.is_ok(),
            "the color has no limit and the runtime runs"
        );
    });
    let samples = Samples::leak(worker);
    let thread = runtime.spawn(async move {
        for _ in 0..worker {
            tussah::time::sleep(PAUSE_WORKER).await;
            let posted = Instant::now();
            let posted = tussah::post(move || samples.record(posted.elapsed()));
            assert!(
                posted.is_ok(),
                "the color has no limit and the runtime runs"
            );
        }
        tussah::time::sleep(100 * PAUSE_WORKER).await;
    });
    runtime.block_on(thread).expect("the thread does not panic");
    metrics.extend(report(worker, samples, FROM_WORKER));
    metrics
}
