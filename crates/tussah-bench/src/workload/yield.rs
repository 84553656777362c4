//! Two threads that yield to each other, by default on one worker, to measure the cost of a switch.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use super::{Peer, Workload, peer};
use crate::cli::Options;
use crate::metric::Metric;
use crate::runtimes;

pub static WORKLOAD: Workload = Workload {
    name: "yield",
    about: "two threads yield to each other 2.5 M times each, on one worker: ns a switch",
    peers: PEERS,
};

const PEERS: &[Peer] = &[
    peer("floor", floor),
    peer("floor-os-threads", floor_os_threads),
    peer("tokio", tokio),
    peer("smol", smol),
    #[cfg(feature = "tussah")]
    peer("tussah", tussah),
];

const THREADS: usize = 2;

/// Returns the number of yields of each thread and the number of workers.
fn size(options: &Options) -> (usize, usize) {
    (options.scaled(2_500_000), options.workers_or(1))
}

fn report(yields: usize, elapsed: Duration, total: usize) -> Vec<Metric> {
    assert_eq!(total, THREADS * yields, "a switch was lost");
    vec![Metric::nanos_each("ns", total, elapsed)]
}

/// Uses boxed futures in a FIFO queue, polled by hand.
fn floor(options: &Options) -> Vec<Metric> {
    let (yields, _) = size(options);
    let mut fifo: VecDeque<Pin<Box<dyn Future<Output = ()>>>> = VecDeque::new();
    for _ in 0..THREADS {
        fifo.push_back(Box::pin(async move {
            for _ in 0..yields {
                futures_lite::future::yield_now().await;
            }
        }));
    }
    let mut context = Context::from_waker(Waker::noop());
    let mut total = 0;
    let start = Instant::now();
    while let Some(mut future) = fifo.pop_front() {
        if future.as_mut().poll(&mut context).is_pending() {
            total += 1;
            fifo.push_back(future);
        }
    }
    report(yields, start.elapsed(), total)
}

/// Uses two OS threads on one CPU that yield to the kernel's scheduler, with a tenth of the yields.
fn floor_os_threads(options: &Options) -> Vec<Metric> {
    let yields = size(options).0.div_ceil(10);
    let elapsed = runtimes::os_threads(options, THREADS, |_| {
        runtimes::pin_to(0);
        for _ in 0..yields {
            std::thread::yield_now();
        }
    });
    report(yields, elapsed, THREADS * yields)
}

fn tokio(options: &Options) -> Vec<Metric> {
    let (yields, workers) = size(options);
    let runtime = runtimes::tokio_with(options, workers);
    let main = runtime.spawn(async move {
        let start = Instant::now();
        let thread = |_| {
            tokio::spawn(async move {
                let mut count = 0;
                for _ in 0..yields {
                    tokio::task::yield_now().await;
                    count += 1;
                }
                count
            })
        };
        let mut total = 0;
        for thread in (0..THREADS).map(thread).collect::<Vec<_>>() {
            total += thread.await.expect("no task panics");
        }
        report(yields, start.elapsed(), total)
    });
    runtime.block_on(main).expect("no task panics")
}

fn smol(options: &Options) -> Vec<Metric> {
    let (yields, workers) = size(options);
    runtimes::smol_with(options, workers, runtimes::Reactor::Off);
    futures_lite::future::block_on(runtimes::SMOL.spawn(async move {
        let start = Instant::now();
        let thread = |_| {
            runtimes::SMOL.spawn(async move {
                let mut count = 0;
                for _ in 0..yields {
                    futures_lite::future::yield_now().await;
                    count += 1;
                }
                count
            })
        };
        let mut total = 0;
        for thread in (0..THREADS).map(thread).collect::<Vec<_>>() {
            total += thread.await;
        }
        report(yields, start.elapsed(), total)
    }))
}

#[cfg(feature = "tussah")]
fn tussah(options: &Options) -> Vec<Metric> {
    let (yields, workers) = size(options);
    let runtime = runtimes::tussah_with(options, workers);
    let main = runtime.spawn(async move {
        let start = Instant::now();
        let thread = |_| {
            tussah::spawn(async move {
                let mut count = 0;
                for _ in 0..yields {
                    tussah::yield_now().await;
                    count += 1;
                }
                count
            })
        };
        let mut total = 0;
        for thread in (0..THREADS).map(thread).collect::<Vec<_>>() {
            total += thread.await.expect("no thread panics");
        }
        report(yields, start.elapsed(), total)
    });
    runtime.block_on(main).expect("no thread panics")
}
