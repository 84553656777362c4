//! Tests of the runtime's promises from outside.

mod basic;
mod cancelled;
mod colors;
mod colors_forgotten;
mod driver;
mod files;
mod foreign;
mod held;
mod idle;
mod model;
mod promises;
mod shutdown;
mod spans;
mod stress;

use std::time::{Duration, Instant};

use tussah_core::Runtime;

/// A wait that takes longer than this never ends. It is shorter than the time limit of
/// `cargo xtask mutants`, so that a break fails the test.
const HANG: Duration = Duration::from_secs(30);

fn runtime(workers: usize) -> Runtime {
    Runtime::builder()
        .workers(workers)
        .build()
        .expect("workers start")
}

/// Waits until `done` returns true. Returns false if the wait hangs.
fn comes(done: impl Fn() -> bool) -> bool {
    let begun = Instant::now();
    while !done() {
        if begun.elapsed() > HANG {
            return false;
        }
        std::thread::yield_now();
    }
    true
}
