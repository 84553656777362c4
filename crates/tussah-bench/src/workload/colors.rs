//! One producer, itself a thread, posts increments round-robin over 10,000 colors and yields after
//! each round.
//!
//! The state of a color is a plain number. Nearly every post finds its color idle. The workload
//! therefore measures the cost of making a color runnable, not the cost of queueing behind a
//! running event.

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};

use kameo::actor::Spawn;

use super::{Peer, Workload, peer};
use crate::cli::Options;
use crate::measure::resident_bytes_max;
use crate::metric::Metric;
use crate::runtimes;

pub static WORKLOAD: Workload = Workload {
    name: "colors",
    about: "one thread posts 5 M increments round-robin over 10,000 colors, yielding each round",
    peers: PEERS,
};

const PEERS: &[Peer] = &[
    peer("floor", floor),
    peer("floor-plain", floor_plain),
    peer("tokio", tokio),
    peer("smol", smol),
    peer("actor", actor),
    #[cfg(feature = "tussah")]
    peer("tussah", tussah),
];

const COLORS: usize = 10_000;

fn rounds(options: &Options) -> usize {
    options.scaled(500)
}

fn report(rounds: usize, elapsed: Duration, total: usize) -> Vec<Metric> {
    assert_eq!(total, rounds * COLORS, "an increment was lost or doubled");
    let peak = Metric::lower("MB peak", resident_bytes_max() / 1e6);
    vec![Metric::rate(total, elapsed), peak]
}

/// Uses a FIFO loop in one OS thread, where each event is a boxed closure that owns the state of
/// its color: a scheduler without colors and threads.
fn floor(options: &Options) -> Vec<Metric> {
    type Event = Box<dyn FnOnce()>;
    let rounds = rounds(options);
    let states: Vec<Rc<Cell<usize>>> = (0..COLORS).map(|_| Rc::default()).collect();
    let mut fifo: VecDeque<Event> = VecDeque::new();
    let start = Instant::now();
    for _ in 0..rounds {
        for state in &states {
            let state = Rc::clone(state);
            fifo.push_back(Box::new(move || state.set(state.get() + 1)));
        }
        while let Some(event) = fifo.pop_front() {
            event();
        }
    }
    report(
        rounds,
        start.elapsed(),
        states.iter().map(|state| state.get()).sum(),
    )
}

/// Like `floor`, but each event is only the number of a color, to measure the cost of the queue
/// alone.
fn floor_plain(options: &Options) -> Vec<Metric> {
    let rounds = rounds(options);
    let mut state = vec![0; COLORS];
    let mut fifo = VecDeque::new();
    let start = Instant::now();
    for _ in 0..rounds {
        for color in 0..COLORS {
            fifo.push_back(std::hint::black_box(color));
        }
        while let Some(color) = fifo.pop_front() {
            state[color] += 1;
        }
    }
    report(rounds, start.elapsed(), state.iter().sum())
}

/// Uses a task with an unbounded channel for each color.
fn tokio(options: &Options) -> Vec<Metric> {
    let rounds = rounds(options);
    runtimes::tokio(options, async move {
        let color = |_| {
            let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel::<usize>();
            let task = tokio::spawn(async move {
                let mut sum = 0;
                while let Some(increment) = receiver.recv().await {
                    sum += increment;
                }
                sum
            });
            (sender, task)
        };
        let (senders, tasks): (Vec<_>, Vec<_>) = (0..COLORS).map(color).unzip();
        let start = Instant::now();
        let producer = tokio::spawn(async move {
            for _ in 0..rounds {
                for sender in &senders {
                    sender
                        .send(1)
                        .expect("its task runs until the sender is gone");
                }
                tokio::task::yield_now().await;
            }
        });
        producer.await.expect("the producer does not panic");
        let mut total = 0;
        for task in tasks {
            total += task.await.expect("no color panics");
        }
        report(rounds, start.elapsed(), total)
    })
}

/// Uses a task with an unbounded channel for each color.
fn smol(options: &Options) -> Vec<Metric> {
    let rounds = rounds(options);
    runtimes::smol(options, async move {
        let color = |_| {
            let (sender, receiver) = async_channel::unbounded::<usize>();
            let task = runtimes::SMOL.spawn(async move {
                let mut sum = 0;
                while let Ok(increment) = receiver.recv().await {
                    sum += increment;
                }
                sum
            });
            (sender, task)
        };
        let (senders, tasks): (Vec<_>, Vec<_>) = (0..COLORS).map(color).unzip();
        let start = Instant::now();
        let producer = runtimes::SMOL.spawn(async move {
            for _ in 0..rounds {
                for sender in &senders {
                    sender
                        .try_send(1)
                        .expect("its task runs until the sender is gone");
                }
                futures_lite::future::yield_now().await;
            }
        });
        producer.await;
        let mut total = 0;
        for task in tasks {
            total += task.await;
        }
        report(rounds, start.elapsed(), total)
    })
}

/// An actor with an unbounded mailbox for each color.
#[derive(kameo::Actor)]
struct Sum(usize);

struct Add(usize);

impl kameo::message::Message<Add> for Sum {
    type Reply = ();

    async fn handle(&mut self, Add(increment): Add, _: &mut kameo::message::Context<Self, ()>) {
        self.0 += increment;
    }
}

fn actor(options: &Options) -> Vec<Metric> {
    let rounds = rounds(options);
    runtimes::tokio(options, async move {
        let color = |_| {
            let actor = Sum::prepare_with_mailbox(kameo::mailbox::unbounded());
            (actor.actor_ref().clone(), actor.spawn(Sum(0)))
        };
        let (actors, tasks): (Vec<_>, Vec<_>) = (0..COLORS).map(color).unzip();
        let start = Instant::now();
        let producer = tokio::spawn(async move {
            for _ in 0..rounds {
                for actor in &actors {
                    actor
                        .tell(Add(1))
                        .try_send()
                        .expect("an unbounded mailbox takes everything");
                }
                tokio::task::yield_now().await;
            }
        });
        producer.await.expect("the producer does not panic");
        let mut total = 0;
        for task in tasks {
            let (sum, _) = task.await.expect("not aborted").expect("no panic");
            total += sum.0;
        }
        report(rounds, start.elapsed(), total)
    })
}

/// Uses a colored number for each color.
#[cfg(feature = "tussah")]
fn tussah(options: &Options) -> Vec<Metric> {
    use crate::measure::Latch;

    let rounds = rounds(options);
    let latch = Latch::leak(COLORS);
    let (start, cells) = runtimes::tussah(options, async move {
        let cells: Vec<_> = (0..COLORS).map(|_| tussah::Colored::new(0usize)).collect();
        let start = Instant::now();
        let producer = tussah::spawn(async move {
            for _ in 0..rounds {
                for cell in &cells {
                    let posted = cell.post(move |sum: &mut usize| {
                        *sum += 1;
                        if *sum == rounds {
                            latch.count_down();
                        }
                    });
                    assert!(
                        posted.is_ok(),
                        "the color has no limit and the runtime runs"
                    );
                }
                tussah::yield_now().await;
            }
            cells
        });
        (start, producer.await.expect("the producer does not panic"))
    });
    latch.wait();
    // The clock stops before the sum is read, which is not part of the workload.
    let elapsed = start.elapsed();
    let sum = async move {
        let mut total = 0;
        for cell in &cells {
            total += cell.with(|sum: &mut usize| *sum).await;
        }
        total
    };
    // Any executor can enter a value that is not in use.
    report(rounds, elapsed, futures_lite::future::block_on(sum))
}
