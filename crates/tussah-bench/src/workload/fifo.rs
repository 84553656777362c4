//! Pairs of threads that send blocks to each other through pipes, in the presence of pairs that
//! wait forever.
//!
//! 128 pairs exchange 8 GB in blocks of 32 KB: one thread sends a block; the other reads all of it
//! and sends one back. In addition, `--idle` pairs are blocked reading from pipes that nobody
//! writes to. The number of idle pairs should not affect the throughput of the others. Every block
//! carries its number at its beginning and at its end.

use std::io::{ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::{Peer, Workload, peer};
use crate::cli::Options;
use crate::epoll::{Epoll, EventFlags, token};
use crate::metric::Metric;
use crate::{descriptors, measure, runtimes};

#[cfg(feature = "tussah")]
mod tussah;

pub static WORKLOAD: Workload = Workload {
    name: "fifo",
    about: "128 pairs exchange 8 GB in 32 KB blocks over pipes, beside --idle blocked pairs: MB/s, CPU",
    peers: PEERS,
};

const PEERS: &[Peer] = &[
    peer("floor", |options| run(options, floor)),
    peer("tokio", |options| run(options, tokio)),
    peer("smol", |options| run(options, smol)),
    #[cfg(feature = "compio")]
    peer("compio", |options| run(options, compio)),
    #[cfg(feature = "tussah")]
    peer("tussah", |options| run(options, tussah::exchange)),
];

/// The number of pairs that exchange blocks.
const ACTIVE: usize = 128;
/// The size of a block, in bytes.
const BLOCK: usize = 32 << 10;
/// The total number of bytes that the pairs exchange.
const BYTES: usize = 8 << 30;

/// The descriptors of a pair: both ends of two pipes.
const DESCRIPTORS: usize = 4;

/// The number of threads of idle pairs that are about to wait.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// Returns the number of blocks that each pair exchanges, in both directions.
fn blocks(options: &Options) -> usize {
    (options.scaled(BYTES) / BLOCK / ACTIVE).max(2)
}

fn idle(options: &Options) -> usize {
    options.idle.unwrap_or(0)
}

/// Runs the exchange of one peer. The peer starts the clock when its idle pairs are waiting, and
/// returns when the other pairs have finished.
fn run(options: &Options, exchange: fn(&Options)) -> Vec<Metric> {
    if let Err(error) = descriptors::allow(DESCRIPTORS * (ACTIVE + idle(options))) {
        let possible = (error.possible / DESCRIPTORS).saturating_sub(ACTIVE);
        eprintln!("fifo: SKIPPED, since the limits allow only {possible} idle pairs: {error}");
        return Vec::new();
    }
    exchange(options);
    let (start, cpu_before) = *CLOCK.get().expect("the peer has started the clock");
    let (elapsed, cpu) = (start.elapsed(), measure::cpu_time() - cpu_before);
    let bytes = (blocks(options) * ACTIVE * BLOCK) as f64;
    vec![
        Metric::higher("MB/s", bytes / elapsed.as_secs_f64() / 1e6),
        Metric::lower("CPU s a GB", cpu.as_secs_f64() / bytes * 1e9),
    ]
}

/// The start of the exchange and the CPU time until then.
static CLOCK: OnceLock<(Instant, Duration)> = OnceLock::new();

fn start_clock() {
    CLOCK.get_or_init(|| (Instant::now(), measure::cpu_time()));
}

/// Returns whether the threads of all idle pairs are about to wait.
fn all_wait(options: &Options) -> bool {
    WAITING.load(Ordering::Relaxed) == 2 * idle(options)
}

/// Lets the workers of a peer run until the idle pairs are waiting, then starts the clock.
fn settle(options: &Options) {
    while !all_wait(options) {
        std::thread::yield_now();
    }
    start_clock();
}

/// A thread's ends of the two pipes of a pair.
struct Ends {
    from: PipeReader,
    to: PipeWriter,
}

fn pair() -> [Ends; 2] {
    let pipe = || std::io::pipe().expect("the limits allow it");
    let ((from_a, to_b), (from_b, to_a)) = (pipe(), pipe());
    let ends = |from, to| Ends { from, to };
    [ends(from_a, to_a), ends(from_b, to_b)]
}

/// Returns the sides of `count` pairs, or those that worker `index` runs, each with its number
/// within its pair.
fn sides(count: usize, index: usize, workers: usize) -> impl Iterator<Item = (usize, Ends)> {
    let pairs = (index..count).step_by(workers);
    pairs.flat_map(|_| [0, 1].into_iter().zip(pair()))
}

/// Returns whether this side of a pair sends the block with this number; otherwise the other side
/// does.
fn sends(side: usize, number: usize) -> bool {
    number % 2 == side
}

/// Writes the number to the beginning and the end of a block.
fn stamp(block: &mut [u8], number: usize) {
    let bytes = number.to_ne_bytes();
    block[..8].copy_from_slice(&bytes);
    block[BLOCK - 8..].copy_from_slice(&bytes);
}

/// Checks that a block is the one with this number.
fn check(block: &[u8], number: usize) {
    let bytes = number.to_ne_bytes();
    let whole = block[..8] == bytes && block[BLOCK - 8..] == bytes;
    assert!(whole, "the block {number} has another number");
}

/// One side of a pair of the floor.
struct Side {
    ends: Ends,
    side: usize,
    block: Vec<u8>,
    /// The number of bytes of the block that have been written or read so far.
    position: usize,
    /// The number of the current block.
    number: usize,
}

impl Side {
    /// Continues until a pipe is empty or full. Returns true when all `blocks` are done.
    fn turn(&mut self, blocks: usize) -> bool {
        while self.number < blocks {
            let sends = sends(self.side, self.number);
            if sends && self.position == 0 {
                stamp(&mut self.block, self.number);
            }
            let moved = match sends {
                true => self.ends.to.write(&self.block[self.position..]),
                false => self.ends.from.read(&mut self.block[self.position..]),
            };
            match moved {
                Ok(0) => panic!("the other side of a pair is gone"),
                Ok(count) => self.position += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                Err(error) => panic!("a pipe failed: {error}"),
            }
            if self.position == BLOCK {
                if !sends {
                    check(&self.block, self.number);
                }
                self.position = 0;
                self.number += 1;
            }
        }
        true
    }
}

/// Uses an edge-triggered epoll loop for each worker, which needs no registrations after the start.
fn floor(options: &Options) {
    let workers = options.workers_or(1);
    runtimes::os_threads(options, workers, |index| {
        let epoll = Epoll::new();
        let nonblocking = |ends: &Ends| {
            let flags = rustix::fs::OFlags::NONBLOCK;
            rustix::fs::fcntl_setfl(&ends.from, flags).expect("a pipe can be set to not block");
            rustix::fs::fcntl_setfl(&ends.to, flags).expect("a pipe can be set to not block");
        };
        let mut active: Vec<Side> = Vec::new();
        for (side, ends) in sides(ACTIVE, index, workers) {
            nonblocking(&ends);
            let (flags, token) = (EventFlags::ET, active.len());
            epoll.add(&ends.from, token, flags | EventFlags::IN);
            epoll.add(&ends.to, token, flags | EventFlags::OUT);
            let (block, position, number) = (vec![0; BLOCK], 0, 0);
            active.push(Side {
                ends,
                side,
                block,
                position,
                number,
            });
        }
        let idle: Vec<_> = sides(idle(options), index, workers).collect();
        for (_, ends) in &idle {
            nonblocking(ends);
            epoll.add(&ends.from, usize::MAX, EventFlags::ET | EventFlags::IN);
            WAITING.fetch_add(1, Ordering::Relaxed);
        }
        settle(options);
        let blocks = blocks(options);
        let mut left = active.len();
        let mut ready = Vec::new();
        while left > 0 {
            epoll.wait(&mut ready, None);
            for event in &ready {
                let side = &mut active[token(event)];
                // The end of a pipe may be reported again after the last block.
                if side.number < blocks && side.turn(blocks) {
                    left -= 1;
                }
            }
        }
    });
}

fn tokio(options: &Options) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::unix::pipe::{Receiver, Sender};
    let blocks = blocks(options);
    let runtime = runtimes::tokio_io(options);
    let _context = runtime.enter();
    let open = |(side, ends): (usize, Ends)| {
        let from = Receiver::from_owned_fd(ends.from.into()).expect("the runtime takes a pipe");
        let to = Sender::from_owned_fd(ends.to.into()).expect("the runtime takes a pipe");
        (side, from, to)
    };
    let active: Vec<_> = sides(ACTIVE, 0, 1).map(open).collect();
    for (_, mut from, to) in sides(idle(options), 0, 1).map(open) {
        runtime.spawn(async move {
            WAITING.fetch_add(1, Ordering::Relaxed);
            let read = from.read(&mut [0; 64]).await;
            unreachable!("an idle pipe {to:?} gave {read:?}");
        });
    }
    settle(options);
    let exchange = move |side, mut from: Receiver, mut to: Sender| async move {
        let mut block = vec![0; BLOCK];
        for number in 0..blocks {
            if sends(side, number) {
                stamp(&mut block, number);
                to.write_all(&block).await?;
            } else {
                from.read_exact(&mut block).await?;
                check(&block, number);
            }
        }
        std::io::Result::Ok(())
    };
    let tasks = active.into_iter();
    let tasks = tasks.map(|(side, from, to)| runtime.spawn(exchange(side, from, to)));
    for task in tasks.collect::<Vec<_>>() {
        let exchanged = runtime.block_on(task).expect("no task panics");
        exchanged.expect("no pipe fails");
    }
}

