//! 64 threads make 100,000 round trips each on one shared value and need the reply.
//!
//! Without a yield between two entries, a lock may let one thread finish without interruption. The
//! share of entries by a thread other than the last one shows how often a peer alternates. With
//! `--yield` every peer has to alternate.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kameo::actor::Spawn;

use super::{Peer, Workload, peer};
use crate::cli::Options;
use crate::metric::Metric;
use crate::runtimes;

pub static WORKLOAD: Workload = Workload {
    name: "contended",
    about: "64 threads, 100,000 round trips each on one shared value, reply needed; --yield between two",
    peers: PEERS,
};

const PEERS: &[Peer] = &[
    peer("floor-os-threads", floor_os_threads),
    peer("parking_lot", parking_lot),
    peer("tokio", tokio),
    peer("tokio-channel", tokio_channel),
    peer("smol", smol),
    peer("actor", actor),
    #[cfg(feature = "tussah")]
    peer("tussah", tussah),
];

const THREADS: usize = 64;

/// The shared value.
#[derive(Debug, Default)]
struct Shared {
    entries: usize,
    last: usize,
    handovers: usize,
}

impl Shared {
    /// Enters the value. The reply is the number of the entry.
    fn enter(&mut self, thread: usize) -> usize {
        self.entries += 1;
        self.handovers += usize::from(self.last != thread);
        self.last = thread;
        self.entries
    }

    fn report(&self, trips: usize, elapsed: Duration) -> Vec<Metric> {
        assert_eq!(
            self.entries,
            THREADS * trips,
            "an entry was lost or doubled"
        );
        let share = 100.0 * self.handovers as f64 / self.entries as f64;
        vec![
            Metric::rate(self.entries, elapsed),
            Metric::info("% by another thread", share),
        ]
    }
}

fn trips(options: &Options) -> usize {
    options.scaled(100_000)
}

/// Uses 64 OS threads and a parking_lot mutex.
fn floor_os_threads(options: &Options) -> Vec<Metric> {
    let (trips, yielding) = (trips(options), options.yield_between);
    let shared = parking_lot::Mutex::new(Shared::default());
    let elapsed = runtimes::os_threads(options, THREADS, |thread| {
        for _ in 0..trips {
            black_box(shared.lock().enter(thread));
            if yielding {
                std::thread::yield_now();
            }
        }
    });
    shared.into_inner().report(trips, elapsed)
}

/// Uses 64 tokio tasks and a parking_lot mutex, which they never hold across an await.
fn parking_lot(options: &Options) -> Vec<Metric> {
    let (trips, yielding) = (trips(options), options.yield_between);
    runtimes::tokio(options, async move {
        let shared = Arc::new(parking_lot::Mutex::new(Shared::default()));
        let start = Instant::now();
        let task = |thread| {
            let shared = Arc::clone(&shared);
            tokio::spawn(async move {
                for _ in 0..trips {
                    black_box(shared.lock().enter(thread));
                    if yielding {
                        tokio::task::yield_now().await;
                    }
                }
            })
        };
        for task in (0..THREADS).map(task).collect::<Vec<_>>() {
            task.await.expect("no task panics");
        }
        shared.lock().report(trips, start.elapsed())
    })
}

/// Uses 64 tasks and tokio's own mutex.
fn tokio(options: &Options) -> Vec<Metric> {
    let (trips, yielding) = (trips(options), options.yield_between);
    runtimes::tokio(options, async move {
        let shared = Arc::new(tokio::sync::Mutex::new(Shared::default()));
        let start = Instant::now();
        let task = |thread| {
            let shared = Arc::clone(&shared);
            tokio::spawn(async move {
                for _ in 0..trips {
                    black_box(shared.lock().await.enter(thread));
                    if yielding {
                        tokio::task::yield_now().await;
                    }
                }
            })
        };
        for task in (0..THREADS).map(task).collect::<Vec<_>>() {
            task.await.expect("no task panics");
        }
        shared.lock().await.report(trips, start.elapsed())
    })
}

