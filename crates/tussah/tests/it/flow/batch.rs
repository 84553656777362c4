//! Modules that take batches: what they take ends together, and what they leave comes again.

use tussah::flow::{Args, AsyncOut, Batch, Dropped, Flow, Graph, Module, Out, Via, module};

use super::{Note, Notes};
use crate::runtime;

/// The number of items that the modules take at most.
const MOST: usize = 3;

/// Sends numbers, each in the flow of its last digit.
struct Numbers(u64);

#[module]
impl Numbers {
    fn init(items: u64) -> Self {
        Self(items)
    }

    async fn start(&self, out: &impl AsyncOut<u64>) {
        for number in 0..self.0 {
            out.to(number % 10, number).await;
        }
        (0..10u64).for_each(|key| out.close(key));
    }
}

/// Sends each batch as text. Fails for batches with a 4, and panics for batches with a 7.
fn handle<'b>(batch: impl Iterator<Item = u64> + 'b) -> (Vec<u64>, Result<(), Vec<u64>>) {
    let taken: Vec<_> = batch.collect();
    let has = |digit| taken.iter().any(|number| number % 10 == digit);
    assert!(!has(7), "{taken:?}");
    let result = if has(4) { Err(taken.clone()) } else { Ok(()) };
    (taken, result)
}

#[derive(Default)]
struct Serial;

#[module]
impl Serial {
    fn run(&mut self, items: &mut Batch<u64>, out: &impl Out<Vec<u64>>) -> Result<(), Vec<u64>> {
        assert!((1..=100).contains(&items.len()) && !items.is_empty());
        let (taken, result) = handle(items.take(MOST));
        let last = taken.last().expect("a batch is not empty");
        assert_eq!(items.flow().key(), Some(&(last % 10).into()));
        out.send(taken);
        result
    }
}

#[derive(Default)]
struct Element;

#[module]
impl Element {
    async fn run(
        &self,
        items: &mut Batch<'_, u64>,
        out: &impl AsyncOut<Vec<u64>>,
    ) -> Result<(), Vec<u64>> {
        tussah::yield_now().await;
        let (taken, result) = handle(items.take(MOST));
        tussah::yield_now().await;
        out.send(taken).await;
        result
    }
}

#[derive(Default)]
struct Blocks;

#[module(blocking)]
impl Blocks {
    fn run(&self, items: &mut Batch<u64>, out: &impl Out<Vec<u64>>) -> Result<(), Vec<u64>> {
        let (taken, result) = handle(items.take(MOST));
        out.send(taken);
        result
    }
}

/// Notes batches, and that each is in the flow of its last item.
struct Sink(Notes);

#[module]
impl Sink {
    fn init(notes: Notes) -> Self {
        Self(notes)
    }

    fn run(&mut self, taken: Vec<u64>, flow: &Flow) {
        let last = taken.last().expect("a batch is not empty");
        assert_eq!(flow.key(), Some(&(last % 10).into()));
        taken.iter().for_each(|number| self.0.add(number));
    }
}

/// Sends items through a module, and returns what arrives at `out`, `failed` and `dropped`, and the
/// counts of items that were handled, failed, and ended by a panic.
fn through<M: Module>(items: u64) -> ([Vec<String>; 3], [u64; 3]) {
    let notes = [(); 3].map(|()| Notes::default());
    let [out, failed, dropped] = &notes;
    let counts = runtime(2).block_on(async {
        let mut graph = Graph::new("g");
        graph
            .add::<Numbers>("numbers", Args::new().with("items", items))
            .expect("it is new");
        graph.add::<M>("module", Args::new()).expect("it is new");
        graph.add::<Sink>("out", out.args()).expect("it is new");
        graph
            .add::<Note<Vec<u64>>>("failed", failed.args())
            .expect("it is new");
        graph
            .add::<Note<Dropped<u64>>>("dropped", dropped.args())
            .expect("it is new");
        graph.connect("numbers", "module").expect("both exist");
        graph
            .connect_via("module", "out", Via::queue(2))
            .expect("both exist");
        graph
            .connect("module.failed", "failed")
            .expect("both exist");
        graph
            .connect("module.dropped", "dropped")
            .expect("both exist");
        let running = graph.start().expect("it is whole");
        while running.stats("module").expect("it exists").finished < items {
            tussah::yield_now().await;
        }
        let stats = running.stats("module").expect("it exists");
        running.drain().await;
        [stats.finished, stats.failed, stats.panicked]
    });
    (notes.map(|notes| notes.take()), counts)
}

fn each_item_ends_once<M: Module>() {
    // A serial module may panic five times a minute.
    let items = 50;
    let ([out, failed, dropped], [finished, failures, panics]) = through::<M>(items);
    let number = |text: &String| {
        let digits = text
            .split_once("Some(")
            .map_or(&**text, |(_, digits)| digits);
        digits
            .split(')')
            .next()
            .expect("it is not empty")
            .parse::<u64>()
            .expect("a number")
    };
    let mut ends: Vec<u64> = out.iter().chain(&dropped).map(number).collect();
    ends.sort_unstable();
    assert_eq!(ends, (0..items).collect::<Vec<_>>(), "{out:?} {dropped:?}");
    assert!(
        dropped.iter().all(|text| text.contains("Panicked")),
        "{dropped:?}"
    );
    assert_eq!((finished, panics), (items, 5));
    let numbers = failed.iter().map(|batch| batch.split(',').count() as u64);
    assert_eq!(numbers.sum::<u64>() + dropped.len() as u64, failures);
    assert!(
        !failed.is_empty() && failed.iter().all(|batch| batch.contains('4')),
        "{failed:?}"
    );
    assert!(dropped.len() > 5, "{dropped:?}");
}

#[test]
fn a_serial_module_takes_batches_in_order() {
    each_item_ends_once::<Serial>();
    let ([out, ..], _) = through::<Serial>(4);
    assert_eq!(out, ["0", "1", "2", "3"]);
}

#[test]
fn an_async_module_takes_batches() {
    each_item_ends_once::<Element>();
}

#[test]
fn a_module_that_blocks_takes_batches() {
    each_item_ends_once::<Blocks>();
}