fn smol(options: &Options) {
    use async_io::Async;
    use futures_lite::{AsyncReadExt, AsyncWriteExt};
    type Sides = (usize, Async<PipeReader>, Async<PipeWriter>);
    let blocks = blocks(options);
    runtimes::smol_with(options, options.workers_or(1), runtimes::Reactor::On);
    let open = |(side, ends): (usize, Ends)| -> Sides {
        let from = Async::new(ends.from).expect("the reactor takes a pipe");
        (
            side,
            from,
            Async::new(ends.to).expect("the reactor takes a pipe"),
        )
    };
    let active: Vec<_> = sides(ACTIVE, 0, 1).map(open).collect();
    for (_, mut from, to) in sides(idle(options), 0, 1).map(open) {
        let waiting = async move {
            WAITING.fetch_add(1, Ordering::Relaxed);
            let read = from.read(&mut [0; 64]).await;
            unreachable!("an idle pipe {to:?} gave {read:?}");
        };
        runtimes::SMOL.spawn(waiting).detach();
    }
    settle(options);
    let exchange = move |(side, mut from, mut to): Sides| async move {
        let mut block = vec![0; BLOCK];
        for number in 0..blocks {
            if sends(side, number) {
                stamp(&mut block, number);
                to.write_all(&block).await?;
            } else {
                from.read_exact(&mut block).await?;
                check(&block, number);
            }
        }
        std::io::Result::Ok(())
    };
    let tasks = active.into_iter();
    let tasks = tasks.map(|sides| runtimes::SMOL.spawn(exchange(sides)));
    for task in tasks.collect::<Vec<_>>() {
        futures_lite::future::block_on(task).expect("no pipe fails");
    }
}

