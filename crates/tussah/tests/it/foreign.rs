//! Foreign code that panics, in each place where this crate calls some: a table, and a test that
//! walks it. The payload of each panic panics again when it is dropped. The places of the runtime
//! itself have a table of their own, in `tussah-core`.

mod graphs;
mod waits;

use std::future::{Future, pending};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use tussah::stage::control::{
    Admission, Arrival, Cadence, Controller, Departure, Owns, Sample, Settings, Verdict,
};
use tussah::stage::control::{Applicant, ThreadManager};
use tussah::stage::{Batch, Event, Handler, Network, Restarts, SerialHandler};
use tussah::{Callback, Color, Nursery, PostOptions, Runtime, after, every, post_with, scope};

/// How long a row may take before it counts as one that hangs.
const LIMIT: Duration = Duration::from_secs(60);

/// A place where foreign code is called, and a panicking one in it.
struct Row {
    place: &'static str,
    run: fn(&Runtime),
}

/// A panic payload. Its destructor panics again.
struct Thrown;

impl Drop for Thrown {
    fn drop(&mut self) {
        panic_any("the destructor of what was thrown");
    }
}

fn throw() -> ! {
    panic_any(Thrown)
}

/// A value whose destructor counts, and panics.
struct Shouts(Count);

impl Drop for Shouts {
    fn drop(&mut self) {
        self.0.add();
        throw();
    }
}

#[derive(Clone, Default)]
struct Count(Arc<AtomicUsize>);

