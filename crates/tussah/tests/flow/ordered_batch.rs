//! Ordered modules that take batches: the output leaves in the order of the input.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_lite::future::poll_once;
use tussah::flow::expansion::Parcel;
use tussah::flow::{Args, AsyncOut, Batch, Graph, Module, Out, Running, Via, WhenFull, module};
use tussah::stage::Stage;
use tussah::stage::control::{Order, Settings};
use tussah::sync::Notify;

use super::change::Pass;
use super::ordered::{fate, random, through, through_while};
use super::{Note, Notes};
use crate::{by_hand, runtime};

/// Takes some items of each batch, and leaves the others. Some calls take none.
struct Takes {
    seed: u64,
    calls: AtomicU64,
}

impl Takes {
    fn new(seed: u64) -> Self {
        Self {
            seed,
            calls: AtomicU64::new(0),
        }
    }

    fn take(&self, numbers: &mut Batch<u64>) -> Vec<u64> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        numbers.take(random(self.seed, call) as usize % 8).collect()
    }

    /// Returns the output for an item.
    fn sends(&self, number: u64) -> impl Iterator<Item = u64> + use<> {
        (0..fate(self.seed, number).0).map(move |_| number)
    }

    /// Fails or panics sometimes.
    fn end(&self, taken: &[u64]) -> Result<(), u64> {
        match taken
            .first()
            .map(|&first| (first, fate(self.seed, first).1))
        {
            Some((first, 0)) => panic!("item {first}"),
            Some((first, 1)) => Err(first),
            _ => Ok(()),
        }
    }
}

/// Sends items after a delay.
struct Plain(Takes);

#[module(ordered)]
impl Plain {
    fn init(seed: u64) -> Self {
        Self(Takes::new(seed))
    }

    fn run(&self, numbers: &mut Batch<u64>, out: &impl Out<u64>) -> Result<(), u64> {
        let taken = self.0.take(numbers);
        for number in &taken {
            for _ in 0..random(self.0.seed, *number) % 500 {
                std::hint::spin_loop();
            }
            self.0.sends(*number).for_each(|number| out.send(number));
        }
        self.0.end(&taken)
    }
}

/// The same with waits.
struct Waits(Takes);

#[module(ordered)]
impl Waits {
    fn init(seed: u64) -> Self {
        Self(Takes::new(seed))
    }

    async fn run(&self, numbers: &mut Batch<'_, u64>, out: &impl AsyncOut<u64>) -> Result<(), u64> {
        let taken = self.0.take(numbers);
        for number in &taken {
            for _ in 0..random(self.0.seed, *number) % 7 {
                tussah::yield_now().await;
            }
            for number in self.0.sends(*number) {
                out.send(number).await;
            }
        }
        self.0.end(&taken)
    }
}

/// The same on OS threads.
struct Blocks(Plain);

#[module(ordered, blocking)]
impl Blocks {
    fn init(seed: u64) -> Self {
        Self(Plain::init(seed))
    }

    fn run(&self, numbers: &mut Batch<u64>, out: &impl Out<u64>) -> Result<(), u64> {
        std::thread::yield_now();
        self.0.run(numbers, out)
    }
}

fn keeps_the_order<M: Module>() {
    for seed in 0..20 {
        let items = 500;
        let [out, failed, mut dropped] = through::<M>(seed, items, Via::default());
        let sent = (0..items).flat_map(|number| (0..fate(seed, number).0).map(move |_| number));
        assert_eq!(out, sent.collect::<Vec<_>>(), "seed {seed}");
        assert!(failed.is_sorted() && !failed.is_empty(), "seed {seed}");
        dropped.sort_unstable();
        let all = dropped.len();
        dropped.dedup();
        assert!(!dropped.is_empty() && dropped.len() == all, "seed {seed}");
    }
}

#[test]
fn plain_calls_keep_the_order() {
    keeps_the_order::<Plain>();
}

#[test]
fn async_calls_keep_the_order() {
    keeps_the_order::<Waits>();
}

