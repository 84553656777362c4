//! Starts the runtimes of the peers, all with the same number of workers.
//!
//! A process runs one peer once, so no runtime is shut down: it ends with the process.

use std::future::{Future, pending};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use crate::cli::Options;

/// The executor of the peer `smol`; it is a static, as in the crate smol itself.
pub static SMOL: async_executor::Executor<'static> = async_executor::Executor::new();

/// Starts a multi-threaded tokio runtime with timers.
pub fn tokio_with(options: &Options, workers: usize) -> &'static tokio::runtime::Runtime {
    tokio_of(options, workers, false)
}

/// Starts a multi-threaded tokio runtime with timers and I/O.
pub fn tokio_io(options: &Options) -> &'static tokio::runtime::Runtime {
    tokio_of(options, options.workers_or(1), true)
}

/// Starts a tokio runtime with timers and I/O that runs on the OS thread that calls `block_on`.
pub fn tokio_current() -> tokio::runtime::Runtime {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("the OS gives us an epoll")
}

/// Registers a listener with the caller's tokio runtime.
pub fn tokio_listener(listener: std::net::TcpListener) -> tokio::net::TcpListener {
    crate::server::nonblocking(&listener);
    tokio::net::TcpListener::from_std(listener).expect("the runtime has I/O")
}

fn tokio_of(options: &Options, workers: usize, io: bool) -> &'static tokio::runtime::Runtime {
    let pin = options.pin;
    let next = std::sync::atomic::AtomicUsize::new(0);
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if io {
        builder.enable_io();
    }
    let runtime = builder
        .worker_threads(workers)
        .enable_time()
        .on_thread_start(move || {
            if pin {
                pin_to(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % workers);
            }
        })
        .build()
        .expect("the OS gives us a few threads");
    for _ in 0..parked(options) {
        runtime.spawn(pending::<()>());
    }
    Box::leak(Box::new(runtime))
}

/// Runs `future` as a task on a worker of a new tokio runtime.
pub fn tokio<F>(options: &Options, future: F) -> F::Output
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    let runtime = tokio_with(options, options.workers());
    runtime
        .block_on(runtime.spawn(future))
        .expect("no task of the peer panics")
}

/// The behavior of the OS threads of the peer `smol` while no task is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reactor {
    /// They sleep: best for a workload without timers.
    Off,
    /// They drive the timers of async-io themselves, as the threads of the crate smol do.
    On,
}

/// Starts the OS threads that drive [`SMOL`].
pub fn smol_with(options: &Options, workers: usize, reactor: Reactor) {
    for index in 0..workers {
        let pin = options.pin;
        std::thread::spawn(move || {
            if pin {
                pin_to(index);
            }
            match reactor {
                Reactor::Off => futures_lite::future::block_on(SMOL.run(pending::<()>())),
                Reactor::On => async_io::block_on(SMOL.run(pending::<()>())),
            }
        });
    }
    for _ in 0..parked(options) {
        SMOL.spawn(pending::<()>()).detach();
    }
}

/// Runs `future` as a task on a worker of the peer `smol`, without a reactor.
pub fn smol<F>(options: &Options, future: F) -> F::Output
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    smol_with(options, options.workers(), Reactor::Off);
    futures_lite::future::block_on(SMOL.spawn(future))
}

/// Starts a compio runtime on one OS thread per worker and waits for all of them. Each ring has the
/// cheapest configuration, and each runtime runs the future that `f` makes from the worker's index.
#[cfg(feature = "compio")]
pub fn compio<F: Future>(options: &Options, f: impl Fn(usize) -> F + Sync) {
    os_threads(options, options.workers_or(1), |index| {
        let mut driver = compio::driver::ProactorBuilder::new();
        driver.single_issuer(true).defer_taskrun(true);
        let runtime = compio::runtime::RuntimeBuilder::new()
            .with_proactor(driver)
            .build();
        runtime.expect("the kernel has io_uring").block_on(f(index));
    });
}

/// Registers a listener with the caller's compio runtime.
#[cfg(feature = "compio")]
pub fn compio_listener(listener: &std::net::TcpListener) -> compio::net::TcpListener {
    let listener = listener.try_clone().expect("there are descriptors");
    compio::net::TcpListener::from_std(listener).expect("the runtime takes a socket")
}

/// Runs `f` with an index on each of `count` OS threads at the same time. Returns the time from the
/// start of all threads to the end of all threads.
pub fn os_threads(options: &Options, count: usize, f: impl Fn(usize) + Sync) -> Duration {
    let barrier = Barrier::new(count + 1);
    let mut start = Instant::now();
    std::thread::scope(|scope| {
        for index in 0..count {
            let (barrier, f) = (&barrier, &f);
            scope.spawn(move || {
                if options.pin {
                    pin_to(index);
                }
                barrier.wait();
                f(index);
            });
        }
        // The clock is read before the last thread arrives; later, the other threads may already be
        // at work.
        start = Instant::now();
        barrier.wait();
    });
    start.elapsed()
}

/// Pins the calling OS thread, and the threads that it starts, to the `index`th CPU that it may
/// use.
pub fn pin_to(index: usize) {
    let cpus = allowed_cpus();
    pin_to_cpus(&[cpus[index % cpus.len()]]);
}

/// Returns the numbers of the CPUs that the calling OS thread may use.
pub fn allowed_cpus() -> Vec<usize> {
    use rustix::thread::{CpuSet, sched_getaffinity};
    let allowed = sched_getaffinity(None).expect("an OS thread may ask for its own affinity");
    (0..CpuSet::MAX_CPU)
        .filter(|&cpu| allowed.is_set(cpu))
        .collect()
}

/// Pins the calling OS thread, and the threads that it starts, to these CPUs.
pub fn pin_to_cpus(cpus: &[usize]) {
    let mut set = rustix::thread::CpuSet::new();
    cpus.iter().for_each(|&cpu| set.set(cpu));
    rustix::thread::sched_setaffinity(None, &set)
        .expect("an OS thread may use the CPUs of its process");
}

/// Returns the number of threads to park in addition to the workload; `idle`, `timers` and `fifo`
/// use the flag themselves.
fn parked(options: &Options) -> usize {
    match options.workload.as_str() {
        "idle" | "timers" | "fifo" => 0,
        _ => options.idle.unwrap_or(0),
    }
}

/// Starts a tussah runtime.
#[cfg(feature = "tussah")]
pub fn tussah_with(options: &Options, workers: usize) -> &'static tussah::Runtime {
    let runtime = tussah::Runtime::builder()
        .workers(workers)
        .stealing(!options.no_steal)
        .pin(options.pin)
        .build()
        .expect("the OS gives us a few threads");
    for _ in 0..parked(options) {
        drop(runtime.spawn(pending::<()>()));
    }
    Box::leak(Box::new(runtime))
}

/// Runs `future` as a thread on a worker of a new tussah runtime.
#[cfg(feature = "tussah")]
pub fn tussah<F>(options: &Options, future: F) -> F::Output
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    tussah_of(options, options.workers(), future)
}

/// Runs `future` as a thread on a worker of a new tussah runtime with `workers` workers.
#[cfg(feature = "tussah")]
pub fn tussah_of<F>(options: &Options, workers: usize, future: F) -> F::Output
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    let runtime = tussah_with(options, workers);
    runtime
        .block_on(runtime.spawn(future))
        .expect("no thread of the peer panics")
}