impl Count {
    fn add(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
    fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
    fn shouts(&self) -> Shouts {
        Shouts(self.clone())
    }
    /// Waits until it has counted so far; the walker ends one that waits for ever.
    fn until(&self, count: usize) {
        while self.get() < count {
            std::thread::yield_now();
        }
    }
}

tussah::task_local! {
    static LOCAL: Shouts;
}

const ROWS: &[Row] = &[
    Row {
        place: "a stage's events: their drop callbacks, and the stage's, as it is destroyed",
        run: |runtime| {
            let (told, ours) = (Count::default(), Count::default());
            runtime.block_on(async {
                let network = Network::on(runtime, "drops");
                let stages = told.clone();
                let stage = network
                    .stage("stage")
                    .on_drop(move |_: u32, _| {
                        stages.add();
                        throw()
                    })
                    .handler(|_| Ok(Counts(Count::default())))
                    .expect("it is made");
                stage.pause();
                for n in 0..5 {
                    let ours = ours.clone();
                    let event = Event::new(n).on_drop(move |_| {
                        ours.add();
                        throw()
                    });
                    stage.sender().try_send(event).expect("there is room");
                }
                assert_eq!(stage.destroy(Duration::ZERO).await, 5);
            });
            assert_eq!((told.get(), ours.get()), (5, 5), "each was told");
        },
    },
    Row {
        place: "a stage's events: their destructors, and drop callbacks with the runtime's end",
        run: |_| {
            let (values, told) = (Count::default(), Count::default());
            let runtime = crate::runtime(1);
            let network = Network::on(&runtime, "drops");
            let builder = network.stage("stage");
            let stage = builder.handler(|_| Ok(Never)).expect("it is made");
            stage.pause();
            for _ in 0..5 {
                let told = told.clone();
                let event = Event::new(values.shouts()).on_drop(move |_| {
                    told.add();
                    throw()
                });
                stage.sender().try_send(event).expect("there is room");
            }
            drop((stage, network));
            runtime.shutdown(Duration::ZERO);
            values.until(5);
            told.until(5);
        },
    },
    Row {
        place: "a handler: its poll, its future, itself, and its maker",
        run: |runtime| {
            runtime.block_on(async {
                let network = Network::on(runtime, "handlers");
                let (handled, dropped) = (Count::default(), Count::default());
                let panics = Panics(handled.clone());
                let stage = network.stage("shared").handler(move |_| Ok(panics));
                let stage = stage.expect("it is made");
                let leaves = Leaves(dropped.clone());
                let left = network.stage("left").handler(move |_| Ok(leaves));
                let left = left.expect("it is made");
                let (made, old) = (Count::default(), dropped.clone());
                let serial = network
                    .stage("serial")
                    .restarts(Restarts::new(1000, Duration::from_secs(1)))
                    .serial(move |_| {
                        made.add();
                        if made.get() == 5 {
                            throw();
                        }
                        Ok(Serial(old.shouts()))
                    })
                    .expect("it is made");
                for n in 0..10 {
                    stage.sender().send(n).await.expect("it is open");
                    left.sender().send(n).await.expect("it is open");
                    // It closes when it can't be made again.
                    let _ = serial.sender().send(n).await;
                }
                stage.settled().await;
                left.settled().await;
                serial.settled().await;
                assert_eq!(handled.get(), 10);
                assert_eq!(left.stats().panicked, 10);
            });
        },
    },
    Row {
        place: "a handler that blocks",
        run: |runtime| {
            runtime.block_on(async {
                let network = Network::on(runtime, "blocking");
                let handled = Count::default();
                let counts = handled.clone();
                let stage = network.stage("stage").blocking(move |_| {
                    let counts = counts.clone();
                    Ok(move |batch: &mut Batch<u32>| {
                        if batch.next().is_some() {
                            counts.add();
                            throw();
                        }
                    })
                });
                let stage = stage.expect("it is made");
                for n in 0..10 {
                    stage.sender().send(n).await.expect("it is open");
                }
                stage.settled().await;
                assert_eq!(handled.get(), 10);
            });
        },
    },
    Row {
        place: "a controller",
        run: |runtime| {
            runtime.block_on(async {
                for place in 0..3 {
                    let network = Network::on(runtime, "controllers");
                    let handled = Count::default();
                    let counts = Counts(handled.clone());
                    let stage = network
                        .stage("stage")
                        .controller(Broken(place, Count::default().shouts()))
                        .handler(move |_| Ok(counts))
                        .expect("it is made");
                    for n in 0..10 {
                        stage.sender().send(n).await.expect("it is open");
                    }
                    stage.settled().await;
                    assert_eq!(handled.get(), 10);
                }
            });
        },
    },
    Row {
        place: "a callback: a call, and what the closure owns",
        run: |runtime| {
            let (called, dropped) = (Count::default(), Count::default());
            let (calls, owned) = (called.clone(), dropped.shouts());
            let callback = runtime.block_on(async {
                Callback::new(Color(7), move |_: u32| {
                    let _owned = &owned;
                    calls.add();
                    throw()
                })
            });
            for n in 0..3 {
                callback.fire(n).expect("it is open");
            }
            called.until(3);
            let _ = catch_unwind(AssertUnwindSafe(|| drop(callback))).map_err(std::mem::forget);
            dropped.until(1);
        },
    },
    Row {
        place: "timers: each call",
        run: |runtime| {
            let called = Count::default();
            let (once, often) = (called.clone(), called.clone());
            let cancel = runtime.block_on(async {
                let _once = after(Duration::from_millis(1), Color(1), move || {
                    once.add();
                    throw()
                });
                every(Duration::from_millis(1), Color(2), move || {
                    often.add();
                    throw()
                })
            });
            called.until(5);
            cancel.cancel();
        },
    },
    Row {
        place: "an event with options: what its closure owns, and its drop callback",
        run: |runtime| {
            let (dropped, told) = (Count::default(), Count::default());
            let post = |past: Instant, color: u64| {
                let (owned, told) = (dropped.shouts(), told.clone());
                let options = PostOptions::new().deadline(past).on_drop(move |_| {
                    told.add();
                    throw()
                });
                post_with(Color(color), options, move || drop(owned)).expect("it is open");
            };
            runtime.block_on(async { post(Instant::now(), 3) });
            told.until(1);
            dropped.until(1);
            // At the end of a runtime whose worker is held until then.
            let inner = crate::runtime(1);
            let (tell, held) = mpsc::channel();
            let (go, may_go) = mpsc::channel::<()>();
            inner
                .post_in(Color(4), move || {
                    tell.send(()).expect("the row listens");
                    let _ = may_go.recv();
                })
                .expect("it is open");
            held.recv().expect("it runs");
            inner.block_on(async {
                let later = Instant::now() + Duration::from_secs(3600);
                (0..3).for_each(|_| post(later, 4));
            });
            let free = std::thread::spawn(move || {
                std::thread::yield_now();
                drop(go);
            });
            inner.shutdown(Duration::ZERO);
            free.join().expect("no panic");
        },
    },
    Row {
        place: "a scope: its children, what they fail with, and its body",
        run: |runtime| {
            let thread = runtime.spawn(async {
                scope(|scope| async move {
                    for _ in 0..3 {
                        drop(scope.spawn(async { throw() as Result<(), ()> }));
                    }
                    pending::<Result<(), ()>>().await
                })
                .await
            });
            let outcome = runtime.block_on(thread);
            std::mem::forget(outcome.expect_err("a child has panicked"));
        },
    },
    Row {
        place: "a nursery that is dropped: its children",
        run: |_| {
            let dropped = Count::default();
            let mut nursery = Nursery::<(), ()>::new();
            for _ in 0..3 {
                let owned = dropped.shouts();
                nursery.spawn(async move {
                    let _owned = owned;
                    pending().await
                });
            }
            drop(nursery);
            assert_eq!(dropped.get(), 3);
        },
    },
    Row {
        place: "a local: its value, and the future that it is set for",
        run: |runtime| {
            let dropped = Count::default();
            let (value, owned) = (dropped.shouts(), dropped.shouts());
            let thread = runtime.spawn(LOCAL.scope(value, async move {
                let _owned = owned;
                pending::<()>().await;
            }));
            thread.abort();
            let outcome = runtime.block_on(thread);
            std::mem::forget(outcome.expect_err("it was aborted"));
            assert_eq!(dropped.get(), 2);
        },
    },
    Row {
        place: "a network's manager of servlets: its destructor, as another takes its place and with the network",
        run: |runtime| {
            let dropped = Count::default();
            let network = Network::on(runtime, "managed");
            network.set_threads(Arc::new(Manages(dropped.shouts())));
            network.set_threads(Arc::new(Manages(dropped.shouts())));
            assert_eq!(dropped.get(), 1);
            drop(network);
            assert_eq!(dropped.get(), 2);
        },
    },
];

/// Counts events.
struct Counts(Count);

/// Lets every servlet in.
struct Manages(#[expect(dead_code, reason = "its destructor matters")] Shouts);

impl ThreadManager for Manages {
    fn enter(&self, _: &Applicant) -> bool {
        true
    }

    fn leave(&self, _: &Applicant) {}
}

impl Handler for Counts {
    type Event = u32;
    async fn handle(&self, batch: &mut Batch<u32>) {
        while batch.next().is_some() {
            self.0.add();
        }
    }
}

/// Is never called.
struct Never;

impl Handler for Never {
    type Event = Shouts;
    async fn handle(&self, _: &mut Batch<Shouts>) {
        unreachable!("its stage is paused");
    }
}

/// Takes one event, and panics.
struct Panics(Count);

impl Handler for Panics {
    type Event = u32;
    async fn handle(&self, batch: &mut Batch<u32>) {
        if batch.next().is_some() {
            self.0.add();
            throw();
        }
    }
}

/// Takes one event; its future panics when it is dropped.
struct Leaves(Count);

struct Left<'a>(&'a mut Batch<u32>, #[allow(dead_code)] Shouts);

impl Future for Left<'_> {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, _: &mut std::task::Context<'_>) -> std::task::Poll<()> {
        let _taken = self.0.next();
        std::task::Poll::Ready(())
    }
}

