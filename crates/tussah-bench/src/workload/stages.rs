//! A pipeline: a source sends events through stages, each with a bounded queue in front of it.
//!
//! A stage takes the available events (at most one batch), touches each event and sends it on; the
//! last stage counts. The unit is a hop: into a queue, out of it, and through a stage. The source
//! and each stage are tasks, or OS threads for peers whose channels need them. The number and the
//! checksum of the events are checked.

mod crossbeam;
#[cfg(feature = "tussah")]
mod graph;
#[cfg(feature = "tussah")]
mod tussah;

use std::future::Future;
use std::hint::black_box;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::{Peer, Workload, peer};
use crate::cli::Options;
use crate::measure::{WORK_80_NS, work};
use crate::metric::Metric;
use crate::runtimes;

pub static WORKLOAD: Workload = Workload {
    name: "stages",
    about: "events of 64 bytes through --stages queues and stages, in batches of up to --batch: ns a hop, events/s",
    peers: PEERS,
};

const PEERS: &[Peer] = &[
    peer("floor", floor),
    peer("tokio", tokio),
    peer("tokio-permits", tokio_permits),
    peer("flume", flume),
    peer("async-channel", async_channel),
    peer("crossbeam", crossbeam::run),
    #[cfg(feature = "tussah")]
    peer("tussah", tussah::sends),
    #[cfg(feature = "tussah")]
    peer("tussah-forward", tussah::forwards),
    #[cfg(feature = "tussah")]
    peer("tussah-bare", tussah::bare),
    #[cfg(feature = "tussah")]
    peer("tussah-graph", graph::queues),
    #[cfg(feature = "tussah")]
    peer("tussah-graph-call", graph::calls),
];

/// The number of hops in a run, for any number of stages, so that all variants take about as long.
const HOPS: usize = 4_000_000;

/// Bound, in events: the capacity of the queue before a stage, or two batches if that is more.
const QUEUE: usize = 1024;

type Event = [u64; 8];

/// The size of a pipeline and the number of events through it.
#[derive(Clone, Copy, Debug)]
struct Size {
    stages: usize,
    /// The largest number of events in a batch.
    batch: usize,
    events: usize,
    /// The number of steps of work that each stage does on each event.
    steps: u32,
}

impl Size {
    fn of(options: &Options) -> Size {
        let stages = usize::from(options.stages.unwrap_or(4));
        let work_ns = options.work_ns.unwrap_or(0);
        Size {
            stages,
            batch: options.batch.unwrap_or(100) as usize,
            events: options.scaled(HOPS).div_ceil(stages),
            steps: work_ns.saturating_mul(WORK_80_NS) / 80,
        }
    }

    /// Returns the capacity of a queue, in events.
    fn capacity(self) -> usize {
        QUEUE.max(2 * self.batch)
    }

    /// Does a stage's work on an event.
    #[inline]
    fn touch(self, event: &mut Event) {
        event[0] += 1;
        event[7] ^= event[0];
        if self.steps > 0 {
            black_box(work(event[0], self.steps));
        }
    }

    /// Returns the count that the last stage has to get.
    fn expected(self) -> Count {
        let touches = Size { steps: 0, ..self };
        let mut count = Count::default();
        for mut event in (0..self.events).map(event) {
            for _ in 0..self.stages {
                touches.touch(&mut event);
            }
            count.add(&event);
        }
        count
    }

    /// Checks and reports a run.
    fn report(self, count: Count, elapsed: Duration) -> Vec<Metric> {
        assert_eq!(count, self.expected(), "an event was lost or doubled");
        let plural = if self.stages == 1 { "" } else { "s" };
        let form = format!("{} stage{plural}, batches of {}", self.stages, self.batch);
        let hop = format!("ns a hop, {form}");
        vec![
            Metric::nanos_each(&hop, self.events * self.stages, elapsed),
            Metric {
                unit: format!("M events/s, {form}"),
                ..Metric::rate(self.events, elapsed)
            },
        ]
    }
}

