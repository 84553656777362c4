//! The integration tests of tussah, except those of flow graphs.

mod alone;
mod callbacks;
mod cancel;
mod colored;
mod common;
#[cfg(feature = "dns")]
mod dns;
mod events;
mod examples;
mod foreign;
mod fs;
mod net;
mod no_runtime;
mod pipe;
mod process;
mod proxy;
mod scopes;
mod send;
mod signal;
mod stages;
mod stages_governor;
mod stages_graph;
mod stages_net;
mod stages_proxy;
mod stages_record;
mod stages_shutdown;
mod stages_threads;
mod stages_trace;
mod sync;
mod threads;
mod time;
mod udp;
mod unix;

use common::{by_hand, idle, run, runtime};

/// Runs a future as a thread of a runtime with one worker, whose driver exists from the first wait
/// on: for tests that count descriptors.
#[track_caller]
fn run_on_one<F>(future: F) -> F::Output
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    runtime(1).block_on_spawned(future)
}
