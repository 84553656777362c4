//! Tests of the blocking pool on OS threads.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::future::block_on;

use super::nesting::{EXTRA_STACKS_MAX, INLINE_DEPTH_MAX};
use super::*;
use crate::join_error::JoinError;

/// The longest wait of a test; a test that reaches it has failed.
const FAR: Duration = Duration::from_secs(600);

fn threads_max(threads_max: usize) -> PoolPolicy {
    PoolPolicy {
        threads_max,
        idle_timeout: FAR,
        ..PoolPolicy::default()
    }
}

fn pool(threads: usize) -> Arc<BlockingPool> {
    Arc::new(BlockingPool::new("test", threads_max(threads)))
}

/// Waits for a state that other OS threads bring about, without assuming how long that takes.
fn eventually(pool: &BlockingPool, reached: impl Fn(&BlockingStats) -> bool) {
    for _ in 0..60_000 {
        if reached(&pool.stats()) {
            return;
        }
        thread::park_timeout(Duration::from_millis(1));
    }
    panic!("never reached: {:?}", pool.stats());
}

/// Occupies one OS thread of the pool until the sender is used or dropped. Returns when the job has
/// begun.
fn occupy(pool: &BlockingPool) -> (Sender<()>, BlockingHandle<()>) {
    let (release, gate) = channel::<()>();
    let (begun, has_begun) = channel();
    let handle = pool
        .submit(move || {
            begun.send(()).unwrap();
            let _ = gate.recv();
        })
        .unwrap();
    has_begun.recv().unwrap();
    (release, handle)
}

fn shut_down_clean(pool: &BlockingPool) {
    let outcome = pool.shutdown(Instant::now() + FAR);
    assert_eq!(
        outcome,
        ShutdownOutcome {
            cancelled: 0,
            running: 0
        }
    );
    let stats = pool.stats();
    assert_eq!(
        (
            stats.threads,
            stats.idle,
            stats.extra_stacks,
            stats.queued,
            stats.running
        ),
        (0, 0, 0, 0, 0)
    );
}

#[test]
fn a_job_runs_on_a_named_thread_and_gives_its_result() {
    let pool = BlockingPool::new("disk", threads_max(1));
    // The future does not run the job here, as a join might, because this is not a thread of a
    // pool.
    let name = block_on(
        pool.submit(|| thread::current().name().map(str::to_owned))
            .unwrap(),
    );
    assert_eq!(name.unwrap().as_deref(), Some("disk-blocking-0"));
    assert_eq!(pool.stats().completed, 1);
    shut_down_clean(&pool);
}

#[test]
fn the_pool_grows_to_its_bound_and_not_beyond() {
    let pool = pool(4);
    let all_four = Arc::new(Barrier::new(5));
    let mut handles = Vec::new();
    for n in 1..=4 {
        let all_four = Arc::clone(&all_four);
        handles.push(
            pool.submit(move || {
                all_four.wait();
                all_four.wait();
            })
            .unwrap(),
        );
        assert_eq!(pool.stats().threads, n);
    }
    all_four.wait(); // Passes only if four jobs run at the same time.
    for n in 1..=6 {
        handles.push(pool.submit(|| ()).unwrap());
        let stats = pool.stats();
        assert_eq!(
            (stats.threads, stats.idle, stats.running, stats.queued),
            (4, 0, 4, n)
        );
    }
    all_four.wait();
    for handle in handles {
        block_on(handle).unwrap();
    }
    assert_eq!(pool.stats().completed, 10);
    shut_down_clean(&pool);
}

#[test]
fn idle_threads_end_and_the_next_job_starts_one_again() {
    let policy = PoolPolicy {
        idle_timeout: Duration::from_millis(1),
        ..PoolPolicy::default()
    };
    let pool = BlockingPool::new("test", policy);
    for _ in 0..20 {
        let together = Arc::new(Barrier::new(3));
        for _ in 0..3 {
            let together = Arc::clone(&together);
            drop(
                pool.submit(move || {
                    together.wait();
                })
                .unwrap(),
            );
        }
        eventually(&pool, |stats| stats.threads == 0 && stats.idle == 0);
    }
    assert_eq!(pool.stats().completed, 60);
    shut_down_clean(&pool);
}