impl Handler for Leaves {
    type Event = u32;
    fn handle(&self, batch: &mut Batch<u32>) -> impl Future<Output = ()> + Send {
        Left(batch, self.0.shouts())
    }
}

/// Panics with each event, and when it is dropped.
struct Serial(#[allow(dead_code)] Shouts);

impl SerialHandler for Serial {
    type Event = u32;
    async fn handle(&mut self, batch: &mut Batch<u32>) {
        if batch.next().is_some() {
            throw();
        }
    }
}

/// A controller that panics in one of its functions, and when it is dropped.
struct Broken(u8, #[allow(dead_code)] Shouts);

impl Controller for Broken {
    fn name(&self) -> &'static str {
        "broken"
    }
    fn owns(&self) -> Owns {
        Owns::ADMISSION
    }
    fn cadence(&self) -> Cadence {
        Cadence::every_ns(1)
    }
    fn sample(&mut self, _: &Sample<'_>, _: u64) -> Settings {
        if self.0 == 0 {
            throw();
        }
        Settings::default()
    }
    fn on_enqueue(&mut self, _: &Arrival) -> Admission {
        if self.0 == 1 {
            throw();
        }
        Admission::Admit
    }
    fn on_dequeue(&mut self, _: &Departure) -> Verdict {
        if self.0 == 2 {
            throw();
        }
        Verdict::Serve
    }
}

/// The runtime goes on, and ends.
fn check(runtime: Runtime) {
    let both = Arc::new(std::sync::Barrier::new(2));
    let threads = [1, 2].map(|color| {
        let both = both.clone();
        runtime.spawn_in(Color(color), async move {
            both.wait();
        })
    });
    for thread in threads {
        runtime.block_on(thread).expect("both workers are there");
    }
    let report = runtime.shutdown(Duration::from_secs(20));
    assert!(report.drained, "{report:?}");
    assert_eq!(report.workers_stuck, 0);
}

/// Runs a row on an OS thread of its own; says what went wrong.
fn walk(row: &Row) -> Option<String> {
    let (tell, told) = mpsc::channel();
    let run = row.run;
    let walker = std::thread::spawn(move || {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let runtime = crate::runtime(2);
            run(&runtime);
            check(runtime);
        }));
        let _ = tell.send(outcome.map_err(|payload| {
            let text = payload
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| payload.downcast_ref::<&str>().map(|text| text.to_string()))
                .unwrap_or_else(|| "something else was thrown".into());
            std::mem::forget(payload);
            text
        }));
    });
    let failure = match told.recv_timeout(LIMIT) {
        Ok(Ok(())) => None,
        Ok(Err(text)) => Some(text),
        Err(_) => return Some(format!("{}: it hangs", row.place)),
    };
    walker.join().expect("it has caught all");
    failure.map(|failure| format!("{}: {failure}", row.place))
}

#[test]
fn foreign_code_that_panics_breaks_nothing() {
    let failures: Vec<_> = ROWS
        .iter()
        .chain(waits::ROWS)
        .chain(graphs::ROWS)
        .inspect(|row| eprintln!("== {}", row.place))
        .filter_map(walk)
        .collect();
    assert!(failures.is_empty(), "{failures:#?}");
}
