//! Functions for both test programs.

/// A runtime with N workers.
pub fn runtime(workers: usize) -> tussah::Runtime {
    tussah::Runtime::builder()
        .workers(workers)
        .build()
        .expect("the workers start")
}

/// A runtime with one worker and a clock that is moved by hand, so that nothing is ever too late
/// unless the test says so.
pub fn by_hand() -> (tussah::ManualClock, tussah::Runtime) {
    let clock = tussah::Clock::manual();
    let runtime = tussah::Runtime::builder().workers(1).clock(clock.clock());
    (clock, runtime.build().expect("the worker starts"))
}

/// Runs a future as a thread of a runtime with two workers.
#[track_caller]
pub fn run<F>(future: F) -> F::Output
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    runtime(2).block_on_spawned(future)
}

/// Lets others run for a while, so that what should not happen has its chance. Enough on a runtime
/// with one worker: it looks at the clock after 128 turns at the most.
pub async fn idle() {
    for _ in 0..1000 {
        tussah::yield_now().await;
    }
}