/// Returns the event with this number, as the source makes it.
fn event(number: usize) -> Event {
    [number as u64; 8]
}

/// The count of the last stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    events: usize,
    checksum: u64,
}

impl Count {
    fn add(&mut self, event: &Event) {
        self.events += 1;
        let term = event[0].wrapping_mul(event[7] | 1);
        self.checksum = self.checksum.wrapping_add(term);
    }
}

/// Divides the events evenly by hand, and passes them from array to array in batches.
fn floor(options: &Options) -> Vec<Metric> {
    let (size, workers) = (Size::of(options), options.workers());
    let total = Mutex::new(Count::default());
    let elapsed = runtimes::os_threads(options, workers, |index| {
        let mut count = Count::default();
        let mut events = (index..size.events).step_by(workers).map(event);
        let (mut from, mut to) = (Vec::new(), Vec::new());
        loop {
            from.extend(events.by_ref().take(size.batch));
            if from.is_empty() {
                break;
            }
            for _ in 1..size.stages {
                for mut event in from.drain(..) {
                    size.touch(&mut event);
                    to.push(event);
                }
                std::mem::swap(&mut from, &mut to);
            }
            for mut event in from.drain(..) {
                size.touch(&mut event);
                count.add(&event);
            }
        }
        let mut total = total.lock().expect("no OS thread panics");
        total.events += count.events;
        total.checksum = total.checksum.wrapping_add(count.checksum);
    });
    let count = total.into_inner().expect("no OS thread panics");
    size.report(count, elapsed)
}

type TokioSender = tokio::sync::mpsc::Sender<Event>;
type TokioReceiver = tokio::sync::mpsc::Receiver<Event>;

/// Uses stages that receive a whole batch but send one event at a time.
fn tokio(options: &Options) -> Vec<Metric> {
    async fn source(size: Size, to: TokioSender) {
        for number in 0..size.events {
            to.send(event(number)).await.expect("a stage waits for it");
        }
    }

    async fn stage(size: Size, mut from: TokioReceiver, to: TokioSender) {
        let mut batch = Vec::with_capacity(size.batch);
        while from.recv_many(&mut batch, size.batch).await > 0 {
            for mut event in batch.drain(..) {
                size.touch(&mut event);
                to.send(event).await.expect("a stage waits for it");
            }
        }
    }

    on_tokio(options, source, stage)
}

/// Uses stages that receive a whole batch and reserve room for it in the next queue with one call.
fn tokio_permits(options: &Options) -> Vec<Metric> {
    async fn source(size: Size, to: TokioSender) {
        let mut events = (0..size.events).map(event);
        while events.len() > 0 {
            let places = to.reserve_many(size.batch.min(events.len())).await;
            for place in places.expect("a stage waits for it") {
                place.send(events.next().expect("there is an event for each place"));
            }
        }
    }

    async fn stage(size: Size, mut from: TokioReceiver, to: TokioSender) {
        let mut batch = Vec::with_capacity(size.batch);
        while from.recv_many(&mut batch, size.batch).await > 0 {
            let places = to.reserve_many(batch.len()).await;
            let places = places.expect("a stage waits for it");
            for (mut event, place) in batch.drain(..).zip(places) {
                size.touch(&mut event);
                place.send(event);
            }
        }
    }

    on_tokio(options, source, stage)
}

/// Runs a task for the source and for each stage; the last stage is the same in both forms.
fn on_tokio<A, B>(
    options: &Options,
    source: fn(Size, TokioSender) -> A,
    stage: fn(Size, TokioReceiver, TokioSender) -> B,
) -> Vec<Metric>
where
    A: Future<Output = ()> + Send + 'static,
    B: Future<Output = ()> + Send + 'static,
{
    async fn last(size: Size, mut from: TokioReceiver) -> Count {
        let mut count = Count::default();
        let mut batch = Vec::with_capacity(size.batch);
        while from.recv_many(&mut batch, size.batch).await > 0 {
            for mut event in batch.drain(..) {
                size.touch(&mut event);
                count.add(&event);
            }
        }
        count
    }

    let size = Size::of(options);
    let (count, elapsed) = runtimes::tokio(options, async move {
        let start = Instant::now();
        let (to, mut from) = tokio::sync::mpsc::channel(size.capacity());
        tokio::spawn(source(size, to));
        for _ in 1..size.stages {
            let (to, next) = tokio::sync::mpsc::channel(size.capacity());
            tokio::spawn(stage(size, std::mem::replace(&mut from, next), to));
        }
        let last = tokio::spawn(last(size, from));
        (last.await.expect("no stage panics"), start.elapsed())
    });
    size.report(count, elapsed)
}

