//! Colors used once, threads aborted at random points, and posts from four OS threads, to see
//! whether memory is reclaimed.
//!
//! All three phases run twice in one process, and the results are those of the second round. The
//! report lists separately the memory that the first round left behind and the memory that the
//! second round added, since an allocator may keep freed memory.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fastrand::Rng;

use super::{Peer, Workload, peer};
use crate::cli::Options;
use crate::measure::resident_bytes;
use crate::metric::Metric;
use crate::runtimes;

pub static WORKLOAD: Workload = Workload {
    name: "churn",
    about: "1 M colors used once, 1 M threads aborted at random points, 1 M posts from 4 OS threads; memory kept",
    peers: PEERS,
};

const PEERS: &[Peer] = &[
    peer("floor", floor),
    peer("tokio", tokio),
    peer("tokio-boxed", tokio_boxed),
    peer("smol", smol),
    #[cfg(feature = "tussah")]
    peer("tussah", tussah),
];

/// Bound, in colors or threads: the maximum number in flight at the same time, as in a service that
/// limits its load.
const BATCH: usize = 1000;
const POSTERS: usize = 4;
/// The number of colors to which the OS threads post.
const TARGETS: usize = 1000;

/// The number of events that have run, in all phases.
static RUN: AtomicUsize = AtomicUsize::new(0);
/// The number of threads whose stack exists.
static ALIVE: AtomicUsize = AtomicUsize::new(0);

fn ran() {
    RUN.fetch_add(1, Ordering::Relaxed);
}

/// Handles a post. The post carries its number as an event carries its data.
fn ran_post(number: usize) {
    std::hint::black_box(number);
    ran();
}

/// A post that brings its own code, as the posts of tussah do.
type Post = Box<dyn FnOnce() + Send>;

/// A value on the stack of each thread, which detects a stack that is never dropped.
struct Stack;

