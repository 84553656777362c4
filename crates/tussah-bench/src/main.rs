//! Benchmarks of tussah, its peers and bare floors: `tussah-bench WORKLOAD [flags]`. Two
//! subcommands compare the controllers of stages on a simulator (`tussah-bench controllers
//! [flags]`) and web servers (`tussah-bench web [flags]`).
#![forbid(unsafe_code)]

mod cli;
#[cfg(feature = "tussah")]
mod controllers;
mod descriptors;
mod epoll;
mod harness;
mod measure;
mod metric;
mod report;
mod runtimes;
mod server;
mod web;
mod workload;

use clap::Parser;

#[cfg(not(feature = "system-alloc"))]
type Allocator = mimalloc::MiMalloc;
#[cfg(not(feature = "system-alloc"))]
const ALLOCATOR_OF_ALL: Allocator = mimalloc::MiMalloc;
#[cfg(feature = "system-alloc")]
type Allocator = std::alloc::System;
#[cfg(feature = "system-alloc")]
const ALLOCATOR_OF_ALL: Allocator = std::alloc::System;

/// One allocator for all peers, so that a ratio never compares allocators.
#[cfg(not(feature = "count-heap"))]
#[global_allocator]
static ALLOCATOR: Allocator = ALLOCATOR_OF_ALL;

/// The same allocator with a count of the bytes in use.
#[cfg(feature = "count-heap")]
#[global_allocator]
static ALLOCATOR: cap::Cap<Allocator> = cap::Cap::new(ALLOCATOR_OF_ALL, usize::MAX);

/// Returns the number of bytes of this process's heap in use, or `None` without a counting
/// allocator.
fn heap_bytes() -> Option<f64> {
    #[cfg(feature = "count-heap")]
    return Some(ALLOCATOR.allocated() as f64);
    #[cfg(not(feature = "count-heap"))]
    None
}

/// The name of the allocator in the report.
const ALLOCATOR_NAME: &str = if cfg!(feature = "system-alloc") {
    "system"
} else {
    "mimalloc"
};

fn main() -> std::process::ExitCode {
    let arguments = std::env::args().skip(2);
    match std::env::args().nth(1).as_deref() {
        #[cfg(feature = "tussah")]
        Some("controllers") => return controllers::main(arguments),
        Some("web") => return web::main(arguments),
        Some("video-serve") => return web::video::threads::main(arguments),
        #[cfg(feature = "web-peers")]
        Some("web-serve") => return web::serve::main(arguments),
        _ => {}
    }
    let options = cli::Options::parse();
    match options.child.clone() {
        Some(peer) => harness::child(&options, &peer),
        None => harness::parent(&options),
    }
}
