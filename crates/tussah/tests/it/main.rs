//! The integration tests of tussah, in one binary.

mod alone;
mod callbacks;
mod cancel;
mod colored;
#[cfg(feature = "dns")]
mod dns;
mod events;
mod examples;
mod flow;
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

/// A runtime with N workers.
fn runtime(workers: usize) -> tussah::Runtime {
    tussah::Runtime::builder()
        .workers(workers)
        .build()
        .expect("the workers start")
}

/// A runtime with one worker and a clock that is moved by hand, so that nothing is ever too late
/// unless the test says so.
fn by_hand() -> (tussah::ManualClock, tussah::Runtime) {
    let clock = tussah::Clock::manual();
    let runtime = tussah::Runtime::builder().workers(1).clock(clock.clock());
    (clock, runtime.build().expect("the worker starts"))
}

/// Runs a future as a thread of a runtime with two workers.
#[track_caller]
fn run<F>(future: F) -> F::Output
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    runtime(2).block_on_spawned(future)
}

/// The same with one worker, whose driver is there from the first wait on: for tests that count
/// descriptors.
#[track_caller]
fn run_on_one<F>(future: F) -> F::Output
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    runtime(1).block_on_spawned(future)
}

/// Lets others run for a while, so that what should not happen has its chance. Enough on a runtime
/// with one worker: it looks at the clock after 128 turns at the most.
async fn idle() {
    for _ in 0..1000 {
        tussah::yield_now().await;
    }
}
