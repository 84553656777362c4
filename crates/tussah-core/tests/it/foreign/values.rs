//! Closures, futures and values of users that panic, or whose destructors do.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::task::Waker;
use std::time::Duration;

use tussah_core::time::{Clock, Sleep, now};
use tussah_core::{Candidate, Color, Colored, Policy, Runtime, with_all, yield_now};

use super::throwing::{Bomb, Shouts, poll, throw, throws};
use super::{Bench, Row, Watched};

pub(super) const ROWS: &[Row] = &[
    Row {
        place: "a posted closure, and what it owns",
        run: |bench| {
            for color in [Color::DEFAULT, Color(3)] {
                bench.runtime.post_in(color, || throw()).expect("open");
                let bomb = Bomb;
                let owns = move || drop(bomb);
                bench.runtime.post_in(color, owns).expect("open");
            }
            bench.value.post(|_| throw()).expect("open");
            let bomb = Bomb;
            bench.value.post(move |_| drop(bomb)).expect("open");
            bench.settle();
        },
    },
    Row {
        place: "`with`, inline: the closure",
        run: |bench| {
            throws(|| bench.runtime.block_on(bench.value.with(|_| throw())));
            throws(|| bench.value.try_with(|_| throw()));
            throws(|| bench.runtime.block_on(bench.value.read(|_| throw())));
            let value = bench.value.clone();
            let thread = bench
                .runtime
                .spawn(async move { value.with(|_| throw()).await });
            let error = bench.runtime.block_on(thread).expect_err("it panics");
            throws(|| drop(error));
        },
    },
    Row {
        place: "`with_all`, inline: the closure",
        run: |bench| {
            let (value, other) = (bench.value.clone(), bench.other.clone());
            throws(|| {
                bench
                    .runtime
                    .block_on(with_all((&value, &other), |_, _| throw()))
            });
            let all = async move { with_all((&value, &other), |_, _| throw()).await };
            let error = bench.runtime.block_on(bench.runtime.spawn(all));
            throws(|| drop(error.expect_err("it panics")));
        },
    },
    Row {
        place: "`with`, queued: the closure",
        run: |bench| {
            for waits in [true, false] {
                let held = bench.hold();
                let mut with = Box::pin(bench.value.with(|_| throw()));
                let mut read = Box::pin(bench.value.read(|_| throw()));
                assert!(poll(with.as_mut(), Waker::noop()).is_pending());
                assert!(poll(read.as_mut(), Waker::noop()).is_pending());
                drop(held);
                bench.settle();
                if waits {
                    throws(|| bench.runtime.block_on(with));
                    throws(|| bench.runtime.block_on(read));
                }
            }
        },
    },
    Row {
        place: "`with_all`, queued: the closure",
        run: |bench| {
            for waits in [true, false] {
                let held = bench.hold();
                let all = with_all((&bench.value, &bench.other), |_, _| throw());
                let mut all = Box::pin(all);
                assert!(poll(all.as_mut(), Waker::noop()).is_pending());
                drop(held);
                bench.settle();
                if waits {
                    throws(|| bench.runtime.block_on(all));
                }
            }
        },
    },
    Row {
        place: "a request that is dropped: what its closure owns",
        run: |bench| {
            let held = bench.hold();
            let (first, second, third) = (Bomb, Bomb, Bomb);
            let mut with = Box::pin(bench.value.with(move |_| drop(first)));
            let mut read = Box::pin(bench.value.read(move |_| drop(second)));
            let all = with_all((&bench.other, &bench.value), move |_, _| drop(third));
            let mut all = Box::pin(all);
            assert!(poll(with.as_mut(), Waker::noop()).is_pending());
            assert!(poll(read.as_mut(), Waker::noop()).is_pending());
            assert!(poll(all.as_mut(), Waker::noop()).is_pending());
            drop((with, read, all));
            drop(held);
        },
    },
    Row {
        place: "a request that has run: its result, which nobody takes",
        run: |bench| {
            let held = bench.hold();
            let mut with = Box::pin(bench.value.with(|_| Bomb));
            let mut read = Box::pin(bench.value.read(|_| Bomb));
            let mut all = Box::pin(with_all((&bench.other, &bench.value), |_, _| Bomb));
            assert!(poll(with.as_mut(), Waker::noop()).is_pending());
            assert!(poll(read.as_mut(), Waker::noop()).is_pending());
            assert!(poll(all.as_mut(), Waker::noop()).is_pending());
            drop(held);
            bench.settle();
            drop((with, read, all));
        },
    },
    Row {
        place: "a thread: its poll",
        run: |bench| {
            let panics = || async {
                yield_now().await;
                throw()
            };
            drop(bench.runtime.spawn(panics()));
            drop(bench.runtime.spawn_in(Color(4), panics()));
            let error = bench.runtime.block_on(bench.runtime.spawn(panics()));
            throws(|| drop(error.expect_err("it panics")));
            let unread = bench.runtime.spawn(panics());
            while !unread.is_finished() {
                std::thread::yield_now();
            }
            drop(unread);
        },
    },
    Row {
        place: "a thread: the destructor of its future",
        run: |bench| {
            let dropped = Arc::new(AtomicUsize::new(0));
            let never = || {
                let shouts = Shouts(dropped.clone());
                async move {
                    let _shouts = shouts;
                    pending::<()>().await;
                }
            };
            for thread in [
                bench.runtime.spawn(never()),
                bench.runtime.spawn_in(Color(5), never()),
            ] {
                thread.abort();
                let error = bench.runtime.block_on(thread);
                throws(|| drop(error.expect_err("its destructor panics")));
            }
            let detached = bench.runtime.spawn(never());
            detached.abort();
            drop(detached);
            while dropped.load(Ordering::SeqCst) < 3 {
                std::thread::yield_now();
            }
        },
    },
    Row {
        place: "a thread: the destructor of its output",
        run: |bench| {
            drop(bench.runtime.spawn(async {
                yield_now().await;
                Bomb
            }));
            let unread = bench.runtime.spawn(async { Bomb });
            while !unread.is_finished() {
                std::thread::yield_now();
            }
            drop(unread);
        },
    },
    Row {
        place: "a value of a color: its destructor",
        run: |bench| {
            drop(Colored::new_in(&bench.runtime, Bomb));
            let value = Colored::new_in(&bench.runtime, Bomb);
            let (go, may_go) = mpsc::channel::<()>();
            value
                .post(move |_| {
                    let _ = may_go.recv();
                })
                .expect("open");
            drop(value);
            drop(go);
        },
    },
    Row {
        place: "a job of the blocking pool, what it owns, and its result",
        run: |bench| {
            let pool = bench.runtime.blocking();
            drop(pool.submit(|| throw()).expect("open"));
            let error = pool.submit(|| throw()).expect("open").join();
            throws(|| drop(error.expect_err("it panics")));
            let bomb = Bomb;
            drop(pool.submit(move || drop(bomb)).expect("open"));
            drop(pool.submit(|| Bomb).expect("open"));
            let job = pool.submit(|| Bomb).expect("open");
            while !job.is_finished() {
                std::thread::yield_now();
            }
            drop(job);
        },
    },
    Row {
        place: "a job of the blocking pool that is aborted: what it owns",
        run: |bench| {
            let policy = tussah_core::PoolPolicy::default();
            let pool = tussah_core::BlockingPool::new("full", policy);
            let gates: Vec<_> = (0..80)
                .map(|_| {
                    let (go, may_go) = mpsc::channel::<()>();
                    let bomb = Bomb;
                    let job = pool.submit(move || {
                        let _ = may_go.recv();
                        std::mem::forget(bomb);
                    });
                    (go, job.expect("open"))
                })
                .collect();
            let aborted = gates.iter().filter(|(_, job)| job.abort()).count();
            assert!(aborted > 0, "there are fewer OS threads than jobs");
            drop(gates);
            drop(pool);
            bench.settle();
        },
    },
    Row {
        place: "the end of the runtime: all that is queued, or waits",
        run: at_the_end,
    },
    Row {
        place: "the end of the runtime: the policy, the watchdog's report, the extensions",
        run: |_| {
            #[derive(Default)]
            struct One(Option<Bomb>);
            #[derive(Default)]
            struct Two(Option<Bomb>);
            let (in_maker, in_report) = (Bomb, Bomb);
            let runtime = Runtime::builder()
                .workers(2)
                .policy(move || {
                    let _in_maker = &in_maker;
                    Panics(Bomb)
                })
                .watchdog(Duration::from_millis(1), move |_| {
                    let _in_report = &in_report;
                    throw()
                })
                .build()
                .expect("workers start");
            runtime.extension(|| One(Some(Bomb)));
            runtime.extension(|| Two(Some(Bomb)));
            assert!(runtime.extension(One::default).0.is_some());
            assert!(runtime.extension(Two::default).0.is_some());
            let seen = runtime.stats().workers.len();
            assert_eq!(seen, 2);
            for _ in 0..100 {
                runtime.post_in(Color(6), || ()).expect("open");
            }
            let bench = Bench {
                value: Colored::new_in(&runtime, Watched::default()),
                other: Colored::new_in(&runtime, Watched::default()),
                runtime,
            };
            bench.check();
        },
    },
    Row {
        place: "a policy that can not be made",
        run: |_| {
            let runtime = Runtime::builder()
                .workers(2)
                .policy(|| -> Panics { throw() })
                .build()
                .expect("workers start");
            let bench = Bench {
                value: Colored::new_in(&runtime, Watched::default()),
                other: Colored::new_in(&runtime, Watched::default()),
                runtime,
            };
            bench.check();
        },
    },
    Row {
        place: "a hook of a clock that is moved by hand",
        run: |_| {
            let manual = Clock::manual();
            let bomb = Bomb;
            let hook = manual.clock().on_advance(Box::new(move || {
                let _bomb = &bomb;
                throw()
            }));
            let runtime = Runtime::builder().workers(1).clock(manual.clock());
            let runtime = runtime.build().expect("workers start");
            let hour = Duration::from_secs(3600);
            let (tell, told) = mpsc::channel();
            let thread = runtime.spawn(async move {
                let mut sleep = Box::pin(Sleep::new_until(now() + hour));
                assert!(poll(sleep.as_mut(), Waker::noop()).is_pending());
                tell.send(()).expect("the row listens");
                sleep.await;
            });
            told.recv().expect("no panic");
            manual.advance(hour);
            runtime.block_on(thread).expect("no panic");
            std::mem::forget(hook);
        },
    },
    Row {
        place: "unwinding: a request, a handle and a runtime are dropped",
        run: while_unwinding,
    },
];