/// Jobs that come one at a time wake all idle threads in turns, so none of them is idle for long.
#[test]
fn threads_that_are_not_needed_end_while_jobs_still_come() {
    let policy = PoolPolicy {
        idle_timeout: Duration::from_millis(5),
        ..PoolPolicy::default()
    };
    let pool = BlockingPool::new("test", policy);
    let together = Arc::new(Barrier::new(16));
    let burst: Vec<_> = (0..16)
        .map(|_| {
            let together = Arc::clone(&together);
            let job = pool.submit(move || {
                together.wait();
            });
            job.unwrap()
        })
        .collect();
    for job in burst {
        block_on(job).unwrap();
    }
    let mut threads = pool.stats().threads;
    while threads > 2 {
        block_on(pool.submit(|| ()).unwrap()).unwrap();
        threads = pool.stats().threads;
    }
    shut_down_clean(&pool);
}

#[test]
fn a_job_that_comes_as_the_last_thread_ends_is_not_forgotten() {
    let jobs = if cfg!(miri) { 20 } else { 10_000 };
    for idle_us in [0, 20] {
        let idle_timeout = Duration::from_micros(idle_us);
        let pool = BlockingPool::new(
            "test",
            PoolPolicy {
                idle_timeout,
                ..threads_max(1)
            },
        );
        for n in 0..jobs {
            assert_eq!(block_on(pool.submit(move || n).unwrap()).unwrap(), n);
        }
        shut_down_clean(&pool);
    }
}

#[test]
fn the_end_of_a_job_adds_a_thread() {
    let refuse = Arc::new(AtomicBool::new(false));
    let refused = Arc::clone(&refuse);
    let pool = BlockingPool::with_starter(
        "test",
        threads_max(2),
        Box::new(move |builder, work| match refused.load(Ordering::Relaxed) {
            true => Err(io::ErrorKind::WouldBlock.into()),
            false => builder.spawn(work).map(drop),
        }),
    );
    let (release, first) = occupy(&pool);
    // Both jobs are submitted while no OS thread can be added, and they end only if they run at the
    // same time.
    refuse.store(true, Ordering::Relaxed);
    let together = Arc::new(Barrier::new(2));
    let pair = [0, 1].map(|_| {
        let together = Arc::clone(&together);
        pool.submit(move || {
            together.wait();
        })
        .unwrap()
    });
    assert_eq!(
        (
            pool.stats().threads,
            pool.stats().queued,
            pool.stats().starts_failed
        ),
        (1, 2, 2)
    );
    refuse.store(false, Ordering::Relaxed);
    drop(release);
    block_on(first).unwrap();
    for handle in pair {
        block_on(handle).unwrap();
    }
    assert_eq!(pool.stats().threads, 2);
    shut_down_clean(&pool);
}

#[test]
fn without_a_thread_a_refused_start_gives_the_closure_back() {
    let pool = BlockingPool::with_starter(
        "test",
        PoolPolicy::default(),
        Box::new(|_, _| Err(io::Error::from_raw_os_error(11))),
    );
    let error = pool.submit(|| 7).unwrap_err();
    assert!(error.is_no_thread() && !error.is_full() && !error.is_shut_down());
    assert!(std::error::Error::source(&error).is_some());
    assert_eq!(error.into_inner()(), 7);
    let stats = pool.stats();
    assert_eq!(
        (stats.threads, stats.queued, stats.starts_failed),
        (0, 0, 1)
    );
    shut_down_clean(&pool);
}

#[test]
fn with_a_thread_a_refused_start_leaves_the_job_queued() {
    let first = AtomicBool::new(true);
    let pool = BlockingPool::with_starter(
        "test",
        PoolPolicy::default(),
        Box::new(
            move |builder, work| match first.swap(false, Ordering::Relaxed) {
                true => builder.spawn(work).map(drop),
                false => Err(io::ErrorKind::WouldBlock.into()),
            },
        ),
    );
    let (release, handle) = occupy(&pool);
    let queued = pool.submit(|| 7).unwrap();
    assert_eq!(
        (
            pool.stats().threads,
            pool.stats().queued,
            pool.stats().starts_failed
        ),
        (1, 1, 1)
    );
    drop(release);
    assert_eq!(block_on(queued).unwrap(), 7);
    handle.join().unwrap();
    shut_down_clean(&pool);
}

#[test]
fn a_full_queue_gives_the_closure_back() {
    let pool = BlockingPool::new(
        "test",
        PoolPolicy {
            queue_max: 2,
            ..threads_max(1)
        },
    );
    let (release, handle) = occupy(&pool);
    let queued = [pool.submit(|| 1).unwrap(), pool.submit(|| 2).unwrap()];
    let owned = String::from("mine");
    let error = pool.submit(move || owned).unwrap_err();
    assert!(error.is_full());
    assert_eq!(
        error.to_string(),
        "the blocking pool's queue is full: 2 jobs wait"
    );
    assert_eq!(error.into_inner()(), "mine");
    drop(release);
    assert_eq!(queued.map(|handle| handle.join().unwrap()), [1, 2]);
    handle.join().unwrap();
    shut_down_clean(&pool);
}

