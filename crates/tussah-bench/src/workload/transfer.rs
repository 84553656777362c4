//! Transfers between two of 1,000 accounts, both entered at the same time, by several threads on
//! all workers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use kameo::actor::Spawn;

use super::{Peer, Workload, peer};
use crate::cli::Options;
use crate::metric::Metric;
use crate::runtimes;

pub static WORKLOAD: Workload = Workload {
    name: "transfer",
    about: "16 threads, 2 M transfers between two of 1,000 accounts; peers take two locks in order",
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

const ACCOUNTS: usize = 1000;
const THREADS: usize = 16;
const BALANCE: u64 = 1000;

/// Returns the number of transfers of each thread.
fn transfers(options: &Options) -> usize {
    options.scaled(2_000_000 / THREADS)
}

/// Returns the next two accounts, which always differ.
fn pair(random: &mut Rng) -> (usize, usize) {
    let from = random.usize(..ACCOUNTS);
    (from, (from + 1 + random.usize(..ACCOUNTS - 1)) % ACCOUNTS)
}

/// Makes a transfer.
fn transfer(from: &mut u64, to: &mut u64) {
    if *from > 0 {
        *from -= 1;
        *to += 1;
    }
}

fn report(transfers: usize, elapsed: Duration, total: u64) -> Vec<Metric> {
    assert_eq!(total, ACCOUNTS as u64 * BALANCE, "money was lost or made");
    vec![Metric::rate(THREADS * transfers, elapsed)]
}

/// Uses one OS thread and plain numbers.
fn floor(options: &Options) -> Vec<Metric> {
    let transfers = transfers(options);
    let mut accounts = vec![BALANCE; ACCOUNTS];
    let start = Instant::now();
    for thread in 0..THREADS {
        let mut random = Rng::with_seed(thread as u64);
        for _ in 0..transfers {
            let (from, to) = pair(&mut random);
            let accounts = accounts.get_disjoint_mut([from, to]);
            let [from, to] = accounts.expect("a pair is never the same twice");
            transfer(from, to);
        }
    }
    report(transfers, start.elapsed(), accounts.iter().sum())
}

/// Uses tokio tasks that lock two parking_lot mutexes, the one with the lower number first.
fn parking_lot(options: &Options) -> Vec<Metric> {
    let (transfers, yielding) = (transfers(options), options.yield_between);
    runtimes::tokio(options, async move {
        let account = |_| parking_lot::Mutex::new(BALANCE);
        let accounts: Arc<[_]> = (0..ACCOUNTS).map(account).collect();
        let start = Instant::now();
        let task = |thread| {
            let accounts = Arc::clone(&accounts);
            tokio::spawn(async move {
                let mut random = Rng::with_seed(thread as u64);
                for _ in 0..transfers {
                    let (from, to) = pair(&mut random);
                    if from < to {
                        let mut from = accounts[from].lock();
                        transfer(&mut from, &mut accounts[to].lock());
                    } else {
                        let mut to = accounts[to].lock();
                        transfer(&mut accounts[from].lock(), &mut to);
                    }
                    if yielding {
                        tokio::task::yield_now().await;
                    }
                }
            })
        };
        for task in (0..THREADS).map(task).collect::<Vec<_>>() {
            task.await.expect("no task panics");
        }
        report(
            transfers,
            start.elapsed(),
            accounts.iter().map(|account| *account.lock()).sum(),
        )
    })
}

/// Does the same with tokio's mutex.
fn tokio(options: &Options) -> Vec<Metric> {
    let (transfers, yielding) = (transfers(options), options.yield_between);
    runtimes::tokio(options, async move {
        let account = |_| tokio::sync::Mutex::new(BALANCE);
        let accounts: Arc<[_]> = (0..ACCOUNTS).map(account).collect();
        let start = Instant::now();
        let task = |thread| {
            let accounts = Arc::clone(&accounts);
            tokio::spawn(async move {
                let mut random = Rng::with_seed(thread as u64);
                for _ in 0..transfers {
                    let (from, to) = pair(&mut random);
                    if from < to {
                        let mut from = accounts[from].lock().await;
                        transfer(&mut from, &mut *accounts[to].lock().await);
                    } else {
                        let mut to = accounts[to].lock().await;
                        transfer(&mut *accounts[from].lock().await, &mut to);
                    }
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
        let mut total = 0;
        for account in accounts.iter() {
            total += *account.lock().await;
        }
        report(transfers, elapsed, total)
    })
}

/// Does the same with the mutex of async-lock.
fn smol(options: &Options) -> Vec<Metric> {
    let (transfers, yielding) = (transfers(options), options.yield_between);
    runtimes::smol(options, async move {
        let account = |_| async_lock::Mutex::new(BALANCE);
        let accounts: Arc<[_]> = (0..ACCOUNTS).map(account).collect();
        let start = Instant::now();
        let task = |thread| {
            let accounts = Arc::clone(&accounts);
            runtimes::SMOL.spawn(async move {
                let mut random = Rng::with_seed(thread as u64);
                for _ in 0..transfers {
                    let (from, to) = pair(&mut random);
                    if from < to {
                        let mut from = accounts[from].lock().await;
                        transfer(&mut from, &mut *accounts[to].lock().await);
                    } else {
                        let mut to = accounts[to].lock().await;
                        transfer(&mut *accounts[from].lock().await, &mut to);
                    }
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
        let mut total = 0;
        for account in accounts.iter() {
            total += *account.lock().await;
        }
        report(transfers, elapsed, total)
    })
}

/// One actor that owns all accounts, because with an actor for each account, a transfer would not
/// be atomic.
#[derive(kameo::Actor)]
struct Bank(Vec<u64>);

struct Transfer(usize, usize);

impl kameo::message::Message<Transfer> for Bank {
    type Reply = ();

    async fn handle(
        &mut self,
        Transfer(from, to): Transfer,
        _: &mut kameo::message::Context<Self, ()>,
    ) {
        let accounts = self.0.get_disjoint_mut([from, to]);
        let [from, to] = accounts.expect("a pair is never the same twice");
        transfer(from, to);
    }
}

fn actor(options: &Options) -> Vec<Metric> {
    let (transfers, yielding) = (transfers(options), options.yield_between);
    runtimes::tokio(options, async move {
        let bank = Bank::prepare_with_mailbox(kameo::mailbox::unbounded());
        let reference = bank.actor_ref().clone();
        let bank = bank.spawn(Bank(vec![BALANCE; ACCOUNTS]));
        let start = Instant::now();
        let task = |thread| {
            let reference = reference.clone();
            tokio::spawn(async move {
                let mut random = Rng::with_seed(thread as u64);
                for _ in 0..transfers {
                    let (from, to) = pair(&mut random);
                    reference
                        .ask(Transfer(from, to))
                        .send()
                        .await
                        .expect("the bank runs");
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
        let (bank, _) = bank.await.expect("not aborted").expect("no panic");
        report(transfers, elapsed, bank.0.iter().sum())
    })
}

/// Uses a colored number for each account; `with_all` needs no lock order.
#[cfg(feature = "tussah")]
fn tussah(options: &Options) -> Vec<Metric> {
    let (transfers, yielding) = (transfers(options), options.yield_between);
    runtimes::tussah(options, async move {
        let account = |_| tussah::Colored::new(BALANCE);
        let accounts: Arc<[_]> = (0..ACCOUNTS).map(account).collect();
        let start = Instant::now();
        let thread = |thread| {
            let accounts = Arc::clone(&accounts);
            tussah::spawn(async move {
                let mut random = Rng::with_seed(thread as u64);
                for _ in 0..transfers {
                    let (from, to) = pair(&mut random);
                    tussah::with_all((&accounts[from], &accounts[to]), transfer).await;
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
        let mut total = 0;
        for account in accounts.iter() {
            total += account.with(|balance: &mut u64| *balance).await;
        }
        report(transfers, elapsed, total)
    })
}