/// Panics when it is asked, and when it is dropped.
struct Panics(#[allow(dead_code)] Bomb);

impl Policy for Panics {
    fn choose(&mut self, _: &[Candidate]) -> usize {
        throw()
    }
}

/// A value that panics when it is dropped at the end does not keep the others from being dropped.
fn at_the_end(_: &Bench) {
    let bench = Bench::new();
    let dropped = Arc::new(AtomicUsize::new(0));
    let held = bench.hold();
    let shouts = || Shouts(dropped.clone());
    let requests: Vec<_> = (0..3)
        .map(|_| {
            let (one, two, three) = (shouts(), shouts(), shouts());
            let mut with = Box::pin(bench.value.with(move |_| drop(one)));
            let all = with_all((&bench.other, &bench.value), move |_, _| drop(two));
            let mut all = Box::pin(all);
            assert!(poll(with.as_mut(), Waker::noop()).is_pending());
            assert!(poll(all.as_mut(), Waker::noop()).is_pending());
            bench.value.post(move |_| drop(three)).expect("open");
            (with, all)
        })
        .collect();
    let futures: Vec<_> = (0..3)
        .flat_map(|color| {
            let (one, two) = (shouts(), shouts());
            let none = bench.runtime.spawn(async move {
                let _one = one;
                pending::<()>().await;
            });
            let colored = bench.runtime.spawn_in(Color(color), async move {
                let _two = two;
                pending::<()>().await;
            });
            [none, colored]
        })
        .collect();
    drop(requests);
    let Bench { runtime, value, .. } = bench;
    let report = runtime.shutdown(Duration::ZERO);
    assert_eq!((report.threads_dropped, report.workers_stuck), (6, 0));
    drop((held, value));
    assert!(futures.iter().all(|thread| thread.is_finished()));
    futures.into_iter().for_each(std::mem::forget);
    assert_eq!(dropped.load(Ordering::SeqCst), 15, "each was dropped once");
}

/// A destructor of the library that panicked during unwinding would abort the process.
fn while_unwinding(bench: &Bench) {
    let held = bench.hold();
    let (one, two) = (Bomb, Bomb);
    let mut with = Box::pin(bench.value.with(move |_| drop(one)));
    let all = with_all((&bench.other, &bench.value), move |_, _| drop(two));
    let mut all = Box::pin(all);
    assert!(poll(with.as_mut(), Waker::noop()).is_pending());
    assert!(poll(all.as_mut(), Waker::noop()).is_pending());
    let thread = bench.runtime.spawn(async { Bomb });
    while !thread.is_finished() {
        std::thread::yield_now();
    }
    let job = bench.runtime.blocking().submit(|| Bomb).expect("open");
    while !job.is_finished() {
        std::thread::yield_now();
    }
    throws(move || {
        let _dropped = (with, all, thread, job);
        throw()
    });
    drop(held);
    // Inside an event no caller can wait for the workers.
    for shut in [true, false] {
        let inner = crate::runtime(1);
        let value = Colored::new_in(&inner, ());
        let thread = bench.runtime.spawn(async move {
            if shut {
                inner.shutdown(Duration::ZERO);
            } else {
                let _inner = inner;
                throw()
            }
        });
        let error = bench.runtime.block_on(thread).expect_err("it panics");
        std::mem::forget(error);
        // A caller that could not wait has left the shutdown to another OS thread.
        while value.post(|_| ()).is_ok() {
            std::thread::yield_now();
        }
    }
}