#[test]
fn a_panic_goes_to_the_handle_and_the_pool_goes_on() {
    let pool = pool(1);
    let error = block_on(pool.submit(|| panic!("broken {}", 1)).unwrap()).unwrap_err();
    assert!(error.is_panic());
    assert_eq!(error.to_string(), "panicked: broken 1");
    // This holds even if the panic happens on the stack of a joiner.
    let (release, handle) = occupy(&pool);
    let error = pool
        .submit(|| panic!("inline"))
        .unwrap()
        .join()
        .unwrap_err();
    assert_eq!(error.into_panic().downcast_ref::<&str>(), Some(&"inline"));
    drop(release);
    handle.join().unwrap();
    let stats = pool.stats();
    assert_eq!((stats.threads, stats.completed, stats.panicked), (1, 1, 2));
    shut_down_clean(&pool);
}

/// Panics when it is dropped, with a payload that panics when it is dropped.
struct Bomb(Arc<AtomicUsize>);

impl Drop for Bomb {
    fn drop(&mut self) {
        if self.0.fetch_add(1, Ordering::Relaxed) == 0 {
            std::panic::panic_any(Bomb(Arc::new(AtomicUsize::new(0))));
        }
    }
}

#[test]
fn values_that_panic_in_their_drop_do_not_harm_the_pool() {
    if cfg!(miri) {
        return; // The last payload leaks on purpose.
    }
    let pool = pool(1);
    let drops = Arc::new(AtomicUsize::new(0));
    // An OS thread of the pool drops the result of a detached job.
    let (release, handle) = occupy(&pool);
    let bomb = Bomb(Arc::clone(&drops));
    drop(pool.submit(move || bomb).unwrap());
    drop(release);
    handle.join().unwrap();
    eventually(&pool, |stats| stats.completed == 2 && stats.idle == 1);
    assert_eq!(drops.load(Ordering::Relaxed), 1);
    // The caller that aborts a job drops its closure.
    let (release, handle) = occupy(&pool);
    let bomb = Bomb(Arc::new(AtomicUsize::new(0)));
    let aborted = pool.submit(move || drop(bomb)).unwrap();
    assert!(aborted.abort());
    assert!(aborted.join().unwrap_err().is_cancelled());
    drop(release);
    handle.join().unwrap();
    shut_down_clean(&pool);
}

#[test]
fn abort_removes_a_queued_job_only() {
    let pool = pool(1);
    let (release, running) = occupy(&pool);
    let owned = Arc::new(());
    let inside = Arc::clone(&owned);
    let queued = pool.submit(move || drop(inside)).unwrap();
    assert!(!running.abort());
    assert!(queued.abort());
    assert!(!queued.abort());
    assert!(queued.is_finished());
    assert_eq!(Arc::strong_count(&owned), 1);
    assert_eq!((pool.stats().queued, pool.stats().cancelled), (0, 1));
    let error = queued.join().unwrap_err();
    assert!(error.is_cancelled() && !error.is_too_deep());
    drop(release);
    running.join().unwrap();
    shut_down_clean(&pool);
}

struct CountWakes(AtomicUsize);

impl Wake for CountWakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn the_last_waker_is_woken_once() {
    let pool = pool(1);
    let (release, running) = occupy(&pool);
    let mut queued = pool.submit(|| ()).unwrap();
    let wakes = [0, 1].map(|_| Arc::new(CountWakes(AtomicUsize::new(0))));
    let mut poll = |n: usize| {
        let waker = Waker::from(Arc::clone(&wakes[n]));
        Pin::new(&mut queued).poll(&mut Context::from_waker(&waker))
    };
    for n in [0, 0, 1, 1] {
        assert!(poll(n).is_pending());
    }
    assert_eq!(Arc::strong_count(&wakes[0]), 1);
    assert_eq!(pool.shutdown(Instant::now()).cancelled, 1);
    assert_eq!(
        [0, 1].map(|n: usize| wakes[n].0.load(Ordering::Relaxed)),
        [0, 1]
    );
    assert!(matches!(poll(1), Poll::Ready(Err(error)) if error.is_cancelled()));
    drop(release);
    running.join().unwrap();
    shut_down_clean(&pool);
}

#[test]
fn a_dropped_handle_detaches_its_job() {
    let pool = pool(1);
    let (release, running) = occupy(&pool);
    let (sender, receiver) = channel();
    drop(pool.submit(move || sender.send(7).unwrap()).unwrap());
    drop(release);
    assert_eq!(receiver.recv(), Ok(7));
    running.join().unwrap();
    shut_down_clean(&pool);
}

