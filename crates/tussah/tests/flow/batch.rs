//! Modules that take batches: what they take ends together, and what they leave comes again.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
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

/// The batches that a module has taken.
#[derive(Clone, Default)]
struct Taken(Arc<Mutex<Vec<Vec<u64>>>>);

impl Taken {
    /// Notes a batch. Fails for batches with a 4, and panics for batches with a 7.
    fn handle<'b>(
        &self,
        batch: impl Iterator<Item = u64> + 'b,
    ) -> (Vec<u64>, Result<(), Vec<u64>>) {
        let taken: Vec<_> = batch.collect();
        self.0.lock().push(taken.clone());
        assert!(!has(7, &taken), "{taken:?}");
        let result = if has(4, &taken) {
            Err(taken.clone())
        } else {
            Ok(())
        };
        (taken, result)
    }
}

fn has(digit: u64, batch: &[u64]) -> bool {
    batch.iter().any(|number| number % 10 == digit)
}

struct Serial(Taken);

#[module]
impl Serial {
    fn init(taken: Taken) -> Self {
        Self(taken)
    }

    fn run(&mut self, items: &mut Batch<u64>, out: &impl Out<Vec<u64>>) -> Result<(), Vec<u64>> {
        assert!((1..=100).contains(&items.len()) && !items.is_empty());
        let (taken, result) = self.0.handle(items.take(MOST));
        let last = taken.last().expect("a batch is not empty");
        assert_eq!(items.flow().key(), Some(&(last % 10).into()));
        out.send(taken);
        result
    }
}

struct Element(Taken);

#[module]
impl Element {
    fn init(taken: Taken) -> Self {
        Self(taken)
    }

    async fn run(
        &self,
        items: &mut Batch<'_, u64>,
        out: &impl AsyncOut<Vec<u64>>,
    ) -> Result<(), Vec<u64>> {
        tussah::yield_now().await;
        let (taken, result) = self.0.handle(items.take(MOST));
        tussah::yield_now().await;
        out.send(taken).await;
        result
    }
}

struct Blocks(Taken);

#[module(blocking)]
impl Blocks {
    fn init(taken: Taken) -> Self {
        Self(taken)
    }

    fn run(&self, items: &mut Batch<u64>, out: &impl Out<Vec<u64>>) -> Result<(), Vec<u64>> {
        let (taken, result) = self.0.handle(items.take(MOST));
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

/// The ends of the items of a module.
struct Ends {
    taken: Vec<Vec<u64>>,
    /// The notes of what arrives at `out`, `failed` and `dropped`.
    notes: [Vec<String>; 3],
    /// The numbers of items that were handled, failed, and ended by a panic.
    counts: [u64; 3],
}

/// Sends items through a module.
fn through<M: Module>(workers: usize, items: u64) -> Ends {
    let (notes, taken) = ([(); 3].map(|()| Notes::default()), Taken::default());
    let [out, failed, dropped] = &notes;
    let counts = runtime(workers).block_on(async {
        let mut graph = Graph::new("g");
        graph
            .add::<Numbers>("numbers", Args::new().with("items", items))
            .expect("it is new");
        let args = Args::new().with("taken", taken.clone());
        graph.add::<M>("module", args).expect("it is new");
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
    let taken = std::mem::take(&mut *taken.0.lock());
    Ends {
        taken,
        notes: notes.map(|notes| notes.take()),
        counts,
    }
}

/// Checks the ends of all items, whatever batches they come in.
fn each_item_ends_once<M: Module>() {
    // A serial module may panic five times a minute.
    let items = 50;
    let Ends {
        taken,
        notes: [out, mut failed, dropped],
        counts,
    } = through::<M>(2, items);
    let sorted = |numbers: &mut dyn Iterator<Item = u64>| {
        let mut numbers: Vec<_> = numbers.collect();
        numbers.sort_unstable();
        numbers
    };
    let all = sorted(&mut taken.iter().flatten().copied());
    assert_eq!(all, (0..items).collect::<Vec<_>>(), "{taken:?}");
    let (breaks, handled): (Vec<_>, Vec<_>) = taken.iter().partition(|batch| has(7, batch));
    let number = |text: &String| text.parse().expect("a number");
    let out = sorted(&mut out.iter().map(number));
    assert_eq!(out, sorted(&mut handled.iter().copied().flatten().copied()));
    let number = |text: &String| {
        assert!(text.contains("reason: Panicked"), "{text}");
        let (_, digits) = text.split_once("Some(").expect("it can be cloned");
        let (digits, _) = digits.split_once(')').expect("it ends");
        digits.parse().expect("a number")
    };
    let dropped = sorted(&mut dropped.iter().map(number));
    assert_eq!(
        dropped,
        sorted(&mut breaks.iter().copied().flatten().copied())
    );
    let fails = handled.iter().filter(|batch| has(4, batch));
    let mut expected: Vec<_> = fails.clone().map(|batch| format!("{batch:?}")).collect();
    expected.sort();
    failed.sort();
    assert_eq!(failed, expected);
    let failures = fails.map(|batch| batch.len()).sum::<usize>() + dropped.len();
    assert_eq!(counts, [items, failures as u64, breaks.len() as u64]);
}

#[test]
fn a_serial_module_takes_batches_in_order() {
    each_item_ends_once::<Serial>();
    // With one worker, the source sends all items first.
    let ends = through::<Serial>(1, 9);
    assert_eq!(ends.taken, [[0, 1, 2], [3, 4, 5], [6, 7, 8]]);
    let [out, failed, dropped] = ends.notes;
    assert_eq!(out, ["0", "1", "2", "3", "4", "5"]);
    assert_eq!(
        (&*failed, dropped.len()),
        (&["[3, 4, 5]".to_owned()][..], 3)
    );
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
        ended.send((sum.numbers, sum.batches < 4));
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
    // The first batch of the instance takes one item, of the first flow.
    let mut batches = vec!["1", "2"];
    batches.extend(["3"; 18]);
    assert_eq!(counts.sorted(), batches);
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
