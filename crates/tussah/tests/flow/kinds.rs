//! The kinds of modules: how many items each handles at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tussah::flow::{Args, AsyncOut, Graph, Out, Via, module};
use tussah::sync::Barrier;

use super::{Note, Notes};
use crate::{by_hand, runtime};

/// Waits until two items are being handled.
struct Meet(Arc<Barrier>);

#[module]
impl Meet {
    fn init(barrier: Arc<Barrier>) -> Self {
        Self(barrier)
    }

    async fn run(&self, number: u64, out: &impl AsyncOut<u64>) {
        self.0.wait().await;
        out.send(number).await;
    }
}

#[test]
fn a_shared_module_handles_items_side_by_side() {
    runtime(2).block_on(async {
        let notes = Notes::default();
        let mut graph = Graph::new("g");
        let args = Args::new().with("barrier", Arc::new(Barrier::new(2)));
        graph.add::<Meet>("meet", args).expect("the name is free");
        graph
            .add::<Note<u64>>("note", notes.args())
            .expect("the name is free");
        graph.connect("meet", "note").expect("both exist");
        let running = graph.start().expect("it is whole");
        let input = running.input("meet").expect("it takes numbers");
        input.send(1u64).await;
        input.send(2u64).await;
        running.drain().await;
        assert_eq!(notes.sorted(), ["1", "2"]);
    });
}

/// Counts the calls that run at the same time.
#[derive(Clone, Default)]
struct Gauge(Arc<[AtomicUsize; 2]>);

impl Gauge {
    fn enter(&self) {
        let now = self.0[0].fetch_add(1, Ordering::Relaxed) + 1;
        self.0[1].fetch_max(now, Ordering::Relaxed);
    }

    fn leave(&self) {
        self.0[0].fetch_sub(1, Ordering::Relaxed);
    }

    fn max(&self) -> usize {
        self.0[1].load(Ordering::Relaxed)
    }
}

struct Alone(Gauge);

#[module(serial)]
impl Alone {
    fn init(gauge: Gauge) -> Self {
        Self(gauge)
    }

    async fn run(&self, _number: u64) {
        self.0.enter();
        tussah::yield_now().await;
        self.0.leave();
    }
}

struct PlainAlone(Gauge);

#[module(serial)]
impl PlainAlone {
    fn init(gauge: Gauge) -> Self {
        Self(gauge)
    }

    fn run(&self, _number: u64) {
        self.0.enter();
        std::thread::yield_now();
        self.0.leave();
    }
}

struct Exclusive(Gauge);

#[module]
impl Exclusive {
    fn init(gauge: Gauge) -> Self {
        Self(gauge)
    }

    async fn run(&mut self, _number: u64) {
        self.0.enter();
        tussah::yield_now().await;
        self.0.leave();
    }
}

fn most_at_a_time<M: tussah::flow::Module>() -> usize {
    runtime(2).block_on(async {
        let gauge = Gauge::default();
        let mut graph = Graph::new("g");
        let args = Args::new().with("gauge", gauge.clone());
        graph.add::<M>("alone", args).expect("the name is free");
        let running = graph.start().expect("it is whole");
        let input = running.input("alone").expect("it takes numbers");
        for number in 0..100u64 {
            input.send(number).await;
        }
        running.drain().await;
        gauge.max()
    })
}

#[test]
fn a_serial_module_handles_one_item_at_a_time() {
    assert_eq!(most_at_a_time::<Alone>(), 1);
    assert_eq!(most_at_a_time::<PlainAlone>(), 1);
    assert_eq!(most_at_a_time::<Exclusive>(), 1);
}

#[derive(Default)]
struct Pass;

#[module]
impl Pass {
    fn run(&self, number: u64, out: &impl Out<u64>) {
        out.send(number);
    }
}