#[test]
fn shutdown_works_off_the_queue_before_the_deadline() {
    let pool = pool(1);
    let (release, running) = occupy(&pool);
    let queued: Vec<_> = (0..5).map(|n| pool.submit(move || n).unwrap()).collect();
    let other = Arc::clone(&pool);
    let shutdown = thread::spawn(move || shut_down_clean(&other));
    // The shutdown has begun when a job is refused.
    let mut accepted = 0;
    while pool.submit(|| ()).is_ok() {
        accepted += 1;
        assert!(accepted < 60_000);
        thread::yield_now();
    }
    drop(release);
    shutdown.join().unwrap();
    running.join().unwrap();
    assert_eq!(
        queued
            .into_iter()
            .map(|handle| handle.join().unwrap())
            .sum::<i32>(),
        10
    );
}

#[test]
fn shutdown_gives_back_what_did_not_run() {
    let pool = pool(1);
    let (release, running) = occupy(&pool);
    let owned = Arc::new(());
    let queued: Vec<_> = (0..5)
        .map(|_| {
            let inside = Arc::clone(&owned);
            pool.submit(move || drop(inside)).unwrap()
        })
        .collect();
    let outcome = pool.shutdown(Instant::now());
    assert_eq!(
        outcome,
        ShutdownOutcome {
            cancelled: 5,
            running: 1
        }
    );
    assert_eq!(Arc::strong_count(&owned), 1);
    for handle in queued {
        assert!(handle.join().unwrap_err().is_cancelled());
    }
    let error = pool.submit(|| 7).unwrap_err();
    assert!(error.is_shut_down());
    assert_eq!(error.into_inner()(), 7);
    // The job that continued ends as usual, and so does its OS thread.
    drop(release);
    running.join().unwrap();
    shut_down_clean(&pool);
    assert_eq!(pool.stats().cancelled, 5);
}

#[test]
fn dropping_the_pool_in_its_last_job_does_not_hang() {
    let pool = pool(1);
    let (sender, receiver): (Sender<Arc<BlockingPool>>, Receiver<_>) = channel();
    let handle = pool.submit(move || drop(receiver.recv().unwrap())).unwrap();
    sender.send(pool).unwrap();
    block_on(handle).unwrap();
}

#[derive(Clone, Copy)]
enum Wait {
    Join,
    Future,
}

fn wait<T>(handle: BlockingHandle<T>, how: Wait) -> Result<T, JoinError> {
    match how {
        Wait::Join => handle.join(),
        Wait::Future => block_on(handle),
    }
}

/// A job that waits for a job that waits, `levels` deep. Counts the levels.
fn nest(pool: &Arc<BlockingPool>, levels: usize, how: Wait) -> Result<usize, JoinError> {
    if levels == 0 {
        return Ok(0);
    }
    let inside = Arc::clone(pool);
    let handle = pool.submit(move || nest(&inside, levels - 1, how)).unwrap();
    Ok(wait(handle, how)?? + 1)
}

#[test]
fn nested_joins_need_only_one_thread() {
    let levels = if cfg!(miri) { 150 } else { 1_000 };
    for how in [Wait::Join, Wait::Future] {
        let pool = pool(1);
        assert_eq!(nest(&pool, levels, how).unwrap(), levels);
        let stats = pool.stats();
        assert_eq!((stats.completed, stats.cancelled), (levels as u64, 0));
        assert!(stats.threads <= 1);
        shut_down_clean(&pool);
    }
}

#[test]
fn a_runaway_recursion_gets_an_error() {
    if cfg!(miri) {
        return;
    }
    let levels = INLINE_DEPTH_MAX * (EXTRA_STACKS_MAX + 3);
    let pool = pool(1);
    for how in [Wait::Join, Wait::Future] {
        let error = nest(&pool, levels, how).unwrap_err();
        assert!(error.is_too_deep() && error.is_cancelled() && !error.is_panic());
    }
    assert_eq!(pool.stats().cancelled, 2);
    shut_down_clean(&pool);
}

#[test]
fn a_refused_stack_is_an_error_and_not_a_hang() {
    let pool = Arc::new(BlockingPool::with_starter(
        "test",
        threads_max(1),
        Box::new(|builder, work| {
            let within_a_job = nesting::depth() > 0;
            if within_a_job {
                Err(io::ErrorKind::WouldBlock.into())
            } else {
                builder.spawn(work).map(drop)
            }
        }),
    ));
    let (release, running) = occupy(&pool);
    assert_eq!(
        nest(&pool, INLINE_DEPTH_MAX, Wait::Join).unwrap(),
        INLINE_DEPTH_MAX
    );
    assert!(
        nest(&pool, INLINE_DEPTH_MAX + 1, Wait::Join)
            .unwrap_err()
            .is_too_deep()
    );
    drop(release);
    running.join().unwrap();
    shut_down_clean(&pool);
}

