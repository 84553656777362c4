//! Modules that take batches: what they take ends together, and what they leave comes again.

use std::sync::Arc;
use std::time::Duration;

use tussah::flow::{Args, AsyncOut, Batch, Dropped, Flow, Graph, Module, Out, Via, module};
use tussah::sync::Barrier;

use super::{Note, Notes};
use crate::{by_hand, runtime};

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

/// Notes batches of numbers and of letters, texts, and ticks, in the order of the calls.
struct Mixed(Notes);

#[module]
impl Mixed {
    fn init(notes: Notes) -> Self {
        Self(notes)
    }

    fn run(&mut self, items: &mut Batch<u64>) {
        let len = items.len();
        let taken: Vec<_> = items.take(MOST).collect();
        let left = items.len();
        assert_eq!((left, items.is_empty()), (len - taken.len(), left == 0));
        self.0.add(format!("{taken:?}"));
    }

    #[port]
    fn letters(&mut self, letters: &mut Batch<char>) -> Result<(), String> {
        let taken: String = letters.collect();
        if taken.contains('x') {
            return Err(taken);
        }
        self.0.add(taken);
        Ok(())
    }

    #[port]
    async fn text(&mut self, text: &'static str) {
        tussah::yield_now().await;
        self.0.add(text);
    }

    fn tick(&mut self) {
        self.0.add("tick");
    }
}

#[test]
fn a_module_with_a_batch_may_have_other_ports_and_tick() {
    let (clock, runtime) = by_hand();
    let (notes, failed) = (Notes::default(), Notes::default());
    let (noted, failures) = (notes.clone(), failed.clone());
    runtime.block_on_spawned(async move {
        let every = Duration::from_secs(1);
        let mut graph = Graph::new("g");
        graph
            .add::<Mixed>("mixed", noted.args().with("every", every))
            .expect("it is new");
        graph
            .add::<Note<String>>("failed", failures.args())
            .expect("it is new");
        graph
            .connect("mixed.letters_failed", "failed")
            .expect("both exist");
        let running = graph.start().expect("it is whole");
        let numbers = running.input("mixed").expect("it takes numbers");
        let letters = running.input("mixed.letters").expect("it takes letters");
        let texts = running.input("mixed.text").expect("it takes texts");
        // Nothing is handled before this thread waits.
        for number in 1..=5u64 {
            numbers.send(number).await;
        }
        texts.send("one").await;
        texts.send("two").await;
        for letter in ['a', 'b'] {
            letters.send(letter).await;
        }
        numbers.send(6).await;
        for letter in ['x', 'y'] {
            letters.send(letter).await;
        }
        while running.stats("mixed").expect("it exists").finished < 12 {
            tussah::yield_now().await;
        }
        assert_eq!(running.stats("mixed").expect("it exists").failed, 2);
        clock.advance(every);
        while running.stats("mixed").expect("it exists").finished < 13 {
            tussah::yield_now().await;
        }
        running.drain().await;
    });
    let expected = ["[1, 2, 3]", "[4, 5]", "one", "two", "ab", "[6]", "tick"];
    assert_eq!(notes.take(), expected);
    assert_eq!(failed.take(), [r#""xy""#]);
}

/// The numbers of a flow, and how many batches they came in.
#[derive(Debug, Default)]
struct Sum {
    numbers: Vec<u64>,
    batches: usize,
}

/// Collects the numbers of each flow. Panics for a batch with a 7.
#[derive(Default)]
struct Flows;

#[module]
impl Flows {
    fn begin(&self) -> Sum {
        Sum::default()
    }

    fn run(&self, items: &mut Batch<u64>, sum: &mut Sum, flow: &Flow, out: &impl Out<u64>) {
        let taken: Vec<_> = items.take(MOST).collect();
        assert!(!taken.contains(&7), "{taken:?}");
        let key = flow.key().expect("it is in a flow").clone();
        assert!(taken.iter().all(|&number| key == (number % 10).into()));
        sum.numbers.extend(&taken);
        sum.batches += 1;
        out.send(taken.len() as u64);
    }

    fn end(&self, sum: Sum, ended: &impl Out<(Vec<u64>, bool)>) {
        ended.send((sum.numbers, sum.batches < 3));
    }
}

#[test]
fn a_batch_beside_the_state_of_a_flow_has_items_of_that_flow() {
    let (notes, counts, dropped) = (Notes::default(), Notes::default(), Notes::default());
    let (noted, counted, lost) = (notes.clone(), counts.clone(), dropped.clone());
    runtime(1).block_on_spawned(async move {
        let mut graph = Graph::new("g");
        graph
            .add::<Numbers>("numbers", Args::new().with("items", 60u64))
            .expect("it is new");
        graph.add::<Flows>("flows", Args::new()).expect("it is new");
        graph
            .add::<Note<(Vec<u64>, bool)>>("ended", noted.args())
            .expect("it is new");
        graph
            .add::<Note<u64>>("counts", counted.args())
            .expect("it is new");
        graph
            .add::<Note<Dropped<u64>>>("dropped", lost.args())
            .expect("it is new");
        graph.connect("numbers", "flows").expect("both exist");
        graph.connect("flows", "counts").expect("both exist");
        graph.connect("flows.ended", "ended").expect("both exist");
        graph
            .connect("flows.dropped", "dropped")
            .expect("both exist");
        let running = graph.start().expect("it is whole");
        running.drain().await;
        assert_eq!(running.stats("flows").expect("it exists").panicked, 1);
    });
    // The items of a flow wait behind those of others, and still come in few batches.
    let sums = (0..10).map(|flow| {
        let numbers = (0..6).map(|number| 10 * number + flow);
        // A panic ends the state of flow 7 with its first batch.
        let rest = numbers.filter(|number| flow != 7 || *number > 30);
        format!("({:?}, true)", rest.collect::<Vec<_>>())
    });
    let mut expected: Vec<_> = sums.collect();
    expected.sort();
    assert_eq!(notes.sorted(), expected);
    assert_eq!(dropped.take().len(), MOST);
    assert_eq!(counts.take(), ["3"; 19]);
}

/// Waits until batches of all flows are being handled.
struct Meet(Arc<Barrier>);

#[module]
impl Meet {
    fn init(barrier: Arc<Barrier>) -> Self {
        Self(barrier)
    }

    async fn run(&self, items: &mut Batch<'_, u64>, last: &mut Option<u64>) {
        let number = items.next();
        assert!(*last < number, "in order");
        self.0.wait().await;
        *last = number;
    }
}

#[test]
fn batches_of_different_flows_do_not_wait_for_each_other() {
    runtime(2).block_on(async {
        let mut graph = Graph::new("g");
        graph
            .add::<Numbers>("numbers", Args::new().with("items", 200u64))
            .expect("it is new");
        let args = Args::new().with("barrier", Arc::new(Barrier::new(10)));
        graph.add::<Meet>("meet", args).expect("it is new");
        graph.connect("numbers", "meet").expect("both exist");
        let running = graph.start().expect("it is whole");
        while running.stats("meet").expect("it exists").finished < 200 {
            tussah::yield_now().await;
        }
        assert_eq!(running.stats("meet").expect("it exists").panicked, 0);
        running.drain().await;
    });
}