fn most_calls_at_a_time<M: tussah::flow::Module>() -> usize {
    runtime(2).block_on(async {
        let gauge = Gauge::default();
        let mut graph = Graph::new("g");
        let args = Args::new().with("gauge", gauge.clone());
        graph.add::<M>("alone", args).expect("the name is free");
        for name in ["left", "right"] {
            let added = graph.add::<Pass>(name, Args::new());
            added.expect("the name is free");
            let connected = graph.connect_via(name, "alone", Via::call());
            connected.expect("both exist");
        }
        let running = graph.start().expect("it is whole");
        let input = |name| running.input(name).expect("it takes numbers");
        let (left, right) = (input("left"), input("right"));
        for number in 0..1000u64 {
            left.send(number).await;
            right.send(number).await;
        }
        running.drain().await;
        gauge.max()
    })
}

#[test]
fn a_serial_module_is_called_by_one_caller_at_a_time() {
    assert_eq!(most_calls_at_a_time::<Alone>(), 1);
    assert_eq!(most_calls_at_a_time::<PlainAlone>(), 1);
    assert_eq!(most_calls_at_a_time::<Exclusive>(), 1);
}

/// Blocks its OS thread until two items are being handled.
struct Block(Arc<std::sync::Barrier>);

#[module(blocking)]
impl Block {
    fn init(barrier: Arc<std::sync::Barrier>) -> Self {
        Self(barrier)
    }

    fn run(&self, number: u64, out: &impl Out<u64>) {
        self.0.wait();
        out.send(number);
    }
}

#[test]
fn a_blocking_module_blocks_no_worker() {
    // The only worker has to handle the note while two OS threads wait for each other.
    runtime(1).block_on(async {
        let notes = Notes::default();
        let mut graph = Graph::new("g");
        let args = Args::new().with("barrier", Arc::new(std::sync::Barrier::new(2)));
        graph.add::<Block>("block", args).expect("the name is free");
        graph
            .add::<Note<u64>>("note", notes.args())
            .expect("the name is free");
        graph.connect("block", "note").expect("both exist");
        let running = graph.start().expect("it is whole");
        let input = running.input("block").expect("it takes numbers");
        for number in 1..=4u64 {
            input.send(number).await;
        }
        running.drain().await;
        assert_eq!(notes.sorted(), ["1", "2", "3", "4"]);
    });
}

/// Sends the sum of its items at each tick.
#[derive(Default)]
struct Sum(u64);

#[module]
impl Sum {
    fn run(&mut self, number: u64) {
        self.0 += number;
    }

    fn tick(&mut self, out: &impl Out<u64>) {
        out.send(self.0);
    }
}

#[test]
fn a_module_ticks() {
    let (clock, runtime) = by_hand();
    let notes = Notes::default();
    let mut graph = Graph::new("g");
    let args = Args::new().with("every", Duration::from_secs(1));
    graph.add::<Sum>("sum", args).expect("the name is free");
    graph
        .add::<Note<u64>>("note", notes.args())
        .expect("the name is free");
    graph.connect("sum", "note").expect("both exist");
    let waits = |count: u64| {
        let notes = notes.clone();
        async move {
            while (notes.0.lock().len() as u64) < count {
                tussah::yield_now().await;
            }
        }
    };
    runtime.block_on(async {
        let running = graph.start().expect("it is whole");
        let input = running.input("sum").expect("it takes numbers");
        input.send(3u64).await;
        input.send(4u64).await;
        while running.stats("sum").expect("it exists").finished < 2 {
            tussah::yield_now().await;
        }
        clock.advance(Duration::from_secs(1));
        waits(1).await;
        running.drain().await;
    });
    assert_eq!(notes.take(), ["7"]);
}

/// Counts the items of each flow, and sends the count of all flows at each tick.
#[derive(Default)]
struct Total<const ASYNC: bool>(AtomicU64);

#[module]
impl Total<false> {
    fn run(&self, number: u64, count: &mut u64, out: &impl Out<u64>) {
        self.0.fetch_add(1, Ordering::Relaxed);
        *count += 1;
        if number == 0 {
            out.send(*count);
        }
    }

    fn tick(&self, out: &impl Out<u64>) {
        out.send(100 * self.0.load(Ordering::Relaxed));
    }
}