#[test]
fn blocking_calls_keep_the_order() {
    keeps_the_order::<Blocks>();
}

/// Changes the stage of a module again and again: it pauses, serves the newest first, and has more
/// and fewer servlets and smaller and larger batches.
async fn disturb<I: Send + 'static>(stage: Stage<Parcel<I>>, seed: u64) {
    for step in 0.. {
        let random = random(seed, step);
        match random % 4 {
            0 => stage.pause(),
            1 => stage.resume(),
            _ => stage.retune(Settings {
                servlets: Some(random as usize / 4 % 5 + 1),
                batch: Some(random as usize / 32 % 20 + 1),
                order: Some([Order::Fifo, Order::Lifo][random as usize / 1024 % 2]),
                ..Settings::default()
            }),
        }
        for _ in 0..random / 4096 % 20 {
            tussah::yield_now().await;
        }
        stage.resume();
    }
}

/// The order stays while the module's servlets come and go with what they have left.
fn keeps_the_order_while_servlets_change<M: Module>() {
    for seed in 0..4 {
        let items = 500;
        let disturbed = |running: &Running| {
            let stage = running.network().find::<Parcel<M::Item>>("module");
            tussah::spawn(disturb(stage.expect("it is there"), seed)).abort_handle()
        };
        let [out, failed, _] = through_while::<M>(seed, items, Via::queue(50), disturbed);
        let sent = (0..items).flat_map(|number| (0..fate(seed, number).0).map(move |_| number));
        assert_eq!(out, sent.collect::<Vec<_>>(), "seed {seed}");
        assert!(failed.is_sorted(), "seed {seed}");
    }
}

#[test]
fn servlets_that_come_and_go_keep_the_order() {
    keeps_the_order_while_servlets_change::<Plain>();
    keeps_the_order_while_servlets_change::<Waits>();
    keeps_the_order_while_servlets_change::<Blocks>();
}

#[test]
fn items_that_end_in_the_queue_leave_no_gap() {
    for policy in [WhenFull::Shed, WhenFull::DropOldest] {
        let via = Via::queue(5).when_full(policy);
        let [out, failed, _] = through::<Plain>(7, 2000, via);
        assert!(out.is_sorted() && failed.is_sorted());
    }
}

/// Numbers, in turns at two ports.
struct Both(u64);

#[module]
impl Both {
    fn init(items: u64) -> Self {
        Self(items)
    }

    async fn start(&self, even: &impl AsyncOut<u64>, odd: &impl AsyncOut<u64>) {
        for number in 0..self.0 {
            match number % 2 {
                0 => even.send(number).await,
                _ => odd.send(number).await,
            }
        }
    }
}

/// Takes batches at one port and single items at the other.
#[derive(Default)]
struct Mixed;

#[module(ordered)]
impl Mixed {
    fn run(&self, numbers: &mut Batch<u64>, out: &impl Out<u64>) {
        numbers.for_each(|number| out.send(number));
    }

    #[port]
    async fn other(&self, number: u64, out: &impl AsyncOut<u64>) {
        for _ in 0..random(1, number) % 7 {
            tussah::yield_now().await;
        }
        out.send(number).await;
    }
}

#[test]
fn the_ports_of_a_module_share_one_order() {
    let notes = Notes::default();
    runtime(3).block_on(async {
        let mut graph = Graph::new("g");
        let args = Args::new().with("items", 1000u64);
        graph.add::<Both>("both", args).expect("it is new");
        graph.add::<Mixed>("mixed", Args::new()).expect("it is new");
        graph
            .add::<Note<u64>>("note", notes.args())
            .expect("it is new");
        for (from, to) in [
            ("both.even", "mixed"),
            ("both.odd", "mixed.other"),
            ("mixed", "note"),
        ] {
            graph.connect(from, to).expect("both exist");
        }
        graph.start().expect("it is whole").drain().await;
    });
    let expected: Vec<_> = (0..1000).map(|number| number.to_string()).collect();
    assert_eq!(notes.take(), expected);
}

