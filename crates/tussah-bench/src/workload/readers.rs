//! One shared value, accessed by 16 threads on all workers: 95 % reads and 5 % writes.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use kameo::actor::Spawn;

use super::{Peer, Workload, peer};
use crate::cli::Options;
use crate::measure::work;
use crate::metric::Metric;
use crate::runtimes;

pub static WORKLOAD: Workload = Workload {
    name: "readers",
    about: "16 threads, 3.2 M entries to one value, 95 % of them reads; --work N in each, --yield between two",
    peers: PEERS,
};

const PEERS: &[Peer] = &[
    peer("floor", floor),
    peer("parking_lot", parking_lot),
    peer("tokio", tokio),
    peer("smol", smol),
    peer("actor", actor),
    #[cfg(feature = "tussah")]
    peer("tussah", tussah),
];

const THREADS: usize = 16;

/// The shared value. All its words are equal unless a write is in progress.
#[derive(Clone, Debug, Default)]
struct Shared([u64; 16]);

impl Shared {
    fn read(&self, steps: u32) -> u64 {
        let first = self.0[0];
        assert!(
            self.0.iter().all(|word| *word == first),
            "a reader saw half a write"
        );
        work(first, steps);
        first
    }

    fn write(&mut self, steps: u32) -> u64 {
        for word in &mut self.0 {
            *word += 1;
        }
        work(self.0[0], steps);
        self.0[0]
    }
}

/// Returns the number of entries of each thread, the steps of work in each entry, and whether to
/// yield between two entries.
fn size(options: &Options) -> (usize, u32, bool) {
    (
        options.scaled(3_200_000 / THREADS),
        options.work.unwrap_or(0),
        options.yield_between,
    )
}

/// Returns whether the next entry is a write.
fn is_write(random: &mut Rng) -> bool {
    random.usize(..20) == 0
}

fn report(entries: usize, elapsed: Duration, value: u64) -> Vec<Metric> {
    let writes = (0..THREADS).map(|thread| {
        let mut random = Rng::with_seed(thread as u64);
        (0..entries).filter(|_| is_write(&mut random)).count()
    });
    assert_eq!(
        value as usize,
        writes.sum::<usize>(),
        "a write was lost or doubled"
    );
    vec![Metric::rate(THREADS * entries, elapsed)]
}

/// Uses one OS thread and a plain value.
fn floor(options: &Options) -> Vec<Metric> {
    let (entries, steps, _) = size(options);
    let mut shared = Shared::default();
    let start = Instant::now();
    for thread in 0..THREADS {
        let mut random = Rng::with_seed(thread as u64);
        for _ in 0..entries {
            black_box(match is_write(&mut random) {
                true => shared.write(steps),
                false => black_box(&shared).read(steps),
            });
        }
    }
    report(entries, start.elapsed(), shared.read(0))
}

/// Uses tokio tasks and a parking_lot lock, which they never hold across an await.
fn parking_lot(options: &Options) -> Vec<Metric> {
    let (entries, steps, yielding) = size(options);
    runtimes::tokio(options, async move {
        let shared = Arc::new(parking_lot::RwLock::new(Shared::default()));
        let start = Instant::now();
        let task = |thread| {
            let shared = Arc::clone(&shared);
            tokio::spawn(async move {
                let mut random = Rng::with_seed(thread as u64);
                for _ in 0..entries {
                    black_box(match is_write(&mut random) {
                        true => shared.write().write(steps),
                        false => shared.read().read(steps),
                    });
                    if yielding {
                        tokio::task::yield_now().await;
                    }
                }
            })
        };
        for task in (0..THREADS).map(task).collect::<Vec<_>>() {
            task.await.expect("no task panics");
        }
        report(entries, start.elapsed(), shared.read().read(0))
    })
}

fn tokio(options: &Options) -> Vec<Metric> {
    let (entries, steps, yielding) = size(options);
    runtimes::tokio(options, async move {
        let shared = Arc::new(tokio::sync::RwLock::new(Shared::default()));
        let start = Instant::now();
        let task = |thread| {
            let shared = Arc::clone(&shared);
            tokio::spawn(async move {
                let mut random = Rng::with_seed(thread as u64);
                for _ in 0..entries {
                    black_box(match is_write(&mut random) {
                        true => shared.write().await.write(steps),
                        false => shared.read().await.read(steps),
                    });
                    if yielding {
                        tokio::task::yield_now().await;
                    }
                }
            })
        };
        for task in (0..THREADS).map(task).collect::<Vec<_>>() {
            task.await.expect("no task panics");
        }
        let elapsed = start.elapsed();
        report(entries, elapsed, shared.read().await.read(0))
    })
}

fn smol(options: &Options) -> Vec<Metric> {
    let (entries, steps, yielding) = size(options);
    runtimes::smol(options, async move {
        let shared = Arc::new(async_lock::RwLock::new(Shared::default()));
        let start = Instant::now();
        let task = |thread| {
            let shared = Arc::clone(&shared);
            runtimes::SMOL.spawn(async move {
                let mut random = Rng::with_seed(thread as u64);
                for _ in 0..entries {
                    black_box(match is_write(&mut random) {
                        true => shared.write().await.write(steps),
                        false => shared.read().await.read(steps),
                    });
                    if yielding {
                        futures_lite::future::yield_now().await;
                    }
                }
            })
        };
        for task in (0..THREADS).map(task).collect::<Vec<_>>() {
            task.await;
        }
        let elapsed = start.elapsed();
        report(entries, elapsed, shared.read().await.read(0))
    })
}

/// An actor that owns the value; readers and writers both send it requests.
#[derive(kameo::Actor)]
struct Owner(Shared);

struct Enter {
    write: bool,
    steps: u32,
}

impl kameo::message::Message<Enter> for Owner {
    type Reply = u64;

    async fn handle(
        &mut self,
        Enter { write, steps }: Enter,
        _: &mut kameo::message::Context<Self, u64>,
    ) -> u64 {
        if write {
            self.0.write(steps)
        } else {
            self.0.read(steps)
        }
    }
}

fn actor(options: &Options) -> Vec<Metric> {
    let (entries, steps, yielding) = size(options);
    runtimes::tokio(options, async move {
        let owner = Owner::prepare_with_mailbox(kameo::mailbox::unbounded());
        let reference = owner.actor_ref().clone();
        let owner = owner.spawn(Owner(Shared::default()));
        let start = Instant::now();
        let task = |thread| {
            let reference = reference.clone();
            tokio::spawn(async move {
                let mut random = Rng::with_seed(thread as u64);
                for _ in 0..entries {
                    let enter = Enter {
                        write: is_write(&mut random),
                        steps,
                    };
                    black_box(reference.ask(enter).send().await.expect("the actor runs"));
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
        report(entries, elapsed, owner.0.read(0))
    })
}

#[cfg(feature = "tussah")]
fn tussah(options: &Options) -> Vec<Metric> {
    let (entries, steps, yielding) = size(options);
    runtimes::tussah(options, async move {
        let shared = tussah::Colored::new(Shared::default());
        let start = Instant::now();
        let thread = |thread| {
            let shared = shared.clone();
            tussah::spawn(async move {
                let mut random = Rng::with_seed(thread as u64);
                for _ in 0..entries {
                    black_box(match is_write(&mut random) {
                        true => {
                            shared
                                .write(move |shared: &mut Shared| shared.write(steps))
                                .await
                        }
                        false => shared.read(move |shared: &Shared| shared.read(steps)).await,
                    });
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
        let value = shared.read(|shared: &Shared| shared.read(0)).await;
        report(entries, elapsed, value)
    })
}
