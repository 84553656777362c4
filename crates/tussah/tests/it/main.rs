//! The integration tests of tussah, in one binary.

mod colored;
#[cfg(feature = "dns")]
mod dns;
mod events;
mod examples;
mod net;
mod scopes;
mod sync;
mod threads;
mod time;
mod ui;

/// A runtime with so many workers.
fn runtime(workers: usize) -> tussah::Runtime {
    tussah::Runtime::builder()
        .workers(workers)
        .build()
        .expect("the workers start")
}
