//! The items of a graph whose time for draining is up: each ends once, and truthfully.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_lite::future::zip;
use tussah::flow::{
    Args, AsyncOut, Batch, Dropped, Graph, Module, Out, Running, Via, WhenFull, module,
};

use super::{Note, Notes, turns};
use crate::{by_hand, runtime};

/// More numbers than an instance has room for.
const COUNT: u64 = 1200;

const HOUR: Duration = Duration::from_secs(3600);

/// Blocks its OS thread until it may go on, and then notes each number.
struct Gate {
    notes: Notes,
    go: Arc<AtomicBool>,
}

#[module(blocking, serial)]
impl Gate {
    fn init(notes: Notes, go: Arc<AtomicBool>) -> Self {
        Self { notes, go }
    }

    fn run(&self, number: u64) {
        while !self.go.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        self.notes.add(number);
    }
}

/// Passes on all numbers of a batch.
#[derive(Default)]
struct Plain;

#[module]
impl Plain {
    fn run(&self, numbers: &mut Batch<u64>, out: &impl Out<u64>) {
        numbers.for_each(|number| out.send(number));
    }
}

/// Does the same one batch at a time.
#[derive(Default)]
struct Serial;

#[module]
impl Serial {
    fn run(&mut self, numbers: &mut Batch<u64>, out: &impl Out<u64>) {
        numbers.for_each(|number| out.send(number));
    }
}

/// Does the same in each flow.
#[derive(Default)]
struct InFlow;

#[module]
impl InFlow {
    fn run(&self, numbers: &mut Batch<u64>, _state: &mut u64, out: &impl Out<u64>) {
        numbers.for_each(|number| out.send(number));
    }
}

/// Does the same, and waits for each.
#[derive(Default)]
struct Async;

#[module]
impl Async {
    async fn run(&self, numbers: &mut Batch<'_, u64>, out: &impl AsyncOut<u64>) {
        for number in numbers {
            out.send(number).await;
        }
    }
}

/// Fails for each number of a batch.
#[derive(Default)]
struct Fail;

#[module]
impl Fail {
    async fn run(&self, numbers: &mut Batch<'_, u64>) -> Result<(), u64> {
        numbers.next().map_or(Ok(()), Err)
    }
}

/// Sends each number, and another.
#[derive(Default)]
struct Many;

#[module]
impl Many {
    async fn run(&mut self, number: u64, out: &impl AsyncOut<u64>) {
        for more in 0..2 {
            out.send(more * 10_000 + number).await;
        }
    }
}

/// Does the same in a method that is not async, beside one that is.
#[derive(Default)]
struct ManyAtOnce;

#[module]
impl ManyAtOnce {
    fn run(&mut self, number: u64, out: &impl Out<u64>) {
        for more in 0..2 {
            out.send(more * 10_000 + number);
        }
    }

    #[port]
    async fn other(&mut self, _number: u64) {}
}

/// Sends numbers through a module to one that takes none before the time for draining is up.
/// Returns the numbers that arrived there, and those that were dropped.
fn drained<M: Module>(port: &str) -> Vec<String> {
    let (clock, runtime) = by_hand();
    let notes = Notes::default();
    let (noted, port) = (notes.clone(), port.to_owned());
    runtime.block_on_spawned(async move {
        let go = Arc::new(AtomicBool::new(false));
        let mut graph = Graph::new("g");
        graph.add::<M>("m", Args::new()).expect("it is new");
        let args = noted.args().with("go", Arc::clone(&go));
        graph.add::<Gate>("gate", args).expect("it is new");
        graph
            .add::<Note<Dropped<u64>>>("lost", noted.args())
            .expect("it is new");
        graph.connect(&port, "gate").expect("both exist");
        for port in ["m.dropped", "gate.dropped"] {
            graph
                .connect_via(port, "lost", Via::queue(20 * COUNT))
                .expect("both exist");
        }
        let running = graph.start().expect("it is whole");
        let input = running.input("m").expect("it takes numbers");
        for number in 1..=COUNT {
            input.send(number).await;
        }
        turns().await;
        let is_up = async {
            clock.advance(Duration::from_secs(2));
            turns().await;
            go.store(true, Ordering::Relaxed);
        };
        zip(running.drain_within(Duration::from_secs(1)), is_up).await;
    });
    notes.sorted()
}

fn sorted(numbers: impl Iterator<Item = u64>) -> Vec<String> {
    let mut notes: Vec<_> = numbers.map(|number| number.to_string()).collect();
    notes.sort();
    notes
}

#[test]
fn a_call_that_waits_for_room_ends_its_items_once() {
    for (name, ended) in [
        ("plain", drained::<Plain>("m")),
        ("serial", drained::<Serial>("m")),
        ("flow", drained::<InFlow>("m")),
        ("async", drained::<Async>("m")),
        ("failed", drained::<Fail>("m.failed")),
    ] {
        assert_eq!(ended, sorted(1..=COUNT), "{name}");
    }
}

#[test]
fn a_call_that_waits_for_room_sends_everything() {
    let more = |more: u64| (1..=COUNT).map(move |number| more * 10_000 + number);
    let all = || (0..2).flat_map(more);
    assert_eq!(drained::<Many>("m"), sorted(all()));
    assert_eq!(drained::<ManyAtOnce>("m"), sorted(all()));
}

/// A graph with an edge that delays items of this type by an hour.
fn delayed(notes: &Notes, via: Via) -> Running {
    type Item = Arc<u64>;
    let mut graph = Graph::new("g");
    let mut add = |name: &str| graph.add::<tussah::modules::Logger<Item>>(name, Args::new());
    add("first").expect("it is new");
    add("second").expect("it is new");
    graph
        .add::<Note<Dropped<Item>>>("lost", notes.args())
        .expect("it is new");
    graph
        .connect_via("first", "second", via.after(HOUR))
        .expect("both exist");
    graph.connect("second.dropped", "lost").expect("both exist");
    graph.start().expect("it is whole")
}

#[test]
fn delayed_items_end_before_the_drain_does() {
    for via in [
        Via::queue(100),
        Via::queue(100).when_full(WhenFull::Shed),
        Via::call(),
    ] {
        let notes = Notes::default();
        let noted = notes.clone();
        runtime(2).block_on_spawned(async move {
            let running = delayed(&noted, via);
            let item = Arc::new(0u64);
            let input = running.input("first").expect("it takes such items");
            for _ in 0..50 {
                input.send(Arc::clone(&item)).await;
            }
            running.drain_within(Duration::ZERO).await;
            assert_eq!(Arc::strong_count(&item), 1);
            let note = "Dropped { item: Some(0), reason: ShutDown, flow: Flow(None) }";
            assert_eq!(noted.take(), [note; 50]);
        });
    }
}
