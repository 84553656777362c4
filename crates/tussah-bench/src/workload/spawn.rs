//! A million threads that yield once and end, joined by the thread that spawned them.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use kameo::actor::Spawn;

use super::{Peer, Workload, peer};
use crate::cli::Options;
use crate::metric::Metric;
use crate::runtimes;

pub static WORKLOAD: Workload = Workload {
    name: "spawn",
    about: "1 M threads that yield once and end, joined (the second of two rounds in one process)",
    peers: PEERS,
};

const PEERS: &[Peer] = &[
    peer("floor", floor),
    peer("tokio", tokio),
    peer("smol", smol),
    peer("smol-static", smol_static),
    peer("actor", actor),
    #[cfg(feature = "tussah")]
    peer("tussah", tussah),
];

/// The first round allocates the memory that the second one reuses, as in a long-running service.
const ROUNDS: usize = 2;

fn threads(options: &Options) -> usize {
    options.scaled(1_000_000)
}

fn report(threads: usize, elapsed: Duration, sum: usize) -> Vec<Metric> {
    assert_eq!(
        sum,
        threads * (threads - 1) / 2,
        "a thread was lost or ran twice"
    );
    vec![Metric::rate(threads, elapsed)]
}

/// Uses boxed futures in one OS thread, each polled twice by hand, without a waker, a queue or a
/// join handle.
fn floor(options: &Options) -> Vec<Metric> {
    let threads = threads(options);
    let mut last = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let mut futures: Vec<Pin<Box<dyn Future<Output = usize> + Send>>> =
            Vec::with_capacity(threads);
        for index in 0..threads {
            futures.push(Box::pin(async move {
                futures_lite::future::yield_now().await;
                index
            }));
        }
        let mut context = Context::from_waker(Waker::noop());
        for future in &mut futures {
            assert!(future.as_mut().poll(&mut context).is_pending());
        }
        let mut sum = 0;
        for mut future in futures {
            if let std::task::Poll::Ready(index) = future.as_mut().poll(&mut context) {
                sum += index;
            }
        }
        last = report(threads, start.elapsed(), sum);
    }
    last
}

fn tokio(options: &Options) -> Vec<Metric> {
    let threads = threads(options);
    runtimes::tokio(options, async move {
        let mut last = Vec::new();
        for _ in 0..ROUNDS {
            let start = Instant::now();
            let mut handles = Vec::with_capacity(threads);
            for index in 0..threads {
                handles.push(tokio::spawn(async move {
                    tokio::task::yield_now().await;
                    index
                }));
            }
            let mut sum = 0;
            for handle in handles {
                sum += handle.await.expect("no task panics");
            }
            last = report(threads, start.elapsed(), sum);
        }
        last
    })
}

fn smol(options: &Options) -> Vec<Metric> {
    let threads = threads(options);
    runtimes::smol(options, async move {
        let mut last = Vec::new();
        for _ in 0..ROUNDS {
            let start = Instant::now();
            let mut handles = Vec::with_capacity(threads);
            for index in 0..threads {
                handles.push(runtimes::SMOL.spawn(async move {
                    futures_lite::future::yield_now().await;
                    index
                }));
            }
            let mut sum = 0;
            for handle in handles {
                sum += handle.await;
            }
            last = report(threads, start.elapsed(), sum);
        }
        last
    })
}

/// Uses smol's static executor without join handles; a counter reaches 0 when all threads have
/// ended.
fn smol_static(options: &Options) -> Vec<Metric> {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static EXECUTOR: async_executor::StaticExecutor = async_executor::StaticExecutor::new();
    static SUM: AtomicUsize = AtomicUsize::new(0);
    static ENDED: AtomicUsize = AtomicUsize::new(0);
    for index in 0..options.workers() {
        let pin = options.pin;
        std::thread::spawn(move || {
            if pin {
                runtimes::pin_to(index);
            }
            futures_lite::future::block_on(EXECUTOR.run(std::future::pending::<()>()))
        });
    }
    let threads = threads(options);
    let mut last = Vec::new();
    for _ in 0..ROUNDS {
        SUM.store(0, Ordering::Relaxed);
        ENDED.store(0, Ordering::Relaxed);
        let (done, all_done) = async_channel::bounded::<()>(1);
        let spawner = EXECUTOR.spawn(async move {
            let start = Instant::now();
            for index in 0..threads {
                let done = done.clone();
                let thread = EXECUTOR.spawn(async move {
                    futures_lite::future::yield_now().await;
                    SUM.fetch_add(index, Ordering::Relaxed);
                    // Release and acquire: the last thread to end sees the sums of all the others.
                    if ENDED.fetch_add(1, Ordering::AcqRel) + 1 == threads {
                        done.try_send(()).expect("only the last one sends");
                    }
                });
                thread.detach();
            }
            all_done.recv().await.expect("a sender is in this task");
            report(threads, start.elapsed(), SUM.load(Ordering::Relaxed))
        });
        last = futures_lite::future::block_on(spawner);
    }
    last
}

/// An actor for each thread: it gets one message and yields once.
#[derive(kameo::Actor)]
struct Thread(usize);

struct Run;

impl kameo::message::Message<Run> for Thread {
    type Reply = ();

    async fn handle(&mut self, Run: Run, _: &mut kameo::message::Context<Self, ()>) {
        tokio::task::yield_now().await;
    }
}

/// Uses a fifth of the threads, since an actor takes kilobytes.
fn actor(options: &Options) -> Vec<Metric> {
    let threads = threads(options).div_ceil(5);
    runtimes::tokio(options, async move {
        let mut last = Vec::new();
        for _ in 0..ROUNDS {
            let start = Instant::now();
            let mut handles = Vec::with_capacity(threads);
            for index in 0..threads {
                let actor = Thread::prepare_with_mailbox(kameo::mailbox::unbounded());
                actor.actor_ref().tell(Run).try_send().expect("unbounded");
                handles.push(actor.spawn(Thread(index)));
            }
            let mut sum = 0;
            for handle in handles {
                let (thread, _) = handle.await.expect("not aborted").expect("no panic");
                sum += thread.0;
            }
            last = report(threads, start.elapsed(), sum);
        }
        last
    })
}

#[cfg(feature = "tussah")]
fn tussah(options: &Options) -> Vec<Metric> {
    let threads = threads(options);
    runtimes::tussah(options, async move {
        let mut last = Vec::new();
        for _ in 0..ROUNDS {
            let start = Instant::now();
            let mut handles = Vec::with_capacity(threads);
            for index in 0..threads {
                handles.push(tussah::spawn(async move {
                    tussah::yield_now().await;
                    index
                }));
            }
            let mut sum = 0;
            for handle in handles {
                sum += handle.await.expect("no thread panics");
            }
            last = report(threads, start.elapsed(), sum);
        }
        last
    })
}