#[test]
fn pools_whose_jobs_wait_for_each_other_go_on() {
    let pools = [pool(1), pool(1)];
    let both = Arc::new(Barrier::new(2));
    let crossed = [0, 1].map(|n| {
        let (both, other) = (Arc::clone(&both), Arc::clone(&pools[1 - n]));
        let job = move || {
            // Now the only OS thread of each pool is inside a job and waits for a queued job of the
            // other pool.
            both.wait();
            let handle = other.submit(move || n).unwrap();
            both.wait();
            block_on(handle).unwrap()
        };
        pools[n].submit(job).unwrap()
    });
    assert_eq!(crossed.map(|handle| block_on(handle).unwrap()), [0, 1]);
    pools.iter().for_each(|pool| shut_down_clean(pool));
}

#[test]
fn a_job_that_runs_in_a_foreign_join_claims_like_one_of_the_pool() {
    let pool = pool(1);
    let (release, running) = occupy(&pool);
    // The pool's OS thread stays busy, so everything happens on this stack.
    assert_eq!(nest(&pool, 1, Wait::Join).unwrap(), 1);
    let inside = Arc::clone(&pool);
    let outer = pool
        .submit(move || block_on(inside.submit(|| 7).unwrap()).unwrap())
        .unwrap();
    assert_eq!(outer.join().unwrap(), 7);
    assert_eq!(nesting::depth(), 0);
    drop(release);
    running.join().unwrap();
    shut_down_clean(&pool);
}

/// A tree of jobs, each of which waits for, detaches or aborts its children.
struct Tree {
    pool: BlockingPool,
    /// True if the pool shuts down while jobs are still running.
    early: bool,
    submitted: AtomicUsize,
    ran: AtomicUsize,
}

impl Tree {
    fn grow(self: &Arc<Self>, levels: usize, seed: usize) {
        if levels == 0 {
            return;
        }
        let mut children = Vec::new();
        for n in 0..3 {
            let tree = Arc::clone(self);
            let seed = seed.wrapping_mul(31).wrapping_add(n);
            let job = move || {
                tree.ran.fetch_add(1, Ordering::Relaxed);
                tree.grow(levels - 1, seed);
            };
            match self.pool.submit(job) {
                Ok(child) => children.push(child),
                Err(error) => {
                    assert!(error.is_full() || error.is_shut_down());
                    error.into_inner()();
                    self.ran.fetch_sub(1, Ordering::Relaxed);
                }
            }
        }
        self.submitted.fetch_add(children.len(), Ordering::Relaxed);
        for (n, child) in children.into_iter().enumerate() {
            let (aborted, result) = match seed.wrapping_add(n) % 5 {
                0 => continue,
                1 => (child.abort(), child.join()),
                2 | 3 => (false, block_on(child)),
                _ => (false, child.join()),
            };
            match result {
                Ok(()) => assert!(!aborted),
                Err(error) => assert!(error.is_cancelled() && (aborted || self.early), "{error}"),
            }
        }
    }
}

#[test]
fn stress_every_job_ends_in_exactly_one_way() {
    let (rounds, levels) = if cfg!(miri) { (3, 2) } else { (60, 5) };
    for round in 0..rounds {
        let idle_timeout = if round % 2 == 0 { Duration::ZERO } else { FAR };
        let early = round % 3 == 0;
        let tree = Arc::new(Tree {
            pool: BlockingPool::new(
                "stress",
                PoolPolicy {
                    idle_timeout,
                    queue_max: 50,
                    ..threads_max(1 + round % 4)
                },
            ),
            early,
            submitted: AtomicUsize::new(0),
            ran: AtomicUsize::new(0),
        });
        thread::scope(|s| {
            for root in 0..4 {
                let tree = &tree;
                s.spawn(move || tree.grow(levels, round * 4 + root));
            }
        });
        if early {
            let _ = tree.pool.shutdown(Instant::now());
        }
        shut_down_clean(&tree.pool);
        let stats = tree.pool.stats();
        let count = |counter: &AtomicUsize| counter.load(Ordering::Relaxed) as u64;
        assert_eq!(stats.panicked, 0);
        assert_eq!(stats.completed, count(&tree.ran));
        assert_eq!(stats.completed + stats.cancelled, count(&tree.submitted));
    }
}
