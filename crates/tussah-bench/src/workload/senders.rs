//! Senders of one bounded queue that is always full, as in a service whose clients send faster than
//! a stage can work.
//!
//! 20 tasks send as fast as they can. A stage takes the available events, at most one batch, and
//! works on each event. Jain's index compares the events of the senders: it is 1 if all senders had
//! equally many, and 0.05 if one sender had all of them.

use std::hint::black_box;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::{Peer, Workload, peer};
use crate::cli::Options;
use crate::measure::{WORK_80_NS, jain, work};
use crate::metric::Metric;
use crate::runtimes;

pub static WORKLOAD: Workload = Workload {
    name: "senders",
    about: "20 tasks send to one full queue, whose receiver works for 2 µs an event: fairness of the senders, events/s",
    peers: PEERS,
};

const PEERS: &[Peer] = &[
    peer("floor", floor),
    peer("tokio", tokio),
    peer("async-channel", async_channel),
    #[cfg(feature = "tussah")]
    peer("tussah", tussah),
];

const SENDERS: usize = 20;

/// Bound, in events: the capacity of the queue.
const QUEUE: usize = 1024;

/// The receiver's work on an event, in nanoseconds.
const WORK_NS: u32 = 2000;

/// The number of events of each sender, and the time of the first counted event. The events that
/// fill the queue at the beginning do not count.
struct Count {
    taken: AtomicUsize,
    events: usize,
    begin: OnceLock<Instant>,
    by_sender: [AtomicU64; SENDERS],
}

impl Count {
    fn leak(options: &Options) -> &'static Count {
        Box::leak(Box::new(Count {
            taken: AtomicUsize::new(0),
            events: options.scaled(200_000),
            begin: OnceLock::new(),
            by_sender: std::array::from_fn(|_| AtomicU64::new(0)),
        }))
    }

    /// Works on an event. Returns how long all counted events took, with the last one of them.
    fn take(&self, sender: usize) -> Option<Duration> {
        black_box(work(sender as u64, WORK_NS * WORK_80_NS / 80));
        let before = self.taken.fetch_add(1, Ordering::Relaxed);
        let counted = before.checked_sub(2 * QUEUE)?;
        let begin = *self.begin.get_or_init(Instant::now);
        if counted < self.events {
            self.by_sender[sender].fetch_add(1, Ordering::Relaxed);
        }
        (counted + 1 == self.events).then(|| begin.elapsed())
    }

    fn report(&self, elapsed: Duration) -> Vec<Metric> {
        let counts = self.by_sender.iter();
        let counts: Vec<_> = counts.map(|it| it.load(Ordering::Relaxed)).collect();
        assert_eq!(counts.iter().sum::<u64>(), self.events as u64);
        vec![
            Metric::higher("fairness (Jain)", jain(&counts)),
            Metric::rate(self.events, elapsed),
        ]
    }
}

/// Takes one event of each sender in turn, in one OS thread.
fn floor(options: &Options) -> Vec<Metric> {
    let count = Count::leak(options);
    let elapsed = (0..SENDERS).cycle().find_map(|sender| count.take(sender));
    count.report(elapsed.expect("the senders do not end"))
}

/// Uses a bounded channel, whose receiver takes whole batches.
fn tokio(options: &Options) -> Vec<Metric> {
    let (count, batch) = (Count::leak(options), batch(options));
    let elapsed = runtimes::tokio(options, async move {
        let (to, mut from) = tokio::sync::mpsc::channel(QUEUE);
        for sender in 0..SENDERS {
            let to = to.clone();
            tokio::spawn(async move { while to.send(sender).await.is_ok() {} });
        }
        let mut events = Vec::with_capacity(batch);
        loop {
            from.recv_many(&mut events, batch).await;
            let ends = events.drain(..).filter_map(|sender| count.take(sender));
            if let Some(elapsed) = ends.last() {
                return elapsed;
            }
            tokio::task::yield_now().await;
        }
    });
    count.report(elapsed)
}

/// Uses a bounded channel and tasks of smol; the receiver waits for one event and then takes the
/// others that are available.
fn async_channel(options: &Options) -> Vec<Metric> {
    let (count, batch) = (Count::leak(options), batch(options));
    runtimes::smol_with(options, options.workers(), runtimes::Reactor::Off);
    let elapsed = futures_lite::future::block_on(runtimes::SMOL.spawn(async move {
        let (to, from) = async_channel::bounded(QUEUE);
        for sender in 0..SENDERS {
            let to = to.clone();
            let task = runtimes::SMOL.spawn(async move { while to.send(sender).await.is_ok() {} });
            task.detach();
        }
        loop {
            let first = from.recv().await.expect("the senders do not end");
            let more = std::iter::from_fn(|| from.try_recv().ok()).take(batch - 1);
            let events = std::iter::once(first).chain(more);
            if let Some(elapsed) = events.filter_map(|sender| count.take(sender)).last() {
                return elapsed;
            }
            futures_lite::future::yield_now().await;
        }
    }));
    count.report(elapsed)
}

/// Uses a stage with one servlet.
#[cfg(feature = "tussah")]
fn tussah(options: &Options) -> Vec<Metric> {
    use ::tussah::stage::{Network, each};

    let (count, batch) = (Count::leak(options), batch(options));
    let elapsed = runtimes::tussah(options, async move {
        let network = Network::new("senders");
        let (done, all) = async_channel::bounded(1);
        let stage = network.stage("stage").queue(QUEUE as u64).batch(batch);
        let stage = stage.manual().servlets(1).handler(move |_| {
            Ok(each(move |sender| {
                if let Some(elapsed) = count.take(sender) {
                    done.try_send(elapsed).expect("only the last event sends");
                }
                std::future::ready(())
            }))
        });
        let stage = stage.expect("a stage");
        for sender in 0..SENDERS {
            let to = stage.sender();
            ::tussah::spawn(async move { while to.send(sender).await.is_ok() {} });
        }
        let elapsed = all.recv().await.expect("the stage holds the sender");
        network.close();
        elapsed
    });
    count.report(elapsed)
}

fn batch(options: &Options) -> usize {
    options.batch.unwrap_or(100) as usize
}