impl Stack {
    fn new() -> Stack {
        ALIVE.fetch_add(1, Ordering::Relaxed);
        Stack
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Returns the number of colors, aborted threads, or posts of one round.
fn count(options: &Options) -> usize {
    options.scaled(1_000_000).next_multiple_of(BATCH)
}

fn wait_for_run(count: usize) {
    while RUN.load(Ordering::Relaxed) < count {
        std::thread::yield_now();
    }
    assert_eq!(RUN.load(Ordering::Relaxed), count, "an event ran twice");
}

/// Runs the three phases twice and reports the second round. `colors` and `aborts` receive the
/// number of colors and threads. `post` receives the number of one event and runs on one of the OS
/// threads.
fn twice(
    options: &Options,
    mut colors: impl FnMut(usize),
    mut aborts: impl FnMut(usize),
    post: impl Fn(usize) + Sync,
) -> Vec<Metric> {
    let count = count(options);
    let rate = |name: &str, start: Instant| {
        Metric::higher(
            &format!("M/s {name}"),
            count as f64 / start.elapsed().as_secs_f64() / 1e6,
        )
    };
    let mut resident = vec![resident_bytes()];
    let mut metrics = Vec::new();
    for _ in 0..2 {
        let run_before = RUN.load(Ordering::Relaxed);
        let start = Instant::now();
        colors(count);
        wait_for_run(run_before + count);
        metrics = vec![rate("colors", start)];

        let start = Instant::now();
        aborts(count);
        metrics.push(rate("aborts", start));
        assert_eq!(
            ALIVE.load(Ordering::Relaxed),
            0,
            "the stack of a thread was leaked"
        );

        let run_before = RUN.load(Ordering::Relaxed);
        let start = Instant::now();
        std::thread::scope(|scope| {
            for poster in 0..POSTERS {
                let post = &post;
                scope.spawn(move || (poster..count).step_by(POSTERS).for_each(post));
            }
        });
        wait_for_run(run_before + count);
        metrics.push(rate("posts", start));

        // An allocator may return memory to the system with a delay.
        std::thread::sleep(Duration::from_millis(100));
        resident.push(resident_bytes());
    }
    metrics.push(Metric::info(
        "MB kept by the 1st round",
        (resident[1] - resident[0]) / 1e6,
    ));
    metrics.push(Metric::info(
        "MB added by the 2nd round",
        (resident[2] - resident[1]) / 1e6,
    ));
    metrics
}

/// Uses boxed closures and boxed futures in loops, and four OS threads with one channel.
fn floor(options: &Options) -> Vec<Metric> {
    use std::pin::Pin;
    use std::task::{Context, Waker};
    type Event = Post;
    let (sender, receiver) = std::sync::mpsc::channel::<Event>();
    std::thread::spawn(move || receiver.into_iter().for_each(|event| event()));
    let colors = |count: usize| {
        for _ in 0..count / BATCH {
            let batch: Vec<Event> = (0..BATCH).map(|_| Box::new(ran) as Event).collect();
            batch.into_iter().for_each(|event| event());
        }
    };
    let aborts = |count: usize| {
        let mut random = Rng::with_seed(1);
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..count / BATCH {
            let mut batch: Vec<Pin<Box<dyn Future<Output = ()>>>> = Vec::with_capacity(BATCH);
            for _ in 0..BATCH {
                batch.push(Box::pin(async {
                    let _stack = Stack::new();
                    futures_lite::future::yield_now().await;
                    std::future::pending::<()>().await;
                }));
            }
            for mut future in batch {
                for _ in 0..random.usize(..3) {
                    assert!(future.as_mut().poll(&mut context).is_pending());
                }
            }
        }
    };
    twice(options, colors, aborts, |event| {
        assert!(
            sender.send(Box::new(move || ran_post(event))).is_ok(),
            "the OS thread waits for us"
        );
    })
}

/// Uses a task for each color, `abort` and join for each thread, and tasks with channels for the
/// posts.
fn tokio(options: &Options) -> Vec<Metric> {
    tokio_with(options, |event| event, ran_post)
}

/// Same, but a post is a boxed closure.
fn tokio_boxed(options: &Options) -> Vec<Metric> {
    let message = |event| Box::new(move || ran_post(event)) as Post;
    tokio_with(options, message, |post| post())
}

fn tokio_with<T: Send + 'static>(
    options: &Options,
    message: impl Fn(usize) -> T + Sync,
    handle: impl Fn(T) + Copy + Send + 'static,
) -> Vec<Metric> {
    let runtime = runtimes::tokio_with(options, options.workers());
    let colors = |count: usize| {
        let task = runtime.spawn(async move {
            for _ in 0..count / BATCH {
                for _ in 0..BATCH {
                    tokio::spawn(async { ran() });
                }
                tokio::task::yield_now().await;
            }
        });
        runtime.block_on(task).expect("the task does not panic");
    };
    let aborts = |count: usize| {
        let task = runtime.spawn(async move {
            let mut random = Rng::with_seed(1);
            for _ in 0..count / BATCH {
                let thread = |_| {
                    let yields = random.usize(..4);
                    tokio::spawn(async move {
                        let _stack = Stack::new();
                        for _ in 0..yields {
                            tokio::task::yield_now().await;
                        }
                        std::future::pending::<()>().await;
                    })
                };
                let handles: Vec<_> = (0..BATCH).map(thread).collect();
                for _ in 0..random.usize(..4) {
                    tokio::task::yield_now().await;
                }
                handles.iter().for_each(|handle| handle.abort());
                for handle in handles {
                    assert!(handle.await.is_err_and(|error| error.is_cancelled()));
                }
            }
        });
        runtime.block_on(task).expect("the task does not panic");
    };
    let target = |_| {
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        runtime.spawn(async move {
            while let Some(message) = receiver.recv().await {
                handle(message);
            }
        });
        sender
    };
    let targets: Vec<_> = (0..TARGETS).map(target).collect();
    twice(options, colors, aborts, |event| {
        let sent = targets[event % TARGETS].send(message(event));
        assert!(sent.is_ok(), "the task waits for us");
    })
}

/// Uses a task for each color, `cancel` for each thread, and tasks with channels for the posts.
fn smol(options: &Options) -> Vec<Metric> {
    use futures_lite::future::{block_on, yield_now};
    use runtimes::SMOL;
    runtimes::smol_with(options, options.workers(), runtimes::Reactor::Off);
    let colors = |count: usize| {
        block_on(SMOL.spawn(async move {
            for _ in 0..count / BATCH {
                for _ in 0..BATCH {
                    SMOL.spawn(async { ran() }).detach();
                }
                yield_now().await;
            }
        }));
    };
    let aborts = |count: usize| {
        block_on(SMOL.spawn(async move {
            let mut random = Rng::with_seed(1);
            for _ in 0..count / BATCH {
                let thread = |_| {
                    let yields = random.usize(..4);
                    SMOL.spawn(async move {
                        let _stack = Stack::new();
                        for _ in 0..yields {
                            yield_now().await;
                        }
                        std::future::pending::<()>().await;
                    })
                };
                let tasks: Vec<_> = (0..BATCH).map(thread).collect();
                for _ in 0..random.usize(..4) {
                    yield_now().await;
                }
                for task in tasks {
                    assert!(task.cancel().await.is_none());
                }
            }
        }));
    };
    let target = |_| {
        let (sender, receiver) = async_channel::unbounded();
        let task = SMOL.spawn(async move {
            while let Ok(number) = receiver.recv().await {
                ran_post(number);
            }
        });
        task.detach();
        sender
    };
    let targets: Vec<_> = (0..TARGETS).map(target).collect();
    twice(options, colors, aborts, |event| {
        targets[event % TARGETS]
            .try_send(event)
            .expect("the task waits for us");
    })
}

/// Uses a color given by number for each event, `abort` and join for each thread, and pinned colors
/// for the posts.
#[cfg(feature = "tussah")]
fn tussah(options: &Options) -> Vec<Metric> {
    use tussah::{Color, yield_now};
    let runtime = runtimes::tussah_with(options, options.workers());
    let mut next_color = 1;
    let colors = |count: usize| {
        let first = next_color;
        next_color += count as u64;
        let thread = runtime.spawn(async move {
            for color in first..first + count as u64 {
                assert!(
                    tussah::post_in(Color(color), ran).is_ok(),
                    "nothing limits the color"
                );
                if color % BATCH as u64 == 0 {
                    yield_now().await;
                }
            }
        });
        runtime.block_on(thread).expect("the thread does not panic");
    };
    let aborts = |count: usize| {
        let thread = runtime.spawn(async move {
            let mut random = Rng::with_seed(1);
            for _ in 0..count / BATCH {
                let thread = |_| {
                    let yields = random.usize(..4);
                    tussah::spawn(async move {
                        let _stack = Stack::new();
                        for _ in 0..yields {
                            yield_now().await;
                        }
                        std::future::pending::<()>().await;
                    })
                };
                let handles: Vec<_> = (0..BATCH).map(thread).collect();
                for _ in 0..random.usize(..4) {
                    yield_now().await;
                }
                handles.iter().for_each(|handle| handle.abort());
                for handle in handles {
                    assert!(
                        handle.await.is_err(),
                        "a thread that waits for ever was aborted"
                    );
                }
            }
        });
        runtime.block_on(thread).expect("the thread does not panic");
    };
    let target = |color| runtime.color(Color(u64::MAX - color as u64));
    let targets: Vec<_> = (0..TARGETS).map(target).collect();
    twice(options, colors, aborts, |event| {
        let posted = runtime.post_in(&targets[event % TARGETS], move || ran_post(event));
        assert!(
            posted.is_ok(),
            "the color has no limit and the runtime runs"
        );
    })
}