#[module]
impl Total<true> {
    async fn run(&self, number: u64, count: &mut u64, out: &impl AsyncOut<u64>) {
        self.0.fetch_add(1, Ordering::Relaxed);
        *count += 1;
        if number == 0 {
            out.send(*count).await;
        }
    }

    async fn tick(&self, out: &impl AsyncOut<u64>) {
        out.send(100 * self.0.load(Ordering::Relaxed)).await;
    }
}

/// Ticks between items that belong to no flow. The state of these items stays.
fn ticks_beside_state<M: tussah::flow::Module>() {
    let (clock, runtime) = by_hand();
    let notes = Notes::default();
    let mut graph = Graph::new("g");
    let args = Args::new().with("every", Duration::from_secs(1));
    graph.add::<M>("total", args).expect("the name is free");
    graph
        .add::<Note<u64>>("note", notes.args())
        .expect("the name is free");
    graph.connect("total", "note").expect("both exist");
    runtime.block_on(async {
        let running = graph.start().expect("it is whole");
        let input = running.input("total").expect("it takes numbers");
        for number in [1u64, 2] {
            input.send(number).await;
        }
        while running.stats("total").expect("it exists").finished < 2 {
            tussah::yield_now().await;
        }
        clock.advance(Duration::from_secs(1));
        while running.stats("note").expect("it exists").finished < 1 {
            tussah::yield_now().await;
        }
        input.send(0).await;
        running.drain().await;
    });
    assert_eq!(notes.take(), ["200", "3"]);
}

#[test]
fn a_module_with_state_ticks_outside_of_flows() {
    ticks_beside_state::<Total<false>>();
    ticks_beside_state::<Total<true>>();
}

#[test]
fn a_module_that_ticks_needs_a_period() {
    runtime(1).block_on(async {
        let mut graph = Graph::new("g");
        graph
            .add::<Sum>("sum", Args::new())
            .expect("the name is free");
        graph
            .add::<Note<u64>>("note", Notes::default().args())
            .expect("the name is free");
        graph.connect("sum", "note").expect("both exist");
        let error = graph
            .start()
            .expect_err("the period is missing")
            .to_string();
        assert!(error.contains("the argument `every` is missing"), "{error}");
    });
}

/// Holds its worker until the watchdog reports it, or for a minute if the watchdog does not.
struct Hold(Arc<AtomicUsize>);

#[module]
impl Hold {
    fn init(reports: Arc<AtomicUsize>) -> Self {
        Self(reports)
    }

    fn run(&self, _number: u64) {
        let begin = Instant::now();
        while self.0.load(Ordering::Acquire) == 0 && begin.elapsed() < Duration::from_secs(60) {
            std::thread::yield_now();
        }
    }
}

#[test]
fn the_watchdog_names_a_module_that_holds_a_worker() {
    let (reports, events) = (Arc::new(AtomicUsize::new(0)), Arc::default());
    let (reported, seen): (_, Arc<std::sync::Mutex<Vec<_>>>) =
        (Arc::clone(&reports), Arc::clone(&events));
    let runtime = tussah::Runtime::builder()
        .workers(1)
        .watchdog(Duration::from_millis(5), move |stuck| {
            // The scheduler may also suspend other events for long.
            let event = stuck.event.unwrap_or_default();
            if event.contains("Hold") {
                seen.lock().expect("no panic").push(event);
                reported.fetch_add(1, Ordering::Release);
            }
        })
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let mut graph = Graph::new("g");
        let args = Args::new().with("reports", reports);
        graph.add::<Hold>("hold", args).expect("the name is free");
        let running = graph.start().expect("it is whole");
        let input = running.input("hold").expect("it takes numbers");
        input.send(1u64).await;
        running.drain().await;
    });
    let events = events.lock().expect("no panic");
    let is_named = events
        .first()
        .is_some_and(|it: &&str| it.contains("flow::kinds::Hold"));
    assert!(is_named, "{events:?}");
}