/// Uses tasks of tokio; a stage waits for one event and then takes the others that are available.
fn flume(options: &Options) -> Vec<Metric> {
    use flume::{Receiver, Sender};

    async fn source(size: Size, to: Sender<Event>) {
        for number in 0..size.events {
            let sent = to.send_async(event(number)).await;
            sent.expect("a stage waits for it");
        }
    }

    async fn stage(size: Size, from: Receiver<Event>, to: Sender<Event>) {
        while let Ok(event) = from.recv_async().await {
            let more = from.try_iter().take(size.batch - 1);
            for mut event in std::iter::once(event).chain(more) {
                size.touch(&mut event);
                to.send_async(event).await.expect("a stage waits for it");
            }
        }
    }

    async fn last(size: Size, from: Receiver<Event>) -> Count {
        let mut count = Count::default();
        while let Ok(event) = from.recv_async().await {
            let more = from.try_iter().take(size.batch - 1);
            for mut event in std::iter::once(event).chain(more) {
                size.touch(&mut event);
                count.add(&event);
            }
        }
        count
    }

    let size = Size::of(options);
    let (count, elapsed) = runtimes::tokio(options, async move {
        let start = Instant::now();
        let (to, mut from) = flume::bounded(size.capacity());
        tokio::spawn(source(size, to));
        for _ in 1..size.stages {
            let (to, next) = flume::bounded(size.capacity());
            tokio::spawn(stage(size, std::mem::replace(&mut from, next), to));
        }
        let last = tokio::spawn(last(size, from));
        (last.await.expect("no stage panics"), start.elapsed())
    });
    size.report(count, elapsed)
}

/// Uses tasks of smol; a stage waits for one event and then takes the others that are available.
fn async_channel(options: &Options) -> Vec<Metric> {
    use async_channel::{Receiver, Sender};

    async fn source(size: Size, to: Sender<Event>) {
        for number in 0..size.events {
            to.send(event(number)).await.expect("a stage waits for it");
        }
    }

    async fn stage(size: Size, from: Receiver<Event>, to: Sender<Event>) {
        while let Ok(event) = from.recv().await {
            let more = std::iter::from_fn(|| from.try_recv().ok()).take(size.batch - 1);
            for mut event in std::iter::once(event).chain(more) {
                size.touch(&mut event);
                to.send(event).await.expect("a stage waits for it");
            }
        }
    }

    async fn last(size: Size, from: Receiver<Event>) -> Count {
        let mut count = Count::default();
        while let Ok(event) = from.recv().await {
            let more = std::iter::from_fn(|| from.try_recv().ok()).take(size.batch - 1);
            for mut event in std::iter::once(event).chain(more) {
                size.touch(&mut event);
                count.add(&event);
            }
        }
        count
    }

    let size = Size::of(options);
    let (count, elapsed) = runtimes::smol(options, async move {
        let start = Instant::now();
        let (to, mut from) = async_channel::bounded(size.capacity());
        runtimes::SMOL.spawn(source(size, to)).detach();
        for _ in 1..size.stages {
            let (to, next) = async_channel::bounded(size.capacity());
            let stage = stage(size, std::mem::replace(&mut from, next), to);
            runtimes::SMOL.spawn(stage).detach();
        }
        let count = runtimes::SMOL.spawn(last(size, from)).await;
        (count, start.elapsed())
    });
    size.report(count, elapsed)
}