/// Takes one item of each batch. The first one waits until it may go on.
struct First(Arc<Notify>);

#[module(ordered)]
impl First {
    fn init(go: Arc<Notify>) -> Self {
        Self(go)
    }

    async fn run(&self, numbers: &mut Batch<'_, u64>, out: &impl AsyncOut<u64>) {
        let number = numbers.next().expect("a batch has an item");
        if number == 0 {
            self.0.notified().await;
        }
        out.send(number).await;
    }
}

fn settings(servlets: usize, batch: usize) -> Settings {
    Settings {
        servlets: Some(servlets),
        batch: Some(batch),
        ..Settings::default()
    }
}

/// Sends 20 numbers to the instance `first`, and waits until its first call waits to go on, and
/// four others for their turns. Returns its stage.
async fn all_wait(running: &Running, batch: usize) -> Stage<Parcel<<First as Module>::Item>> {
    let stage = running.network().find::<Parcel<_>>("first");
    let stage: Stage<Parcel<<First as Module>::Item>> = stage.expect("it is there");
    stage.retune(settings(5, batch));
    stage.pause();
    let input = running.input("first").expect("it takes numbers");
    for number in 0..20u64 {
        input.send(number).await;
    }
    stage.resume();
    while stage.stats().waiting < 5 {
        tussah::yield_now().await;
    }
    stage
}

#[test]
fn a_returned_item_is_served_although_too_many_wait_for_it() {
    let (notes, go) = (Notes::default(), Arc::new(Notify::new()));
    let (_clock, runtime) = by_hand();
    runtime.block_on(async {
        let mut graph = Graph::new("g");
        let args = Args::new().with("go", Arc::clone(&go));
        graph.add::<First>("first", args).expect("it is new");
        let note = graph.add::<Note<u64>>("note", notes.args());
        note.expect("it is new");
        graph.connect("first", "note").expect("both exist");
        let running = graph.start().expect("it is whole");
        let stage = all_wait(&running, 2).await;
        assert!(notes.take().is_empty());
        stage.retune(settings(1, 2));
        go.notify_one();
        while notes.0.lock().len() < 20 {
            tussah::yield_now().await;
        }
        let expected: Vec<_> = (0..20).map(|number| number.to_string()).collect();
        assert_eq!(notes.take(), expected);
        running.drain().await;
    });
}

/// The servlets that wait for returned items would wait forever if a stage that is held served
/// none of these.
#[test]
fn a_swap_behind_an_ordered_module_waits_for_what_the_module_has_returned() {
    let (notes, go) = (Notes::default(), Arc::new(Notify::new()));
    let (_clock, runtime) = by_hand();
    let noted = notes.clone();
    // On a worker, where other threads have their turns between two polls.
    runtime.block_on_spawned(async move {
        let mut graph = Graph::new("g");
        let args = Args::new().with("go", Arc::clone(&go));
        graph.add::<First>("first", args).expect("it is new");
        graph.add::<Pass>("pass", Args::new()).expect("it is new");
        let note = graph.add::<Note<u64>>("note", notes.args());
        note.expect("it is new");
        let call = graph.connect_via("first", "pass", Via::call());
        call.expect("both exist");
        graph.connect("pass", "note").expect("both exist");
        let running = graph.start().expect("it is whole");
        all_wait(&running, 3).await;
        {
            let mut swap = pin!(running.swap::<Pass>("pass", Args::new()));
            assert!(poll_once(&mut swap).await.is_none(), "calls run");
            go.notify_one();
            let mut swapped = None;
            for _ in 0..10_000 {
                swapped = poll_once(&mut swap).await;
                if swapped.is_some() {
                    break;
                }
                tussah::yield_now().await;
            }
            let swapped = swapped.expect("what was returned is served");
            swapped.expect("it fits");
        }
        running.drain().await;
    });
    let expected: Vec<_> = (0..20).map(|number| number.to_string()).collect();
    assert_eq!(noted.take(), expected);
}
