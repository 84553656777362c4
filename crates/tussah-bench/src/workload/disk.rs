//! Threads that read blocks of 4 KB at random positions of a file: 512 MB of 1 GB.
//!
//! They read from the page cache, or past it with `--direct`. Every block carries its number, see
//! [`mod@file`]. Runtimes without file I/O use their pool for blocking calls, as their
//! documentation recommends. If fio is installed, it measures with io_uring what the disk can
//! deliver.

use std::time::Instant;

use fastrand::Rng;

use super::{Peer, Workload, peer};
use crate::cli::Options;
use crate::measure::cpu_time;
use crate::metric::Metric;
use crate::runtimes;
use file::{BLOCK, Block, BlockFile};

mod file;
mod fio;
#[cfg(feature = "tussah")]
mod tussah;

pub static WORKLOAD: Workload = Workload {
    name: "disk",
    about: "512 MB read from a file of 1 GB in random 4 KB blocks by --tasks threads, cached or --direct: MB/s, CPU",
    peers: PEERS,
};

const PEERS: &[Peer] = &[
    peer("floor", |options| run(options, floor)),
    peer("floor-fio", fio::run),
    peer("tokio", |options| run(options, tokio)),
    peer("smol", |options| run(options, smol)),
    #[cfg(feature = "compio")]
    peer("compio", |options| run(options, compio)),
    #[cfg(feature = "tussah")]
    peer("tussah", |options| run(options, tussah::read)),
];

/// Bound, in OS threads: the maximum number that read at the same time in the floor. Further
/// threads would only wait for each other.
const FLOOR_THREADS_MAX: usize = 256;

const MB_S: &str = "MB/s";
const CPU_S: &str = "CPU s a GB";

fn tasks(options: &Options) -> usize {
    options.tasks.unwrap_or(64) as usize
}

/// Returns the number of blocks that each thread reads.
fn reads(options: &Options) -> usize {
    (options.scaled(512 << 20) / BLOCK / tasks(options)).max(1)
}

/// Returns the number of bytes that all threads read.
fn bytes(options: &Options) -> usize {
    reads(options) * tasks(options) * BLOCK
}

/// Returns the numbers of the blocks that a thread reads.
fn numbers(
    options: &Options,
    file: &BlockFile,
    task: usize,
) -> impl Iterator<Item = usize> + use<> {
    let (blocks, mut random) = (file.blocks, Rng::with_seed(task as u64));
    (0..reads(options)).map(move |_| random.usize(..blocks))
}

/// Lets a peer read the file and returns the metrics.
fn run(options: &Options, read: fn(&Options, &'static BlockFile)) -> Vec<Metric> {
    let file = Box::leak(Box::new(BlockFile::prepare(options)));
    let (start, cpu_before) = (Instant::now(), cpu_time());
    read(options, file);
    let (elapsed, cpu) = (start.elapsed(), cpu_time() - cpu_before);
    let bytes = bytes(options) as f64;
    vec![
        Metric::higher(MB_S, bytes / elapsed.as_secs_f64() / 1e6),
        Metric::lower(CPU_S, cpu.as_secs_f64() / bytes * 1e9),
    ]
}

/// Uses OS threads with blocking reads.
fn floor(options: &Options, file: &'static BlockFile) {
    let tasks = tasks(options);
    let threads = tasks.min(FLOOR_THREADS_MAX);
    runtimes::os_threads(options, threads, |index| {
        let mut block = Block::new();
        for task in (index..tasks).step_by(threads) {
            for number in numbers(options, file, task) {
                file.read(&mut block, number);
            }
        }
    });
}

fn tokio(options: &Options, file: &'static BlockFile) {
    let runtime = runtimes::tokio_with(options, options.workers_or(1));
    let task = |task| {
        let numbers = numbers(options, file, task);
        runtime.spawn(async move {
            let mut block = Block::new();
            for number in numbers {
                let read = move || {
                    file.read(&mut block, number);
                    block
                };
                let read = tokio::task::spawn_blocking(read).await;
                block = read.expect("no read panics");
            }
        })
    };
    let tasks: Vec<_> = (0..tasks(options)).map(task).collect();
    for task in tasks {
        runtime.block_on(task).expect("no task panics");
    }
}

fn smol(options: &Options, file: &'static BlockFile) {
    runtimes::smol_with(options, options.workers_or(1), runtimes::Reactor::Off);
    let task = |task| {
        let numbers = numbers(options, file, task);
        runtimes::SMOL.spawn(async move {
            let mut block = Block::new();
            for number in numbers {
                let read = move || {
                    file.read(&mut block, number);
                    block
                };
                block = blocking::unblock(read).await;
            }
        })
    };
    let tasks: Vec<_> = (0..tasks(options)).map(task).collect();
    for task in tasks {
        futures_lite::future::block_on(task);
    }
}

/// Uses a runtime for each worker with its part of the threads, which read through io_uring.
#[cfg(feature = "compio")]
fn compio(options: &Options, file: &'static BlockFile) {
    use ::compio::BufResult;
    use ::compio::io::AsyncReadAt;
    runtimes::compio(options, async |index| {
        let mut opening = ::compio::fs::OpenOptions::new();
        opening.read(true).custom_flags(file.flags);
        let opened = opening
            .open(&file.path)
            .await
            .expect("it was opened before");
        let task = |task| {
            let (numbers, opened) = (numbers(options, file, task), opened.clone());
            ::compio::runtime::spawn(async move {
                // The runtime requires static buffers, and the process ends after one run.
                let mut bytes: &'static mut [u8; BLOCK] = &mut Box::leak(Block::new()).0;
                for number in numbers {
                    let BufResult(read, same) = opened.read_at(bytes, file::offset(number)).await;
                    assert_eq!(read.expect("the file can be read"), BLOCK);
                    bytes = same;
                    file::check(bytes, number);
                }
            })
        };
        let tasks = (index..tasks(options)).step_by(options.workers_or(1));
        for task in tasks.map(task).collect::<Vec<_>>() {
            task.await.expect("no task panics");
        }
    });
}