/// Uses a task that owns the value; requests arrive through a channel, each with a oneshot for the
/// reply.
fn tokio_channel(options: &Options) -> Vec<Metric> {
    use tokio::sync::{mpsc, oneshot};
    let (trips, yielding) = (trips(options), options.yield_between);
    runtimes::tokio(options, async move {
        let (sender, mut receiver) = mpsc::unbounded_channel::<(usize, oneshot::Sender<usize>)>();
        let owner = tokio::spawn(async move {
            let mut shared = Shared::default();
            while let Some((thread, reply)) = receiver.recv().await {
                let sent = reply.send(shared.enter(thread));
                sent.expect("the task waits for its reply");
            }
            shared
        });
        let start = Instant::now();
        let task = |thread| {
            let sender = sender.clone();
            tokio::spawn(async move {
                for _ in 0..trips {
                    let (reply, receiver) = oneshot::channel();
                    sender
                        .send((thread, reply))
                        .expect("the owner waits for all senders");
                    black_box(receiver.await.expect("the owner replies to all"));
                    if yielding {
                        tokio::task::yield_now().await;
                    }
                }
            })
        };
        let tasks: Vec<_> = (0..THREADS).map(task).collect();
        drop(sender);
        for task in tasks {
            task.await.expect("no task panics");
        }
        let elapsed = start.elapsed();
        owner
            .await
            .expect("the owner does not panic")
            .report(trips, elapsed)
    })
}

/// Uses 64 tasks and the mutex of async-lock.
fn smol(options: &Options) -> Vec<Metric> {
    let (trips, yielding) = (trips(options), options.yield_between);
    runtimes::smol(options, async move {
        let shared = Arc::new(async_lock::Mutex::new(Shared::default()));
        let start = Instant::now();
        let task = |thread| {
            let shared = Arc::clone(&shared);
            runtimes::SMOL.spawn(async move {
                for _ in 0..trips {
                    black_box(shared.lock().await.enter(thread));
                    if yielding {
                        futures_lite::future::yield_now().await;
                    }
                }
            })
        };
        for task in (0..THREADS).map(task).collect::<Vec<_>>() {
            task.await;
        }
        shared.lock().await.report(trips, start.elapsed())
    })
}

/// An actor that owns the value; 64 tasks send requests to it.
#[derive(kameo::Actor)]
struct Owner(Shared);

struct Enter(usize);

impl kameo::message::Message<Enter> for Owner {
    type Reply = usize;

    async fn handle(
        &mut self,
        Enter(thread): Enter,
        _: &mut kameo::message::Context<Self, usize>,
    ) -> usize {
        self.0.enter(thread)
    }
}

fn actor(options: &Options) -> Vec<Metric> {
    let (trips, yielding) = (trips(options), options.yield_between);
    runtimes::tokio(options, async move {
        let owner = Owner::prepare_with_mailbox(kameo::mailbox::unbounded());
        let reference = owner.actor_ref().clone();
        let owner = owner.spawn(Owner(Shared::default()));
        let start = Instant::now();
        let task = |thread| {
            let reference = reference.clone();
            tokio::spawn(async move {
                for _ in 0..trips {
                    black_box(reference.ask(Enter(thread)).send().await.expect("it runs"));
                    if yielding {
                        tokio::task::yield_now().await;
                    }
                }
            })
        };
        let tasks: Vec<_> = (0..THREADS).map(task).collect();
        drop(reference);
        for task in tasks {
            task.await.expect("no task panics");
        }
        let elapsed = start.elapsed();
        let (owner, _) = owner.await.expect("not aborted").expect("no panic");
        owner.0.report(trips, elapsed)
    })
}

/// Uses 64 threads that enter one colored value.
#[cfg(feature = "tussah")]
fn tussah(options: &Options) -> Vec<Metric> {
    let (trips, yielding) = (trips(options), options.yield_between);
    runtimes::tussah(options, async move {
        let shared = tussah::Colored::new(Shared::default());
        let start = Instant::now();
        let thread = |thread| {
            let shared = shared.clone();
            tussah::spawn(async move {
                for _ in 0..trips {
                    black_box(
                        shared
                            .with(move |shared: &mut Shared| shared.enter(thread))
                            .await,
                    );
                    if yielding {
                        tussah::yield_now().await;
                    }
                }
            })
        };
        for thread in (0..THREADS).map(thread).collect::<Vec<_>>() {
            thread.await.expect("no thread panics");
        }
        let elapsed = start.elapsed();
        shared
            .with(move |shared: &mut Shared| shared.report(trips, elapsed))
            .await
    })
}
