//! One thread enters one value without contention, to measure the cost of an entry.

use std::hint::black_box;
use std::time::Instant;

use kameo::actor::Spawn;

use super::{Peer, Workload, peer};
use crate::cli::Options;
use crate::metric::Metric;
use crate::runtimes;

pub static WORKLOAD: Workload = Workload {
    name: "with",
    about: "one thread, one value, no contention: ns per entry",
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

fn entries(options: &Options) -> usize {
    options.scaled(20_000_000)
}

/// Enters the value.
fn enter(value: &mut usize) -> usize {
    *black_box(&mut *value) += 1;
    *value
}

fn report(entries: usize, start: Instant, value: usize) -> Vec<Metric> {
    let elapsed = start.elapsed();
    assert_eq!(value, entries, "an entry was lost or doubled");
    vec![Metric::nanos_each("ns", entries, elapsed)]
}

/// Uses a plain variable.
fn floor(options: &Options) -> Vec<Metric> {
    let entries = entries(options);
    let mut value = 0;
    let start = Instant::now();
    for _ in 0..entries {
        black_box(enter(&mut value));
    }
    report(entries, start, value)
}

fn parking_lot(options: &Options) -> Vec<Metric> {
    let entries = entries(options);
    let value = parking_lot::Mutex::new(0);
    let start = Instant::now();
    for _ in 0..entries {
        black_box(enter(&mut black_box(&value).lock()));
    }
    report(entries, start, value.into_inner())
}

fn tokio(options: &Options) -> Vec<Metric> {
    let entries = entries(options);
    runtimes::tokio(options, async move {
        let value = tokio::sync::Mutex::new(0);
        let start = Instant::now();
        for _ in 0..entries {
            black_box(enter(&mut *black_box(&value).lock().await));
        }
        report(entries, start, value.into_inner())
    })
}

fn smol(options: &Options) -> Vec<Metric> {
    let entries = entries(options);
    runtimes::smol(options, async move {
        let value = async_lock::Mutex::new(0);
        let start = Instant::now();
        for _ in 0..entries {
            black_box(enter(&mut *black_box(&value).lock().await));
        }
        report(entries, start, value.into_inner())
    })
}

/// An actor that owns the value; one task sends it requests.
#[derive(kameo::Actor)]
struct Owner(usize);

struct Enter;

impl kameo::message::Message<Enter> for Owner {
    type Reply = usize;

    async fn handle(
        &mut self,
        Enter: Enter,
        _: &mut kameo::message::Context<Self, usize>,
    ) -> usize {
        enter(&mut self.0)
    }
}

/// Uses a twentieth of the entries, because each is a round trip between two tasks.
fn actor(options: &Options) -> Vec<Metric> {
    let entries = entries(options).div_ceil(20);
    runtimes::tokio(options, async move {
        let owner = Owner::spawn_with_mailbox(Owner(0), kameo::mailbox::unbounded());
        let mut value = 0;
        let start = Instant::now();
        for _ in 0..entries {
            value = owner.ask(Enter).send().await.expect("the actor runs");
        }
        report(entries, start, value)
    })
}

#[cfg(feature = "tussah")]
fn tussah(options: &Options) -> Vec<Metric> {
    let entries = entries(options);
    runtimes::tussah(options, async move {
        let value = tussah::Colored::new(0usize);
        let mut last = 0;
        let start = Instant::now();
        for _ in 0..entries {
            last = black_box(black_box(&value).with(enter).await);
        }
        report(entries, start, last)
    })
}