/// Uses a runtime for each worker, which creates the pipes of its share of the pairs itself.
#[cfg(feature = "compio")]
fn compio(options: &Options) {
    use ::compio::BufResult;
    use ::compio::fs::pipe::{Receiver, Sender, anonymous};
    use ::compio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
    use ::compio::runtime::spawn;
    let (blocks, workers) = (blocks(options), options.workers_or(1));
    let pairs = async |count: usize, index: usize| {
        let mut sides: Vec<(usize, Receiver, Sender)> = Vec::new();
        for _ in (index..count).step_by(workers) {
            let (from_a, to_b) = anonymous().await.expect("the limits allow it");
            let (from_b, to_a) = anonymous().await.expect("the limits allow it");
            sides.extend([(0, from_a, to_a), (1, from_b, to_b)]);
        }
        sides
    };
    let exchange = move |side, mut from: Receiver, mut to: Sender| async move {
        let mut block = vec![0; BLOCK];
        for number in 0..blocks {
            let BufResult(moved, same) = if sends(side, number) {
                stamp(&mut block, number);
                to.write_all(block).await
            } else {
                from.read_exact(block).await
            };
            moved?;
            block = same;
            check(&block, number);
        }
        std::io::Result::Ok(())
    };
    runtimes::compio(options, async |index| {
        let active = pairs(ACTIVE, index).await;
        for (_, mut from, to) in pairs(idle(options), index).await {
            let waiting = async move {
                WAITING.fetch_add(1, Ordering::Relaxed);
                let BufResult(read, _) = from.read([0; 64]).await;
                unreachable!("an idle pipe {to:?} gave {read:?}");
            };
            spawn(waiting).detach();
        }
        while !all_wait(options) {
            futures_lite::future::yield_now().await;
        }
        start_clock();
        let tasks = active.into_iter();
        let tasks = tasks.map(|(side, from, to)| spawn(exchange(side, from, to)));
        for task in tasks.collect::<Vec<_>>() {
            let exchanged = task.await.expect("no task panics");
            exchanged.expect("no pipe fails");
        }
    });
}
