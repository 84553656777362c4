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

use tussah_core::Runtime;

fn runtime(workers: usize) -> Runtime {
    Runtime::builder()
        .workers(workers)
        .build()
        .expect("workers start")
}
