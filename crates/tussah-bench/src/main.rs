//! Benchmarks of tussah beside its peers and bare floors: `tussah-bench WORKLOAD [flags]`.
#![forbid(unsafe_code)]

mod cli;
mod harness;
mod measure;
mod metric;
mod report;
mod runtimes;
mod workload;

use clap::Parser;

/// One allocator for all peers, so that a ratio never compares allocators.
#[cfg(not(feature = "system-alloc"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The name that the report prints for the allocator above.
const ALLOCATOR_NAME: &str = if cfg!(feature = "system-alloc") {
    "system"
} else {
    "mimalloc"
};

fn main() -> std::process::ExitCode {
    let options = cli::Options::parse();
    match options.child.clone() {
        Some(peer) => harness::child(&options, &peer),
        None => harness::parent(&options),
    }
}
