//! Foreign code that panics, in each place where the runtime calls it: a table, and a test that
//! walks it.
//!
//! Each payload panics once more when it is dropped. After each row the test tries everything that
//! a panic could have broken: the color, the workers, the timers, the blocking pool, the shutdown.

mod subscribers;
mod throwing;
mod values;
mod wakers;

use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::time::Duration;

use tussah_core::time::{Sleep, now};
use tussah_core::{Color, Colored, Runtime, with_all};

use throwing::Shouts;
pub use throwing::Thrown;

/// A place where foreign code is called, and how a panicking one is put there.
struct Row {
    place: &'static str,
    run: fn(&Bench),
}

/// The environment of a row.
struct Bench {
    runtime: Runtime,
    value: Colored<Watched>,
    other: Colored<Watched>,
}

/// A value that detects two concurrent writers.
#[derive(Default)]
struct Watched {
    busy: AtomicBool,
    calls: usize,
}

impl Watched {
    /// Marks a moment in which no other event may be here.
    fn write(&mut self) -> usize {
        let was_busy = self.busy.swap(true, Ordering::SeqCst);
        assert!(!was_busy, "two are in one color");
        self.calls += 1;
        std::thread::yield_now();
        self.busy.store(false, Ordering::SeqCst);
        self.calls
    }
}

/// An outside caller that has a color until this is dropped.
struct Held {
    release: Option<mpsc::Sender<()>>,
    holder: Option<std::thread::JoinHandle<()>>,
}

impl Drop for Held {
    fn drop(&mut self) {
        drop(self.release.take());
        let holder = self.holder.take().expect("it is dropped once");
        holder.join().expect("the holder does not panic");
    }
}

impl Bench {
    fn new() -> Self {
        let runtime = crate::runtime(2);
        let value = Colored::new_in(&runtime, Watched::default());
        let other = Colored::new_in(&runtime, Watched::default());
        Self {
            runtime,
            value,
            other,
        }
    }

    /// Makes an outside caller enter the color of the value.
    fn hold(&self) -> Held {
        let (release, released) = mpsc::channel::<()>();
        let (enter, entered) = mpsc::channel();
        let value = self.value.clone();
        let holder = std::thread::spawn(move || {
            let mut hold = Err(|_: &mut Watched| {
                enter.send(()).expect("the row waits");
                let _ = released.recv();
            });
            // The last caller to be answered may still be about to leave.
            while let Err(again) = hold {
                hold = value.try_with(again);
            }
        });
        entered.recv().expect("the color becomes idle");
        Held {
            release: Some(release),
            holder: Some(holder),
        }
    }

    /// Returns when all events queued in the color have ended.
    fn settle(&self) {
        self.runtime.block_on(self.value.with(|value| value.calls));
    }

    /// Checks everything that a panic could have broken.
    fn check(self) {
        let Self {
            runtime,
            value,
            other,
        } = self;
        colors_work(&runtime, &value, &other);
        workers_work(&runtime);
        let report = {
            let dropped = Arc::new(AtomicUsize::new(0));
            let (one, two) = (Shouts(dropped.clone()), Shouts(dropped.clone()));
            let waiting = runtime.spawn(async move {
                let _one = one;
                pending::<()>().await;
            });
            let kept = runtime.spawn_in(Color(9), async move {
                let _two = two;
                pending::<()>().await;
            });
            let report = runtime.shutdown(Duration::from_secs(20));
            assert!(waiting.is_finished() && kept.is_finished());
            assert_eq!(
                dropped.load(Ordering::SeqCst),
                2,
                "the end drops each future"
            );
            report
        };
        assert!(report.drained, "{report:?}");
        assert_eq!(report.workers_stuck, 0);
    }
}

/// Checks that no event is in a color beside a writer, and that no color is dead.
fn colors_work(runtime: &Runtime, value: &Colored<Watched>, other: &Colored<Watched>) {
    const ROUNDS: usize = 50;
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (value, other) = (value.clone(), other.clone());
            runtime.spawn(async move {
                for _ in 0..ROUNDS {
                    value.with(Watched::write).await;
                    other.with(Watched::write).await;
                    value.read(|value| value.calls).await;
                    with_all((&other, &value), |other, value| {
                        other.write();
                        value.write();
                    })
                    .await;
                }
            })
        })
        .collect();
    for _ in 0..ROUNDS {
        runtime.block_on(value.with(Watched::write));
        assert!(
            other
                .post(|other| {
                    other.write();
                })
                .is_ok()
        );
    }
    for thread in threads {
        runtime.block_on(thread).expect("the colors exclude");
    }
    let (tell, told) = mpsc::channel();
    runtime
        .post(move || tell.send(()).expect("the test listens"))
        .expect("the runtime is open");
    told.recv().expect("the default color runs");
}

/// Checks that both workers run events, timers fire, and jobs run.
fn workers_work(runtime: &Runtime) {
    let both = Arc::new(Barrier::new(2));
    let threads = [1, 2].map(|color| {
        let both = both.clone();
        runtime.spawn_in(Color(color), async move {
            both.wait();
        })
    });
    for thread in threads {
        runtime.block_on(thread).expect("both workers are there");
    }
    runtime.block_on(Sleep::new_until(now() + Duration::from_millis(1)));
    let thread = runtime.spawn(Sleep::new_until(now() + Duration::from_millis(1)));
    runtime.block_on(thread).expect("no panic");
    let job = runtime.blocking().submit(|| 6 * 7).expect("it is open");
    assert_eq!(runtime.block_on(job).expect("no panic"), 42);
}

/// Runs a row on an OS thread of its own. Returns the failure, if any.
fn walk(row: &Row) -> Option<String> {
    let (tell, told) = mpsc::channel();
    let run = row.run;
    let walker = std::thread::spawn(move || {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let bench = Bench::new();
            run(&bench);
            bench.check();
        }));
        let _ = tell.send(outcome.map_err(throwing::text_of));
    });
    let failure = match told.recv_timeout(crate::HANG) {
        Ok(Ok(())) => None,
        Ok(Err(text)) => Some(text),
        Err(_) => return Some(format!("{}: it hangs", row.place)),
    };
    walker.join().expect("it has caught all");
    failure.map(|failure| format!("{}: {failure}", row.place))
}

#[test]
fn foreign_code_that_panics_breaks_nothing() {
    let rows = wakers::ROWS.iter().chain(values::ROWS);
    let rows = rows.chain(subscribers::ROWS);
    let failures: Vec<_> = rows
        .inspect(|row| eprintln!("== {}", row.place))
        .filter_map(walk)
        .collect();
    assert!(failures.is_empty(), "{failures:#?}");
}
